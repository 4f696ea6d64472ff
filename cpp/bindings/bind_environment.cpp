// The floating-point environment (numeric/floating_environment.hpp) for arithmetic in Python itself:
// a question, and a context manager.
#include <optional>

#include "bind.hpp"

namespace {

using hockeystick::numeric::FloatingEnvironment;

class Guarded {
  public:
    void enter() { environment_.emplace(); }
    void leave() { environment_.reset(); }

  private:
    std::optional<FloatingEnvironment> environment_;
};

PyObject* environment_is_right(PyObject*, PyObject*) { return PyBool_FromLong(FloatingEnvironment::is_right()); }

// Asked at every call of a public function: without pybind11 it takes a third of the time.
PyMethodDef question = {"environment_is_right", environment_is_right, METH_NOARGS,
                        "environment_is_right() -> bool\n\nWhether this thread rounds as certified bounds need."};

}  // namespace

// Defined past the doors, which would set the environment right for the time of the question.
void bind_environment(py::module_& m) {
    m.add_object(question.ml_name, py::reinterpret_steal<py::object>(PyCFunction_New(&question, nullptr)));
    py::class_<Guarded>(m, "FloatingEnvironment")
        .def(py::init<>())
        .def("__enter__", &Guarded::enter)
        .def("__exit__", [](Guarded& self, const py::args&) { self.leave(); });
}
