// The shifts of an optimum of shifted interpolation (hidden_state/shifted_interpolation.hpp),
// written out as a certificate that needs no trust in the optimiser.
//
// A weight lambda_{t+1} in [0, 1] says which share of the gap a round hides: a_t = lambda_{t+1}
// (rho_t z_t + gamma_t), z_{t+1} = (1 - lambda_{t+1}) (rho_t z_t + gamma_t). Any weights that end
// with 1 are feasible, so the sum of a_t^2 that this recursion gives is a bound.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <hockeystick/hidden_state/shifted_interpolation.hpp>

namespace hockeystick::hidden_state {
inline namespace HOCKEYSTICK_ISA {

// Writes the gaps after rounds first..last, one block that starts from `gap` and pays `shifts`.
//
// The map z -> rho z + gamma - a loses accuracy where rho > 1, its inverse where rho < 1. Both are
// run, and every round keeps the better one; `errors` holds what the forward run may have lost, in
// ulps.
inline void block_gaps(const double* rho, const double* gamma, const double* shifts, std::size_t first,
                       std::size_t last, double gap, double* gaps, double* errors) {
    double error = 0.0;
    for (std::size_t t = first; t <= last; ++t) {
        const double before_shift = rho[t] * gap + gamma[t];
        gap = gaps[t] = before_shift - shifts[t];
        error = errors[t] = rho[t] * error + before_shift;
    }
    double after = 0.0;
    error = 0.0;
    for (std::size_t t = last + 1; t-- > first;) {
        if (error < errors[t]) gaps[t] = std::max(after, 0.0);
        error = (error + after + shifts[t]) / rho[t];
        after = (after + shifts[t] - gamma[t]) / rho[t];
    }
}

// Writes the pooled blocks' shifts and the weights that make them, both zero before the start, and
// returns the sum of the squared shifts of the recursion with these weights.
inline double shifted_interpolation_certificate(const std::vector<ShiftBlock>& blocks, const double* rho,
                                                const double* gamma, std::size_t rounds, double gap, double* shifts,
                                                double* weights) {
    const std::size_t start = blocks.front().start;
    std::fill(shifts, shifts + start, 0.0);
    std::fill(weights, weights + start, 0.0);
    std::vector<double> errors(rounds);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
        const std::size_t end = b + 1 < blocks.size() ? blocks[b + 1].start : rounds;
        double log_shift = blocks[b].log_shift;
        for (std::size_t t = end; t-- > blocks[b].start;) {
            shifts[t] = std::exp(log_shift);
            log_shift += std::log(rho[t]);
        }
        block_gaps(rho, gamma, shifts, blocks[b].start, end - 1, b == 0 ? gap : 0.0, weights, errors.data());
        for (std::size_t t = blocks[b].start; t < end; ++t) {
            weights[t] = t + 1 == end || !(weights[t] > 0.0) ? 1.0 : shifts[t] / (shifts[t] + weights[t]);
        }
    }
    double value = 0.0;
    for (std::size_t t = start; t < rounds; ++t) {
        const double before_shift = rho[t] * gap + gamma[t];
        shifts[t] = weights[t] * before_shift;
        gap = (1.0 - weights[t]) * before_shift;
        value += shifts[t] * shifts[t];
    }
    return value;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::hidden_state
