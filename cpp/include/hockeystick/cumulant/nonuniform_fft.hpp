// Fourier sums over points that lie anywhere, F(k) = sum_j w_j e^{i k theta_j}, k = 0..N, weights
// w_j >= 0, with a certified error.
//
// Gaussian gridding (Dutt and Rokhlin 1993; Greengard and Lee 2004): the points are spread onto
// R >= 4 N grid points by the taps e^{-m^2/2 s^2}, m in grid steps, transformed by an FFT, and
// divided by the Gaussian's own transform, s sqrt(2 pi) e^{-k^2 t}, t = 2 pi^2 s^2/R^2.
// docs/core/cumulant.md proves: with s^2 = 3.25 and k <= R/4, relatively to F(0),
//
//   aliases     and the taps that are left out err by at most 1.4e-14;
//   rounding    by e^{k^2 t} (32 u + eps), e^{k^2 t} <= 56, eps that of numeric/fft.hpp.
#pragma once

#include <cmath>
#include <map>
#include <memory>
#include <vector>

#include <hockeystick/numeric/fft.hpp>
#include <hockeystick/numeric/log_arithmetic.hpp>
#include <hockeystick/simd/kernel_table.hpp>

namespace hockeystick::cumulant {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;
using namespace simd;

// Re and Im of F(k), and a bound of its error relatively to F(0), k = 0, 1, ...
struct FourierSums {
    std::vector<double> real, imag, error;
    simd::StepTransform step(double count) const {
        return {real.data(), imag.data(), error.data(), count, real.size()};
    }
};

// Plans and memory to use again; one thread at a time. As large as the largest transform, 2^19 at
// most for a contour.
class FourierWorkspace {
  public:
    std::vector<double> sums, rests;

    // Room for n doubles, which are not set.
    double* scratch(std::size_t n) {
        if (n > scratch_length_) scratch_.reset(new double[n]), scratch_length_ = n;
        return scratch_.get();
    }

    struct Plan {
        RealTransform transform;
        std::vector<double> growths;  // e^{k^2 t}, k up to length/4

        explicit Plan(std::size_t length) : transform(length) {
            for (std::size_t k = 0; 4 * k <= length; ++k) {
                const double turn = pi * static_cast<double>(k) / static_cast<double>(length);
                growths.push_back(std::exp(2.0 * simd::tap_variance * turn * turn));
            }
        }
    };
    const Plan& plan(std::size_t length) {
        auto& plan = plans_[length];
        if (!plan) plan = std::make_unique<Plan>(length);
        return *plan;
    }

  private:
    std::map<std::size_t, std::unique_ptr<Plan>> plans_;  // making one takes longer than its transform
    std::unique_ptr<double[]> scratch_;
    std::size_t scratch_length_ = 0;
};

inline std::size_t nonuniform_length(std::size_t highest) {
    std::size_t length = 64;
    while (length < 4 * highest) length *= 2;
    return length;
}

// For theta_j = step losses_j, j < n, n a multiple of simd::lanes; k up to `highest`. Beside
// `error`, every theta_j is off by less than 3u of itself.
inline FourierSums nonuniform_transform(const double* losses, const double* weights, std::size_t n, double step,
                                        std::size_t highest, FourierWorkspace& workspace,
                                        const simd::Kernels& kernels) {
    using simd::taps;
    const std::size_t length = nonuniform_length(highest), padded = length + taps;
    std::vector<double>&sums = workspace.sums, &rests = workspace.rests;
    sums.assign(padded, 0.0);
    rests.assign(padded, 0.0);
    kernels.spread_points({losses, weights, n, step / (2.0 * pi), length}, sums.data(), rests.data());
    for (std::size_t m = 0; m < padded; ++m) sums[m] += rests[m];
    double* signal = sums.data() + taps / 2;
    for (std::size_t m = 0; m < taps / 2; ++m) {
        signal[m] += signal[length + m];
        signal[length - taps / 2 + m] += sums[m];
    }
    const FourierWorkspace::Plan& plan = workspace.plan(length);
    plan.transform.forward(signal);
    const double scale = 1.0 / std::sqrt(2.0 * pi * simd::tap_variance);
    const double rounding = fft_relative_error(length) + 32.0 * unit_roundoff;
    FourierSums f;
    for (auto* array : {&f.real, &f.imag, &f.error}) array->resize(highest + 1);
    for (std::size_t k = 0; k <= highest; ++k) {
        const double growth = plan.growths[k];
        // The signal starts at half a period: hence the signs.
        const double factor = k % 2 == 0 ? scale * growth : -scale * growth;
        f.real[k] = factor * signal[k == 0 ? 0 : 2 * k - 1];
        f.imag[k] = k == 0 ? 0.0 : -factor * signal[2 * k];
        f.error[k] = 1.4e-14 + growth * rounding;
    }
    return f;
}

// The same less F(0), from an FFT. `total` is F(0), `mean` the mean of |L|.
inline FourierSums differences_by_fft(const std::vector<double>& losses, const std::vector<double>& weights,
                                      double mean, double h, std::size_t n, FourierWorkspace& workspace,
                                      const simd::Kernels& kernels) {
    constexpr double u = unit_roundoff;
    const std::size_t points = losses.size();
    FourierSums f = nonuniform_transform(losses.data(), weights.data(), points, h, n, workspace, kernels);
    const double total = kernels.sum(weights.data(), points);
    for (double& x : f.real) x -= total;
    const double summing = u * (static_cast<double>(points) / 8.0 + 8.0);
    for (std::size_t k = 0; k <= n; ++k) f.error[k] += summing + 4.0 * u * static_cast<double>(k) * h * mean;
    f.real[0] = f.imag[0] = f.error[0] = 0.0;
    return f;
}

// The same by rotations, without cancellation: errors are proportional to what the sums are at
// most. docs/core/cumulant.md derives them up to 32u min(2, k h mean), which the callers charge
// (Proposition 5). Turns of more than half a radian a node are rare, and cost more.
inline FourierSums differences_by_rotations(const std::vector<double>& losses, const std::vector<double>& weights,
                                            double mean, double h, std::size_t n, FourierWorkspace& workspace,
                                            const simd::Kernels& kernels) {
    constexpr double u = unit_roundoff;
    const std::size_t points = losses.size();
    FourierSums f;
    for (auto* array : {&f.real, &f.imag, &f.error}) array->assign(n + 1, 0.0);
    kernels.characteristic_sums(losses.data(), weights.data(), points, h, n, f.real.data() + 1, f.imag.data() + 1,
                                workspace.scratch(2 * simd::lanes * n));
    // Roundings of a sum, besides those of its eight lanes.
    const double chunks = static_cast<double>(points) / simd::chunk_of_points;
    const double roundings = 16.0 * min(chunks, 1.0) + chunks;
    for (std::size_t k = 1; k <= n; ++k) {
        const double order = static_cast<double>(k), angle = order * h * mean;
        const bool first = k <= simd::half_block;
        f.error[k] = u * (first ? roundings + 6.0 * order : 3.2 * roundings + 1.3 * order + 35.0) * min(2.0, angle);
        if (h * mean > 0.5) f.error[k] += u * (first ? 20.0 * order : 2.4 * order + 175.0);
    }
    return f;
}

// sum_j w_j (e^{i k h L_j} - 1), k = 0..n, and bounds of their errors relatively to sum w: by
// rotations, or by an FFT where that is less work. Empty where it is too much. `mean` is that of
// |L|. Points are a multiple of simd::lanes; `work` counts on.
inline FourierSums characteristic_differences(const std::vector<double>& losses, const std::vector<double>& weights,
                                              double mean, double h, std::size_t n, FourierWorkspace& workspace,
                                              const simd::Kernels& kernels, double& work) {
    constexpr double max_work = 2e7;
    const double points = static_cast<double>(losses.size()), nodes = static_cast<double>(n);
    const double length = static_cast<double>(nonuniform_length(n)), size = length * std::log2(length);
    const double visited = min(points * nodes, 100.0 * points + 4.0 * size);
    if (visited > max_work) return {};
    work += visited;
    // In units of 0.6 ns on AVX2, of 0.4 ns on AVX-512 (EPYC). Spreading a point takes less than these
    // 100, but an FFT errs more than rotations do.
    const double by_rotations = points * (0.3 * nodes + 18.0), by_fft = 100.0 * points + 0.7 * size;
    return by_fft < by_rotations ? differences_by_fft(losses, weights, mean, h, n, workspace, kernels)
                                 : differences_by_rotations(losses, weights, mean, h, n, workspace, kernels);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::cumulant
