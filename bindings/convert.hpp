// Python's objects from and to plain values.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "examples.hpp"
#include "labels.hpp"
#include "tree.hpp"
#include "watch.hpp"

namespace evertree {

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using IdArray = nb::ndarray<const ExampleId, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Lets Ctrl-C through, and other threads run, during long work.
class PythonWatch : public Watch {
  public:
    void poll() override {
        const nb::gil_scoped_acquire acquire;
        {
            const nb::gil_scoped_release others_first;
        }
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
};

// Takes the vector over; it may be filled later.
template <typename T>
nb::object as_array(std::vector<T>* owned) {
    std::unique_ptr<std::vector<T>> holder(owned);
    const nb::capsule owner(owned,
                            [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    holder.release();
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(owned->data(), {owned->size()}, owner));
}
template <typename T>
nb::object as_array(std::vector<T> values) {
    return as_array(new std::vector<T>(std::move(values)));
}

inline nb::list as_list(const std::vector<nb::object>& members) {
    nb::list list;
    for (const nb::object& member : members) list.append(member);
    return list;
}

template <typename T>
void append_bytes(std::string& out, T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>(value >> (8 * i));
}

inline std::vector<Kind> kinds_of(std::size_t n_features, const nb::list& categorical) {
    std::vector<Kind> kinds(n_features, Kind::real);
    for (const nb::handle feature : categorical) {
        kinds.at(nb::cast<std::size_t>(feature)) = Kind::categorical;
    }
    return kinds;
}

// Labels may refer back to the tree; Python's collector must see them to free such a cycle.
template <typename Model>
int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    return nb::inst_ptr<Model>(self)->traverse(visit, arg);
}
template <typename Model>
int clear(PyObject* self) {
    nb::inst_ptr<Model>(self)->clear();
    return 0;
}
template <typename Model>
PyType_Slot collector_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse<Model>)},
                                 {Py_tp_clear, reinterpret_cast<void*>(clear<Model>)},
                                 {0, nullptr}};

}  // namespace evertree
