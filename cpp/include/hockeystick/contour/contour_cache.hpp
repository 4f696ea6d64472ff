// Contours of Poisson-sampled Gaussians that wait for their next question, with all that they keep: what makes a second
// question about the same noise and rate cheaper than the first. No answer depends on it.
//
// Owned by whoever makes it; engines that know of none keep theirs to themselves. Several threads may share one. Nobody
// waits: where another thread is just looking, nothing is found and nothing is kept. So a child that was forked in that
// moment finds nothing either, instead of waiting for ever.
#pragma once

#include <algorithm>
#include <list>
#include <memory>
#include <mutex>

#include <hockeystick/contour/contour.hpp>
#include <hockeystick/cumulant/sampled_gaussian.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

using namespace cumulant;

// Both directions of one sigma and rate.
struct SampledContours {
    const double sigma, rate;
    const std::shared_ptr<FourierWorkspace> workspace = std::make_shared<FourierWorkspace>();
    Contour remove, add;

    SampledContours(double sigma, double rate, const simd::Kernels& kernels)
        : sigma(sigma), rate(rate), remove(direction(true, kernels)), add(direction(false, kernels)) {}

    std::size_t bytes() const { return remove.bytes() + add.bytes(); }  // the workspace left out
    double work() const { return remove.work() + add.work(); }

  private:
    Contour direction(bool removed, const simd::Kernels& kernels) const {
        const auto make = [sigma = sigma, rate = rate, removed, workspace = workspace, &kernels](double cut) {
            std::vector<ContourPart> parts;
            parts.push_back(
                {std::make_unique<SampledGaussianCumulant>(sigma, rate, removed, cut, kernels, workspace), 1.0});
            return parts;
        };
        return {make, removed, kernels, removed ? Slices(sigma, rate, 1.0, kernels, workspace) : Slices()};
    }
};

class IdleContours {
  public:
    // Keeps `most` at most, the latest, and no more than `most_bytes`.
    IdleContours(std::size_t most, std::size_t most_bytes) : most_(most), most_bytes_(most_bytes) {}

    // Null if there are none of this sigma and rate.
    std::unique_ptr<SampledContours> take(double sigma, double rate) {
        const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
        if (!lock) return nullptr;
        const auto found = std::find_if(idle_.begin(), idle_.end(), [&](const Idle& idle) {
            return idle.contours->sigma == sigma && idle.contours->rate == rate;
        });
        if (found == idle_.end()) return nullptr;
        std::unique_ptr<SampledContours> contours = std::move(found->contours);
        bytes_ -= found->bytes;
        idle_.erase(found);
        return contours;
    }

    void put(std::unique_ptr<SampledContours> contours) {
        for (Contour* one : {&contours->remove, &contours->add}) one->forget_cuts(most_bytes_ / 2);
        const std::size_t bytes = contours->bytes();
        if (bytes > most_bytes_) return;
        std::list<Idle> latest, dropped;  // made and destroyed while others may look
        latest.push_back({std::move(contours), bytes});
        const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
        if (!lock) return;
        idle_.splice(idle_.begin(), latest);
        for (bytes_ += bytes; idle_.size() > most_ || bytes_ > most_bytes_;) {
            bytes_ -= idle_.back().bytes;
            dropped.splice(dropped.begin(), idle_, std::prev(idle_.end()));
        }
    }

  private:
    struct Idle {
        std::unique_ptr<SampledContours> contours;
        std::size_t bytes;
    };

    const std::size_t most_, most_bytes_;
    std::mutex mutex_;
    std::list<Idle> idle_;
    std::size_t bytes_ = 0;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour
