#include <hockeystick/version.hpp>

#include "bind.hpp"
#include "pybind.hpp"
#include "ufuncs.hpp"

PYBIND11_MODULE(_core, m) {
    const auto& kernels = hockeystick::batch::choose();
    m.doc() = "Compiled core of hockeystick; use the functions of the package instead.";
    m.attr("__version__") = HOCKEYSTICK_VERSION;
    m.attr("instruction_set") = kernels.isa;
    register_ufuncs(m, kernels);
    bind_capsules(m, kernels);
    bind_gaussian_dp(m, kernels.closed);
    bind_round_sums(m);
    bind_hidden_state(m, kernels.closed);
    bind_federated(m, kernels.closed);
    bind_chain(m);
    bind_mechanism(m);
    bind_release(m);
    bind_pld(m);
    bind_contour(m, kernels.contour);
    bind_accounting(m, kernels.contour);
    bind_dpsgd(m, kernels.contour);
}
