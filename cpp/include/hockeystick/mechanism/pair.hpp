// A dominating pair (P, Q) of one release, and all that is asked of it: the registry of mechanisms.
//
// A pair dominates a mechanism if its divergence E_{e^eps}(P || Q) is at least that of the
// mechanism's outputs on any two adjacent data sets, at every eps. Under the direction `remove` the
// pair is (P, Q), under `add` it is (Q, P); a ledger leaks the larger of both. A new mechanism is
// one class that derives from Pair, in a file of its own: it must give its privacy loss, and may
// give its cumulant (then the contour engine serves it), its Renyi divergence, and what stands for
// it when it runs on a Poisson sample.
//
// Pairs are immutable and shared. Constructors check their parameters and throw
// std::invalid_argument, whose text names the argument, its domain and its value; what they check
// is not checked again.
#pragma once

#include <functional>
#include <memory>
#include <typeinfo>
#include <utility>
#include <vector>

#include <hockeystick/cumulant/cumulant.hpp>
#include <hockeystick/cumulant/nonuniform_fft.hpp>
#include <hockeystick/loss/privacy_loss.hpp>
#include <hockeystick/numeric/domain.hpp>
#include <hockeystick/numeric/require.hpp>

namespace hockeystick::mechanism {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;
using namespace loss;
using namespace cumulant;

enum class Direction { remove, add };

// Which end of a bracket a pair is for: a pair for the upper end leaks at least as much as the
// truth, one for the lower end at most as much.
enum class End { lower, upper };

inline double rounded_to(double value, End end) { return value * (end == End::upper ? up : down); }

// What cumulants need to do their sums: the loops of an instruction set, and scratch that they
// share.
struct CumulantTools {
    const simd::Kernels* kernels;
    std::shared_ptr<FourierWorkspace> workspace;
};

class Pair;
using PairPointer = std::shared_ptr<const Pair>;

class Pair : public std::enable_shared_from_this<Pair> {
  public:
    virtual ~Pair() = default;

    // What one release leaks.
    virtual Loss loss(Direction direction) const = 0;

    // Whether both directions leak the same.
    virtual bool symmetric() const { return true; }

    // Whether P differs from Q.
    virtual bool leaks() const { return true; }

    // Whether a cumulant is known for the pair on a Poisson sample of this rate; rate 1 is the pair
    // itself.
    virtual bool has_cumulant(double /*rate*/) const { return false; }

    // That cumulant, where there is one. Losses beyond `cutoff` may be left out:
    // cumulant/cumulant.hpp.
    virtual std::unique_ptr<Cumulant> cumulant(double /*rate*/, Direction, double /*cutoff*/,
                                               const CumulantTools&) const {
        return nullptr;
    }

    // The Renyi divergence of an order >= 1 on a Poisson sample of this rate, rounded up; NaN where
    // no bound is known.
    virtual double renyi(double /*order*/, double /*rate*/, Direction) const { return nan; }

    // Gaussian noise, perhaps on a Poisson sample: its noise multiplier and rate; a noise of 0 for
    // all other pairs.
    struct GaussianNoise {
        double noise_multiplier = 0.0, shift = 0.0, rate = 1.0;
    };
    virtual GaussianNoise gaussian_noise() const { return {}; }

    // Whether this is Gaussian noise without sampling: the compositions of such steps are such a
    // step again.
    bool is_gaussian() const {
        const GaussianNoise noise = gaussian_noise();
        return noise.shift > 0.0 && noise.rate == 1.0;
    }

    // The shift of a Gaussian pair that dominates this one, or infinity: mixing is jointly convex,
    // so that sampled Gaussian noise leaks no more than the noise without sampling.
    virtual double dominating_shift() const { return infinity; }

    // The distance between two Gaussians whose concentrated divergence (zCDP) bounds this pair's,
    // or NaN.
    virtual double concentrated_shift() const { return nan; }

    // The pair on a Poisson sample, a record added or removed; 0 < rate < 1. A product of rates is
    // rounded towards `end`.
    virtual PairPointer sampled(double rate, End end) const = 0;

    // The pair on a Poisson sample, a record replaced, where it has a closed form; else null. 0 <
    // rate < 1.
    virtual PairPointer sampled_and_replaced(double /*rate*/, End) const { return nullptr; }

    // All that tells two pairs of one class apart.
    virtual std::vector<double> parameters() const = 0;
    virtual PairPointer base() const { return nullptr; }  // of a sampled pair

    // Equal pairs have equal hashes.
    std::size_t hash() const {
        std::size_t seed = typeid(*this).hash_code() + (base() ? 31 * base()->hash() : 0);
        for (const double parameter : parameters()) seed = 1000003 * seed + std::hash<double>{}(parameter);
        return seed;
    }
    bool equals(const Pair& other) const {
        if (this == &other) return true;
        if (typeid(*this) != typeid(other) || parameters() != other.parameters()) return false;
        const PairPointer mine = base(), theirs = other.base();
        return mine == theirs || (mine && theirs && mine->equals(*theirs));
    }
};

// `count` equal steps.
struct CountedPair {
    PairPointer pair;
    double count;
};

using Steps = std::vector<CountedPair>;

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism
