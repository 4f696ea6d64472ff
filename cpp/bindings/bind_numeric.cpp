// For arithmetic in Python itself: the floating-point environment (numeric/floating_environment.hpp),
// as a question and a context manager, and the search of numeric/feasible_search.hpp.
#include <cmath>
#include <optional>
#include <tuple>

#include <hockeystick/numeric/feasible_search.hpp>

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

// Returns the last point known to be feasible, where the excess is not positive, and its excess. The
// tolerance is relative; with `whole` the answer is next to an infeasible integer.
std::tuple<double, double> narrow_feasible(const py::function& excess, double good, double good_excess, double bad,
                                           double bad_excess, double tolerance, bool whole) {
    namespace numeric = hockeystick::numeric;
    const auto asked = [&](double x) { return excess(x).cast<double>(); };
    const auto enough = [&](double x) { return whole ? 1.0 : tolerance * std::fabs(x); };
    const numeric::FeasibleBracket ends{{good, good_excess}, {bad, bad_excess}};
    const numeric::Evaluation found = numeric::narrow_feasible(asked, 0.0, ends, enough, whole).good;
    return {found.x, found.f};
}

}  // namespace

// The environment is defined past the doors, which would set it right for the time of the question.
void bind_numeric(py::module_& m) {
    door::Module(m).def("narrow_feasible", narrow_feasible, py::arg("excess"), py::arg("good"), py::arg("good_excess"),
                        py::arg("bad"), py::arg("bad_excess"), py::arg("tolerance"), py::arg("whole"));
    m.add_object(question.ml_name, py::reinterpret_steal<py::object>(PyCFunction_New(&question, nullptr)));
    py::class_<Guarded>(m, "FloatingEnvironment")
        .def(py::init<>())
        .def("__enter__", &Guarded::enter)
        .def("__exit__", [](Guarded& self, const py::args&) { self.leave(); });
}
