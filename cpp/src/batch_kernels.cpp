// Compiled once per instruction set with HOCKEYSTICK_ISA and HOCKEYSTICK_KERNELS defined. Raw
// pointers only: a standard container would emit weak symbols, of which the linker keeps one copy
// for all instruction sets.
#include "batch_kernels.hpp"

#include <cstdint>

#include "closed_form_blocks.hpp"

#include <hockeystick/simd/hidden_rounds.hpp>

#define HOCKEYSTICK_TEXT_OF(x) #x
#define HOCKEYSTICK_TEXT(x) HOCKEYSTICK_TEXT_OF(x)

namespace hockeystick::batch {
namespace {

using namespace numeric;
using namespace divergence;

using Scalar1 = double (*)(double);
using Scalar2 = double (*)(double, double);

template <Scalar1 Kernel>
HOCKEYSTICK_FLATTEN bool loop1(const double* __restrict x, double* __restrict out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = Kernel(x[i]);
    return any_nan(out, n);
}

template <Scalar2 Kernel>
HOCKEYSTICK_FLATTEN bool loop2(const double* __restrict x, const double* __restrict y, double* __restrict out,
                               std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = Kernel(x[i], y[i]);
    return any_nan(out, n);
}

template <auto General, auto Moderate, auto Inside>
bool loop_moderate(const double* eps, const double* r, double* out, std::size_t n) {
    const double* const columns[] = {eps, r};
    return look_first<General, Moderate, Inside>(columns, out, n);
}

template <void (*Solve)(const double*, const double*, double*, std::size_t)>
HOCKEYSTICK_FLATTEN bool loop_inverse(const double* x, const double* y, double* out, std::size_t n) {
    Solve(x, y, out, n);
    return any_nan(out, n);
}

HOCKEYSTICK_FLATTEN bool loop_quantiles(const double* p, double* out, std::size_t n) {
    simd::quantiles(p, out, n);
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
    loop_quantiles,
    loop_moderate<theta, theta_moderate, moderate>,
    loop_moderate<log_theta, log_theta_moderate, log_moderate>,
    loop2<laplace_theta>,
    loop_inverse<simd::theta_inverses>,
    loop_inverse<simd::gaussian_epsilons>,
    closed_forms,
    simd::own_kernels,
    loop_hidden_rounds,
};

}  // namespace hockeystick::batch
