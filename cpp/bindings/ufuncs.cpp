// The kernels as NumPy ufuncs. NumPy does the broadcasting; a loop here walks one dimension in
// blocks.
#define NPY_NO_DEPRECATED_API NPY_1_23_API_VERSION
#define NPY_TARGET_VERSION NPY_1_23_API_VERSION

#include "ufuncs.hpp"

#include <numpy/ndarrayobject.h>
#include <numpy/ufuncobject.h>

#include <algorithm>
#include <cfenv>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>

#include <hockeystick/divergence/hockey_stick_inverse.hpp>

#include "active_kernels.hpp"

namespace {

namespace hs = hockeystick;

using hs::batch::Binary;
using hs::batch::GridKernels;
using hs::batch::Kernels;
using hs::batch::Unary;

constexpr npy_intp block = 1024;  // doubles: three buffers stay in the first-level cache

// The kernels compute all branches and select, which raises floating-point flags that mean nothing.
// This restores the flags on exit and raises "invalid" only for a NaN that was not put in.
class QuietFlags {
  public:
    QuietFlags() { std::fegetexceptflag(&before_, FE_ALL_EXCEPT); }
    ~QuietFlags() {
        std::fesetexceptflag(&before_, FE_ALL_EXCEPT);
        if (invalid) std::feraiseexcept(FE_INVALID);
    }
    bool invalid = false;

  private:
    std::fexcept_t before_{};
};

bool contiguous(const char* at, npy_intp stride) {
    return stride == static_cast<npy_intp>(sizeof(double)) &&
           reinterpret_cast<std::uintptr_t>(at) % alignof(double) == 0;
}

const double* gather(const char* from, npy_intp stride, npy_intp n, double* buffer) {
    if (contiguous(from, stride)) return reinterpret_cast<const double*>(from);
    for (npy_intp i = 0; i < n; ++i) std::memcpy(buffer + i, from + i * stride, sizeof(double));
    return buffer;
}

void scatter(const double* buffer, char* to, npy_intp stride, npy_intp n) {
    for (npy_intp i = 0; i < n; ++i) std::memcpy(to + i * stride, buffer + i, sizeof(double));
}

template <int Inputs> bool fresh_nan(const double* const* in, const double* out, npy_intp n) {
    for (npy_intp i = 0; i < n; ++i) {
        bool put_in = false;
        for (int k = 0; k < Inputs; ++k) put_in |= in[k][i] != in[k][i];
        if (out[i] != out[i] && !put_in) return true;
    }
    return false;
}

// Whether n elements from a on and n from b on have no byte in common.
bool apart(const char* a, npy_intp a_stride, const char* b, npy_intp b_stride, npy_intp n) {
    const auto first = [n](const char* x, npy_intp stride) { return stride < 0 ? x + (n - 1) * stride : x; };
    const auto last = [n](const char* x, npy_intp stride) {
        return (stride < 0 ? x : x + (n - 1) * stride) + sizeof(double);
    };
    return last(a, a_stride) <= first(b, b_stride) || last(b, b_stride) <= first(a, a_stride);
}

// One NumPy inner loop over a batch kernel that `call` applies to contiguous blocks. An output that
// overlaps an input goes through a buffer: NumPy copies only where a loop that goes forward, one
// element after the other, would overwrite what it has yet to read.
template <int Inputs, class Call> void blocks(char** args, npy_intp n, const npy_intp* strides, Call call) {
    QuietFlags flags;
    const hs::numeric::FloatingEnvironment environment;  // ends before the flags are raised, which it would take back
    double buffers[Inputs + 1][block];
    bool direct = contiguous(args[Inputs], strides[Inputs]);
    for (int k = 0; k < Inputs; ++k) direct = direct && apart(args[k], strides[k], args[Inputs], strides[Inputs], n);
    for (npy_intp start = 0; start < n; start += block) {
        const npy_intp count = std::min(block, n - start);
        const double* in[Inputs];
        for (int k = 0; k < Inputs; ++k) in[k] = gather(args[k] + start * strides[k], strides[k], count, buffers[k]);
        char* const target = args[Inputs] + start * strides[Inputs];
        double* const out = direct ? reinterpret_cast<double*>(target) : buffers[Inputs];
        if (call(in, out, static_cast<std::size_t>(count))) flags.invalid |= fresh_nan<Inputs>(in, out, count);
        if (!direct) scatter(out, target, strides[Inputs], count);
    }
}

template <Unary Kernels::* kernel> void unary_loop(char** args, const npy_intp* n, const npy_intp* strides, void*) {
    const Unary run = active::kernels().*kernel;
    blocks<1>(args, *n, strides,
              [run](const double* const* in, double* out, std::size_t count) { return run(in[0], out, count); });
}

template <Binary Kernels::* kernel> void binary_loop(char** args, const npy_intp* n, const npy_intp* strides, void*) {
    const Binary run = active::kernels().*kernel;
    blocks<2>(args, *n, strides,
              [run](const double* const* in, double* out, std::size_t count) { return run(in[0], in[1], out, count); });
}

// The elements that a kernel leaves as NaN are the scalar function's.
template <double (*Scalar)(double, double)>
void fill_nan(const double* x, const double* y, double* out, std::size_t n) {
    try {
        for (std::size_t i = 0; i < n; ++i) {
            if (out[i] != out[i]) out[i] = Scalar(x[i], y[i]);
        }
    } catch (const std::exception& error) {  // must not cross NumPy's C frames; NumPy raises it after the loop
        const py::gil_scoped_acquire held;
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
}

template <Binary GridKernels::* kernel, double (*Scalar)(double, double)>
void inverse_loop(char** args, const npy_intp* n, const npy_intp* strides, void*) {
    const Binary run = active::grid_kernels().*kernel;
    blocks<2>(args, *n, strides, [run](const double* const* in, double* out, std::size_t count) {
        const bool any_nan = run(in[0], in[1], out, count);
        if (any_nan) fill_nan<Scalar>(in[0], in[1], out, count);
        return any_nan;
    });
}

struct Entry {
    const char* name;
    int inputs;
    PyUFuncGenericFunction loop[1];
};

constexpr char types[] = {NPY_DOUBLE, NPY_DOUBLE, NPY_DOUBLE};
void* no_data[] = {nullptr};

void add(door::Module& m, Entry& entry) {
    PyObject* ufunc =
        PyUFunc_FromFuncAndData(entry.loop, no_data, types, 1, entry.inputs, 1, PyUFunc_None, entry.name, nullptr, 0);
    if (!ufunc) throw py::error_already_set();
    m.add_object(entry.name, py::reinterpret_steal<py::object>(ufunc));
}

int import_numpy() {
    import_array1(-1);
    import_umath1(-1);
    return 0;
}

}  // namespace

void register_ufuncs(door::Module& m) {
    if (import_numpy() < 0) throw py::error_already_set();
    // NumPy keeps pointers into this table for as long as the ufuncs live.
    static Entry entries[] = {
        {"q", 1, {unary_loop<&Kernels::q>}},
        {"log_q", 1, {unary_loop<&Kernels::log_q>}},
        {"q_inv", 1, {unary_loop<&Kernels::q_inv>}},
        {"theta", 2, {binary_loop<&Kernels::theta>}},
        {"log_theta", 2, {binary_loop<&Kernels::log_theta>}},
        {"laplace_theta", 2, {binary_loop<&Kernels::laplace_theta>}},
        {"theta_inverse", 2, {inverse_loop<&GridKernels::theta_inverse, hs::divergence::theta_inverse>}},
        {"gaussian_epsilon", 2, {inverse_loop<&GridKernels::gaussian_epsilon, hs::divergence::gaussian_epsilon>}},
    };
    for (Entry& entry : entries) add(m, entry);
    // The texts stand in kernels.py, where they are read and tested; NumPy wants a pointer that
    // lives as long as the ufunc.
    m.def(
        "document_ufunc",
        [](const py::object& ufunc, const std::string& text) {
            if (!PyObject_TypeCheck(ufunc.ptr(), &PyUFunc_Type)) throw py::type_error("not a ufunc");
            auto* target = reinterpret_cast<PyUFuncObject*>(ufunc.ptr());
            if (!target->doc) target->doc = (new std::string(text))->c_str();
        },
        py::arg("ufunc"), py::arg("text"));
}
