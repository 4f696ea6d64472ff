// Many cells of the core, for platforms where the Python tests cannot run: kernels, and brackets of ledgers. Each line is a name, its
// arguments and its value, or both ends; tests/embedding/test_cross.py holds them against the module.
#include <hockeystick/accountant.hpp>
#include <hockeystick/hockeystick.hpp>

#include <cstdio>

using namespace hockeystick;

void print(const char* name, double x, double y, double value) {
    std::printf("%s %.17g %.17g %.17g\n", name, x, y, value);
}

void kernels() {
    const double sizes[] = {1e-150, 1e-8, 1e-3, 0.1, 0.7, 1.0, 3.0, 20.0, 300.0};
    for (const double x : sizes) {
        for (const double sign : {-1.0, 1.0}) {
            print("q", sign * x, 0.0, q(sign * x));
            print("log_q", sign * x, 0.0, log_q(sign * x));
        }
        for (const double eps : sizes) {
            print("theta", eps, x, theta(eps, x));
            print("log_theta", eps, x, log_theta(eps, x));
            print("laplace_theta", eps, x, laplace_theta(eps, x));
        }
        for (const double delta : {1e-300, 1e-30, 1e-9, 1e-5, 0.3, 0.99}) {
            print("theta_inverse", x, delta, theta_inverse(x, delta));
            print("gaussian_epsilon", x, delta, gaussian_epsilon(x, delta));
            print("q_inv", delta, 0.0, q_inv(delta));
        }
    }
}

void ledgers() {
    for (const double noise : {0.6, 1.0, 4.0}) {
        for (const double rate : {1e-3, 0.03, 0.5, 1.0}) {
            for (const double steps : {1.0, 30.0, 5000.0}) {
                Accountant gaussian, both;
                gaussian.compose(poisson_sampled(hockeystick::gaussian(noise), rate), steps);
                both.compose(poisson_sampled(laplace(10.0 * noise), rate), steps);
                both.compose(hockeystick::gaussian(noise));
                for (const double delta : {1e-5, 1e-12}) {
                    const Interval alone = gaussian.epsilon(delta), mixed = both.epsilon(delta);
                    std::printf("ledger %.17g %.17g %.17g %.17g %.17g %.17g %.17g %.17g\n", noise, rate, steps, delta,
                                alone.lower, alone.upper, mixed.lower, mixed.upper);
                }
            }
        }
    }
}

int main() {
    kernels();
    ledgers();
}
