// The cumulants of mechanisms by their names, as loss/mechanism.hpp has their losses; and the contour of a ledger of them.
#pragma once

#include <algorithm>

#include <hockeystick/contour/contour.hpp>
#include <hockeystick/cumulant/discrete.hpp>
#include <hockeystick/cumulant/gaussian.hpp>
#include <hockeystick/cumulant/laplace.hpp>
#include <hockeystick/cumulant/sampled_gaussian.hpp>
#include <hockeystick/loss/mechanism.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

using namespace loss;
using namespace cumulant;

// `count` equal steps.
struct LedgerEntry {
    Mechanism mechanism;
    double count;
};

inline bool is_sampled_gaussian(const Mechanism& mechanism) {
    return mechanism.kind == "gaussian" && mechanism.rate < 1.0;
}

inline bool has_cumulant(const Mechanism& mechanism) {
    if (is_sampled_gaussian(mechanism))
        return SampledGaussianCumulant::covers(1.0 / mechanism.parameters.at(0), mechanism.rate);
    if (mechanism.kind == "discrete") return DiscreteCumulant::covers(mechanism.parameters);
    return mechanism.rate == 1.0 && (mechanism.kind == "gaussian" || mechanism.kind == "laplace");
}

// Of a mechanism that has one; `cut` as in cumulant/sampled_gaussian.hpp.
inline std::unique_ptr<Cumulant> make_cumulant(const Mechanism& mechanism, bool forward, double cut,
                                               const simd::Kernels& kernels,
                                               const std::shared_ptr<FourierWorkspace>& workspace) {
    if (mechanism.kind == "discrete")
        return std::make_unique<DiscreteCumulant>(mechanism.parameters, mechanism.rate, forward, kernels, workspace);
    const double shift = mechanism.parameters.at(0);
    if (mechanism.kind == "laplace") return std::make_unique<LaplaceCumulant>(shift);
    if (mechanism.rate == 1.0) return std::make_unique<GaussianCumulant>(shift);
    return std::make_unique<SampledGaussianCumulant>(1.0 / shift, mechanism.rate, forward, cut, kernels, workspace);
}

inline bool has_contour(const std::vector<LedgerEntry>& ledger) {
    return std::all_of(ledger.begin(), ledger.end(),
                       [](const LedgerEntry& entry) { return has_cumulant(entry.mechanism); });
}

// Where `has_contour` holds.
inline Contour make_contour(const std::vector<LedgerEntry>& ledger, bool forward, const simd::Kernels& kernels) {
    const bool sampled = std::any_of(ledger.begin(), ledger.end(),
                                     [](const LedgerEntry& entry) { return is_sampled_gaussian(entry.mechanism); });
    const auto workspace = std::make_shared<FourierWorkspace>();
    const auto make = [ledger, forward, workspace, &kernels](double cut) {
        std::vector<ContourPart> parts;
        for (const LedgerEntry& entry : ledger)
            parts.push_back({make_cumulant(entry.mechanism, forward, cut, kernels, workspace), entry.count});
        return parts;
    };
    const LedgerEntry& first = ledger.front();
    if (!forward || !sampled || ledger.size() > 1) return {make, forward && sampled, kernels};
    return {make, true, kernels,
            OptionalSlices(1.0 / first.mechanism.parameters.at(0), first.mechanism.rate, first.count, kernels, workspace)};
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour
