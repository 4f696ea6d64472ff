// A ledger's levels: its cumulants under every cut that was asked for, and how much of them is kept.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include <hockeystick/contour/truncated_ledger.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

class ContourLevels {
  public:
    // The ledger's cumulants with a cut, in the cumulants' own unit.
    using Factory = std::function<std::vector<ContourPart>(double cut)>;
    static constexpr int usual_cut = 26;  // missing: e^-341 a step

    ContourLevels(Factory make, const simd::Kernels& kernels) : make_(std::move(make)), kernels_(kernels) {}

    const ContourLevel& at(int cut) {
        auto& level = levels_[cut];
        if (!level) level = std::make_unique<ContourLevel>(make_(static_cast<double>(cut)), kernels_);
        return *level;
    }

    // Forgets all cuts but the usual one where they are more than `most` bytes; references to them end here.
    void forget_cuts(std::size_t most) {
        if (levels_.size() <= 1 || bytes() <= most) return;
        for (auto level = levels_.begin(); level != levels_.end();) {
            const bool usual = level->first == usual_cut;
            if (!usual) done_ += level->second->work();
            level = usual ? std::next(level) : levels_.erase(level);
        }
    }

    std::size_t bytes() const {
        std::size_t sum = 0;
        for (const auto& level : levels_) sum += level.second->bytes();
        return sum;
    }
    double work() const {
        double sum = done_;
        for (const auto& level : levels_) sum += level.second->work();
        return sum;
    }

  private:
    Factory make_;
    const simd::Kernels& kernels_;
    std::map<int, std::unique_ptr<ContourLevel>> levels_;
    double done_ = 0.0;  // by those forgotten
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour
