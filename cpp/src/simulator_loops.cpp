// The simulator's loops; compiled once per instruction set, as batch_kernels.cpp is.
#include <hockeystick/simd/model_vectors.hpp>
#include <hockeystick/simd/random_streams.hpp>
#include <hockeystick/simd/record_losses.hpp>

#include "batch_kernels.hpp"

namespace hockeystick::batch {
namespace {

template <class... Functions> void write_addresses(Address* out, Functions*... functions) {
    ((*out++ = reinterpret_cast<Address>(functions)), ...);
}

}  // namespace

inline namespace HOCKEYSTICK_ISA {

void simulator_loops(Address* out) {
    write_addresses(out, simd::record_gradient, simd::record_value, simd::record_class, simd::add_batch,
                    simd::to_normals, simd::add_normals, simd::norm, simd::copy, simd::clear, simd::scale, simd::add,
                    simd::clip, simd::add_clipped, simd::project, simd::step, simd::residual, simd::keep_within,
                    simd::all_finite);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::batch
