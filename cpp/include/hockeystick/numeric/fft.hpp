// The one seam to a fast Fourier transform: real signals, double precision, forward and backward.
//
// The transform is pocketfft's (BSD-3-Clause), found by CMake in the `pythran` wheel or given by an
// embedder through the include path. Lengths are powers of two: then every stage is a radix-2 or
// radix-4 butterfly, for which Higham (Accuracy and Stability, 2002, Theorem 24.2) proves
//
//   ||computed - exact||_2 <= log2(n) eta / (1 - log2(n) eta) ||exact||_2,
//   eta = mu + gamma_4 (sqrt 2 + mu),
//
// with gamma_4 about 4u and mu the error of the twiddle factors. pocketfft's are right to an ulp
// (mu <= 2u), so eta < 8u = fft_constant u. The tests find errors at least five times below this,
// on random, peaked and alternating signals.
#pragma once

#include <cstddef>

#define POCKETFFT_NO_MULTITHREADING
#include <pocketfft.hpp>

#include <hockeystick/numeric/elementary.hpp>

namespace hockeystick::numeric {
inline namespace HOCKEYSTICK_ISA {

inline constexpr double fft_constant = 8.0;  // eta/u of the theorem above, rounded up

// A bound of the relative error, in the 2-norm, of one transform of length n.
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
    explicit RealTransform(std::size_t n) : plan_(n) {}
    std::size_t length() const { return plan_.length(); }
    void forward(double* x) const { plan_.exec(x, 1.0, true); }
    void backward(double* x) const { plan_.exec(x, 1.0 / static_cast<double>(length()), false); }

  private:
    pocketfft::detail::pocketfft_r<double> plan_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::numeric
