#include <hockeystick/divergence/gaussian_dp.hpp>

#include "bind.hpp"
#include "blocks.hpp"

using grid::ClosedForms;

void bind_gaussian_dp(door::Module& m) {
    const auto define = [&](const char* name, grid::Stage stage) {
        const std::size_t count = stage.columns.size();
        grid::define(m, name, count, {std::move(stage)});
    };
    define("gdp_delta", {&ClosedForms::gdp_delta, {0, 1}});
    define("gdp_dp_delta", {&ClosedForms::gdp_dp_delta, {0, 1}});
    define("gdp_epsilon", {&ClosedForms::gdp_epsilon, {0, 1}, grid::of_row(hockeystick::divergence::gdp_epsilon)});
    define("gdp_trade_off", {&ClosedForms::gdp_trade_off, {0, 1}});
    define("gdp_rdp", {&ClosedForms::gdp_rdp, {0, 1}});
    define("gdp_advantage", {&ClosedForms::gdp_advantage, {0}});
}
