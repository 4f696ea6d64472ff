// The strategies of the contour engine, in the order in which it tries them.
//
// One line without smoothing answers nearly all questions. The others are for ledgers whose sums
// decay slowly, whose losses have many scales, or whose largest losses carry most of the weight.
#pragma once

#include <vector>

#include <hockeystick/contour/line_sum.hpp>
#include <hockeystick/contour/result.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

struct Strategy {
    enum class Method { line, slices, deep_slices, chernoff };

    const char* name;
    Method method;
    // The search ends before this strategy where the best bracket is narrower than this,
    // relatively.
    double good_enough;
    int loss_cutoff = 0;
    double max_nodes = infinity;
    SmoothingWidth smoothing{0.0, infinity};  // what smoothing may widen the bracket by; 0 for none
    int tilt_offset = 0;                      // by how many indices the tilt is below the best one
};

// A bracket that narrow ends the search.
inline constexpr double narrow_width = 1e-6;
// A bracket of slices that narrow is not worth a long line.
inline constexpr double narrow_for_slices = 1e-5;
// A bracket that narrow is not worth smoothing.
inline constexpr double fairly_narrow_width = 1e-3;

// What the list depends on.
struct StrategyChoice {
    int loss_cutoff;   // the default one, or more where the tight one needs more
    int tight_cutoff;  // the smallest loss cutoff whose missing mass does not matter
    bool has_slices;
    double max_nodes;  // above which slices are less work than a line
    bool deep;         // delta is that small that slices must be deep ones (SliceShape)
};

// If the tilt that minimises Chernoff's bound gives much weight to losses just below the cutoff,
// rounding dominates. Lower tilts weigh those losses less; every line is followed by these, which
// are tried only then.
inline void append_lines(std::vector<Strategy>& list, const Strategy& line, const char* name_at_lower_tilts) {
    list.push_back(line);
    for (const int offset : {4, 8, 13, 20}) {
        list.push_back(line);
        list.back().name = name_at_lower_tilts;
        list.back().tilt_offset = offset;
    }
}

// The first one. If its bracket is narrower than narrow_width, no other is tried.
inline Strategy first_strategy(const StrategyChoice& choice) {
    return {"line", Strategy::Method::line, 0.0, choice.loss_cutoff, choice.max_nodes};
}

// All of them. The list takes longer to make than a sum whose nodes are known.
inline std::vector<Strategy> strategies(const StrategyChoice& choice) {
    using Method = Strategy::Method;
    std::vector<Strategy> list;
    list.reserve(43);
    append_lines(list, first_strategy(choice), "line, lower tilt");
    const double deep_enough = choice.deep ? enough_for_deep_delta : narrow_for_slices;
    if (choice.has_slices && !choice.deep) list.push_back({"slices", Method::slices, narrow_width});
    if (choice.has_slices) {
        list.push_back({"deep slices", Method::deep_slices, narrow_width});
        append_lines(list, {"long line", Method::line, deep_enough, choice.loss_cutoff}, "long line, lower tilt");
    }
    // A long line is always compared with one under the tight cutoff, which has less rounding.
    const double before_tight = choice.deep ? deep_enough : choice.has_slices ? 0.0 : narrow_width;
    if (choice.tight_cutoff != choice.loss_cutoff)
        append_lines(list, {"line, tight cutoff", Method::line, before_tight, choice.tight_cutoff},
                     "line, tight cutoff, lower tilt");
    for (const SmoothingWidth& width : smoothing_widths)
        append_lines(list,
                     {width.least ? "slightly smoothed line" : "smoothed line", Method::line,
                      choice.deep ? deep_enough : fairly_narrow_width, choice.tight_cutoff, width.max_nodes, width},
                     "smoothed line, lower tilt");
    list.push_back({"Chernoff's bound", Method::chernoff, infinity});
    return list;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour
