// The kernels for compiled callers, one number at a time or vectorised over arrays (`..._batch`,
// the instruction set that was chosen at import): capsules named by their C signature, in the
// dictionary that Cython's cimport, SciPy's LowLevelCallable.from_cython and numba's
// get_cython_function_address look into. Neither of them needs the GIL.
#include <hockeystick/divergence/hockey_stick_inverse.hpp>
#include <hockeystick/simd/random_streams.hpp>

#include "active_kernels.hpp"
#include "bind.hpp"

namespace {

namespace hs = hockeystick;

template <double (*Kernel)(double)> py::capsule unary() {
    return py::capsule(reinterpret_cast<void*>(hs::numeric::at_door<Kernel>), "double (double)");
}

template <double (*Kernel)(double, double)> py::capsule binary() {
    return py::capsule(reinterpret_cast<void*>(hs::numeric::at_door<Kernel>), "double (double, double)");
}

template <hs::batch::Unary hs::batch::Kernels::* kernel> py::capsule unary_batch() {
    void (*function)(const double*, double*, std::size_t) = [](const double* x, double* out, std::size_t n) {
        const hs::numeric::FloatingEnvironment environment;
        (active::chosen_at_import().*kernel)(x, out, n);
    };
    return py::capsule(reinterpret_cast<void*>(function), "void (double const *, double *, size_t)");
}

template <hs::batch::Binary hs::batch::Kernels::* kernel> py::capsule binary_batch() {
    void (*function)(const double*, const double*, double*, std::size_t) = [](const double* x, const double* y,
                                                                              double* out, std::size_t n) {
        const hs::numeric::FloatingEnvironment environment;
        (active::chosen_at_import().*kernel)(x, y, out, n);
    };
    return py::capsule(reinterpret_cast<void*>(function), "void (double const *, double const *, double *, size_t)");
}

template <class Function> std::uintptr_t address(Function* function) {
    return reinterpret_cast<std::uintptr_t>(function);
}

// Addresses of what the simulator's compiled Python calls: its inner loops, and what is drawn from streams word by word.
py::dict simulator_functions() {
    namespace simd = hs::simd;
    hs::batch::Address loops[std::size(hs::batch::simulator_names)];
    hs::batch::grid_kernels(active::chosen_at_import()).simulator(loops);
    py::dict functions(py::arg("start_stream") = address(simd::start_stream),
                       py::arg("next_word") = address(simd::next_word), py::arg("unit") = address(simd::unit),
                       py::arg("below") = address(simd::below), py::arg("add_laplace") = address(simd::add_laplace),
                       py::arg("encode") = address(simd::encode),
                       py::arg("encode_vector") = address(simd::encode_vector),
                       py::arg("remaining") = address(simd::remaining), py::arg("draw") = address(simd::draw));
    for (std::size_t i = 0; i < std::size(hs::batch::simulator_names); ++i)
        functions[hs::batch::simulator_names[i]] = address(loops[i]);
    return functions;
}

}  // namespace

void bind_capsules(door::Module& m) {
    using Kernels = hs::batch::Kernels;
    m.attr("__pyx_capi__") = py::dict(
        py::arg("q") = unary<hs::numeric::q>(), py::arg("log_q") = unary<hs::numeric::log_q>(),
        py::arg("q_inv") = unary<hs::numeric::q_inv>(), py::arg("theta") = binary<hs::divergence::theta>(),
        py::arg("log_theta") = binary<hs::divergence::log_theta>(),
        py::arg("laplace_theta") = binary<hs::divergence::laplace_theta>(),
        py::arg("theta_inverse") = binary<hs::divergence::theta_inverse>(),
        py::arg("gaussian_epsilon") = binary<hs::divergence::gaussian_epsilon>(),
        py::arg("q_batch") = unary_batch<&Kernels::q>(), py::arg("log_q_batch") = unary_batch<&Kernels::log_q>(),
        py::arg("q_inv_batch") = unary_batch<&Kernels::q_inv>(),
        py::arg("theta_batch") = binary_batch<&Kernels::theta>(),
        py::arg("log_theta_batch") = binary_batch<&Kernels::log_theta>(),
        py::arg("laplace_theta_batch") = binary_batch<&Kernels::laplace_theta>());
    m.def("simulator_functions", simulator_functions);
}
