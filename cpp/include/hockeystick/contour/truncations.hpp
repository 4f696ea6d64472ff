// A ledger under several loss cutoffs: the default one, and the few that the last question used.
//
// The other truncations are rebuilt when a later question needs them. That costs nothing that can
// be measured: their nodes, which are the expensive part, stay in the cache that all truncations
// share.
#pragma once

#include <algorithm>
#include <functional>
#include <list>
#include <memory>

#include <hockeystick/contour/truncated_ledger.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

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
        const double log_mass = log_delta - 30.0 - std::log(times * at(default_cutoff_).count());
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
