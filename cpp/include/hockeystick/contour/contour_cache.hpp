// A cache of contour engines for Poisson-sampled Gaussians, keyed by (sigma, rate) and the loops
// that they were computed with. Reusing one saves recomputing its moments and nodes; answers do not
// depend on it.
//
// What it saves: a first question costs 0.4 ms where one line answers it, 2 to 4 ms where slices
// do. A later one about the same noise and rate costs 0.03 to 0.3 ms, or 0.1 to 0.8 ms, by what it
// shares with earlier ones.
//
// Whoever makes a cache owns it, and several threads may share it. Nobody waits: while another
// thread looks, nothing is found and nothing is kept. So a child process that was forked in that
// moment finds nothing either, instead of waiting for ever.
#pragma once

#include <algorithm>
#include <list>
#include <memory>
#include <mutex>

#include <hockeystick/contour/contour.hpp>
#include <hockeystick/contour/slices.hpp>
#include <hockeystick/cumulant/sampled_gaussian.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

using namespace cumulant;

// Both directions of one sigma and rate.
struct SampledContours {
    const double sigma, rate;
    const simd::Kernels* const kernels;
    const std::shared_ptr<FourierWorkspace> workspace;
    Contour remove, add;

    SampledContours(double noise, double sampling_rate, const simd::Kernels& loops,
                    std::shared_ptr<FourierWorkspace> used = nullptr)
        : sigma(noise), rate(sampling_rate), kernels(&loops),
          workspace(used ? std::move(used) : std::make_shared<FourierWorkspace>()),
          remove(contour(Direction::remove, loops)), add(contour(Direction::add, loops)) {}

    std::size_t bytes() const { return remove.bytes() + add.bytes(); }  // the workspace left out
    double work() const { return remove.work() + add.work(); }

  private:
    Contour contour(Direction direction, const simd::Kernels& loops) const {
        const auto make = [sigma = sigma, rate = rate, direction, workspace = workspace, &loops](double loss_cutoff) {
            std::vector<ContourPart> parts;
            parts.push_back(
                {std::make_unique<SampledGaussianCumulant>(sigma, rate, direction, loss_cutoff, loops, workspace),
                 1.0});
            return parts;
        };
        const bool removed = direction == Direction::remove;
        Contour::Cutoffs cutoffs;
        cutoffs.any = removed;
        return {make, cutoffs, loops,
                removed ? OptionalSlices(sigma, rate, 1.0, SliceShape::usual(), loops, workspace) : OptionalSlices()};
    }
};

class ContourCache {
  public:
    // Keeps the `max_count` engines that were released last, and no more than `max_bytes`.
    ContourCache(std::size_t max_count, std::size_t max_bytes) : max_count_(max_count), max_bytes_(max_bytes) {}

    // Moves out the engines of this sigma, rate and loops; where there are none, new ones, with the
    // workspace of the engines that were dropped last.
    std::unique_ptr<SampledContours> acquire(double sigma, double rate, const simd::Kernels& kernels) {
        std::shared_ptr<FourierWorkspace> workspace;
        std::unique_ptr<SampledContours> contours = kept(sigma, rate, kernels, workspace);
        return contours ? std::move(contours)
                        : std::make_unique<SampledContours>(sigma, rate, kernels, std::move(workspace));
    }

    // Keeps engines for a later question. They must be whole: not those that an exception
    // interrupted.
    void release(std::unique_ptr<SampledContours> contours) {
        const std::size_t bytes = contours->bytes();
        if (bytes > max_bytes_) return;
        std::list<Entry> latest, evicted;  // made and destroyed while others may look
        latest.push_back({std::move(contours), bytes});
        const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
        if (!lock) return;
        idle_.splice(idle_.begin(), latest);
        for (bytes_ += bytes; idle_.size() > max_count_ || bytes_ > max_bytes_;) {
            bytes_ -= idle_.back().bytes;
            spare_ = idle_.back().contours->workspace;
            evicted.splice(evicted.begin(), idle_, std::prev(idle_.end()));
        }
    }

  private:
    struct Entry {
        std::unique_ptr<SampledContours> contours;
        std::size_t bytes;
    };

    // The engines, or none: then `workspace` gets the spare one, if there is one.
    std::unique_ptr<SampledContours> kept(double sigma, double rate, const simd::Kernels& kernels,
                                          std::shared_ptr<FourierWorkspace>& workspace) {
        const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
        if (!lock) return nullptr;
        const auto found = std::find_if(idle_.begin(), idle_.end(), [&](const Entry& entry) {
            return entry.contours->sigma == sigma && entry.contours->rate == rate &&
                   entry.contours->kernels == &kernels;
        });
        if (found == idle_.end()) {
            workspace = std::move(spare_);
            return nullptr;
        }
        std::unique_ptr<SampledContours> contours = std::move(found->contours);
        bytes_ -= found->bytes;
        idle_.erase(found);
        return contours;
    }

    const std::size_t max_count_, max_bytes_;
    std::mutex mutex_;
    std::list<Entry> idle_;
    std::shared_ptr<FourierWorkspace> spare_;  // of engines that were dropped, for the next new ones
    std::size_t bytes_ = 0;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour
