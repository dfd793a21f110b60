// FloatArray: a numpy array of float64, read where it lies.
//
// Asking numpy for a buffer costs more than the whole way down a tree. The first fields of an array
// are part of numpy's binary interface (PyArrayObject_fields; its own macros read them in place).
// They are compared once with what numpy itself says of an array; should they ever differ, arrays
// are read as buffers, like everything else.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace evertree {

namespace nb = nanobind;

class FloatArray {
  public:
    // Once, when the module is loaded: later, a thread that waits for another one's question to
    // numpy would wait with the GIL in its hands.
    static void ask_numpy() {
        const nb::object numpy = nb::module_::import_("numpy");
        nb::object type = numpy.attr("ndarray"), float64 = numpy.attr("dtype")("float64");
        const nb::object sample = numpy.attr("zeros")(6).attr("__getitem__")(nb::slice(1, 6, 2));
        if (!describes(sample, type, float64)) return;
        // For as long as the process: a static must not let go of Python's objects at its end.
        type_ = reinterpret_cast<PyTypeObject*>(type.release().ptr());
        float64_ = float64.release().ptr();
    }

    // Whether the object is an array of native float64 with so many values, in one dimension.
    static bool is_row(PyObject* source, std::size_t n) {
        if (Py_TYPE(source) != type_) return false;
        const Fields& array = fields(source);
        return array.descr == float64_ && array.nd == 1 &&
               static_cast<std::size_t>(array.dimensions[0]) == n;
    }
    static bool is_contiguous(PyObject* row) { return fields(row).strides[0] == sizeof(double); }
    static const char* data(PyObject* row) { return fields(row).data; }
    static void copy(PyObject* source, std::size_t n, double* out) {
        const Fields& array = fields(source);
        const char* from = array.data;
        for (std::size_t j = 0; j < n; ++j, from += array.strides[0]) {
            std::memcpy(out + j, from, sizeof(double));  // it need not be aligned
        }
    }

  private:
    struct Fields {
        PyObject_HEAD char* data;
        int nd;
        Py_ssize_t *dimensions, *strides;
        PyObject *base, *descr;
    };
    static const Fields& fields(PyObject* array) { return *reinterpret_cast<Fields*>(array); }

    // In an order in which no field is followed before those that vouch for it.
    static bool describes(nb::handle sample, nb::handle type, nb::handle float64) {
        const auto* const ndarray = reinterpret_cast<PyTypeObject*>(type.ptr());
        if (ndarray->tp_basicsize < static_cast<Py_ssize_t>(sizeof(Fields))) return false;
        const Fields& found = fields(sample.ptr());
        const nb::object interface = sample.attr("__array_interface__");
        const auto address = nb::cast<std::uintptr_t>(interface["data"][0]);
        return reinterpret_cast<std::uintptr_t>(found.data) == address && found.nd == 1 &&
               found.descr == float64.ptr() && found.strides == found.dimensions + 1 &&
               found.dimensions[0] == 3 && found.strides[0] == 2 * Py_ssize_t{sizeof(double)};
    }

    static inline PyTypeObject* type_ = nullptr;  // none: arrays are not read here
    static inline PyObject* float64_ = nullptr;
};

}  // namespace evertree
