// What Python may ask of a tree, and of a panel of trees: of the one that answers now.
//
// Failures of meaning (an id in use, an example that is not there) are answered by codes, which
// evertree/tree.py puts into words.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "convert.hpp"
#include "descent.hpp"
#include "gate.hpp"
#include "labels.hpp"
#include "panel.hpp"
#include "row.hpp"
#include "update.hpp"

namespace evertree {

constexpr std::int64_t kIdInUse = -1;
constexpr std::int64_t kNoIdLeft = -2;
constexpr std::int64_t kAllThere = -1;

template <typename Subject>
class Model {
  public:
    template <typename... Parts>
    explicit Model(nb::object encoder, Parts&&... parts)
        : empty_(nb::module_::import_("evertree._core").attr("EMPTY")),
          encoder_(encoder),
          labels_(encoder),
          subject_(std::forward<Parts>(parts)...),
          shape_(subject_.kinds()) {}

    std::int64_t insert(nb::handle x, nb::handle y, ExampleId id) {
        const Row row = read(x);
        const nb::object label = labels_.plain(y);
        const std::unique_lock writing = lock_to_insert();
        const bool automatic = id < 0;
        if (automatic && next_id_ < 0) return kNoIdLeft;
        if (automatic) id = next_id_;
        if (!automatic && examples().find(id) != kNoSlot) return kIdInUse;
        const Insertion insertion{row.data(), labels_.find_or_add(label), id};
        update({}, {&insertion, 1});
        return id;
    }

    bool delete_value(nb::handle x, nb::handle y) {
        const Row row = read(x);
        const nb::object label = labels_.plain(y);
        const std::unique_lock writing(gate_);
        subject_.index_values();
        const auto known = labels_.find(label);
        const Slot slot = known ? examples().find(row.data(), *known) : kNoSlot;
        return delete_slot(slot);
    }

    bool delete_id(ExampleId id) {
        const std::unique_lock writing(gate_);
        return delete_slot(examples().find(id));
    }

    bool replace(ExampleId id, nb::handle x, nb::handle y) {
        const Row row = read(x);
        const nb::object label = labels_.plain(y);
        const std::unique_lock writing(gate_);
        const Slot slot = examples().find(id);
        if (slot == kNoSlot) return false;
        const Insertion insertion{row.data(), labels_.find_or_add(label), id};
        update({&slot, 1}, {&insertion, 1});
        return true;
    }

    nb::object insert_many(const Matrix& X, const nb::list& y, const std::optional<IdArray>& ids) {
        const BatchLabels given = labels_.plain(y);
        const std::size_t n = given.of_row.size();
        std::vector<Insertion> insertions(n);
        std::vector<ClassId> classes(given.labels.size());
        // The answer is made before anything changes: afterwards nothing may fail.
        auto* const used = new std::vector<ExampleId>(n);
        const nb::object result = as_array(used);
        const std::unique_lock writing = lock_to_insert();
        if (!ids && !enough_ids_left(n)) return nb::int_(kNoIdLeft);
        for (std::size_t i = 0; i < n; ++i) {
            (*used)[i] = ids ? ids->data()[i] : next_id_ + static_cast<ExampleId>(i);
            if (ids && examples().find((*used)[i]) != kNoSlot) return nb::int_(i);
        }
        const LabelsOfBatch batch(*this);
        for (std::size_t c = 0; c < classes.size(); ++c) {
            classes[c] = labels_.find_or_add(given.labels[c]);
        }
        for (std::size_t i = 0; i < n; ++i) {
            insertions[i] = {X.data() + i * X.shape(1), classes[given.of_row[i]], (*used)[i]};
        }
        {
            const nb::gil_scoped_release release;
            change({}, insertions);
        }
        for (const ExampleId id : *used) note_id(id);
        return result;
    }

    std::int64_t delete_many_values(const Matrix& X, const nb::list& y) {
        const BatchLabels given = labels_.plain(y);
        const std::unique_lock writing(gate_);
        subject_.index_values();
        std::vector<std::optional<ClassId>> classes(given.labels.size());
        for (std::size_t c = 0; c < classes.size(); ++c) classes[c] = labels_.find(given.labels[c]);
        std::vector<Slot> slots;
        std::unordered_map<Slot, Slot> next;  // by the first of equal examples: the next to take
        std::vector<double> x(X.shape(1));
        for (std::size_t i = 0; i < given.of_row.size(); ++i) {
            for (std::size_t j = 0; j < x.size(); ++j) {
                x[j] = normalized(X.data()[i * x.size() + j]);
            }
            const auto label = classes[given.of_row[i]];
            const Slot first = label ? examples().find(x.data(), *label) : kNoSlot;
            if (first == kNoSlot) return static_cast<std::int64_t>(i);
            Slot& take = next.try_emplace(first, first).first->second;
            if (take == kNoSlot) return static_cast<std::int64_t>(i);
            slots.push_back(take);
            take = examples().next_equal(take);
        }
        delete_slots(slots);
        return kAllThere;
    }

    std::int64_t delete_many_ids(const IdArray& ids) {
        const std::unique_lock writing(gate_);
        std::vector<Slot> slots(ids.shape(0));
        for (std::size_t i = 0; i < slots.size(); ++i) {
            slots[i] = examples().find(ids.data()[i]);
            if (slots[i] == kNoSlot) return static_cast<std::int64_t>(i);
        }
        delete_slots(slots);
        return kAllThere;
    }

    nb::object label(nb::handle x) {
        const Row row = read(x);
        for (;; finish_way(row)) {
            const std::shared_lock reading = lock_with_ranks();
            if (tree().root().tally.size == 0) return empty_;
            const NodeId node = tree().answering(row.data());
            if (tree()[node].put_off) continue;
            return labels_[tree().majority(node, labels_.ranks())];
        }
    }

    nb::object label_many(const Matrix& X) {
        std::vector<std::int32_t> codes(X.shape(0));
        std::vector<nb::object> in_order;
        bool is_valid = true;
        if (!codes.empty()) {
            const std::shared_lock reading = lock_finished_with_ranks();
            if (tree().root().tally.size == 0) return empty_;
            for (const ClassId id : labels_.in_order()) in_order.push_back(labels_[id]);
            const nb::gil_scoped_release release;
            is_valid = label_all(tree(), labels_.ranks(), X.data(), X.shape(1), codes);
        }
        if (!is_valid) return nb::none();
        return nb::make_tuple(as_array(std::move(codes)), as_list(in_order));
    }

    nb::object label_counts(nb::handle x) {
        const Row row = read(x);
        std::vector<std::pair<nb::object, std::uint32_t>> found;
        for (;; finish_way(row)) {
            const std::shared_lock reading(gate_);
            if (tree().root().tally.size == 0) return empty_;
            const Node& node = tree()[tree().answering(row.data())];
            if (node.put_off) continue;
            for (const ClassCount& c : tree().counts(node)) {
                found.emplace_back(labels_[c.label], c.count);
            }
            break;
        }
        // Outside of the gate: filling a dict runs the labels' own code.
        nb::dict counts;
        for (const auto& [label, count] : found) counts[label] = count;
        return counts;
    }

    void rebuild() {
        const std::unique_lock writing(gate_);
        const nb::gil_scoped_release release;
        subject_.rebuild(watch_);
    }

    nb::object structure() {
        std::string bytes;
        std::vector<nb::object> in_order;
        {
            const std::shared_lock reading = lock_finished_with_ranks();
            // The labels of this tree alone, in the order of ties: a panel may know others.
            std::vector<std::uint32_t> ranks(labels_.ranks().size());
            for (const ClassCount& c : tree().counts(tree().root())) ranks[c.label] = 1;
            for (const ClassId id : labels_.in_order()) {
                if (ranks[id] == 0) continue;
                ranks[id] = static_cast<std::uint32_t>(in_order.size());
                in_order.push_back(labels_[id]);
            }
            for (const NodeId id : preorder()) append_node(bytes, tree()[id], ranks);
        }
        return nb::make_tuple(nb::bytes(bytes.data(), bytes.size()), as_list(in_order));
    }

    nb::object nodes() {
        struct Plain {
            Node node;
            std::int64_t parent, left, right;
            std::uint32_t depth;
            std::vector<ClassCount> counts;
        };
        std::vector<Plain> all;
        std::vector<nb::object> labels;
        {
            const std::shared_lock reading = lock_finished();
            labels = labels_.all();
            std::unordered_map<NodeId, std::int64_t> position;
            for (const NodeId id : preorder()) {
                const Node& node = tree()[id];
                const auto own = static_cast<std::int64_t>(all.size());
                position[id] = own;
                const std::int64_t parent = node.parent == kNoNode ? -1 : position[node.parent];
                const auto counts = tree().counts(node);
                std::uint32_t depth = 0;
                if (parent >= 0) {
                    Plain& above = all[static_cast<std::size_t>(parent)];
                    depth = above.depth + 1;
                    (above.node.left == id ? above.left : above.right) = own;
                }
                all.push_back({node, parent, -1, -1, depth, {counts.begin(), counts.end()}});
            }
        }
        nb::list result;
        for (const Plain& plain : all) {
            nb::dict counts;
            for (const ClassCount& c : plain.counts) counts[labels[c.label]] = c.count;
            const Split& split = plain.node.split;
            const bool leaf = split.kind == Kind::leaf;
            result.append(nb::make_tuple(plain.parent, plain.depth,
                                         leaf ? -1 : static_cast<std::int64_t>(split.feature),
                                         split.value, static_cast<int>(split.kind),
                                         split.missing_left, plain.left, plain.right, counts));
        }
        return result;
    }

    nb::object stats() {
        Stats done;
        std::size_t n_nodes, n_leaves, depth;
        {
            const std::shared_lock reading = lock_finished();
            done = subject_.stats();
            n_nodes = tree().n_nodes();
            n_leaves = tree().n_leaves();
            depth = tree().depth();
        }
        nb::dict stats;
        stats["inserts"] = done.inserts;
        stats["deletes"] = done.deletes;
        stats["rebuilds"] = done.rebuilds;
        stats["rows_rebuilt"] = done.rows_rebuilt;
        stats["nodes"] = n_nodes;
        stats["leaves"] = n_leaves;
        stats["depth"] = depth;
        return stats;
    }

    std::size_t size() {
        const std::shared_lock reading(gate_);
        return examples().size();
    }

    bool contains(ExampleId id) {
        const std::shared_lock reading(gate_);
        return examples().find(id) != kNoSlot;
    }

    nb::object example(ExampleId id) {
        std::vector<double> row;
        nb::object label;
        {
            const std::shared_lock reading(gate_);
            const Slot slot = examples().find(id);
            if (slot == kNoSlot) return nb::none();
            row.resize(examples().n_features());
            examples().read(slot, row.data());
            label = labels_[examples().label(slot)];
        }
        return nb::make_tuple(as_array(std::move(row)), label);
    }

    // ids, values row after row, labels: of all that are active, as they came if that is known; or
    // of those in the tree that answers.
    nb::object examples_now(bool answering) {
        std::vector<ExampleId> ids;
        std::vector<double> values;
        std::vector<nb::object> labels;
        {
            const std::shared_lock reading(gate_);
            std::vector<Slot> slots;
            if (answering) {
                tree().collect_rows(kRoot, slots);
            } else {
                slots = subject_.active();
            }
            for (const Slot slot : slots) {
                ids.push_back(examples().id(slot));
                values.resize(values.size() + examples().n_features());
                examples().read(slot, values.data() + values.size() - examples().n_features());
                labels.push_back(labels_[examples().label(slot)]);
            }
        }
        return nb::make_tuple(as_array(std::move(ids)), as_array(std::move(values)),
                              as_list(labels));
    }

    int traverse(visitproc visit, void* arg) const {
        Py_VISIT(encoder_.ptr());
        return labels_.traverse(visit, arg);
    }
    void clear() {
        encoder_.reset();
        labels_.clear();
    }

  protected:
    static constexpr bool kTestsFirst = std::is_same_v<Subject, Panel>;

    // After a batch, done or failed, labels that no example has are forgotten.
    struct LabelsOfBatch {
        explicit LabelsOfBatch(Model& m) : owner(m) {}
        ~LabelsOfBatch() { owner.forget_unused_labels(); }
        Model& owner;
    };

    const Examples& examples() const { return subject_.examples(); }
    const Tree& tree() const { return subject_.tree(); }
    Row read(nb::handle x) const { return Row(x, shape_, encoder_); }

    // Between two looks at the tree: what was put off on the way of a row is built.
    void finish_way(const Row& row) {
        const std::unique_lock writing(gate_);
        subject_.finish_way(row.data(), watch_);
    }

    // To read the whole tree, nothing in it may be put off.
    std::shared_lock<Gate> lock_finished() {
        std::shared_lock reading(gate_);
        if (subject_.is_finished()) return reading;
        reading.unlock();
        std::unique_lock writing(gate_);
        {
            const nb::gil_scoped_release release;
            subject_.finish(watch_);
        }
        writing.release();
        gate_.stay_to_read();
        return {gate_, std::adopt_lock};
    }

    std::shared_lock<Gate> lock_with_ranks() {
        return lock_with_ranks([&] { return std::shared_lock(gate_); });
    }
    std::shared_lock<Gate> lock_finished_with_ranks() {
        return lock_with_ranks([&] { return lock_finished(); });
    }
    template <typename LockShared>
    std::shared_lock<Gate> lock_with_ranks(LockShared lock_shared) {
        for (;;) {
            std::shared_lock<Gate> reading = lock_shared();
            if (!labels_.ranks_stale()) return reading;
            const std::uint64_t version = labels_.version();
            const std::vector<ClassId> used = labels_.used();
            std::vector<nb::object> labels;
            for (const ClassId id : used) labels.push_back(labels_[id]);
            reading.unlock();
            std::vector<ClassId> in_order = labels_.ask_order(used, as_list(labels));
            const std::unique_lock writing(gate_);
            if (labels_.version() == version) labels_.set_order(std::move(in_order));
        }
    }

    // To test a new example before it is learned, the order of ties has to be known.
    std::unique_lock<Gate> lock_to_insert() {
        for (;;) {
            std::unique_lock writing(gate_);
            if (!kTestsFirst || !labels_.ranks_stale()) return writing;
            writing.unlock();
            lock_with_ranks();
        }
    }

    void change(std::span<const Slot> deleted, std::span<const Insertion> inserted) {
        if constexpr (!kTestsFirst) {
            subject_.update(deleted, inserted, watch_);
        } else if (deleted.empty()) {
            subject_.insert(inserted, labels_.ranks(), watch_);
        } else if (inserted.empty()) {
            subject_.remove(deleted, watch_);
        } else {
            subject_.replace(deleted[0], inserted[0], watch_);
        }
    }

    bool has_class(ClassId id) const {
        if constexpr (kTestsFirst) {
            return subject_.has_class(id);
        } else {
            return tree().has_class(kRoot, id);
        }
    }

    bool enough_ids_left(std::size_t n) const {
        return n == 0 || (next_id_ >= 0 && n - 1 <= static_cast<std::size_t>(INT64_MAX - next_id_));
    }
    void note_id(ExampleId id) {
        if (next_id_ >= 0 && id >= next_id_) next_id_ = id == INT64_MAX ? -1 : id + 1;
    }

    // One row changes: the GIL is kept, the watch lets others in if it takes long.
    void update(std::span<const Slot> deleted, std::span<const Insertion> inserted) {
        ClassId labels[2];
        std::size_t n_labels = 0;
        for (const Slot slot : deleted) labels[n_labels++] = examples().label(slot);
        for (const Insertion& i : inserted) labels[n_labels++] = i.label;
        try {
            change(deleted, inserted);
        } catch (...) {
            forget_if_unused({labels, n_labels});
            throw;
        }
        if (!deleted.empty()) forget_if_unused({labels, n_labels});
        if constexpr (kTestsFirst) {
            if (subject_.class_has_gone()) forget_unused_labels();
        }
        for (const Insertion& i : inserted) note_id(i.id);
    }

    bool delete_slot(Slot slot) {
        if (slot == kNoSlot) return false;
        update({&slot, 1}, {});
        return true;
    }

    void delete_slots(std::span<const Slot> slots) {
        LabelsOfBatch batch(*this);
        const nb::gil_scoped_release release;
        change(slots, {});
    }

    void forget_if_unused(std::span<const ClassId> ids) {
        for (const ClassId id : ids) {
            if (labels_[id].is_valid() && !has_class(id)) labels_.forget(id);
        }
    }

    void forget_unused_labels() {
        for (ClassId id = 0; id < labels_.all().size(); ++id) forget_if_unused({&id, 1});
    }

    std::vector<NodeId> preorder() const {
        std::vector<NodeId> order, stack{kRoot};
        while (!stack.empty()) {
            const NodeId id = stack.back();
            stack.pop_back();
            order.push_back(id);
            if (tree()[id].is_leaf()) continue;
            stack.push_back(tree()[id].right());
            stack.push_back(tree()[id].left);
        }
        return order;
    }

    void append_node(std::string& bytes, const Node& node,
                     std::span<const std::uint32_t> ranks) const {
        append_bytes(bytes, static_cast<std::uint8_t>(node.split.kind));
        append_bytes(bytes, node.split.feature);
        append_bytes(bytes, std::bit_cast<std::uint64_t>(node.split.value));
        append_bytes(bytes, static_cast<std::uint8_t>(node.split.missing_left));
        append_bytes(bytes, node.n_classes);
        std::vector<std::pair<std::uint32_t, std::uint32_t>> counts;
        for (const ClassCount& c : tree().counts(node)) {
            counts.emplace_back(ranks[c.label], c.count);
        }
        std::sort(counts.begin(), counts.end());
        for (const auto& [rank, count] : counts) {
            append_bytes(bytes, rank);
            append_bytes(bytes, count);
        }
    }

    nb::object empty_;  // ready: inside of the gate no Python object may be made, see Gate
    nb::object encoder_;
    Labels labels_;
    Gate gate_;
    PythonWatch watch_;
    Subject subject_;
    const RowShape shape_;
    ExampleId next_id_ = 0;  // -1: the largest possible id has been used
};

}  // namespace evertree
