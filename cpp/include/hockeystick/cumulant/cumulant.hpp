// The cumulant log M(s), M(s) = E_P[e^{sL}], of one step's privacy loss L = log dP/dQ for complex
// s: what the contour engine (contour/contour.hpp) composes. Every cumulant says what it errs by.
//
// A cumulant may leave out losses beyond a cutoff (cumulant/sampled_gaussian.hpp). All it says is
// then about the rest of P, and `log_missing` is the logarithm of the mass that the rest lacks,
// which the engine sends to infinity.
//
// docs/core/cumulant.md has the theorems and the proofs for this room.
#pragma once

#include <memory>
#include <vector>

#include <hockeystick/numeric/interval.hpp>
#include <hockeystick/numeric/log_arithmetic.hpp>
#include <hockeystick/simd/contour_nodes.hpp>

namespace hockeystick::cumulant {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;
using namespace simd;

// What is known of phi(k h) = M(s_k)/M(c) at the nodes s_k = c + i k h, k = 0, 1, ..., for all
// steps together.
struct NodeTable {
    std::vector<double> log_abs, phase;
    std::vector<double> error;  // relative, of phi: quadrature and rounding

    explicit NodeTable(std::size_t n = 0) : log_abs(n), phase(n), error(n) {}
    simd::NodePowers powers() { return {log_abs.data(), phase.data(), error.data()}; }
};

// What `multiply_powers` may err by, in units of u min(2, omega E|L|), of phi. Let x = |phi - 1|.
// Where x <= 1/2, |log phi| <= 1.39 x, and the logarithm errs by at most 8u of itself. Elsewhere
// the angle errs by 7u, absolutely, and |phi| log|phi| by u.
inline constexpr double power_error = 16.0;

// By how much phi(omega) moves, at most, if a weight errs by delta, relatively: E delta
// |e^{i omega L} - phi|, where the last factor is at most min(2, omega (|L| + E|L|)). The arguments
// are E delta, E delta |L| and E|L|.
inline double transform_error(double weight_error, double product_error, double loss, double omega) {
    return 1.1 * min(2.0 * weight_error, omega * (product_error + weight_error * loss));
}

class Cumulant {
  public:
    struct Moment {
        double value, error;  // log M(c), and how far it may be off
    };

    virtual ~Cumulant() = default;
    virtual Moment log_moment(double c) const = 0;
    // The largest log |phi(omega')| over omega <= omega' < decay_end(c), or more; never positive.
    virtual double log_decay(double c, double omega) const = 0;
    // From this frequency on, no more is known than |phi| <= 1.
    virtual double decay_end(double /*c*/) const { return infinity; }
    // Adds `count` steps to the nodes up to k = `last`. Returns false where that would take too
    // much work.
    virtual bool add_nodes(double c, double h, std::size_t last, double count, NodeTable& nodes) const = 0;
    virtual double log_missing() const { return -infinity; }
    virtual double log_variance() const = 0;  // of L near c = 0, roughly: searches start from it
    virtual double highest() const { return infinity; }
    virtual double lowest() const { return -infinity; }
    virtual double work() const { return 0.0; }  // points visited so far, times nodes
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::cumulant
