// Discrete pairs made from something finer: a law put on a grid of losses, and pairs with room for
// the rounding of their masses, above and below.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include <hockeystick/mechanism/discrete.hpp>
#include <hockeystick/numeric/compensated_sum.hpp>

namespace hockeystick::release {
inline namespace HOCKEYSTICK_ISA {

using namespace mechanism;

// Moves the masses that Q puts at losses to the grid, and adds them to `gridded`, such that delta
// only grows. The increasing nodes of the grid enclose all losses.
//
// Each outcome becomes two, at the nodes on its two sides, with the same mass under Q and, as the
// mean of e^loss is kept, under P too. By convexity in e^loss no hockey-stick divergence falls
// (connecting the dots: Doroshenko and others 2022). P has e^node times the result.
inline void connect_the_dots(const std::vector<double>& losses, const std::vector<double>& masses,
                             const std::vector<double>& nodes, std::vector<double>& gridded) {
    for (std::size_t i = 0; i < losses.size(); ++i) {
        const auto above = std::upper_bound(nodes.begin() + 1, nodes.end() - 1, losses[i]) - nodes.begin();
        const auto right = static_cast<std::size_t>(above), left = right - 1;
        const double share = std::expm1(losses[i] - nodes[left]) / std::expm1(nodes[right] - nodes[left]);
        const double moved = min(max(share, 0.0), 1.0);
        gridded[left] += (1.0 - moved) * masses[i];
        gridded[right] += moved * masses[i];
    }
}

// A side of loss 0. The outcomes beyond it tell a law: those of positive losses are likelier under
// P, those of negative ones under Q.
enum class Side { positive, negative };

inline bool tells(double loss, Side side) { return side == Side::positive ? loss > 0.0 : loss < 0.0; }

// The mass of the outcomes that tell a law, and that of all others.
struct Telling {
    double gain, spare;
};

inline Telling telling(const std::vector<double>& losses, const std::vector<double>& law, Side side) {
    CompensatedSum gain, spare;
    for (std::size_t i = 0; i < law.size(); ++i) (tells(losses[i], side) ? gain : spare).add(law[i]);
    return {gain.value(), spare.value()};
}

// More times as likely as all others, the outcomes that tell a law get no share of theirs.
inline constexpr double most_telling = 0x1p10;

// One law whose telling masses are raised by a share. The others are lowered, so that the sum
// stays. Losses must increase.
inline void move_law(const std::vector<double>& losses, std::vector<double>& law, Side side, double error) {
    const auto [gain, spare] = telling(losses, law, side);
    const bool shared = gain <= most_telling * spare;
    const double lowered = shared ? 1.0 - (gain > 0.0 ? error * gain / spare : 0.0) : 1.0 - error;
    for (std::size_t i = 0; i < law.size(); ++i) law[i] *= tells(losses[i], side) ? 1.0 + error : lowered;
    if (shared) return;
    double excess = error * (gain - spare);
    for (std::size_t k = 0; k < law.size(); ++k) {
        const std::size_t i = side == Side::positive ? k : law.size() - 1 - k;
        if (!tells(losses[i], side)) continue;
        const double given = min(law[i], excess);
        law[i] = min((law[i] - given) * up, 1.0);
        excess -= given;
    }
}

// A pair that leaks no less than the true one, of which p and q are known up to a relative error of
// tails.
//
// P's masses of positive losses (infinite ones included) and Q's of negative ones are raised by
// that share, the others lowered; sums stay. So P(A) - e^eps Q(A) of the upper outcomes A,
// eps >= 0, rises by error P(A), which is more than it is off by. For eps < 0 the same is seen from
// the lower outcomes. Where the others are too few to give that much, the raised outcomes nearest
// to loss 0 give the rest. Then P(A) rises as before, or is all that is left beside the others,
// whose own error is taken off them.
inline Masses widened(const std::vector<double>& losses, Masses pair, double error) {
    move_law(losses, pair.p, Side::positive, error);
    move_law(losses, pair.q, Side::negative, error);
    return pair;
}

// A pair that leaks no more than the true one, by the opposite moves. There is none where they
// could change the order of losses.
inline std::optional<Masses> narrowed(const std::vector<double>& losses, Masses pair, double error) {
    double least = infinity, ratio = 0.0;
    for (const double loss : losses)
        if (loss != 0.0) least = min(least, std::fabs(loss));
    for (const auto& [gain, spare] :
         {telling(losses, pair.p, Side::positive), telling(losses, pair.q, Side::negative)}) {
        if (gain > most_telling * spare) return std::nullopt;
        ratio = max(ratio, gain / spare);
    }
    if (least <= 4.0 * error * (1.0 + ratio)) return std::nullopt;
    return widened(losses, std::move(pair), -error);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::release
