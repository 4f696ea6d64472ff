// Brackets of the divergence of two normal laws, far out in their tails, by the sums of long double that mixtures need. Each line is eps,
// the distance and both ends; tests/embedding/test_cross.py holds them against the exact value.
#include <hockeystick/chain/mixture_divergence.hpp>

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
}
