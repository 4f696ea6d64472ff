// Mixtures of Gaussians, which tests/embedding/test_cross.py holds against exact values. Lines of four numbers: brackets of the divergence
// of two normal laws, far out in their tails, by the sums of long double that mixtures need: eps, the distance and both ends. Lines of eight:
// the nearer shift, x, a reach, log A there and its error, and of the posterior shift the mean, and the variance and the third moment within the reach.
#include <hockeystick/chain/mixture_divergence.hpp>
#include <hockeystick/cumulant/shift_mixture.hpp>

#include <cstdio>

using namespace hockeystick;

int main() {
    for (const double distance : {0.3, 0.7, 1.1, 1.9}) {
        for (double eps = 1.1; eps < 30.0 * distance; eps += 0.47) {
            chain::Mixture p, q;
            p.centre.assign(1, 0.5 * distance), q.centre.assign(1, -0.5 * distance);
            p.weight = q.weight = {1.0};
            const auto [lower, upper] = chain::gaussian_mixture_divergence(p, q, 1.0, 60.0, eps).value;
            std::printf("%.17g %.17g %.17g %.17g\n", eps, distance, lower, upper);
        }
    }
    for (const double near : {0.0, 0.5}) {
        const cumulant::ShiftMixture mixture({{near, 40.0}, {0.75, 0.25}}, 0.5);
        for (double x = -3.0; x < 36.0; x += 0.25) {
            for (const double reach : {0.03125, 0.5, 2.0}) {
                const auto [log, error, mean, variance, cube] = mixture.at(x, reach);
                std::printf("%.17g %.17g %.17g %.17g %.17g %.17g %.17g %.17g\n", near, x, reach, log, error, mean,
                            variance, cube);
            }
        }
    }
}
