// Compiled once per instruction set with HOCKEYSTICK_ISA and HOCKEYSTICK_KERNELS defined. Raw
// pointers only: a standard container would emit weak symbols, of which the linker keeps one copy
// for all instruction sets.
#include "batch_kernels.hpp"

#include <cstdint>

#include <hockeystick/divergence/hockey_stick.hpp>
#include <hockeystick/simd/hidden_rounds.hpp>

#define HOCKEYSTICK_TEXT_OF(x) #x
#define HOCKEYSTICK_TEXT(x) HOCKEYSTICK_TEXT_OF(x)

namespace hockeystick::batch {
namespace {

using namespace numeric;
using namespace divergence;

using Scalar1 = double (*)(double);
using Scalar2 = double (*)(double, double);

bool any_nan(const double* x, std::size_t n) {
    std::int64_t found = 0;
    for (std::size_t i = 0; i < n; ++i) found |= x[i] != x[i] ? 1 : 0;
    return found != 0;
}

template <Scalar1 Kernel> bool loop1(const double* __restrict x, double* __restrict out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = Kernel(x[i]);
    return any_nan(out, n);
}

template <Scalar2 Kernel>
bool loop2(const double* __restrict x, const double* __restrict y, double* __restrict out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = Kernel(x[i], y[i]);
    return any_nan(out, n);
}

// The selects for infinities, zeros and negative eps take a third of the time (Intel Xeon, AVX-512
// and AVX2) and are rarely needed: look first.
bool loop_theta(const double* __restrict eps, const double* __restrict r, double* __restrict out, std::size_t n) {
    std::int64_t special = 0;
    for (std::size_t i = 0; i < n; ++i) special |= moderate(eps[i], r[i]) ? 0 : 1;
    if (special) return loop2<theta>(eps, r, out, n);
    for (std::size_t i = 0; i < n; ++i) out[i] = theta_moderate(eps[i], r[i]);
    return false;
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
    loop1<q_inv>,
    loop_theta,
    loop2<log_theta>,
    loop2<laplace_theta>,
    simd::own_kernels,
    loop_hidden_rounds,
};

}  // namespace hockeystick::batch
