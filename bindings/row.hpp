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

class Row {
  public:
    Row(nb::handle source, std::span<const Kind> kinds, nb::handle encoder) {
        if (kinds.size() > inline_.size()) {
            heap_.resize(kinds.size());
            values_ = heap_.data();
        }
        if (read(source.ptr(), kinds)) return;
        const nb::object converted = encoder.attr("row")(source);
        if (!read(converted.ptr(), kinds)) {
            throw std::runtime_error("the encoder returned a row that is not valid");
        }
    }
    Row(const Row&) = delete;
    Row& operator=(const Row&) = delete;

    const double* data() const { return values_; }

  private:
    bool read(PyObject* source, std::span<const Kind> kinds) {
        return copy(source, kinds.size()) && normalize(kinds);
    }
    bool copy(PyObject* source, std::size_t n) {
        if (FloatArray::is_row(source, n)) {
            FloatArray::copy(source, n, values_);
            return true;
        }
        const bool is_sequence = PyList_CheckExact(source) || PyTuple_CheckExact(source);
        return is_sequence ? read_sequence(source, n) : read_buffer(source, n);
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
    // Values are finite or missing; categories are whole numbers from 0 to 2^53.
    bool normalize(std::span<const Kind> kinds) {
        const bool any_special = normalize_finite(kinds.size());
        if (!any_special && !any_categorical(kinds)) return true;
        bool valid = true;
        for (std::size_t j = 0; j < kinds.size(); ++j) {
            const double v = values_[j];
            valid &= !std::isinf(v);
            if (kinds[j] == Kind::categorical && !is_missing(v)) {
                valid &= v >= 0 && v < 9007199254740992.0 && v == std::floor(v);
            }
            values_[j] = normalized(v);
        }
        return valid;
    }

    static bool any_categorical(std::span<const Kind> kinds) {
        static_assert(sizeof(Kind) == 1);
        return std::memchr(kinds.data(), static_cast<int>(Kind::categorical), kinds.size()) !=
               nullptr;
    }
    // Most rows have nothing else, and then several values are done at a time. Whether any is not
    // finite: one more in a full exponent reaches the sign.
    bool normalize_finite(std::size_t n) {
        constexpr std::uint64_t exponent = 0x7ff0000000000000, one = 0x0010000000000000;
        std::uint64_t carried = 0;
        for (std::size_t j = 0; j < n; ++j) {
            carried |= (std::bit_cast<std::uint64_t>(values_[j]) & exponent) + one;
            values_[j] += 0.0;
        }
        return carried >> 63 != 0;
    }

    std::array<double, 64> inline_;
    std::vector<double> heap_;
    double* values_ = inline_.data();
};

}  // namespace evertree
