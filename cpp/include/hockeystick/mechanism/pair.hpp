// `Pair`, the interface of every mechanism: a dominating pair (P, Q) of one release.
//
// A pair dominates a mechanism if its hockey-stick divergence E_{e^eps}(P || Q) is, at every eps,
// at least that of the mechanism's outputs on any two adjacent data sets. Privacy loss means
// L = log dP/dQ. Each pair is read in two directions: `remove` (a record is removed) compares P
// with Q, `add` compares Q with P. A mechanism leaks the larger of the two divergences. Where a
// record is replaced, the same two words stand for the two orders of the data sets.
//
// A new mechanism is one class that derives from Pair, in a file of its own. The class must give
// its privacy loss. It may give its cumulant (the contour engine then serves it), a closed form
// of its Renyi divergence, and one of the pair on a Poisson sample.
//
// Pairs are immutable and shared. Constructors check their parameters and throw
// std::invalid_argument, whose text names the argument, its domain and its value. No other function
// checks those parameters again.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <typeinfo>
#include <utility>
#include <vector>

#include <hockeystick/cumulant/cumulant.hpp>
#include <hockeystick/cumulant/gaussian_pieces.hpp>
#include <hockeystick/cumulant/nonuniform_fft.hpp>
#include <hockeystick/divergence/direction.hpp>
#include <hockeystick/loss/curve_integral.hpp>
#include <hockeystick/loss/poisson_sampled.hpp>
#include <hockeystick/mechanism/renyi.hpp>
#include <hockeystick/numeric/domain.hpp>
#include <hockeystick/numeric/floating_environment.hpp>
#include <hockeystick/numeric/require.hpp>

namespace hockeystick::mechanism {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;
using namespace loss;
using namespace cumulant;
using divergence::Direction;

// The end of a bracket that a pair is for. A pair for the upper end leaks at least as much as the
// mechanism, a pair for the lower end at most as much.
enum class End { lower, upper };

// A positive value of a short formula, such that a pair with this shift serves `end`.
inline double rounded_to(double value, End end) { return value * (end == End::upper ? up : down); }

// The rate of a Poisson sample of a Poisson sample, one ulp towards `end`. A rate for the lower end
// may underflow to 0.
inline double product_of_rates(double one, double other, End end) {
    return std::nextafter(one * other, end == End::upper ? 1.0 : 0.0);
}

// The reciprocal of a noise multiplier is the shift, which must be finite too.
inline void require_noise_multiplier(double x) {
    require(positive(x), "noise_multiplier", "be positive and finite", x);
    require(1.0 / x < infinity, "noise_multiplier", "be above 2^-1024, so that its reciprocal is finite", x);
}

// What a cumulant needs for its sums: the loops of an instruction set, and scratch memory that all
// cumulants of one composition share.
struct CumulantTools {
    const simd::Kernels* kernels;
    std::shared_ptr<FourierWorkspace> workspace;
};

// One more word of a digest: FNV-1a, with a shift that carries the high bits, where doubles differ,
// into the low ones. Unlike std::hash it is the same in every process and on every platform.
inline std::uint64_t digested(std::uint64_t digest, std::uint64_t word) {
    const std::uint64_t mixed = (digest ^ word) * 0x100000001b3u;
    return mixed ^ (mixed >> 32);
}
inline std::uint64_t digested(std::uint64_t digest, double x) {
    x += 0.0;  // -0 is 0
    std::uint64_t bits;
    std::memcpy(&bits, &x, sizeof x);
    return digested(digest, bits);
}
inline constexpr std::uint64_t empty_digest = 0xcbf29ce484222325u;

class Pair;
using PairPointer = std::shared_ptr<const Pair>;

class Pair : public std::enable_shared_from_this<Pair> {
  public:
    virtual ~Pair() = default;

    // The privacy loss of one release.
    virtual Loss loss(Direction direction) const = 0;

    // The same as a table, for engines that look up thousands of losses; it may leak more or less
    // than `loss` says, as the end of the bracket needs that the pair is for.
    virtual Loss loss_for_grid(Direction direction) const { return loss(direction); }

    // Whether the pairs of a bracket's two ends are tables on either side of one law. What lies
    // between them is then a numerical error, not a gap between a bound and what is attained.
    virtual bool is_rounded_to_grid() const { return false; }

    // Whether `loss` and `cumulant` are those of the other pair.
    virtual bool has_law_of(const Pair& other) const { return equals(other); }

    // Whether both directions have the same divergence at every eps.
    virtual bool symmetric() const { return true; }

    // Whether P differs from Q.
    virtual bool leaks() const { return true; }

    // The probability with which a release reveals which data set it is of, the same on both; then
    // `without_disclosure()` is the pair of all other releases. accounting/revealed.hpp factors it
    // out.
    virtual double revealing_probability() const { return 0.0; }
    virtual PairPointer without_disclosure() const { return shared_from_this(); }

    // This pair without its largest moves, such as many copies of a record in one batch, and the
    // probability of what was left out, at most about `share`. A release that reveals the data set with
    // that probability, and else is the pair without, leaks at least as much. Null if nothing can go.
    struct WithoutRare {
        PairPointer pair;
        double probability = 0.0;
    };
    virtual WithoutRare without_rare(double /*share*/) const { return {}; }
    // Whether it may be other than null.
    virtual bool has_rare() const { return false; }

    // Whether the class has a cumulant, log E_P e^{sL} for complex s, of the pair on a Poisson
    // sample of this rate. Rate 1 means the pair itself.
    virtual bool has_cumulant(double /*rate*/) const { return false; }

    // The cumulant where `has_cumulant(rate)` holds, else null. It may leave out losses beyond
    // `cutoff`; cumulant/cumulant.hpp says how it accounts for them.
    virtual std::unique_ptr<Cumulant> cumulant(double /*rate*/, Direction, double /*cutoff*/,
                                               const CumulantTools&) const {
        return nullptr;
    }

    // Whether that cumulant leaves out losses beyond the cutoff.
    virtual bool has_cutoff(double /*rate*/, Direction) const { return false; }

    // The same for a batch of fixed size that has the record with probability `rate`, where a
    // record is replaced (mechanism/fixed_size_sampled.hpp). Both directions have one law.
    virtual bool has_fixed_size_cumulant(double /*rate*/) const { return false; }
    virtual std::unique_ptr<Cumulant> fixed_size_cumulant(double /*rate*/, double /*cutoff*/,
                                                          const CumulantTools&) const {
        return nullptr;
    }

    // An upper bound of the Renyi divergence, of an order >= 1, of the pair on a Poisson sample of
    // this rate. Where a class has no closed form, the curves of both directions make it
    // (loss/curve_integral.hpp); it is infinite where a loss is.
    virtual double renyi(double order, double rate, Direction direction) const;

    // The logarithm of one of the two integrals that make a Renyi divergence, of the curve of one
    // direction of the pair on a Poisson sample of this rate; rounded up.
    virtual double log_integral(double order, double rate, Direction direction, Half half) const;

    // The Renyi divergence by these integrals.
    double curve_renyi(double order, double rate, Direction direction) const;

    // A simple upper bound of the Renyi divergence of an order above 1, of the mechanism that this
    // pair stands for, on a Poisson sample of this rate; infinity where none is known. It bounds
    // the far tails of unbounded losses.
    virtual double coarse_renyi(double order, double rate, Direction direction) const;

    // Gaussian noise, perhaps on a Poisson sample. The shift is the distance of the two means in
    // standard deviations, 1/noise_multiplier. Both are 0 for every other pair.
    struct GaussianNoise {
        double noise_multiplier = 0.0, shift = 0.0, rate = 1.0;
    };
    virtual GaussianNoise gaussian_noise() const { return {}; }

    // Whether this is Gaussian noise without sampling. Such steps compose to one such step.
    bool is_gaussian() const {
        const GaussianNoise noise = gaussian_noise();
        return noise.shift > 0.0 && noise.rate == 1.0;
    }

    // The shift of a Gaussian pair that dominates this one, or infinity if none is known. Sampled
    // Gaussian noise is dominated by the same noise without sampling, because a sample's output is
    // a mixture and the divergence is jointly convex.
    virtual double dominating_shift() const { return infinity; }

    // The shift of a Gaussian pair whose concentrated divergence (zCDP) is at least that of this
    // pair, or NaN if none is known.
    virtual double concentrated_shift() const { return nan; }

    // Whether the mechanism has a pair of its own for each two data sets, the worst of which this
    // one is at every epsilon: many steps then leak less than compositions of this pair.
    virtual bool composes_loosely() const { return false; }

    // The width of the intervals of losses, if those are all that is known of the mechanism
    // (loss/bounded_range.hpp); else NaN.
    virtual double loss_range() const { return nan; }

    // For lower ends: of the pairs that some two data sets attain, nearly the one of the largest Renyi divergence of
    // this order, from 1/2 on. Null if the class knows no other than itself.
    virtual PairPointer attained_at(double /*order*/) const { return nullptr; }

    // Another pair that dominates the mechanism; null if the class knows none. The engine takes the one by which
    // the composition leaks less.
    virtual PairPointer alternative() const { return nullptr; }

    // The pair on a Poisson sample of 0 < rate < 1 where a record is added or removed, if the class
    // knows a simpler one than PoissonSampled; else null. Callers use `poisson_sampled`
    // (mechanism/poisson_sampled.hpp), which handles both cases.
    virtual PairPointer sampled(double /*rate*/, End) const { return nullptr; }

    // The pair on a Poisson sample of 0 < rate < 1 where a record is replaced, if the class has a
    // closed form; else null.
    virtual PairPointer sampled_and_replaced(double /*rate*/, End) const { return nullptr; }

    // Two pairs are equal if their classes, their parameters and their bases are.
    virtual std::vector<double> parameters() const = 0;
    // The pair that is sampled, if this one samples another; else null.
    virtual PairPointer base() const { return nullptr; }

    // Pairs of one law (`has_law_of`) have equal digests. They order the steps of a ledger, so that
    // no digit of an answer depends on the order of composition.
    virtual std::uint64_t law_digest() const {
        std::uint64_t digest = empty_digest;
        for (const char* letter = typeid(*this).name(); *letter; ++letter)
            digest = digested(digest, static_cast<std::uint64_t>(*letter));
        for (const double parameter : parameters()) digest = digested(digest, parameter);
        const PairPointer sampled = base();
        return sampled ? digested(digest, sampled->law_digest()) : digest;
    }

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

// log(1 + a (a-1) e^{log_integral})/(a - 1), rounded up (loss/curve_integral.hpp).
inline double renyi_of_integral(double order, double log_integral) {
    if (log_integral == -infinity) return 0.0;
    const double less = order - 1.0, margin = sixteen_roundings * (4.0 + std::fabs(log_integral));
    if (less == 0.0) return std::exp(log_integral) * (1.0 + margin);
    return log_sum(0.0, std::log(order) + std::log(less) + log_integral) / less * (1.0 + margin);
}

inline double Pair::curve_renyi(double order, double rate, Direction direction) const {
    const double growing = log_integral(order, rate, direction, Half::growing);
    return renyi_of_integral(order, log_sum(growing, log_integral(order, rate, opposite(direction), Half::falling)));
}

inline double Pair::renyi(double order, double rate, Direction direction) const {
    return min(curve_renyi(order, rate, direction), order > 1.0 ? coarse_renyi(order, rate, direction) : infinity);
}

inline double Pair::coarse_renyi(double order, double rate, Direction direction) const {
    const double shift = min(dominating_shift(), std::fmin(concentrated_shift(), infinity));
    if (shift < infinity) return coarse_gaussian_renyi(shift, order, rate);
    const OneStep step(loss(direction));
    return step.infinite_mass().upper == 0.0 ? max(step.highest().upper, 0.0) : infinity;
}

inline double Pair::log_integral(double order, double rate, Direction direction, Half half) const {
    Loss curve = loss(direction);
    if (rate < 1.0 && direction == Direction::remove) curve = std::make_shared<PoissonRemoveLoss>(curve, rate);
    else if (rate < 1.0) curve = std::make_shared<PoissonAddLoss>(curve, rate);
    return log_curve_integral(curve, order, half, [&](double b) { return coarse_renyi(b, rate, direction); });
}

// A new pair of the class. Not inline, so that a program may leave it, and with it all functions of
// the class, to the compiled library (accounting/compiled.hpp).
template <class Mechanism, class... Arguments> PairPointer made(Arguments... arguments) {
    const FloatingEnvironment environment;
    return std::make_shared<Mechanism>(std::move(arguments)...);
}

// `count` steps, each of which releases the same pair.
struct CountedPair {
    PairPointer pair;
    double count;
};

using Steps = std::vector<CountedPair>;

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism
