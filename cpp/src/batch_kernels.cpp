// Compiled once per instruction set with HOCKEYSTICK_ISA and HOCKEYSTICK_KERNELS defined. Raw
// pointers only: a standard container would emit weak symbols, of which the linker keeps one copy
// for all instruction sets.
#include "batch_kernels.hpp"

#include <cstdint>

#include "closed_form_blocks.hpp"

#include <hockeystick/simd/hidden_rounds.hpp>

#define HOCKEYSTICK_TEXT_OF(x) #x
#define HOCKEYSTICK_TEXT(x) HOCKEYSTICK_TEXT_OF(x)
#define HOCKEYSTICK_GRID(x) grid_##x
#define HOCKEYSTICK_GRID_OF(x) HOCKEYSTICK_GRID(x)

namespace hockeystick::batch {
namespace {

using namespace numeric;
using namespace divergence;

template <double (*Kernel)(double)>
HOCKEYSTICK_FLATTEN bool loop1(const double* __restrict x, double* __restrict out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = Kernel(x[i]);
    return any_nan(out, n);
}

// `Loop` takes any number of rows.
template <Block Loop> bool of_two(const double* x, const double* y, double* out, std::size_t n) {
    const double* const columns[] = {x, y};
    return Loop(columns, out, n);
}

HOCKEYSTICK_FLATTEN bool theta_inverses(const double* eps, const double* delta, double* out, std::size_t n) {
    simd::theta_inverses(eps, delta, out, n);
    return any_nan(out, n);
}

// gdp_epsilons where they are positive.
bool gaussian_epsilons(const double* r, const double* delta, double* out, std::size_t n) {
    of_two<closed_forms.gdp_epsilon>(r, delta, out, n);
    for (std::size_t i = 0; i < n; ++i) out[i] = out[i] > 0.0 ? out[i] : nan;
    return any_nan(out, n);
}

void loop_hidden_rounds(const double* const* read, double* const* written, std::size_t lanes, double longest) {
    const simd::HiddenRoundLanes all{read[0], read[1],    read[2],    read[3],    read[4],
                                     read[5], written[0], written[1], written[2], written[3]};
    simd::run_hidden_rounds(all, lanes, longest);
}

}  // namespace

const Kernels HOCKEYSTICK_KERNELS = {
    HOCKEYSTICK_TEXT(HOCKEYSTICK_ISA),
    loop1<q>,
    loop1<log_q>,
    quantiles,
    of_two<closed_forms.theta>,
    of_two<closed_forms.log_theta>,
    of_two<closed_forms.laplace_theta>,
    simd::own_kernels,
};

const GridKernels HOCKEYSTICK_GRID_OF(HOCKEYSTICK_KERNELS) = {
    theta_inverses, gaussian_epsilons, closed_forms, loop_hidden_rounds, simulator_loops,
};

}  // namespace hockeystick::batch
