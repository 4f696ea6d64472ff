// The Poisson-sampled Gaussian's losses (cumulant/sampled_gaussian.hpp, remove) in slices of one
// scale each, for few steps of rare samples: contour/sliced_contour.hpp says why.
//
// Slices. With x_p = 1/2 + sigma^2 (1.4 m - log q), m whole, falling in p, slice p is what the
// label x + w N(0,1), w = 0.15 sigma^2, puts between x_p and x_{p-1}: where log(1 + z) is small,
// losses of one slice differ by factors up to e^1.4. The slice has the transform
//   M_p(s) = E_Q[A (1 + z)^{s+1}],   A the window of cumulant/slice_grid.hpp.
// What a slice lacks beyond the ends of its range, 14 w outside its interval, or -14 sigma and
// 1 + 22 sigma, is at most Q(14) at each: it moves every delta by at most its mass, either way.
//
// Decay. On x + i theta sigma^2, theta <= pi/2 and c + 1 >= 0, |A f (1 + z)^{c+1}| grows at most by
// e^{g theta^2}, g = SliceGrid::growth, because |1 + z| falls; and e^{i omega log(1 + z)} falls by
// e^{-omega arg(1 + z)}, arg(1 + z) >= w(x) sin theta, w(x) the mixture weight. Hence, with
// theta = min(0.6, 2.4/sigma),
//   |M_p(c + i omega)| <= e^{g theta^2} int A f_c e^{-omega w(x) sin theta} dx
//                         + 2 theta sigma^2 A f_c at both ends.
//
// The parts: the grid and its windows are in cumulant/slice_grid.hpp, masses and real transforms in
// cumulant/slice_moments.hpp, complex transforms in cumulant/slice_nodes.hpp; this class keeps them
// by number. Tilts, frequencies and spacings are rounded, so that a value is a function of its cell
// alone.
#pragma once

#include <cmath>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include <hockeystick/cumulant/slice_grid.hpp>
#include <hockeystick/cumulant/slice_moments.hpp>
#include <hockeystick/cumulant/slice_nodes.hpp>

namespace hockeystick::cumulant {
inline namespace HOCKEYSTICK_ISA {

// Not for several threads at once.
class LossSlices {
  public:
    using Moments = SliceMoments;
    using Table = SliceTable;

    // Elsewhere slices are no help: either losses have one scale, or there would be too many
    // slices.
    static bool covers(double sigma, double rate, const SliceShape& shape) {
        return sigma >= 0.25 && sigma <= shape.max_sigma && rate >= 1e-9 && rate <= 0.5;
    }

    LossSlices(double sigma, double rate, const SliceShape& shape, const simd::Kernels& kernels,
               std::shared_ptr<FourierWorkspace> workspace)
        : rate_(rate), kernels_(kernels), grid_(sigma, rate, shape, kernels), parts_(make_parts(grid_)),
          transformer_(grid_, parts_, std::move(workspace)),
          moments_(static_cast<std::size_t>(static_cast<double>(shape.tilts_per_octave) * std::log2(256.0 / rate)) +
                   static_cast<std::size_t>(1 - first_tilt())) {}

    int size() const {
        return static_cast<int>(parts_.size()) - 1;
    }  // the last part, all below the last cut, is no slice
    double least_loss() const { return std::log1p(-rate_); }
    // Twice as many slices as there are lose labels and outcomes on the left, of which each costs
    // no more than its share of delta; and outcomes on the right, which cost their mass.
    double missing_share() const { return 8.0 * (2.0 + static_cast<double>(parts_.size())) * q(SliceGrid::reach); }
    double log_missing() const {
        const double right = grid_.shape().right_reach, beyond = log_q(right);
        const double unsampled = std::exp(log_q(right + 1.0 / grid_.sigma()) - beyond);
        return beyond + std::log(8.0 * (2.0 + static_cast<double>(parts_.size())) * (rate_ + unsampled));
    }

    // Tilts 2^{k/tilts_per_octave} from 2^-4 up to what the smallest losses bear, frequencies
    // 2^{i/4}, spacings 2^{-j/4}.
    const SliceShape& shape() const { return grid_.shape(); }
    int first_tilt() const { return -4 * grid_.shape().tilts_per_octave; }
    int last_tilt() const { return first_tilt() + static_cast<int>(moments_.size()) - 1; }
    // How far other tilts are tried, for bounds of aliases.
    int max_tilts_away() const { return 8 * grid_.shape().tilts_per_octave; }
    double tilt(int k) const { return std::exp2(static_cast<double>(k) / grid_.shape().tilts_per_octave); }
    static double frequency(int i) { return std::exp2(0.25 * i); }
    static double spacing(int j) { return std::exp2(-0.25 * j); }

    const Moments& at(int k) const {
        auto& found = moments_[static_cast<std::size_t>(k - first_tilt())];
        if (found.slice.empty()) found = slice_moments(grid_, parts_, tilt(k));
        return found;
    }
    // The moments that are the masses under P, c = 0, or under Q, c = -1.
    const Moments& mass(bool under_p) const {
        auto& found = masses_[under_p ? 0 : 1];
        if (found.slice.empty()) found = slice_moments(grid_, parts_, under_p ? 0.0 : -1.0);
        return found;
    }

    // A bound of log |M_p(c + i omega)| for all omega from frequency(i) up.
    double log_decay(int p, int k, int i) const {
        const auto key = std::make_tuple(p, k, i);
        const auto found = decays_.find(key);
        if (found != decays_.end()) return found->second;
        const SliceGrid::Part& part = parts_[static_cast<std::size_t>(p)];
        const double power = tilt(k) + 1.0;
        if (p != tilted_slice_ || k != tilted_by_) {
            tilted_ = grid_.exponents(part, power);
            tilted_slice_ = p;
            tilted_by_ = k;
        }
        const double theta = min(0.6, 2.4 / grid_.sigma());
        const std::size_t n = part.window.size();
        const std::vector<double>& exponents = tilted_.exponents;
        grid_.add_work(static_cast<double>(n));
        const double sum = kernels_.sum_damped_above(exponents.data(), grid_.mix_left_of(part.start), n,
                                                     frequency(i) * std::sin(theta));
        const double ends =
            grid_.end_error(std::exp(exponents[0]), std::exp(exponents[n - 1]), power, grid_.step(), part.start + n);
        const double log_bound = std::log(SliceGrid::integral_per_sum * sum + ends) + grid_.growth() * theta * theta +
                                 tilted_.top + grid_.log_scale(grid_.step()) + 1e-9;
        return decays_.emplace(key, log_bound).first->second;
    }

    // A bound of log |M(c + i omega)/M(c)| for all omega from frequency(i) up, M the transform of
    // slice p and all below it, or of all below it alone.
    double log_damping(int p, int k, int i) const {
        const auto key = std::make_tuple(p, k, i);
        const auto found = dampings_.find(key);
        if (found != dampings_.end()) return found->second;
        if (p != damped_slice_ || k != damped_by_) {
            damping_ = std::make_unique<SliceDamping>(grid_, transformer_.whole(static_cast<std::size_t>(p)), tilt(k));
            damped_slice_ = p;
            damped_by_ = k;
        }
        return dampings_.emplace(key, damping_->log_bound(frequency(i))).first->second;
    }

    // What is known at the nodes c + i n h, h = spacing(j), of slice p, up to frequency(i).
    const Table& table(int p, int k, int j, int i) const {
        const auto key = std::make_tuple(p, k, j, i);
        const auto found = tables_.find(key);
        if (found != tables_.end()) return *found->second;
        if (nodes_kept_ > max_nodes_kept) {
            tables_.clear();
            nodes_kept_ = 0.0;
            ++generation_;
        }
        auto made =
            std::make_unique<Table>(transformer_.table(static_cast<std::size_t>(p), tilt(k), spacing(j), frequency(i)));
        nodes_kept_ += static_cast<double>(made->real.size());
        return *tables_.emplace(key, std::move(made)).first->second;
    }

    // Tables are valid while this stays the same.
    std::size_t generation() const { return generation_; }

    double work() const { return grid_.work(); }  // points visited so far, times nodes
    std::size_t bytes() const {
        return static_cast<std::size_t>(80.0 * nodes_kept_) + (decays_.size() + dampings_.size()) * 80 + 300000;
    }

  private:
    static constexpr double max_nodes_kept = 150000.0;

    // Cuts from the highest one or a little less down to -6 sigma, and what lies between them.
    // Above `half`, where the loss is log 2, losses are nearly linear in x: few cuts do there.
    static std::vector<SliceGrid::Part> make_parts(const SliceGrid& grid) {
        const double sigma = grid.sigma(), half = 0.5 - sigma * sigma * std::log(grid.rate());
        const double apart = 1.4 * sigma * sigma;
        const double highest = half + apart * min(std::floor((grid.shape().highest_cut * sigma - half) / apart),
                                                  grid.shape().slices_above);
        std::vector<SliceGrid::Part> parts;
        double above = infinity;
        for (double cut = highest; cut > -6.0 * sigma; cut -= apart) {
            parts.push_back(grid.part({cut, above, grid.width()}));
            above = cut;
        }
        parts.push_back(grid.part({-infinity, above, grid.width()}));
        return parts;
    }

    double rate_;
    const simd::Kernels& kernels_;
    SliceGrid grid_;
    std::vector<SliceGrid::Part> parts_;
    SliceTransformer transformer_;
    mutable std::vector<Moments> moments_;
    mutable Moments masses_[2];
    mutable SliceGrid::Exponents tilted_;
    mutable int tilted_slice_ = -1, tilted_by_ = 0;  // the slice and the tilt that tilted_ is of
    mutable std::unique_ptr<SliceDamping> damping_;
    mutable int damped_slice_ = -1, damped_by_ = 0;  // the slice and the tilt that damping_ is of
    mutable std::map<std::tuple<int, int, int>, double> decays_, dampings_;
    mutable std::map<std::tuple<int, int, int, int>, std::unique_ptr<Table>> tables_;
    mutable std::size_t generation_ = 1;
    mutable double nodes_kept_ = 0.0;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::cumulant
