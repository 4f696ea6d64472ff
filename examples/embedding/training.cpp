// What a training spends: 1000 steps of DP-SGD, then one release with Laplace noise.
#include <hockeystick/accountant.hpp>

#include <cstdio>

int main() {
    hockeystick::Accountant training;
    training.compose(hockeystick::poisson_sampled(hockeystick::gaussian(1.1), 0.01), 1000.0);
    training.compose(hockeystick::laplace(20.0));
    const hockeystick::Interval epsilon = training.epsilon(1e-5);
    std::printf("%.17g %.17g\n", epsilon.lower, epsilon.upper);
}
