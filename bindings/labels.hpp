// Labels: Python's labels as class ids and back.
//
// A label has an id for as long as an active example has it; then the id is free for another label
// and nothing of the old one is left. The order that settles ties is asked of Python when a label
// is next wanted, not at every new label.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "examples.hpp"

namespace evertree {

namespace nb = nanobind;

// The labels of a batch, each of them once, and which of them a row has. The same object is the
// same label; equal ones may be there more than once.
struct BatchLabels {
    std::vector<nb::object> labels;
    std::vector<std::uint32_t> of_row;
};

class Labels {
  public:
    explicit Labels(nb::object encoder) : encoder_(std::move(encoder)) {}

    // The label to store for this one, refused in words if it cannot be one. Outside of the gate:
    // it runs the encoder's code.
    nb::object plain(nb::handle label) const {
        PyObject* const found = PyDict_GetItemWithError(ids_.ptr(), label.ptr());
        if (found != nullptr) return nb::borrow(label);
        if (PyErr_Occurred() == nullptr) return encoder_.attr("label")(label);
        const nb::python_error failure;
        encoder_.attr("label")(label);
        throw failure;
    }
    BatchLabels plain(const nb::list& y) const {
        BatchLabels batch;
        batch.of_row.reserve(y.size());
        // Most batches have few labels, or few objects for them.
        struct Seen {
            nb::object label;
            std::uint32_t place = 0;
        };
        std::array<Seen, 32> seen;
        for (const nb::handle label : y) {
            Seen& last = seen[reinterpret_cast<std::uintptr_t>(label.ptr()) / 16 % seen.size()];
            if (last.label.ptr() != label.ptr()) {
                batch.labels.push_back(plain(label));
                last = {nb::borrow(label), static_cast<std::uint32_t>(batch.labels.size() - 1)};
            }
            batch.of_row.push_back(last.place);
        }
        return batch;
    }
    // The id of a known label.
    std::optional<ClassId> find(const nb::object& label) const {
        PyObject* const found = PyDict_GetItemWithError(ids_.ptr(), label.ptr());
        if (found != nullptr) {
            const auto id = static_cast<ClassId>(PyLong_AsUnsignedLong(found));
            if (labels_[id].is_valid()) return id;
            return std::nullopt;  // an entry that could not be taken out, see forget
        }
        if (PyErr_Occurred() != nullptr) throw nb::python_error();
        return std::nullopt;
    }
    ClassId find_or_add(const nb::object& label) {
        if (const auto known = find(label)) return *known;
        return add(label);
    }
    void forget(ClassId id) noexcept {
        changed();
        // A label whose __hash__ fails by now stays in the dict; its id must not become another's.
        if (PyDict_DelItem(ids_.ptr(), labels_[id].ptr()) == 0) {
            free_.push_back(id);
        } else {
            PyErr_Clear();
        }
        labels_[id] = nb::object();
    }
    nb::object operator[](ClassId id) const { return labels_[id]; }
    const std::vector<nb::object>& all() const { return labels_; }

    bool ranks_stale() const { return ranks_stale_; }
    const std::vector<std::uint32_t>& ranks() const { return ranks_; }
    // The ids of the labels in use, in the order of ties.
    const std::vector<ClassId>& in_order() const { return in_order_; }
    // The order is asked of Python outside of the gate; it holds for the version asked about.
    std::uint64_t version() const { return version_; }
    std::vector<ClassId> used() const {
        std::vector<ClassId> ids;
        for (ClassId id = 0; id < labels_.size(); ++id) {
            if (labels_[id].is_valid()) ids.push_back(id);
        }
        return ids;
    }
    std::vector<ClassId> ask_order(const std::vector<ClassId>& ids, const nb::list& labels) const {
        std::vector<ClassId> in_order;
        const nb::object order = encoder_.attr("order")(labels);
        for (const nb::handle place : order)
            in_order.push_back(ids.at(nb::cast<std::size_t>(place)));
        return in_order;
    }
    void set_order(std::vector<ClassId> in_order) {
        ranks_.assign(labels_.size(), 0);
        for (std::uint32_t rank = 0; rank < in_order.size(); ++rank) ranks_[in_order[rank]] = rank;
        in_order_ = std::move(in_order);
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
    ClassId add(const nb::object& label) {
        const bool reuse = !free_.empty();
        const auto id = reuse ? free_.back() : static_cast<ClassId>(labels_.size());
        // Room for all of them on the free list: forgetting must not fail.
        free_.reserve(labels_.size() + 1);
        if (!reuse) labels_.emplace_back();
        ids_[label] = id;
        labels_[id] = label;
        if (reuse) free_.pop_back();
        changed();
        return id;
    }

    void changed() noexcept {
        ++version_;
        ranks_stale_ = true;
    }

    nb::object encoder_;
    nb::dict ids_;
    std::vector<nb::object> labels_;  // by id; invalid where the id is free
    std::vector<ClassId> free_;
    std::vector<std::uint32_t> ranks_;
    std::vector<ClassId> in_order_;
    std::uint64_t version_ = 0;  // of the set of labels
    bool ranks_stale_ = true;
};

}  // namespace evertree
