// Which line Re s = c a question is summed on: its tilt c, the spacing h of its nodes, its last
// frequency.
//
// The spacing follows from the alias bound, the last frequency from the truncation bound
// (docs/core/contour.md). Both are rounded to the grids of contour/line_grid.hpp. The tilt is
// usually where Chernoff's bound is smallest.
#pragma once

#include <algorithm>
#include <cmath>

#include <hockeystick/contour/alias_error.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

struct Line {
    TruncatedLedger* ledger;
    int tilt_index;
    Repeated repeated;
    int spacing_index = 0, cutoff_index = 0;
    double node_count = infinity;
    double log_decay = 0.0;  // bounds log |phi^T| beyond the last node
    const LineNodes* nodes = nullptr;

    // Makes the nodes; false where that is out of proportion.
    bool prepare() {
        if (node_count > std::exp2(log2_max_nodes)) return false;
        nodes = &ledger->nodes(tilt_index, spacing_index, cutoff_index, repeated.smoothing);
        return nodes->usable;
    }

    const TiltedMoment& moment() const { return ledger->at(tilt_index); }
    double period() const { return 2.0 * pi / nodes->h; }
};

// A line of fewer nodes is not worth a search for one with fewer still.
inline constexpr double few_nodes = 800.0;

// Sets the first frequency beyond which the truncation error is below e^{log_allowed}: by the decay
// of the ledger's characteristic function, times that of the smoothing where there is one.
// Either falls with omega, at first about like -omega^2 variance/2. Hence any search finds the same
// frequency; this one follows secants on logarithmic scales, and halves the range after five of
// them.
inline void choose_last_frequency(Line& line, double log_unit, double log_allowed) {
    const double smoothing = line.repeated.smoothing, times = line.repeated.times;
    const double end = line.ledger->decay_end(line.tilt_index);
    const auto log_beyond = [&](double frequency) {  // for all frequencies from there on
        return times * line.ledger->log_decay_beyond(line.tilt_index, frequency) -
               0.5 * (smoothing * frequency) * (smoothing * frequency);
    };
    const double beyond_end = end < infinity ? log_beyond(end) : -infinity;
    const auto log_decay = [&](int index) {
        const double frequency = frequency_at(index), turn = smoothing * frequency;
        if (!(frequency < end)) return log_beyond(frequency);
        const double here = times * line.ledger->log_decay(line.tilt_index, index) - 0.5 * turn * turn;
        return end < infinity ? log_sum(here, beyond_end) : here;
    };
    const double variance = smoothing > 0.0 ? smoothing * smoothing : times * line.ledger->variance_at(line.tilt_index);
    const double width = std::sqrt(max(2.0 * (log_unit - log_allowed), 1.0) / variance);
    // Frequencies from h on.
    const int first = -2 * line.spacing_index, last = first + 4 * log2_max_nodes;
    if (end < infinity && log_beyond(max(end, frequency_at(last))) == 0.0) return;  // the terms beyond `end` stay
    const double guess = std::ceil(4.0 * std::log2(min(max(width, 1e-60), 1e60)));
    int index = std::min(std::max(static_cast<int>(guess), first), last), below = first - 1, above = last + 1;
    int tried = 0, before = index;
    double log_before = 0.0;
    while (above - below > 1) {
        const double found = std::log2(max(-log_decay(index), 1e-300));
        const double wanted = max(log_unit - log_allowed - std::log(pi * frequency_at(index)), 1e-300);
        const bool enough = found >= std::log2(wanted);
        (enough ? above : below) = index;
        const double slope = index == before ? 0.5 : min(max((found - log_before) / (index - before), 0.1), 0.5);
        const double next = index + std::ceil(min(max((std::log2(wanted) - found) / slope, -64.0), 64.0));
        before = index;
        log_before = found;
        const bool halve = ++tried > 5 && below >= first && above <= last;
        index = halve ? (below + above) / 2 : std::min(std::max(static_cast<int>(next), below + 1), above - 1);
    }
    if (above > last) return;
    line.cutoff_index = above;
    line.node_count = frequency_at(above) * std::exp2(0.5 * line.spacing_index);
    line.log_decay = log_decay(above);
}

// The coarsest line whose alias and truncation are each below e^{log_allowed}; of infinitely many
// nodes where there is none.
inline Line choose_line(TruncatedLedger& ledger, int tilt_index, const Repeated& repeated, double eps,
                        double log_allowed) {
    Line line{&ledger, tilt_index, repeated};
    const double period = needed_period({ledger, tilt_index, repeated, eps}, log_allowed);
    if (!(period < 1e200 && period > 1e-200)) return line;
    line.spacing_index = static_cast<int>(std::ceil(2.0 * std::log2(period / (2.0 * pi))));
    choose_last_frequency(line, log_unit(ledger.at(tilt_index), repeated, eps), log_allowed);
    return line;
}

// The line that make_line(tilt_index) chooses at this tilt, or at a lower one while that needs
// fewer nodes.
//
// When a few rare large losses dominate, the best tilt sits at a kink of Chernoff's bound. There
// the alias forces a small spacing and hence many nodes. A lower tilt is accepted then, as long as
// the unit of the sum, e^{K(c) - c eps}, grows by at most e^{max_growth}: rounding grows with it.
template <class MakeLine>
Line line_with_fewest_nodes(int tilt_index, double eps, double max_growth, double max_nodes,
                            const MakeLine& make_line) {
    const auto log_unit_of = [&](const Line& line) { return log_unit(line.moment(), line.repeated, eps); };
    Line best = make_line(tilt_index);
    if (best.node_count > 4.0 * max_nodes) return best;  // no lower tilt makes up for that
    const double max_log_unit = log_unit_of(best) + max_growth;
    for (int offset = 4; best.node_count > few_nodes && offset <= 48 && tilt_index - offset >= TiltGrid::first_positive;
         offset += offset < 8 ? 4 : 8) {
        const Line next = make_line(tilt_index - offset);
        if (!(next.node_count < 1.5 * best.node_count && log_unit_of(next) <= max_log_unit)) break;
        if (next.node_count < best.node_count) best = next;
    }
    return best;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour
