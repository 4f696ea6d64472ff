// delta(eps) of a composition by a contour integral, as a certified bracket whose cost does not grow with the steps.
//
// With K(s) = sum_j T_j log M_j(s) (cumulant.hpp) and any real tilt c > 0,
//   delta(eps) = delta_inf + (1/2 pi i) int_{Re s = c} e^{K(s) - s eps}/(s(s+1)) ds;
// for -1 < c < 0 the same integral is delta(eps) - 1, which gives 1 - delta accurately where delta is near 1. On the nodes
// s_k = c + i k h the integral becomes S = (h/pi) (F_0/2 + sum_{k>=1} Re F_k). What S may be off by:
//
//   alias       Poisson's formula: S = sum_n e^{c u_n} delta(eps + u_n), u_n = 2 pi n/h, so S >= delta (c > 0). The terms n != 0 are
//               at most kappa(c') e^{K(c') - c' eps} e^{(c - c') u_n} at any other tilt c', c' < c for n < 0 and c' > c for
//               n > 0; kappa(c) = c^c/(1+c)^{1+c}. For c < 0 the same holds for 1 - delta with kappa = 1 and c' in [-1, 0].
//   truncation  (1/pi) e^{K(c) - c eps} phi(omega)/omega beyond the last node, phi(omega) = prod_j sup_{omega' >= omega} |phi_j|^{T_j}
//               from Cumulant::log_decay, because |s(s+1)| >= omega^2.
//   quadrature  and rounding: Cumulant says what M(c + i omega) errs by, relatively; it is multiplied by T.
//   missing     P-mass that the cumulants left out: delta rises by at most T times it, and never falls.
//
// Tilts are 2^{k/8} (c > 0) and -1/(1 + 2^{k/8}), chosen where Chernoff's bound is smallest; h = from the alias bound, in powers of
// sqrt 2; the number of nodes from the truncation bound, in powers of 2^{1/4}. What is computed for a tilt is kept, and
// depends on nothing else: a value never depends on what was asked before.
//
// epsilon(delta): Newton's iteration in log delta, whose slope comes from the same nodes; then both ends are moved until the
// certificate says that they are on their side.
//
// Where atoms or few, rare large losses keep phi from decaying, the work is out of proportion: `usable` is false (pld.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <tuple>

#include <hockeystick/root.hpp>
#include <hockeystick/sampled_gaussian.hpp>

namespace hockeystick {
inline namespace HOCKEYSTICK_ISA {

struct ContourResult {
    bool usable = false;
    double lower = 0.0, upper = 0.0;           // of delta or epsilon
    double log_lower = 0.0, log_upper = 0.0;   // of delta
    double alias = 0.0, truncation = 0.0, quadrature = 0.0, missing = 0.0;  // shares: relative errors of delta (1 - delta above 1/2)
    std::size_t nodes = 0;
    double tilt = 0.0;
};

// What is composed, as `repetitions` of one ledger; `make(cut)` gives the ledger's cumulants for a cut (sampled_gaussian.hpp).
struct ContourPart {
    std::unique_ptr<Cumulant> cumulant;
    double count;
};

namespace detail {

// log of the largest (1 - e^{-x}) e^{-cx}, x >= 0, c > 0
inline double log_chernoff_constant(double c) {
    return c < 1e8 ? c * std::log(c / (1.0 + c)) - std::log1p(c) : -1.0 - std::log(c);
}

// Smallest f(k) over integers, for f that falls and then rises.
template <class Function> int lowest_point(const Function& f, int start, int first, int last) {
    int at = start < first ? first : start > last ? last : start;
    double value = f(at);
    for (const int stride : {16, 4, 1}) {
        for (const int direction : {1, -1}) {
            for (int next = at + direction * stride; next >= first && next <= last; next += direction * stride) {
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
    explicit ContourLevel(std::vector<ContourPart> parts, const contour::Kernels& kernels)
        : parts_(std::move(parts)), kernels_(kernels) {
        for (const ContourPart& part : parts_) {
            missing_ += part.count * std::exp(part.cumulant->log_missing());
            variance_ += part.count * std::exp(part.cumulant->log_variance());
        }
    }

    // Tilts by number: k >= first_positive are 2^{k/8}, below that -1/(1 + 2^{(k - middle)/8}).
    static constexpr int first_positive = -800, last_positive = 800, middle = -2000, reach = 800;
    static double tilt(int k) {
        return k >= first_positive ? std::exp2(0.125 * k) : -1.0 / (1.0 + std::exp2(0.125 * (k - middle)));
    }

    const Cumulant::Moment& moment(int k) const {
        const auto found = moments_.find(k);
        if (found != moments_.end()) return found->second;
        Cumulant::Moment sum{0.0, 0.0};
        for (const ContourPart& part : parts_) {
            const Cumulant::Moment m = part.cumulant->log_moment(tilt(k));
            sum.value += part.count * m.value;
            sum.error += part.count * (m.error + 2e-16 * std::fabs(m.value));
        }
        return moments_.emplace(k, sum).first->second;
    }

    // Frequencies on a ladder.
    static double frequency(int i) { return std::exp2(0.25 * i); }

    double log_decay(int k, int i) const {
        const auto key = std::make_pair(k, i);
        const auto found = decays_.find(key);
        if (found != decays_.end()) return found->second;
        double sum = 0.0;
        for (const ContourPart& part : parts_)
            sum += part.count * part.cumulant->log_decay(tilt(k), frequency(i)) * (1.0 - 1e-12);
        return decays_.emplace(key, sum).first->second;
    }

    struct Table {
        NodeTable nodes;
        std::vector<double> kernel_re, kernel_im, slope_re, slope_im, kernel_abs;
        double c, h;
        bool usable;
    };

    // Nodes of spacing 2^{-j/2} up to frequency(i).
    const Table& table(int k, int j, int i) const {
        const auto key = std::make_tuple(k, j, i);
        const auto found = tables_.find(key);
        if (found != tables_.end()) return *found->second;
        auto made = std::make_unique<Table>();
        fill(*made, tilt(k), std::exp2(-0.5 * j), frequency(i));
        return *tables_.emplace(key, std::move(made)).first->second;
    }

    double missing() const { return missing_; }
    double variance() const { return variance_; }
    const contour::Kernels& kernels() const { return kernels_; }

  private:
    void fill(Table& t, double c, double h, double last) const {
        const double wanted = std::ceil(last / h);
        t.c = c;
        t.h = h;
        t.usable = wanted < most_nodes;
        if (!t.usable) return;
        const std::size_t n = static_cast<std::size_t>(wanted) + 1;
        for (auto* array : {&t.nodes.log_abs, &t.nodes.phase, &t.nodes.error, &t.kernel_re, &t.kernel_im, &t.slope_re,
                            &t.slope_im, &t.kernel_abs})
            array->assign(n, 0.0);
        for (const ContourPart& part : parts_) {
            if (!part.cumulant->add_nodes(c, h, wanted * h, part.count, t.nodes)) {
                t.usable = false;
                return;
            }
        }
        for (std::size_t k = 0; k < n; ++k) {
            const double omega = static_cast<double>(k) * h;
            const double half = k == 0 ? 0.5 : 1.0;
            const double a = c * (c + 1.0) - omega * omega, b = omega * (2.0 * c + 1.0);
            const double square = a * a + b * b, next = (c + 1.0) * (c + 1.0) + omega * omega;
            t.kernel_re[k] = half * a / square;
            t.kernel_im[k] = -half * b / square;
            t.kernel_abs[k] = half / std::sqrt(square);
            t.slope_re[k] = half * (c + 1.0) / next;
            t.slope_im[k] = -half * omega / next;
        }
    }

    static constexpr double most_nodes = 131072.0;

    std::vector<ContourPart> parts_;
    const contour::Kernels& kernels_;
    double missing_ = 0.0, variance_ = 0.0;
    mutable std::map<int, Cumulant::Moment> moments_;
    mutable std::map<std::pair<int, int>, double> decays_;
    mutable std::map<std::tuple<int, int, int>, std::unique_ptr<Table>> tables_;
};

}  // namespace detail

// One direction of a ledger; not for several threads at once.
class Contour {
  public:
    using Factory = std::function<std::vector<ContourPart>(double cut)>;

    Contour(Factory make, bool has_cut, const contour::Kernels& kernels)
        : make_(std::move(make)), has_cut_(has_cut), kernels_(kernels) {}

    // delta(eps) after `times` repetitions.
    ContourResult delta(double times, double eps) {
        using namespace detail;
        const Level* level = &at_cut(first_cut);
        int k = chernoff_tilt(*level, times, eps);
        double guess = exponent(*level, k, times, eps);
        if (has_cut_) {
            level = &at_cut(cut_for(times, min(guess, 0.0) - 8.0));
            k = chernoff_tilt(*level, times, eps);
            guess = exponent(*level, k, times, eps);
        }
        if (guess > -0.7) {  // delta is large, or all of it: look from the other side
            const int other = complement_tilt(*level, times, eps);
            const double below = level_exponent(*level, other, times, eps);
            if (below < guess) return complement(*level, other, times, eps, below);
        }
        double log_value = guess - 3.0;
        ContourResult best;
        for (int attempt = 0; attempt < 4; ++attempt) {
            const Line line = choose_line(*level, k, times, eps, log_value);
            if (!line.table || !line.table->usable) return best;
            const Sum s = sum(*level, line, times, eps);
            const ContourResult found = delta_result(*level, s, times);
            if (!best.usable || relative_width(found) < relative_width(best)) best = found;
            const double allowed = 1e-10;
            if (relative_width(best) < allowed || !(s.value > 0.0)) break;
            const double next = s.log_unit + std::log(s.value) - 1.0;
            if (!(next < log_value - 0.5)) break;
            log_value = next;
        }
        return best;
    }

    // The smallest epsilon >= 0 with delta(epsilon) <= delta; 0 < delta < 1.
    ContourResult epsilon(double times, double delta) {
        using namespace detail;
        const double log_delta = std::log(delta);
        const Level& level = at_cut(has_cut_ ? cut_for(times, log_delta) : first_cut);
        const auto bound = [&](int k) {
            const double c = Level::tilt(k);
            return (times * level.moment(k).value + log_chernoff_constant(c) - log_delta) / c;
        };
        const double guess = std::sqrt(2.0 * (1.0 - log_delta) / (times * level.variance()));
        const int k = lowest_point(bound, start_tilt(guess), Level::first_positive, Level::last_positive);
        const double start = bound(k);
        if (!(start > 0.0)) return at_zero(times, delta);
        const Line line = choose_line(level, k, times, start, log_delta);
        ContourResult result;
        if (!line.table || !line.table->usable) return result;
        const auto f = [&](double eps) {
            const Sum s = sum(level, line, times, eps);
            if (!(s.value > 0.0)) return ValueSlope{-1e3, -1.0};
            return ValueSlope{s.log_unit + std::log(s.value) - log_delta, s.slope / s.value};
        };
        double root;
        try {
            root = newton_root(f, start, -infinity, infinity, false, 1e-9 * start);
        } catch (const std::runtime_error&) {
            return result;
        }
        if (!(root > 0.0)) return at_zero(times, delta);
        return ends(level, line, times, delta, root);
    }

  private:
    using Level = detail::ContourLevel;
    static constexpr int first_cut = 10;
    static constexpr double log_tolerance = -28.0;  // alias and truncation, each, relatively: 7e-13

    struct Line {
        int k;
        const Level::Table* table;
        double log_last;  // log decay of one repetition beyond the last node
    };

    struct Sum {
        double log_unit;               // everything else in units of e^{log_unit}
        double value, slope;           // of delta, or of 1 - delta
        double alias, truncation, rounding;
        double tilt;
        std::size_t nodes;
        double error() const { return alias + truncation + rounding; }
    };

    const Level& at_cut(int cut) {
        auto& level = levels_[cut];
        if (!level) level = std::make_unique<Level>(make_(static_cast<double>(cut)), kernels_);
        return *level;
    }

    // Smallest cut, in sigmas, with T Q(cut) <= e^-30 delta, since what is missing is at most Q(cut) a step.
    int cut_for(double times, double log_delta) {
        const double mass = log_delta - 30.0 - std::log(times * count());
        return 8 + static_cast<int>(std::ceil(std::sqrt(-2.0 * detail::min(mass, -1.0))));
    }

    double count() {
        if (count_ == 0.0)
            for (const ContourPart& part : make_(first_cut)) count_ += part.count;
        return count_;
    }

    static int start_tilt(double c) { return static_cast<int>(8.0 * std::log2(detail::min(detail::max(c, 1e-25), 1e25))); }

    // log of Chernoff's bound of delta (k positive) or of 1 - delta.
    static double exponent(const Level& level, int k, double times, double eps) {
        return level_exponent(level, k, times, eps) + detail::log_chernoff_constant(Level::tilt(k));
    }
    static double level_exponent(const Level& level, int k, double times, double eps) {
        const Cumulant::Moment& m = level.moment(k);
        return times * (m.value + m.error) - Level::tilt(k) * eps;
    }

    static int chernoff_tilt(const Level& level, double times, double eps) {
        const auto bound = [&](int k) { return exponent(level, k, times, eps); };
        const double guess = detail::max(eps / (times * level.variance()), 1.0 / std::sqrt(times * level.variance()));
        return detail::lowest_point(bound, start_tilt(guess), Level::first_positive, Level::last_positive);
    }

    static int complement_tilt(const Level& level, double times, double eps) {
        const auto bound = [&](int k) { return level_exponent(level, k, times, eps); };
        return detail::lowest_point(bound, Level::middle, Level::middle - Level::reach, Level::middle + Level::reach);
    }

    // Bounds of log alias in one direction (+1: n > 0) at period D = 2 pi/h: the smallest
    // over tilts of  exponent(c') - |c' - c| D, with the geometric series.
    struct Alias {
        double times, eps;
        const Level& level;
        int k;

        bool positive() const { return k >= Level::first_positive; }
        double log_bound(int other) const {
            return positive() ? exponent(level, other, times, eps) : level_exponent(level, other, times, eps);
        }
        // The tilt at the end of the range in that direction, with its bound: c' = 0, or -1; none above for c > 0.
        bool has_end(int direction) const { return !positive() || direction < 0; }
        double end(int direction) const { return positive() || direction > 0 ? 0.0 : -1.0; }
        double end_bound(int direction) const { return positive() || direction > 0 ? 0.0 : eps; }
        int sign(int direction) const { return positive() ? direction : direction; }

        // Applies visit(distance, log bound) to candidates, nearest first, until it returns false.
        template <class Visit> void each(int direction, const Visit& visit) const {
            const int first = positive() ? Level::first_positive : Level::middle - Level::reach;
            const int last = positive() ? Level::last_positive : Level::middle + Level::reach;
            for (int offset = 1; offset <= 2 * Level::reach; offset += 1 + offset / 3) {
                const int other = k + direction * offset;
                if (other < first || other > last) break;
                const double distance = std::fabs(Level::tilt(other) - Level::tilt(k));
                if (!visit(distance, log_bound(other))) break;
            }
            if (has_end(direction)) visit(std::fabs(end(direction) - Level::tilt(k)), end_bound(direction));
        }
    };

    // Period for which the alias of either sign is below e^{log_allowed}.
    static double needed_period(const Alias& alias, double log_allowed) {
        double period = 0.0;
        for (const int direction : {1, -1}) {
            double best = detail::infinity;
            int worse = 0;
            alias.each(direction, [&](double distance, double log_bound) {
                const double need = detail::max(log_bound - log_allowed, 1.0) / distance;
                worse = need < best ? 0 : worse + 1;
                best = detail::min(best, need);
                return worse < 3;
            });
            period = detail::max(period, best);
        }
        return period;
    }

    static double alias_error(const Alias& alias, double period, double log_unit) {
        double sum = 0.0;
        for (const int direction : {1, -1}) {
            double best = detail::infinity;
            int worse = 0;
            alias.each(direction, [&](double distance, double log_bound) {
                const double ratio = -std::expm1(-distance * period);
                const double value = std::exp(log_bound - log_unit - distance * period) / ratio;
                worse = value < best ? 0 : worse + 1;
                best = detail::min(best, value);
                return worse < 3;
            });
            sum += best;
        }
        return sum;
    }

    Line choose_line(const Level& level, int k, double times, double eps, double log_value) const {
        const double log_allowed = log_value + log_tolerance;
        const double period = needed_period({times, eps, level, k}, log_allowed);
        if (!(period < 1e300)) return {k, nullptr, 0.0};
        const int j = static_cast<int>(std::ceil(2.0 * std::log2(period / (2.0 * pi))));
        const double log_unit = level_exponent(level, k, times, eps);
        const auto enough = [&](int i) {
            return times * level.log_decay(k, i) - std::log(pi * Level::frequency(i)) + log_unit <= log_allowed;
        };
        const double width = std::sqrt(detail::max(2.0 * (log_unit - log_allowed), 1.0) / (times * level.variance()));
        int i = static_cast<int>(std::ceil(4.0 * std::log2(detail::min(detail::max(width, 1e-25), 1e25))));
        const int first = static_cast<int>(std::floor(-2.0 * j)), last = first + 4 * 17;  // from h to 2^17 h
        i = i < first ? first : i > last ? last : i;
        if (enough(i)) {
            while (i > first && enough(i - 4)) i -= 4;
            while (i > first && enough(i - 1)) --i;
        } else {
            while (i <= last && !enough(i)) i += 4;
            if (i > last) return {k, nullptr, 0.0};
            while (i > first && enough(i - 1)) --i;
        }
        if (getenv("DBG")) fprintf(stderr,"k %d c %g period %g h %g i %d omega %g decay %g log_unit %g allowed %g width %g\n",k,Level::tilt(k),period,std::exp2(-.5*j),i,Level::frequency(i),level.log_decay(k,i),log_unit,log_allowed,width);
        return {k, &level.table(k, j, i), level.log_decay(k, i)};
    }

    Sum sum(const Level& level, const Line& line, double times, double eps) {
        const Level::Table& t = *line.table;
        const std::size_t n = t.kernel_re.size();
        terms_.resize(n);
        slopes_.resize(n);
        errors_.resize(n);
        const contour::Nodes nodes{t.nodes.log_abs.data(), t.nodes.phase.data(), t.nodes.error.data(),
                                   t.kernel_re.data(), t.kernel_im.data(), t.slope_re.data(), t.slope_im.data(),
                                   t.kernel_abs.data(), t.h, n};
        kernels_.evaluate(nodes, times, eps, terms_.data(), slopes_.data(), errors_.data());
        double value = 0.0, slope = 0.0, error = 0.0, magnitude = 0.0;
        for (std::size_t k = 0; k < n; ++k) {
            value += terms_[k];
            slope += slopes_[k];
            error += errors_[k];
            magnitude += std::fabs(terms_[k]);
        }
        const Cumulant::Moment& m = level.moment(line.k);
        const double sign = t.c > 0.0 ? 1.0 : -1.0, scale = t.h / pi;
        Sum s;
        s.log_unit = times * m.value - t.c * eps;
        s.value = sign * scale * value;
        s.slope = -sign * scale * slope;
        const double unit = times * m.error + 4.0 * u * (std::fabs(times * m.value) + std::fabs(t.c * eps) + 8.0);
        s.rounding = scale * (error + static_cast<double>(n) * u * magnitude) + std::fabs(s.value) * 1.01 * unit;
        s.truncation = std::exp(times * line.log_last) / (pi * static_cast<double>(n - 1) * t.h);
        s.alias = 0.0;
        s.tilt = t.c;
        s.nodes = n;
        last_ = {&level, line, times, eps};
        return s;
    }

    void add_alias(Sum& s, const Level& level, const Line& line, double times, double eps) const {
        s.alias = alias_error({times, eps, level, line.k}, 2.0 * pi / line.table->h, s.log_unit);
    }

    // S >= delta but for the other errors.
    ContourResult delta_result(const Level& level, Sum s, double times) {
        add_alias(s, level, last_.line, times, last_.eps);
        ContourResult r = shares(s, level, times);
        const double other = s.truncation + s.rounding;
        const double low = detail::max(s.value - s.alias - other, 0.0), high = detail::max(s.value + other, 0.0);
        const double missing = detail::min(times * level.missing() * (1.0 + 1e-12), 1.0);
        r.log_lower = low > 0.0 ? s.log_unit + std::log(low) : -detail::infinity;
        r.log_upper = s.log_unit + std::log(high);
        r.log_upper = detail::min(r.log_upper + std::log1p(missing / std::exp(r.log_upper)), 0.0);
        if (!(r.log_upper > -700.0)) r.log_upper = log_sum(s.log_unit + std::log(high), std::log(missing));
        r.lower = std::exp(r.log_lower) * (1.0 - 4.0 * u * (1.0 + std::fabs(r.log_lower)));
        r.upper = detail::min(std::exp(r.log_upper) * (1.0 + 4.0 * u * (1.0 + std::fabs(r.log_upper))) + tiny, 1.0);
        r.usable = std::isfinite(s.value) && std::isfinite(s.error());
        return r;
    }

    static double log_sum(double x, double y) {
        const double most = detail::max(x, y), least = detail::min(x, y);
        return detail::min(most == -detail::infinity ? most : most + std::log1p(std::exp(least - most)), 0.0);
    }

    ContourResult complement(const Level& level, int k, double times, double eps, double log_value) {
        ContourResult r;
        const Line line = choose_line(level, k, times, eps, detail::max(log_value, -40.0) - 3.0);
        if (!line.table || !line.table->usable) return r;
        Sum s = sum(level, line, times, eps);
        add_alias(s, level, line, times, eps);
        r = shares(s, level, times);
        const double unit = std::exp(s.log_unit);
        const double other = unit * (s.truncation + s.rounding);
        const double high = unit * s.value + other, low = unit * (s.value - s.alias) - other;  // of 1 - delta
        const double missing = times * level.missing();
        r.lower = detail::max(1.0 - high - 1.01 * missing - 2.0 * u, 0.0);
        r.upper = detail::min(1.0 - detail::max(low, 0.0) + 2.0 * u, 1.0);
        r.log_lower = std::log1p(-detail::min(high + 1.01 * missing, 1.0));
        r.log_upper = std::log1p(-detail::max(low, 0.0));
        r.usable = std::isfinite(s.value) && std::isfinite(s.error());
        return r;
    }

    ContourResult shares(const Sum& s, const Level& level, double times) const {
        ContourResult r;
        const double value = detail::max(std::fabs(s.value), std::numeric_limits<double>::min());
        r.alias = s.alias / value;
        r.truncation = s.truncation / value;
        r.quadrature = s.rounding / value;
        r.missing = times * level.missing() / detail::max(std::exp(s.log_unit) * value, std::numeric_limits<double>::min());
        r.nodes = s.nodes;
        r.tilt = s.tilt;
        return r;
    }

    static double relative_width(const ContourResult& r) {
        return r.upper < 1e-290 ? r.log_upper - r.log_lower : (r.upper - r.lower) / r.upper;
    }

    // Is epsilon 0?
    ContourResult at_zero(double times, double delta) {
        ContourResult r = this->delta(times, 0.0);
        if (!r.usable) return r;
        if (r.upper <= delta) {
            r.lower = r.upper = 0.0;
        } else if (r.lower <= delta) {  // cannot be told; the slope of delta at 0 is -Q(L > 0), which is not small
            r.usable = false;
        } else {  // positive after all: Chernoff's bound was rounded away
            r.usable = false;
        }
        return r;
    }

    // Moves both ends from the root until the certificate holds.
    ContourResult ends(const Level& level, const Line& line, double times, double delta, double root) {
        ContourResult result;
        const double missing = times * level.missing() * (1.0 + 1e-12);
        const auto side = [&](double eps, bool above) {  // is delta(eps) certainly on that side of delta?
            Sum s = sum(level, line, times, eps);
            if (!above) add_alias(s, level, line, times, eps);
            const double log_target = std::log(delta) - s.log_unit;
            const double other = s.truncation + s.rounding + 4.0 * u * std::fabs(log_target) * s.value;
            const double target = std::exp(log_target);
            if (above) return s.value + other + missing * std::exp(-s.log_unit) <= target;
            return s.value - s.alias - other >= target;
        };
        Sum s = sum(level, line, times, root);
        add_alias(s, level, line, times, root);
        result = shares(s, level, times);
        if (!(s.value > 0.0) || !std::isfinite(s.error())) return result;
        const double relative = s.error() / s.value + result.missing + 8.0 * u * std::fabs(std::log(delta));
        const double step = detail::max(relative * s.value / std::fabs(s.slope), 2.0 * u * root);
        double up = root, down = root, reach = step;
        bool found = false;
        for (int k = 0; k < 24 && !found; ++k, reach *= 2.0) found = side(up = root + reach, true);
        if (!found) return result;
        found = false;
        reach = step;
        for (int k = 0; k < 24 && !found && root > reach; ++k, reach *= 2.0) found = side(down = root - reach, false);
        result.lower = found ? down : 0.0;
        result.upper = up;
        result.usable = true;
        return result;
    }

    static constexpr double pi = 3.141592653589793;
    static constexpr double u = 1.1102230246251565e-16;
    static constexpr double tiny = std::numeric_limits<double>::denorm_min();

    struct Last {
        const Level* level;
        Line line;
        double times, eps;
    };

    Factory make_;
    bool has_cut_;
    const contour::Kernels& kernels_;
    double count_ = 0.0;
    std::map<int, std::unique_ptr<Level>> levels_;
    std::vector<double> terms_, slopes_, errors_;
    Last last_{};
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick
