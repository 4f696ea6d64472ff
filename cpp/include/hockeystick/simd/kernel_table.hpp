// The loops of this room as one instruction set has them: a struct of function pointers, which
// src/batch_kernels.cpp fills once for each. Callers take the struct as an argument; who compiles
// the headers only once passes `own_kernels`.
//
// Which loops earn a pointer: all. 30 epsilons of DP-SGD (sigma 0.6 to 3.5, q 0.003 to 0.05, 500
// and 5000 steps) take 14 million instructions with the loops of v3 and 33 million with those of
// the baseline (callgrind, GCC 12). On v3 characteristic_sums has 15 % of them, fill_privacy_losses
// 12, centred_moment_terms 9, fill_sum_terms and bound_on_path 5 each, exponentiate 4, sum 2,
// multiply_powers, enclose_cell_masses and smoothing_factors 1 each; the others, 4 % together, would
// take three times as many without a pointer.
#pragma once

#include <cstddef>

#include <hockeystick/simd/contour_nodes.hpp>
#include <hockeystick/simd/lanes.hpp>
#include <hockeystick/simd/loss_points.hpp>
#include <hockeystick/simd/loss_windows.hpp>
#include <hockeystick/simd/sampled_gaussian.hpp>
#include <hockeystick/simd/sums.hpp>

namespace hockeystick::simd {

struct Kernels {
    // simd/sampled_gaussian.hpp
    void (*fill_privacy_losses)(const Lattice&, double*, double*, double*, double*, double*, double*, double*);
    void (*fill_tilted_exponents)(const Points&, double, double*, std::size_t);
    void (*exponentiate)(const double*, double, double*, std::size_t);
    void (*centred_moment_terms)(const Points&, double, double*, double*, std::size_t);
    void (*enclose_cell_masses)(const TiltedPoints&, double*, double*);
    void (*bound_on_path)(const CellMasses&, double, double*, double*);
    // simd/sums.hpp
    double (*largest)(const double*, std::size_t);
    double (*sum)(const double*, std::size_t);
    double (*dot)(const double*, const double*, std::size_t);
    // simd/loss_points.hpp
    void (*characteristic_sums)(const double*, const double*, std::size_t, double, std::size_t, double*, double*,
                                double*);
    // simd/contour_nodes.hpp
    void (*multiply_powers)(const StepTransform&, const NodePowers&);
    void (*smoothing_factors)(const NodeLine&, const NodeFactors&, const NodeFactors&);
    void (*fill_sum_terms)(const Nodes&, double, double, double*, double*, double*);
    // simd/loss_points.hpp
    void (*spread_points)(const PointSpread&, double*, double*);
    void (*fill_point_exponents)(const double*, const double*, double, double*, std::size_t);
    void (*centred_point_terms)(const CentredPoints&, double, double*, double*);
    // simd/loss_windows.hpp
    void (*fill_window)(const Lattice&, const Window&, double*, double*);
    void (*fill_logarithms)(const double*, double*, std::size_t);
    double (*sum_damped_above)(const double*, const double*, std::size_t, double);
    double (*sum_grown_below)(const double*, const double*, std::size_t, double, double);
    void (*fill_log_ratios)(const SliceTransforms&, const LogRatios&);
    void (*fill_difference_terms)(const SliceNodes&, double, double, double, double*, double*, double*);
};

inline namespace HOCKEYSTICK_ISA {

// The loops as compiled with the caller's own flags.
inline constexpr Kernels own_kernels = {
    fill_privacy_losses,
    fill_tilted_exponents,
    exponentiate,
    centred_moment_terms,
    enclose_cell_masses,
    bound_on_path,
    largest,
    sum,
    dot,
    characteristic_sums,
    multiply_powers,
    smoothing_factors,
    fill_sum_terms,
    spread_points,
    fill_point_exponents,
    centred_point_terms,
    fill_window,
    fill_logarithms,
    sum_damped_above,
    sum_grown_below,
    fill_log_ratios,
    fill_difference_terms,
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::simd
