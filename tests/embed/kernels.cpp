// A downstream program: the umbrella header in two units, and a number that the caller checks.
#include <hockeystick/hockeystick.hpp>

#include <cstdio>

double other_unit();

// One cell of each closed form of the last iterate; Python computes them by other code, in blocks.
void print_last_iterate() {
    using namespace hockeystick;
    const double gaussian = pnsgd_gaussian(0.5, 95.0, 100.0, 0.8, 2.0, 1.0, 1.0, 0.3, 1.0);
    const double laplace = pnsgd_laplace(0.2, 95.0, 100.0, 0.8, 2.0, 1.0, 1.0, 0.3, 1.0);
    const double random_stop = pnsgd_gaussian_random_stop(0.5, 100.0, 0.8, 2.0, 1.0, 1.0, 0.3, 1.0);
    const double renyi = pnsgd_rdp(3.0, 95.0, 100.0, 0.8, 2.0, 1.0, 1.0, 0.3);
    std::printf("%.17g %.17g %.17g %.17g\n", gaussian, laplace, random_stop, renyi);
}

int main() {
    std::printf("%.17g %.17g\n", hockeystick::theta(1.0, 1.0), other_unit());
    print_last_iterate();
}
