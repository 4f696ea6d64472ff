// The only place that includes pybind11: every unit must see the same casters, or the
// one-definition rule is broken without a diagnostic.
#pragma once

#include <utility>

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <hockeystick/numeric/floating_environment.hpp>

namespace py = pybind11;

// Modules and classes whose functions all compute in the floating-point environment that certified
// bounds need. Nothing else defines functions for Python but ufuncs.cpp, whose loops do the same.
namespace door {

using Guard = py::call_guard<hockeystick::numeric::FloatingEnvironment>;

class Module : public py::module_ {
  public:
    explicit Module(py::module_ m) : py::module_(std::move(m)) {}

    template <class Function, class... Extra>
    Module& def(const char* name, Function&& function, const Extra&... extra) {
        py::module_::def(name, std::forward<Function>(function), extra..., Guard());
        return *this;
    }
};

template <class Type, class... Options> class Class : public py::class_<Type, Options...> {
    using Base = py::class_<Type, Options...>;

  public:
    using Base::Base;

    template <class Function, class... Extra> Class& def(const char* name, Function&& function, const Extra&... extra) {
        Base::def(name, std::forward<Function>(function), extra..., Guard());
        return *this;
    }
    template <class... Extra> Class& def(py::detail::initimpl::factory<Extra...>&& init) {
        Base::def(std::move(init), Guard());
        return *this;
    }
    template <class Member> Class& def_readonly(const char* name, Member Type::* member) {
        Base::def_readonly(name, member);
        return *this;
    }
    template <class Getter> Class& def_property_readonly(const char* name, const Getter& getter) {
        Base::def_property_readonly(name, py::cpp_function(py::method_adaptor<Type>(getter), Guard()));
        return *this;
    }
};

}  // namespace door
