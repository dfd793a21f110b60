// Row: one row of numbers, read from whatever Python hands over.
//
// A float64 array or buffer or a list or tuple of floats and ints is read here; anything else, and
// anything that is not a valid row, goes to the encoder, which converts it or refuses it in words.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "examples.hpp"
#include "float_array.hpp"
#include "tree.hpp"

namespace evertree {

namespace nb = nanobind;

// What a valid row has: so many values, and whole numbers from 0 to 2^53 for categories.
struct RowShape {
    explicit RowShape(std::span<const Kind> kinds) : n_features(kinds.size()) {
        for (std::size_t j = 0; j < kinds.size(); ++j) {
            if (kinds[j] == Kind::categorical) categorical.push_back(j);
        }
    }
    std::size_t n_features;
    std::vector<std::size_t> categorical;
};

class Row {
  public:
    Row(nb::handle source, const RowShape& shape, nb::handle encoder) {
        if (shape.n_features > inline_.size()) {
            heap_.resize(shape.n_features);
            values_ = heap_.data();
        }
        if (read(source.ptr(), shape)) return;
        const nb::object converted = encoder.attr("row")(source);
        if (!read(converted.ptr(), shape)) {
            throw std::runtime_error("the encoder returned a row that is not valid");
        }
    }
    Row(const Row&) = delete;
    Row& operator=(const Row&) = delete;

    const double* data() const { return values_; }

  private:
    bool read(PyObject* source, const RowShape& shape) {
        return read_numbers(source, shape.n_features) && are_categories(shape.categorical);
    }
    bool read_numbers(PyObject* source, std::size_t n) {
        if (FloatArray::is_row(source, n)) {
            if (FloatArray::is_contiguous(source)) return read_values(FloatArray::data(source), n);
            FloatArray::copy(source, n, values_);
            return normalize(n);
        }
        const bool is_sequence = PyList_CheckExact(source) || PyTuple_CheckExact(source);
        return (is_sequence ? read_sequence(source, n) : read_buffer(source, n)) && normalize(n);
    }
    bool read_sequence(PyObject* source, std::size_t n) {
        if (static_cast<std::size_t>(PySequence_Fast_GET_SIZE(source)) != n) return false;
        PyObject** const items = PySequence_Fast_ITEMS(source);
        for (std::size_t j = 0; j < n; ++j) {
            if (PyFloat_Check(items[j])) {
                values_[j] = PyFloat_AS_DOUBLE(items[j]);
            } else if (!PyLong_CheckExact(items[j]) || !read_int(items[j], values_[j])) {
                return false;
            }
        }
        return true;
    }
    static bool read_int(PyObject* source, double& out) {
        int overflow = 0;
        const long long whole = PyLong_AsLongLongAndOverflow(source, &overflow);
        out = static_cast<double>(whole);
        // Compared as integers: as a double, 2^53 + 1 would already look like 2^53.
        constexpr long long kWholeMost = 1LL << 53;
        return overflow == 0 && -kWholeMost <= whole && whole <= kWholeMost;
    }
    bool read_buffer(PyObject* source, std::size_t n) {
        // A class made in Python may mean more than its buffer says: a masked array, for one.
        if (PyType_HasFeature(Py_TYPE(source), Py_TPFLAGS_HEAPTYPE)) return false;
        if (!PyObject_CheckBuffer(source)) return false;
        Py_buffer view;
        if (PyObject_GetBuffer(source, &view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) != 0) {
            PyErr_Clear();
            return false;
        }
        const bool fits = view.ndim == 1 && view.itemsize == sizeof(double) &&
                          static_cast<std::size_t>(view.shape[0]) == n && view.format != nullptr &&
                          std::strcmp(view.format, "d") == 0;
        if (fits) std::memcpy(values_, view.buf, n * sizeof(double));
        PyBuffer_Release(&view);
        return fits;
    }
    // Values are finite or missing. Most rows are finite, and then several values are done at a
    // time. Whether any is not: one more in a full exponent reaches the sign.
    bool read_values(const char* from, std::size_t n) {
        constexpr std::uint64_t exponent = 0x7ff0000000000000, one = 0x0010000000000000;
        std::uint64_t carried = 0;
        for (std::size_t j = 0; j < n; ++j) {
            double v;
            std::memcpy(&v, from + j * sizeof v, sizeof v);  // it need not be aligned
            carried |= (std::bit_cast<std::uint64_t>(v) & exponent) + one;
            values_[j] = v + 0.0;
        }
        return carried >> 63 == 0 || normalize(n);
    }
    bool normalize(std::size_t n) {
        bool valid = true;
        for (std::size_t j = 0; j < n; ++j) {
            valid &= !std::isinf(values_[j]);
            values_[j] = normalized(values_[j]);
        }
        return valid;
    }
    bool are_categories(std::span<const std::size_t> features) const {
        bool valid = true;
        for (const std::size_t j : features) {
            const double v = values_[j];
            valid &= is_missing(v) || (v >= 0 && v < 9007199254740992.0 && v == std::floor(v));
        }
        return valid;
    }

    std::array<double, 64> inline_;
    std::vector<double> heap_;
    double* values_ = inline_.data();
};

}  // namespace evertree
