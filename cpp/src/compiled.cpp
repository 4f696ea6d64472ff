// The compiled library: the functions that accounting/compiled.hpp lists, compiled once.
#define HOCKEYSTICK_COMPILED
#define HOCKEYSTICK_BUILDS_COMPILED
#include <hockeystick/accountant.hpp>
