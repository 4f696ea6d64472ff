#include <hockeystick/divergence/gaussian_dp.hpp>

#include "bind.hpp"
#include "grid.hpp"

void bind_gaussian_dp(py::module_& m) {
    namespace hs = hockeystick;
    grid::define(m, "gdp_delta", hs::divergence::gdp_delta);
    grid::define(m, "gdp_dp_delta", hs::divergence::gdp_dp_delta);
    grid::define(m, "gdp_epsilon", hs::divergence::gdp_epsilon);
    grid::define(m, "gdp_trade_off", hs::divergence::gdp_trade_off);
    grid::define(m, "gdp_rdp", hs::divergence::gdp_rdp);
    grid::define(m, "gdp_advantage", hs::divergence::gdp_advantage);
}
