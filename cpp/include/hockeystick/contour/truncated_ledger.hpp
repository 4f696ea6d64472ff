// A ledger of cumulants under one cut, with all that was computed for its tilts (contour/contour.hpp): moments, decays, nodes.
//
// Tilts, frequencies and node spacings lie on fixed grids, so that what is kept for a tilt depends on nothing else.
#pragma once

#include <complex>
#include <memory>
#include <utility>

#include <hockeystick/contour/node_cache.hpp>
#include <hockeystick/cumulant/cumulant.hpp>
#include <hockeystick/divergence/chernoff.hpp>
#include <hockeystick/simd/kernel_table.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

using namespace divergence;

using namespace simd;
using namespace cumulant;

// One entry of a ledger.
struct ContourPart {
    std::unique_ptr<Cumulant> cumulant;
    double count;
};

// What is composed: a ledger `times` over, and one Gaussian step of shift `smoothing`, if that is not 0.
struct Repeated {
    double times, smoothing = 0.0;
};

inline bool never(double) { return false; }

// Smallest f(k) over integers, for f that falls and then rises; or the first found with enough(f(k)).
template <class Function, class Enough = bool (*)(double)>
int lowest_point(const Function& f, int start, int first, int last, const Enough& enough = never) {
    int at = start < first ? first : start > last ? last : start;
    double value = f(at);
    while (!(value < infinity) && at - 16 >= first) value = f(at -= 16);  // from where moments do not exist
    for (const int stride : {16, 4, 1}) {
        for (const int direction : {1, -1}) {
            for (int next = at + direction * stride; next >= first && next <= last; next += direction * stride) {
                if (enough(value)) return at;
                const double there = f(next);
                if (!(there < value)) break;
                at = next;
                value = there;
            }
        }
    }
    return at;
}

// A ledger under one cut, with all that was computed for its tilts.
class ContourLevel {
  public:
    ContourLevel(std::vector<ContourPart> parts, const simd::Kernels& kernels)
        : parts_(std::move(parts)), kernels_(kernels) {
        for (const ContourPart& part : parts_) {
            log_missing_ = log_sum(log_missing_, std::log(part.count) + part.cumulant->log_missing());
            highest_ += part.count * part.cumulant->highest();
            least_loss_ += part.count * part.cumulant->lowest();
            variance_ += part.count * std::exp(part.cumulant->log_variance());
        }
    }

    // Tilts by number: k >= first_positive are 2^{k/8}, below that -1/(1 + 2^{(k - middle)/8}).
    static constexpr int first_positive = -800, last_positive = 800, middle = -2000, reach = 800;
    static constexpr int lowest = middle - reach, log2_most_nodes = 17;
    static double tilt(int k) {
        return k >= first_positive ? std::exp2(0.125 * k) : -1.0 / (1.0 + std::exp2(0.125 * (k - middle)));
    }

    // K(c) and what Chernoff's bound needs beside it.
    struct Tilt {
        double c, value, error;
        double log_constant;  // of delta; 0 for c < 0, where it is 1 - delta
        bool known;
    };

    const Tilt& at(int k) const {
        Tilt& kept = kept_at(k).tilt;
        if (kept.known) return kept;
        Tilt t{tilt(k), 0.0, 0.0, k >= first_positive ? log_kappa(tilt(k)) : 0.0, true};
        const auto entries = static_cast<double>(parts_.size());  // a sum of n terms errs by n u of their sizes
        for (const ContourPart& part : parts_) {
            const Cumulant::Moment m = part.cumulant->log_moment(t.c);
            t.value += part.count * m.value;
            t.error += part.count * (m.error + entries * 2e-16 * std::fabs(m.value));
        }
        return kept = t;
    }

    double log_unit(int k, const Repeated& of, double eps) const { return log_unit(at(k), of, eps); }
    static double log_unit(const Tilt& t, const Repeated& of, double eps) {
        return of.times * (t.value + t.error) + of_smoothing(t.c, of) - t.c * eps;
    }
    static double of_smoothing(double c, const Repeated& of) {
        return 0.5 * of.smoothing * of.smoothing * c * (c + 1.0);
    }

    // log of Chernoff's bound of delta(eps) (c > 0), or of 1 - delta(eps) (c < 0).
    double log_chernoff(int k, const Repeated& of, double eps) const { return log_chernoff(at(k), of, eps); }
    static double log_chernoff(const Tilt& t, const Repeated& of, double eps) {
        return log_unit(t, of, eps) + t.log_constant;
    }
    // Chernoff's bound of epsilon at delta.
    double chernoff_epsilon(int k, const Repeated& of, double log_delta) const {
        return (log_chernoff(k, of, 0.0) - log_delta) / at(k).c;
    }

    // Where delta is expected if tilt k is best for it, by the saddle point: e^{K - c eps}/(c (c+1) sqrt(2 pi K'')). A guess.
    double expected_epsilon(int k, const Repeated& of, double log_delta) const {
        if (k - 4 < first_positive || k + 4 > last_positive) return infinity;
        const Tilt &below = at(k - 4), &t = at(k), &above = at(k + 4);
        const double rise = (above.value - t.value) / (above.c - t.c),
                     before = (t.value - below.value) / (t.c - below.c);
        const double variance = 2.0 * of.times * (rise - before) / (above.c - below.c) + of.smoothing * of.smoothing;
        const double spread = t.c * (t.c + 1.0) * std::sqrt(2.0 * pi * variance);
        return (log_unit(t, of, 0.0) - log_delta - std::log(spread)) / t.c;
    }

    template <class Enough = bool (*)(double)>
    int best_tilt(double times, double eps, const Enough& enough = never) const {
        const auto bound = [&](int k) { return log_chernoff(k, {times}, eps); };
        const double spread = times * variance_;
        return lowest_point(bound, number(max(eps / spread, 1.0 / std::sqrt(spread))), first_positive, last_positive,
                            enough);
    }
    int best_tilt_for(double times, double log_delta) const {
        const auto bound = [&](int k) { return chernoff_epsilon(k, {times}, log_delta); };
        const double guess = std::sqrt(2.0 * (1.0 - log_delta) / (times * variance_));
        return lowest_point(bound, number(guess), first_positive, last_positive);
    }
    int best_complement(double times, double eps) const {
        const auto bound = [&](int k) { return log_chernoff(k, {times}, eps); };
        return lowest_point(bound, middle, lowest, middle + reach);
    }

    // Frequencies on a ladder.
    static double frequency(int i) {
        constexpr double quarters[] = {1.0, 1.189207115002721, 1.4142135623730951, 1.681792830507429};  // 2^{r/4}
        return quarters[i & 3] * power_of_two(round_magic + (i >> 2));
    }

    double log_decay(int k, int i) const {
        double& kept = decay_at(kept_at(k), i);
        if (kept <= 0.0) return kept;
        double sum = 0.0;
        for (const ContourPart& part : parts_)
            sum += part.count * part.cumulant->log_decay(tilt(k), frequency(i)) * (1.0 - 1e-12);
        return kept = sum;
    }

    // Nodes of spacing 2^{-j/2} up to frequency(i); the smoothing is in what they are multiplied by. Good until the next call.
    const ContourTable& table(int k, int j, int i, double smoothing) const {
        const ContourTable::Place place{k, j, i, smoothing};
        if (const ContourTable* kept = tables_.find(place)) return *kept;
        ContourTable made;
        fill(made, tilt(k), std::exp2(-0.5 * j), frequency(i));
        if (!made.usable) return tables_.keep(place, {});
        set_factors(made, smoothing);
        return tables_.keep(place, std::move(made));
    }

    // What is kept, nearly; and what a cumulant may keep, cells for its decay.
    std::size_t bytes() const {
        constexpr std::size_t of_cumulant = 100000;
        return tables_.bytes() + tilt_bytes_ + parts_.size() * of_cumulant;
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
    double log_missing() const { return log_missing_; }
    double highest() const { return highest_; }  // of the losses, all together
    double least_loss() const { return least_loss_; }
    double variance() const { return variance_; }

  private:
    static int number(double c) { return static_cast<int>(8.0 * std::log2(min(max(c, 1e-25), 1e25))); }

    void fill(ContourTable& t, double c, double h, double last) const {
        const double wanted = std::ceil(last / h);
        t.c = c;
        t.h = h;
        t.usable = wanted <= std::exp2(log2_most_nodes);
        if (!t.usable) return;
        const std::size_t n = t.n = static_cast<std::size_t>(wanted) + 1;
        t.padded = (n + simd::lanes - 1) / simd::lanes * simd::lanes;
        t.nodes = NodeTable(t.padded);
        for (const ContourPart& part : parts_) {
            if (!part.cumulant->add_nodes(c, h, n - 1, part.count, t.nodes)) {
                t.usable = false;
                return;
            }
        }
        const double summing = static_cast<double>(parts_.size()) * 4e-16;  // twice that, lest phases cancel
        for (std::size_t k = 0; k < n; ++k)
            t.nodes.error[k] += summing * (std::fabs(t.nodes.log_abs[k]) + std::fabs(t.nodes.phase[k]));
    }

    // Nodes at the end, up to a multiple of `lanes`, have no weight.
    void set_factors(ContourTable& t, double smoothing) const {
        t.kernel = ContourTable::Factors(t.padded);
        ContourTable::Factors alone(t.padded);
        kernels_.smoothing_factors({t.c, t.h, smoothing * smoothing, t.n}, alone.pointers(), t.kernel.pointers());
        if (smoothing > 0.0) t.density = std::move(alone);
    }

    struct KeptTilt {
        Tilt tilt;
        int first;                   // decay's frequency
        std::vector<double> decays;  // positive where not known
    };

    KeptTilt& kept_at(int k) const {
        auto& page = tilts_[static_cast<std::size_t>(k - lowest) / page_size];
        if (page.empty()) {
            page.resize(page_size);
            tilt_bytes_ += page_size * sizeof(KeptTilt);
        }
        return page[static_cast<std::size_t>(k - lowest) % page_size];
    }

    double& decay_at(KeptTilt& at, int i) const {
        std::vector<double>& decays = at.decays;
        const std::size_t before = decays.size();
        if (decays.empty()) at.first = i;
        if (i < at.first) {
            decays.insert(decays.begin(), static_cast<std::size_t>(at.first - i), infinity);
            at.first = i;
        }
        const auto place = static_cast<std::size_t>(i - at.first);
        if (place >= decays.size()) decays.resize(place + 1, infinity);
        tilt_bytes_ += (decays.size() - before) * sizeof(double);
        return decays[place];
    }

    static constexpr std::size_t page_size = 64;

    std::vector<ContourPart> parts_;
    const simd::Kernels& kernels_;
    double log_missing_ = -infinity, highest_ = 0.0, least_loss_ = 0.0, variance_ = 0.0;
    mutable std::vector<KeptTilt> tilts_[(last_positive - lowest) / page_size + 1];
    mutable std::size_t tilt_bytes_ = 0;
    mutable ContourTables tables_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour
