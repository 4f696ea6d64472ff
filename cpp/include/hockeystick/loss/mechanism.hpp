// A mechanism by its name and parameters -> the privacy losses of its two directions, each in a header of its own.
#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <hockeystick/loss/bounded_range.hpp>
#include <hockeystick/loss/discrete.hpp>
#include <hockeystick/loss/discrete_gaussian.hpp>
#include <hockeystick/loss/fixed_size_sampled.hpp>
#include <hockeystick/loss/gaussian.hpp>
#include <hockeystick/loss/gaussian_mixture.hpp>
#include <hockeystick/loss/labelled.hpp>
#include <hockeystick/loss/laplace.hpp>
#include <hockeystick/loss/poisson_sampled.hpp>
#include <hockeystick/loss/replaced_gaussian.hpp>

namespace hockeystick::loss {
inline namespace HOCKEYSTICK_ISA {

// A mechanism by name: "gaussian" or "laplace" (parameters: shift), "discrete" (p, then q), "discrete_pairs" (the length of
// the forward p, then p and q of the forward pair and of the reverse one),
// "replaced_gaussian" (shift of one record, Poisson rate), "discrete_gaussian" (sigma, shift), "bounded_range" (range),
// "gaussian_mixture", "labelled_gaussian" and "labelled_laplace" (shifts, then probabilities), "truncated_gaussian" and, where a
// record is replaced, "truncated_replaced_gaussian" (shift of one record, Poisson rate, probability of truncation), "fixed_size_" and one of
// these (its parameters, then the probability that a replaced record is drawn); `rate` is that of Poisson sampling, 1 for none. Forward is (P, Q),
// the direction called remove under add-or-remove adjacency; the other one exchanges P and Q. Arguments are checked by the caller.
struct Mechanism {
    std::string kind;
    std::vector<double> parameters;
    double rate = 1.0;
};

// A truncated sample drops a record for the new one: twice the shift, shown to those who see whether it was truncated.
inline Loss truncated_loss(const Mechanism& mechanism, bool forward) {
    const double shift = mechanism.parameters.at(0), rate = mechanism.parameters.at(1);
    const double truncation = mechanism.parameters.at(2);
    const auto sampled = [&](double moved) -> Loss {
        if (mechanism.kind == "truncated_replaced_gaussian") return std::make_shared<ReplacedGaussianLoss>(moved, rate);
        if (forward) return std::make_shared<PoissonRemoveLoss>(std::make_shared<GaussianLoss>(moved), rate);
        return std::make_shared<PoissonAddLoss>(std::make_shared<GaussianLoss>(moved), rate);
    };
    return std::make_shared<LabelledLoss>(std::vector{sampled(shift), sampled(2.0 * shift)},
                                          std::vector{1.0 - truncation, truncation});
}

inline constexpr char fixed_size[] = "fixed_size_";

inline Loss base_loss(const Mechanism& mechanism, bool forward);

inline Loss fixed_size_loss(const Mechanism& mechanism) {
    const std::vector<double> parameters(mechanism.parameters.begin(), mechanism.parameters.end() - 1);
    const Mechanism base{mechanism.kind.substr(sizeof fixed_size - 1), parameters, 1.0};
    return std::make_shared<FixedSizeLoss>(base_loss(base, true), base_loss(base, false), mechanism.parameters.back());
}

inline Loss labelled_loss(bool gaussian, const std::vector<double>& shifts, const std::vector<double>& probabilities) {
    std::vector<Loss> losses;
    for (const double shift : shifts)
        losses.push_back(gaussian ? Loss(std::make_shared<GaussianLoss>(shift)) : std::make_shared<LaplaceLoss>(shift));
    return std::make_shared<LabelledLoss>(std::move(losses), probabilities);
}

inline Loss base_loss(const Mechanism& mechanism, bool forward) {
    const std::vector<double>& x = mechanism.parameters;
    if (mechanism.kind == "gaussian") return std::make_shared<GaussianLoss>(x.at(0));
    if (mechanism.kind == "laplace") return std::make_shared<LaplaceLoss>(x.at(0));
    if (mechanism.kind.rfind(fixed_size, 0) == 0) return fixed_size_loss(mechanism);
    if (mechanism.kind == "replaced_gaussian") return std::make_shared<ReplacedGaussianLoss>(x.at(0), x.at(1));
    if (mechanism.kind == "discrete_gaussian") return std::make_shared<DiscreteGaussianLoss>(x.at(0), x.at(1));
    if (mechanism.kind == "bounded_range") return std::make_shared<BoundedRangeLoss>(x.at(0));
    if (mechanism.kind == "truncated_gaussian" || mechanism.kind == "truncated_replaced_gaussian")
        return truncated_loss(mechanism, forward);
    if (mechanism.kind == "discrete_pairs") {
        const auto outcomes = static_cast<std::ptrdiff_t>(x.at(0));
        const auto from = x.begin() + 1 + (forward ? 0 : 2 * outcomes), to = forward ? from + 2 * outcomes : x.end();
        const auto middle = from + (to - from) / 2;
        return std::make_shared<DiscreteLoss>(std::vector<double>(from, middle), std::vector<double>(middle, to));
    }
    const auto half = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
    const std::vector<double> p(x.begin(), half), q(half, x.end());
    if (mechanism.kind == "gaussian_mixture") return std::make_shared<GaussianMixtureLoss>(p, q, forward);
    if (mechanism.kind == "labelled_gaussian") return labelled_loss(true, p, q);
    if (mechanism.kind == "labelled_laplace") return labelled_loss(false, p, q);
    if (mechanism.kind != "discrete") throw std::invalid_argument("unknown mechanism kind " + mechanism.kind);
    return forward ? std::make_shared<DiscreteLoss>(p, q) : std::make_shared<DiscreteLoss>(q, p);
}

inline Loss make_loss(const Mechanism& mechanism, bool forward) {
    if (mechanism.rate == 1.0) return base_loss(mechanism, forward);
    if (mechanism.rate == 0.0) return std::make_shared<DiscreteLoss>(std::vector{1.0}, std::vector{1.0});
    Loss base = base_loss(mechanism, forward);
    if (forward) return std::make_shared<PoissonRemoveLoss>(std::move(base), mechanism.rate);
    return std::make_shared<PoissonAddLoss>(std::move(base), mechanism.rate);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::loss
