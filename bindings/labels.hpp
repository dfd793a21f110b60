// Labels: Python's labels as class ids and back.
//
// A label has an id for as long as an active example has it; then the id is free for another label
// and nothing of the old one is left. The order that settles ties is asked of Python when a label
// is next wanted, not at every new label.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "examples.hpp"

namespace evertree {

namespace nb = nanobind;

class Labels {
  public:
    explicit Labels(nb::object encoder) : encoder_(std::move(encoder)) {}

    // The id of a known label. Whatever cannot be looked up is refused by the encoder, in words.
    std::optional<ClassId> find(nb::handle label) const {
        PyObject* const found = PyDict_GetItemWithError(ids_.ptr(), label.ptr());
        if (found != nullptr) return static_cast<ClassId>(PyLong_AsUnsignedLong(found));
        if (PyErr_Occurred() != nullptr) {
            const nb::python_error failure;
            plain(label);
            throw failure;
        }
        return std::nullopt;
    }
    ClassId find_or_add(nb::handle label) {
        if (const auto known = find(label)) return *known;
        const nb::object kept = plain(label);
        if (const auto known = find(kept)) return *known;
        return add(kept);
    }
    void forget(ClassId id) noexcept {
        if (PyDict_DelItem(ids_.ptr(), labels_[id].ptr()) != 0) PyErr_Clear();
        labels_[id] = nb::object();
        free_.push_back(id);
        ranks_stale_ = true;
    }
    nb::object operator[](ClassId id) const { return labels_[id]; }
    const std::vector<nb::object>& all() const { return labels_; }

    bool ranks_stale() const { return ranks_stale_; }
    const std::vector<std::uint32_t>& ranks() const { return ranks_; }
    // The ids of the labels in use, in the order of ties.
    const std::vector<ClassId>& in_order() const { return in_order_; }
    void refresh_ranks() {
        std::vector<ClassId> used;
        nb::list labels;
        for (ClassId id = 0; id < labels_.size(); ++id) {
            if (!labels_[id].is_valid()) continue;
            used.push_back(id);
            labels.append(labels_[id]);
        }
        const nb::object order = encoder_.attr("order")(labels);
        in_order_.clear();
        ranks_.assign(labels_.size(), 0);
        for (const nb::handle position : order) {
            const ClassId id = used.at(nb::cast<std::size_t>(position));
            ranks_[id] = static_cast<std::uint32_t>(in_order_.size());
            in_order_.push_back(id);
        }
        ranks_stale_ = false;
    }

    int traverse(visitproc visit, void* arg) const {
        Py_VISIT(encoder_.ptr());
        Py_VISIT(ids_.ptr());
        for (const nb::object& label : labels_) Py_VISIT(label.ptr());
        return 0;
    }
    void clear() {
        encoder_.reset();
        ids_.reset();
        labels_.clear();
    }

  private:
    nb::object plain(nb::handle label) const { return encoder_.attr("label")(label); }
    ClassId add(const nb::object& label) {
        const bool reuse = !free_.empty();
        const auto id = reuse ? free_.back() : static_cast<ClassId>(labels_.size());
        // Room for all of them on the free list: forgetting must not fail.
        free_.reserve(labels_.size() + 1);
        if (!reuse) labels_.emplace_back();
        ids_[label] = id;
        labels_[id] = label;
        if (reuse) free_.pop_back();
        ranks_stale_ = true;
        return id;
    }

    nb::object encoder_;
    nb::dict ids_;
    std::vector<nb::object> labels_;  // by id; invalid where the id is free
    std::vector<ClassId> free_;
    std::vector<std::uint32_t> ranks_;
    std::vector<ClassId> in_order_;
    bool ranks_stale_ = true;
};

}  // namespace evertree
