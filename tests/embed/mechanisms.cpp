// Every mechanism of accountant.hpp, alone and with others: built from the headers alone and against the compiled library,
// which must print the same.
#include <hockeystick/accountant.hpp>

#include <cstdio>
#include <stdexcept>
#include <utility>
#include <vector>

using namespace hockeystick;

void print(const Accountant& ledger) {
    const Interval epsilon = ledger.epsilon(1e-6), delta = ledger.delta(0.5);
    std::printf("%.17g %.17g %.17g %.17g\n", epsilon.lower, epsilon.upper, delta.lower, delta.upper);
}

int main() {
    const std::vector<std::pair<PairPointer, double>> steps{
        {gaussian(1.3), 7.0},
        {laplace(9.0), 3.0},
        {poisson_sampled(gaussian(0.9), 0.02), 100.0},
        {poisson_sampled(discrete_laplace(0.4, 2.0), 0.1), 5.0},
        {poisson_sampled(laplace(1.0), 0.0), 5.0},
        {discrete({0.6, 0.4}, {0.5, 0.5}), 20.0},
        {discrete_gaussian(4.0, 1.0), 10.0},
        {randomized_response(0.9, 4.0), 6.0},
        {bounded_range(0.3), 12.0},
        {approximate_dp(0.1, 1e-8), 4.0},
    };
    Accountant all;
    for (const auto& [pair, count] : steps) {
        Accountant alone;
        alone.compose(pair, count);
        print(alone);
        all.compose(pair, count);
    }
    print(all);
    try {
        all.epsilon(2.0);
    } catch (const std::invalid_argument& error) {
        std::printf("%s\n", error.what());
    }
}
