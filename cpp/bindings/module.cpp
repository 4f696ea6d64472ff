#include <hockeystick/version.hpp>

#include "active_kernels.hpp"
#include "bind.hpp"
#include "pybind.hpp"
#include "ufuncs.hpp"

PYBIND11_MODULE(_core, bare) {
    const hockeystick::numeric::FloatingEnvironment environment;
    door::Module m(bare);
    m.doc() = "Compiled core of hockeystick; use the functions of the package instead.";
    m.attr("__version__") = HOCKEYSTICK_VERSION;
    m.attr("instruction_set") = active::chosen_at_import().isa;
    m.def("instruction_sets", hockeystick::batch::available);
    m.def("use_instruction_set", active::use_instruction_set, py::arg("name"));
    register_ufuncs(m);
    bind_numeric(bare);
    bind_capsules(m);
    bind_gaussian_dp(m);
    bind_round_sums(m);
    bind_hidden_state(m);
    bind_federated(m);
    bind_chain(m);
    bind_mechanism(m);
    bind_release(m);
    bind_pld(m);
    bind_contour(m);
    bind_accounting(m);
    bind_dpsgd(m);
}
