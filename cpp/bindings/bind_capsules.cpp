// The scalar kernels for compiled callers: capsules named by their C signature, in the dictionary that Cython's cimport, SciPy's
// LowLevelCallable.from_cython and numba's get_cython_function_address look into. Neither of them needs the GIL.
#include <hockeystick/hockey_stick_inverse.hpp>

#include "bind.hpp"

namespace {

namespace hs = hockeystick;

py::capsule unary(double (*kernel)(double)) { return py::capsule(reinterpret_cast<void*>(kernel), "double (double)"); }

py::capsule binary(double (*kernel)(double, double)) {
    return py::capsule(reinterpret_cast<void*>(kernel), "double (double, double)");
}

}  // namespace

void bind_capsules(py::module_& m) {
    m.attr("__pyx_capi__") = py::dict(
        py::arg("q") = unary(hs::q), py::arg("log_q") = unary(hs::log_q), py::arg("q_inv") = unary(hs::q_inv),
        py::arg("theta") = binary(hs::theta), py::arg("log_theta") = binary(hs::log_theta),
        py::arg("laplace_theta") = binary(hs::laplace_theta), py::arg("theta_inverse") = binary(hs::theta_inverse),
        py::arg("gaussian_epsilon") = binary(hs::gaussian_epsilon));
}
