// The privacy loss L = log dP/dQ of a dominating pair (P, Q): what every mechanism must tell. The
// pairs and the proofs that they dominate: docs/core/loss.md.
//
// `masses(eps)` cuts the outcomes into {L <= eps} and {L > eps}; each mass is relatively accurate
// in its own tail. The mass that P has where Q has none (L = inf) is `p_infinite()` and belongs to
// neither side. `delta(eps)` is the exact hockey-stick divergence, without the cancellation of
// p_above - e^eps q_above.
//
// Errors: masses have a relative error of (1 + scale()) (32 + 24 |log mass|) u, and belong to a cut
// at eps (1 + 8u) + 8u. pld/ charges both.
#pragma once

#include <memory>
#include <vector>

#include <hockeystick/divergence/hockey_stick.hpp>

namespace hockeystick::loss {
inline namespace HOCKEYSTICK_ISA {

using namespace divergence;

// The masses of P and Q on {L <= eps} and on {eps < L < inf}.
struct LossMasses {
    double p_below, p_above, q_below, q_above;
};

// A node of a quadrature over the outcomes: a loss, and the logarithms of the weights of P and Q
// there. It is good enough to choose a tilt by.
struct OutlinePoint {
    double loss, log_p, log_q;
};

// The rounding errors of the answers about one step, beyond the relative error of the formulas
// (loss/one_step.hpp).
struct LossErrors {
    double relative = sixteen_roundings;  // of any loss
    double loss = 0.0;                    // of any loss
    double growing = 0.0;                 // of a loss eps, in units of e^eps
    double growing_until = infinity;      // from this loss on it grows no more
    double highest = 0.0;                 // of highest(), beside `loss`
    double atoms = 0.0;                   // terms that are summed
    double infinite = 0.0;                // relative, of p_infinite(), in units of 2u
    // The rate of a Poisson sample from which a record was removed, 0 for all others: a loss eps
    // errs by 16 u (1 - log rate) min(rate + eps, 1) besides.
    double removed_rate = 0.0;
};

class PrivacyLoss {
  public:
    virtual ~PrivacyLoss() = default;
    virtual LossMasses masses(double eps) const = 0;
    virtual double delta(double eps) const = 0;
    virtual double p_infinite() const { return 0.0; }
    virtual double lowest() const = 0;   // of the finite losses that P knows; may be -inf
    virtual double highest() const = 0;  // of the finite losses; may be inf
    // The error of highest(), beyond a relative 1e-14.
    virtual double highest_error() const { return 0.0; }
    // The spacing of a grid through 0 on which all atoms lie; 0 if there is none.
    virtual double lattice() const { return 0.0; }
    virtual double scale() const { return 0.0; }  // see Errors above
    virtual LossErrors errors() const { return {}; }
    virtual std::vector<OutlinePoint> outline() const = 0;
    // The shift of a Gaussian mechanism, whose compositions are Gaussian; 0 for all others.
    virtual double gaussian_shift() const { return 0.0; }
};

using Loss = std::shared_ptr<const PrivacyLoss>;

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::loss
