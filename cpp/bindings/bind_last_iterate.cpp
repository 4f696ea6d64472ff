#include <hockeystick/hidden_state/projected_sgd.hpp>

#include "bind.hpp"
#include "grid.hpp"

void bind_last_iterate(py::module_& m) {
    namespace hs = hockeystick;
    grid::define(m, "pnsgd_gaussian", hs::hidden_state::pnsgd_gaussian);
    grid::define(m, "pnsgd_laplace", hs::hidden_state::pnsgd_laplace);
    grid::define(m, "pnsgd_gaussian_random_stop", hs::hidden_state::pnsgd_gaussian_random_stop);
    grid::define(m, "pnsgd_rdp", hs::hidden_state::pnsgd_rdp);
}
