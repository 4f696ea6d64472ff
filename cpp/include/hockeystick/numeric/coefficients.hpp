// Written by tests/reference/generate_coefficients.py; do not edit.
// clang-format off
#pragma once

#include <hockeystick/version.hpp>

namespace hockeystick::numeric {
inline namespace HOCKEYSTICK_ISA {

inline constexpr double mills_shift = 5.0;  // u = 1/(x + mills_shift)
inline constexpr double mills_reach = 0.25;  // the polynomial holds for x >= -mills_reach
inline constexpr double quantile_centre = 0.425;  // the centre of Q^{-1} is |p - 1/2| <= quantile_centre
inline constexpr double quantile_tail_start = 2.276078718078892;  // sqrt(-2 log(1/2 - quantile_centre))
inline constexpr double mills_scale = 9.5;  // t = 1 - mills_scale u
inline constexpr double inv_sqrt_2pi = 0.3989422804014327;  // 1/sqrt(2 pi)
inline constexpr double half_log_2pi = 0.9189385332046728;  // log(2 pi)/2
inline constexpr double log2_high = 0.6931471803691238;  // the first 32 bits of log(2)
inline constexpr double log2_low = 1.9082149292705877e-10;  // log(2) - log2_high
inline constexpr double inv_log2 = 1.4426950408889634;  // 1/log(2)
inline constexpr double sqrt_half = 0.7071067811865476;  // sqrt(1/2)

// R(t): m(x) = u R(t) for the Mills ratio m(x) = Q(x)/phi(x), lowest power first.
inline constexpr double mills_coefficients[] = {
    2.019420514199302,
    -1.900352503780537,
    1.5210769221641016,
    -1.0239946729370955,
    0.5665286051199809,
    -0.24572101203733387,
    0.07443668714522299,
    -0.009340344559164476,
    -0.004013061268936763,
    0.0022592758361385536,
    -0.00011597750616426825,
    -0.0002613067911009463,
    6.163751506664639e-05,
    2.8754384813945984e-05,
    -1.2156965168391927e-05,
    -3.66507074162848e-06,
    2.1054704521689077e-06,
    5.937105938260324e-07,
    -3.428877713928986e-07,
    -1.1189208058083648e-07,
    4.7036877850675894e-08,
    1.8777339592671023e-08,
    -3.84727506238643e-09,
    -1.8165199931357174e-09,
};

// S(z): Q(x) = 1/2 - x S(x^2), |x| <= 1.
inline constexpr double tail_centre_coefficients[] = {
    0.3989422804014327,
    -0.06649038006690544,
    0.009973557010035806,
    -0.001187328215480253,
    0.00011543468761421087,
    -9.444656248413156e-06,
    6.659693114915888e-07,
    -4.122657837266453e-08,
    2.2733770173468317e-09,
    -1.1285002144059668e-10,
    5.003033458919368e-12,
    -1.6878231631896875e-13,
};

// p(x): exp(x) = 1 + x + x^2 p(x), |x| <= log(2)/2.
inline constexpr double exp_coefficients[] = {
    0.5000000000000001,
    0.16666666666666669,
    0.04166666666662408,
    0.008333333333330058,
    0.0013888888917238233,
    0.0001984126986307247,
    2.480152125786665e-05,
    2.75572684307071e-06,
    2.7620106559514165e-07,
    2.5100399425451985e-08,
};

// p(z): log(1 + f) = f - f^2/2 + s (f^2/2 + z p(z)), s = f/(2 + f), z = s^2.
inline constexpr double log_coefficients[] = {
    0.666666666666667,
    0.39999999999899505,
    0.2857142862597575,
    0.22222211134751835,
    0.18182889128412458,
    0.15331721495826012,
    0.1461645097955211,
};

// Q^{-1}(1/2 - y)/y for |y| <= quantile_centre, in t = quantile_centre^2 - y^2: the numerator. All terms are positive.
inline constexpr double quantile_centre_numerator[] = {
    3.3871328727963665,
    148.7565407706315,
    2548.224857302262,
    21627.48116049055,
    95692.73551269755,
    213550.16248438202,
    214247.3801984237,
    74060.81462563897,
    3907.007639023813,
};

// Its denominator.
inline constexpr double quantile_centre_denominator[] = {
    1.0,
    46.92338689522055,
    871.2838940641984,
    8176.878340636069,
    41169.98166790855,
    109244.70555458812,
    140376.82723612536,
    72342.69749284584,
    9398.464517206585,
};

// s - Q^{-1}(p) beyond it, s = sqrt(-2 log p), in t = s - quantile_tail_start: the numerator. All terms are positive.
inline constexpr double quantile_tail_numerator[] = {
    0.8365472471404363,
    1.1099480342251826,
    0.5975859903580538,
    0.17063600408341456,
    0.028104228944604227,
    0.002666239916764358,
    0.00013714292647587685,
    3.436878901088548e-06,
    3.52292369905322e-08,
    1.0261332403669974e-10,
    1.189265178356043e-14,
};

// Its denominator.
inline constexpr double quantile_tail_denominator[] = {
    1.0,
    1.5729868821860242,
    1.028944332558452,
    0.3662182781930793,
    0.07770465680202723,
    0.010046050229933627,
    0.0007691565489831528,
    3.2468265556596984e-05,
    6.733460382040655e-07,
    5.671869412991399e-09,
    1.2897723855484917e-11,
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::numeric
