// A ledger whose largest losses are cut off: its moments, the decay of its characteristic function,
// the nodes of its lines.
//
// The contour engine (contour/contour.hpp, docs/core/contour.md) composes cumulants. Those of
// sampled mechanisms leave out the outcomes beyond a loss cutoff; `log_missing` bounds their mass.
//
// From top to bottom: the grids on which lines lie; the nodes of lines (NodeCache); the ledger under
// one cutoff (TruncatedLedger), and under the few cutoffs of a question (Truncations).
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include <hockeystick/contour/result.hpp>
#include <hockeystick/cumulant/cumulant.hpp>
#include <hockeystick/divergence/chernoff.hpp>
#include <hockeystick/numeric/root.hpp>
#include <hockeystick/simd/kernel_table.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

using namespace cumulant;
using namespace divergence;
using namespace numeric;
using namespace simd;

// The grids of a line, by integer indices: its tilt c, the spacing h of its nodes, its last
// frequency. Because these lie on grids, what is computed for one line serves every later question
// that chooses the same line, and no answer depends on the questions asked before it.

// Positive tilts are 2^{index/8}. Negative ones, which look at 1 - delta, are -1/(1 + 2^{(index -
// middle)/8}): they lie in (-1, 0), dense at both ends.
struct TiltGrid {
    static constexpr int first_positive = -800, last_positive = 800;
    static constexpr int middle = -2000, negative_span = 800;
    static constexpr int lowest = middle - negative_span, last_negative = middle + negative_span;

    static double tilt(int index) {
        return index >= first_positive ? std::exp2(0.125 * index) : -1.0 / (1.0 + std::exp2(0.125 * (index - middle)));
    }
    // The index of the largest positive tilt that is at most c, nearly.
    static int index_near(double c) { return static_cast<int>(8.0 * std::log2(min(max(c, 1e-25), 1e25))); }
};

// Last frequencies are 2^{index/4}; `powers` are those of 2^{1/4}.
inline double frequency_at(int cutoff_index) {
    constexpr double powers[] = {1.0, 1.189207115002721, 1.4142135623730951, 1.681792830507429};
    return powers[cutoff_index & 3] * power_of_two(round_magic + (cutoff_index >> 2));
}

// Spacings are 2^{-index/2}.
inline double spacing_at(int spacing_index) { return std::exp2(-0.5 * spacing_index); }

// A line of more nodes is out of proportion.
inline constexpr int log2_max_nodes = 17;

namespace tune {
inline constexpr double log_below_delta = 30.0;  // what a tight cutoff leaves out is that much below delta
}  // namespace tune

// The nodes of contour lines, kept for the next sum over the same line.
//
// What it saves: within a question, the nodes of a line are summed 5 to 20 times, by Newton's
// iteration and by the certificate of either end. Between questions about one ledger, it saves 70 %
// of their time where steps or delta change little from one to the next (32 us a question instead
// of 116, measured on steps 1000 to 1199 of sigma = 1, rate = 0.01), 45 % where lines are long, and
// nothing where every question needs lines of its own.

// One line's nodes and what they are multiplied by; arrays are padded to a multiple of simd::lanes.
struct LineNodes {
    struct Factors {
        std::vector<double> real, imag, size;
        explicit Factors(std::size_t n = 0) : real(n), imag(n), size(n) {}
        simd::NodeFactors pointers() { return {real.data(), imag.data(), size.data()}; }
    };

    NodeTable phi{0};
    Factors kernel{0};   // 1/(s (s + 1)), and the smoothing
    Factors density{0};  // the smoothing alone; empty where there is none
    double c = 0.0, h = 0.0;
    std::size_t n = 0, padded = 0;
    bool usable = false;

    std::size_t bytes() const { return sizeof(LineNodes) + (6 * padded + 3 * density.real.size()) * sizeof(double); }
};

class NodeCache {
  public:
    // All that the nodes of a ledger's line depend on; the indices are those of
    // TiltGrid, spacing_at and frequency_at.
    struct Key {
        int loss_cutoff, tilt_index, spacing_index, cutoff_index;
        double smoothing;

        friend bool operator==(const Key& x, const Key& y) {
            return x.loss_cutoff == y.loss_cutoff && x.tilt_index == y.tilt_index &&
                   x.spacing_index == y.spacing_index && x.cutoff_index == y.cutoff_index && x.smoothing == y.smoothing;
        }
    };

    // Null where there are none.
    const LineNodes* find(const Key& key) {
        const auto found = by_key_.find(key);
        if (found == by_key_.end()) return nullptr;
        latest_.splice(latest_.begin(), latest_, found->second);
        return &found->second->nodes;
    }

    // Evicts what was asked for longest ago, if need be. The reference is good until the next
    // insertion.
    const LineNodes& insert(const Key& key, LineNodes&& nodes) {
        const std::size_t added = nodes.bytes();
        for (; !latest_.empty() && bytes_ + added > max_bytes; latest_.pop_back()) {
            bytes_ -= latest_.back().nodes.bytes();
            by_key_.erase(latest_.back().key);
        }
        std::list<Entry> made;
        made.push_back({key, std::move(nodes)});
        by_key_.emplace(key, made.begin());
        latest_.splice(latest_.begin(), made);
        bytes_ += added;
        return latest_.front().nodes;
    }

    std::size_t bytes() const { return bytes_; }

  private:
    static constexpr std::size_t max_bytes = 10000000;  // or the last line alone

    struct Entry {
        Key key;
        LineNodes nodes;
    };
    struct Hash {
        std::size_t operator()(const Key& key) const {
            constexpr std::uint64_t golden = 0x9e3779b97f4a7c15u;  // 2^64/golden ratio, odd
            std::uint64_t hash = to_bits(key.smoothing);
            for (const int index : {key.loss_cutoff, key.tilt_index, key.spacing_index, key.cutoff_index})
                hash = (hash ^ static_cast<std::uint64_t>(index)) * golden;
            return static_cast<std::size_t>(hash >> 20);
        }
    };

    std::list<Entry> latest_;
    std::unordered_map<Key, std::list<Entry>::iterator, Hash> by_key_;
    std::size_t bytes_ = 0;
};

// One entry of a ledger.
struct ContourPart {
    std::unique_ptr<Cumulant> cumulant;
    double count;
};

// What a question is about: the ledger `times` over, and one more Gaussian step of shift
// `smoothing`, if that is not 0.
struct Repeated {
    double times, smoothing = 0.0;
};

// K(c) at one tilt c, and what Chernoff's bound needs beside it.
struct TiltedMoment {
    double c, value, error;
    double log_constant;  // log kappa(c) for c > 0; 0 for c < 0, where the bound is one of 1 - delta
    bool known;
};

// What the smoothing step adds to K(c).
inline double log_smoothing(double c, const Repeated& repeated) {
    return 0.5 * repeated.smoothing * repeated.smoothing * c * (c + 1.0);
}

// An upper end of the logarithm of e^{K(c) - c eps}, the unit in which a line's sum is taken.
inline double log_unit(const TiltedMoment& m, const Repeated& repeated, double eps) {
    return repeated.times * (m.value + m.error) + log_smoothing(m.c, repeated) - m.c * eps;
}

// log of Chernoff's bound of delta(eps) (c > 0), or of 1 - delta(eps) (c < 0).
inline double log_chernoff(const TiltedMoment& m, const Repeated& repeated, double eps) {
    return log_unit(m, repeated, eps) + m.log_constant;
}

// Not for several threads at once: it keeps the moments and decays that it computes.
class TruncatedLedger {
  public:
    TruncatedLedger(int loss_cutoff, std::vector<ContourPart> parts, const simd::Kernels& kernels, NodeCache& cache)
        : loss_cutoff_(loss_cutoff), parts_(std::move(parts)), kernels_(kernels), cache_(cache) {
        for (const ContourPart& part : parts_) {
            log_missing_ = log_sum(log_missing_, std::log(part.count) + part.cumulant->log_missing());
            highest_ += part.count * part.cumulant->highest();
            least_loss_ += part.count * part.cumulant->lowest();
            variance_ += part.count * std::exp(part.cumulant->log_variance());
        }
    }

    const TiltedMoment& at(int tilt_index) {
        TiltedMoment& known = cache_entry_at(tilt_index).moment;
        if (known.known) return known;
        const double c = TiltGrid::tilt(tilt_index);
        TiltedMoment m{c, 0.0, 0.0, tilt_index >= TiltGrid::first_positive ? log_kappa(c) : 0.0, true};
        // A sum of n terms errs by n u of their sizes.
        const auto entries = static_cast<double>(parts_.size());
        for (const ContourPart& part : parts_) {
            const Cumulant::Moment moment = part.cumulant->log_moment(c);
            m.value += part.count * moment.value;
            m.error += part.count * (moment.error + entries * sound::of_a_cumulant * std::fabs(moment.value));
        }
        return known = m;
    }

    // Chernoff's bound of epsilon at delta.
    double chernoff_epsilon(int tilt_index, const Repeated& repeated, double log_delta) {
        const TiltedMoment& m = at(tilt_index);
        return (log_chernoff(m, repeated, 0.0) - log_delta) / m.c;
    }

    // A guess of epsilon by the saddle point, if this tilt is best for it: delta = e^{K - c eps}/(c
    // (c+1) sqrt(2 pi K'')).
    double expected_epsilon(int tilt_index, const Repeated& repeated, double log_delta) {
        const TiltedMoment& m = at(tilt_index);
        const double variance = repeated.times * variance_at(tilt_index) + repeated.smoothing * repeated.smoothing;
        const double spread = m.c * (m.c + 1.0) * std::sqrt(2.0 * pi * variance);
        return (log_unit(m, repeated, 0.0) - log_delta - std::log(spread)) / m.c;
    }

    // The positive tilt of the smallest Chernoff bound of delta(eps), or one where enough(log of
    // the bound) holds.
    template <class Enough = bool (*)(double)> int best_tilt(double times, double eps, const Enough& enough = never) {
        const auto bound = [&](int index) { return log_chernoff(at(index), {times}, eps); };
        const double spread = times * variance_, guess = max(eps / spread, 1.0 / std::sqrt(spread));
        return minimising_index(bound, TiltGrid::index_near(guess), TiltGrid::first_positive, TiltGrid::last_positive,
                                enough, 4);
    }
    // The positive tilt of the smallest Chernoff bound of epsilon at delta.
    int best_tilt_for_delta(double times, double log_delta) {
        const auto bound = [&](int index) { return chernoff_epsilon(index, {times}, log_delta); };
        const double guess = std::sqrt(2.0 * (1.0 - log_delta) / (times * variance_));
        return minimising_index(bound, TiltGrid::index_near(guess), TiltGrid::first_positive, TiltGrid::last_positive,
                                never, 4);
    }
    // The negative tilt of the smallest Chernoff bound of 1 - delta(eps).
    int best_negative_tilt(double times, double eps) {
        const auto bound = [&](int index) { return log_chernoff(at(index), {times}, eps); };
        return minimising_index(bound, TiltGrid::middle, TiltGrid::lowest, TiltGrid::last_negative);
    }

    // The curvature K'' at a tilt, by its neighbours on the grid; that of small tilts where they do
    // not tell. A guess.
    double variance_at(int tilt_index) {
        if (tilt_index <= TiltGrid::lowest || tilt_index >= TiltGrid::last_positive) return variance_;
        const TiltedMoment &left = at(tilt_index - 1), &m = at(tilt_index), &right = at(tilt_index + 1);
        const double before = (m.value - left.value) / (m.c - left.c),
                     after = (right.value - m.value) / (right.c - m.c);
        const double found = 2.0 * (after - before) / (right.c - left.c);
        return found > 0.0 && found < infinity ? found : variance_;
    }

    // An upper bound of log |phi(omega)| for all omega from frequency_at(cutoff_index) on that are
    // below decay_end().
    double log_decay(int tilt_index, int cutoff_index) {
        double& known = decay_at(cache_entry_at(tilt_index), cutoff_index);
        if (known <= 0.0) return known;
        double sum = 0.0;
        for (const ContourPart& part : parts_)
            sum += part.count * part.cumulant->log_decay(TiltGrid::tilt(tilt_index), frequency_at(cutoff_index)) *
                   (1.0 - sound::decay_slack);
        return known = sum;
    }

    // From this frequency on, only the parts that decay for good have a bound: `log_decay_beyond`.
    double decay_end(int tilt_index) const {
        const double c = TiltGrid::tilt(tilt_index);
        double end = infinity;
        for (const ContourPart& part : parts_) end = min(end, part.cumulant->decay_end(c));
        return end;
    }
    double log_decay_beyond(int tilt_index, double end) const {
        const double c = TiltGrid::tilt(tilt_index);
        double sum = 0.0;
        for (const ContourPart& part : parts_)
            if (part.cumulant->decay_end(c) == infinity)
                sum += part.count * part.cumulant->log_decay(c, end) * (1.0 - sound::decay_slack);
        return sum;
    }

    // The nodes of a line, with a smoothing step of that shift. Good until the next call.
    const LineNodes& nodes(int tilt_index, int spacing_index, int cutoff_index, double smoothing) {
        const NodeCache::Key key{loss_cutoff_, tilt_index, spacing_index, cutoff_index, smoothing};
        if (const LineNodes* known = cache_.find(key)) return *known;
        LineNodes made;
        fill(made, TiltGrid::tilt(tilt_index), spacing_at(spacing_index), frequency_at(cutoff_index));
        if (!made.usable) return cache_.insert(key, {});
        set_factors(made, smoothing);
        return cache_.insert(key, std::move(made));
    }

    // What is kept, nearly, without the nodes; a cumulant may keep cells for its decay.
    std::size_t bytes() const {
        constexpr std::size_t cumulant_bytes = 100000;
        return index_bytes_ + parts_.size() * cumulant_bytes;
    }

    double count() const {
        double sum = 0.0;
        for (const ContourPart& part : parts_) sum += part.count;
        return sum;
    }
    double work() const {
        double sum = 0.0;
        for (const ContourPart& part : parts_) sum += part.cumulant->work();
        return sum;
    }
    int loss_cutoff() const { return loss_cutoff_; }
    double log_missing() const { return log_missing_; }  // of all steps together, as the next three
    double highest() const { return highest_; }          // the largest loss
    double least_loss() const { return least_loss_; }
    double variance() const { return variance_; }  // of the loss at small tilts, roughly

  private:
    void fill(LineNodes& line, double c, double h, double last) const {
        const double wanted = std::ceil(last / h);
        line.c = c;
        line.h = h;
        line.usable = wanted <= std::exp2(log2_max_nodes);
        if (!line.usable) return;
        const std::size_t n = line.n = static_cast<std::size_t>(wanted) + 1;
        line.padded = (n + simd::lanes - 1) / simd::lanes * simd::lanes;
        line.phi = NodeTable(line.padded);
        for (const ContourPart& part : parts_) {
            if (!part.cumulant->add_nodes(c, h, n - 1, part.count, line.phi)) {
                line.usable = false;
                return;
            }
        }
        // Twice, because phases may cancel.
        const double summing = static_cast<double>(parts_.size()) * 2.0 * sound::of_a_cumulant;
        for (std::size_t k = 0; k < n; ++k)
            line.phi.error[k] += summing * (std::fabs(line.phi.log_abs[k]) + std::fabs(line.phi.phase[k]));
    }

    // The nodes beyond n, up to a multiple of `lanes`, keep weight 0.
    void set_factors(LineNodes& line, double smoothing) const {
        line.kernel = LineNodes::Factors(line.padded);
        LineNodes::Factors alone(line.padded);
        kernels_.smoothing_factors({line.c, line.h, smoothing * smoothing, line.n}, alone.pointers(),
                                   line.kernel.pointers());
        if (smoothing > 0.0) line.density = std::move(alone);
    }

    // What is known at one tilt: its moment, and its decays at consecutive cutoff indices, positive
    // where not known.
    struct TiltEntry {
        TiltedMoment moment;
        int first_cutoff;
        std::vector<double> decays;
    };

    TiltEntry& cache_entry_at(int tilt_index) {
        const auto place = static_cast<std::size_t>(tilt_index - TiltGrid::lowest);
        auto& page = pages_[place / page_size];
        if (page.empty()) {
            page.resize(page_size);
            index_bytes_ += page_size * sizeof(TiltEntry);
        }
        return page[place % page_size];
    }

    double& decay_at(TiltEntry& entry, int cutoff_index) {
        std::vector<double>& decays = entry.decays;
        const std::size_t before = decays.size();
        if (decays.empty()) entry.first_cutoff = cutoff_index;
        if (cutoff_index < entry.first_cutoff) {
            decays.insert(decays.begin(), static_cast<std::size_t>(entry.first_cutoff - cutoff_index), infinity);
            entry.first_cutoff = cutoff_index;
        }
        const auto place = static_cast<std::size_t>(cutoff_index - entry.first_cutoff);
        if (place >= decays.size()) decays.resize(place + 1, infinity);
        index_bytes_ += (decays.size() - before) * sizeof(double);
        return decays[place];
    }

    static constexpr std::size_t page_size = 64;

    int loss_cutoff_;
    std::vector<ContourPart> parts_;
    const simd::Kernels& kernels_;
    NodeCache& cache_;
    double log_missing_ = -infinity, highest_ = 0.0, least_loss_ = 0.0, variance_ = 0.0;
    std::vector<TiltEntry> pages_[(TiltGrid::last_positive - TiltGrid::lowest) / page_size + 1];
    std::size_t index_bytes_ = 0;
};

// A ledger under several loss cutoffs: the default one, and the few that the last question used.
//
// The other truncations are rebuilt when a later question needs them. That costs nothing that can
// be measured: their nodes, which are the expensive part, stay in the cache that all truncations
// share.
class Truncations {
  public:
    // Makes the ledger's cumulants under a loss cutoff, in the unit that these cumulants use.
    using Factory = std::function<std::vector<ContourPart>(double loss_cutoff)>;

    // What cutoffs mean to the cumulants of a ledger. Those of sampled Gaussians err by what their
    // losses near the cutoff weigh under a tilt: their default leaves out e^-341 in each step. Laws
    // of pieces (cumulant/gaussian_pieces.hpp) do not, so that the least range is the best: their
    // default leaves out e^-76.
    struct Cutoffs {
        bool any = false;  // whether any cumulant depends on the cutoff
        int default_cutoff = 26, margin = 8;
        static Cutoffs of_pieces() { return {true, 12, 0}; }
    };

    Truncations(Factory make, const simd::Kernels& kernels, int default_cutoff)
        : make_(std::move(make)), kernels_(kernels), default_cutoff_(default_cutoff),
          cache_(std::make_unique<NodeCache>()) {}

    // Good until `evict_cutoffs`.
    TruncatedLedger& at(int loss_cutoff) {
        if (loss_cutoff == default_cutoff_ && default_) return *default_;
        for (auto ledger = others_.begin(); ledger != others_.end(); ++ledger) {
            if ((*ledger)->loss_cutoff() != loss_cutoff) continue;
            others_.splice(others_.begin(), others_, ledger);
            return *others_.front();
        }
        auto made =
            std::make_unique<TruncatedLedger>(loss_cutoff, make_(static_cast<double>(loss_cutoff)), kernels_, *cache_);
        if (loss_cutoff == default_cutoff_) return *(default_ = std::move(made));
        others_.push_front(std::move(made));
        return *others_.front();
    }

    // The smallest cutoff x with T Q(x) <= e^-30 delta: what is missing is at most Q(x) in each
    // step. It must be an integer, hence at most 1e6; no delta needs more.
    int tight_cutoff(double times, double log_delta) {
        const double log_mass = log_delta - tune::log_below_delta - std::log(times * at(default_cutoff_).count());
        return static_cast<int>(std::ceil(min(std::sqrt(-2.0 * min(log_mass, -1.0)), 1e6)));
    }

    // Forgets all but the default and the `max_count` cutoffs that were asked for last.
    void evict_cutoffs(std::size_t max_count) {
        for (; others_.size() > max_count; others_.pop_back()) evicted_work_ += others_.back()->work();
    }

    std::size_t bytes() const {
        std::size_t sum = cache_->bytes();
        for_each([&](const TruncatedLedger& ledger) { sum += ledger.bytes(); });
        return sum;
    }
    double work() const {
        double sum = evicted_work_;
        for_each([&](const TruncatedLedger& ledger) { sum += ledger.work(); });
        return sum;
    }

  private:
    template <class Visit> void for_each(const Visit& visit) const {
        if (default_) visit(*default_);
        for (const auto& ledger : others_) visit(*ledger);
    }

    Factory make_;
    const simd::Kernels& kernels_;
    int default_cutoff_;
    std::unique_ptr<NodeCache> cache_;  // on the heap, since ledgers refer to it and owners may move
    std::unique_ptr<TruncatedLedger> default_;
    std::list<std::unique_ptr<TruncatedLedger>> others_;  // latest first
    double evicted_work_ = 0.0;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour
