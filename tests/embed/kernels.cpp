// A downstream program: the umbrella header in two units, and a number that the caller checks.
#include <hockeystick/hockeystick.hpp>

#include <cstdio>

double other_unit();

int main() { std::printf("%.17g %.17g\n", hockeystick::theta(1.0, 1.0), other_unit()); }
