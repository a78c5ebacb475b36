#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "node.h"

// None is no node and no type, in lists neither: nanobind refuses it as an argument alone.

namespace nanobind::detail {

template <class T>
struct NeverNone : type_caster_base<T> {
  bool from_python(handle source, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    return !source.is_none() && type_caster_base<T>::from_python(source, flags, cleanup);
  }
};
template <>
struct type_caster<einrel::python::Node> : NeverNone<einrel::python::Node> {};
template <>
struct type_caster<einrel::python::Type> : NeverNone<einrel::python::Type> {};

}  // namespace nanobind::detail
