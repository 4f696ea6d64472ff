// The one seam to a fast Fourier transform: real signals, double precision, forward and backward.
//
// The transform is pocketfft's (BSD-3-Clause), found by CMake in the `pythran` wheel or given by an
// embedder through the include path. Lengths are powers of two. Then every stage has radix 4, but
// for one of radix 2 where log2(n) is odd.
//
// Error. With t = log2(n) and eps = 8 t u/(1 - 8 t u),
//
//   ||computed - exact||_2 <= eps ||exact||_2,
//   |computed_k - exact_k| <= eps sum_j |x_j|   for every k, forward; backward, 1/n of it, the sum
//                                               over all n coefficients.
//
// Theorem 24.2 of Higham (Accuracy and Stability of Numerical Algorithms, 2002) is the first of
// these for radix 2 and a general error mu of the twiddle factors. docs/core/cumulant.md proves
// both for pocketfft's stages and its twiddle factors, which are products of two table entries:
// mu <= 8.9 u. The stages' errors add up to less than 6.9 t u. The tests find errors at least five
// times below the bound, on random, peaked and alternating signals.
#pragma once

#include <cstddef>

#define POCKETFFT_NO_MULTITHREADING
#include <pocketfft.hpp>

#include <hockeystick/numeric/elementary.hpp>

namespace hockeystick::numeric {
inline namespace HOCKEYSTICK_ISA {

// The error of a stage, in units of u, for each factor 2 of its radix.
inline constexpr double fft_constant = 8.0;

// The bound eps above for one transform of length n.
inline double fft_relative_error(std::size_t n) {
    double stages = 0.0;
    for (std::size_t length = 1; length < n; length *= 2) stages += 1.0;
    const double sum = stages * fft_constant * unit_roundoff;
    return sum / (1.0 - sum);
}

// Transforms of one length, a power of two, in place. The spectrum of n real values is packed as
// x_0, Re x_1, Im x_1, ..., x_{n/2}, with x_k = sum_j signal_j exp(-2 pi i j k/n). Twice n doubles
// are held or used for a while.
class RealTransform {
  public:
    explicit RealTransform(std::size_t n) : length_(n), plan_(n) {}
    std::size_t length() const { return length_; }
    void forward(double* x) const { plan_.exec(x, 1.0, true); }
    void backward(double* x) const { plan_.exec(x, 1.0 / static_cast<double>(length()), false); }

  private:
    std::size_t length_;
    // What pocketfft_r takes for a power of two. pocketfft_r itself would compile complex transforms too.
    pocketfft::detail::rfftp<double> plan_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::numeric
