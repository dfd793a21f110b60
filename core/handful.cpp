#include "handful.hpp"

#include <algorithm>
#include <bit>

#include "split.hpp"

namespace evertree {

namespace {

using Rows = Handful::Rows;

std::uint32_t count(Rows rows) { return static_cast<std::uint32_t>(std::popcount(rows)); }

template <typename Do>
void each_of(Rows rows, Do do_this) {
    for (unsigned rest = rows; rest != 0; rest &= rest - 1) {
        do_this(static_cast<std::uint32_t>(std::countr_zero(rest)));
    }
}

}  // namespace

void Handful::start(const Packing& packing) {
    packing_ = &packing;
    n_ = 0;
    new_ = 0;
    classes_.of_rows.fill(0);
}

void Handful::add(const std::byte* record, std::size_t place_of_class, bool is_new) {
    const auto own = static_cast<Rows>(1u << n_);
    records_[n_++] = record;
    classes_.of_rows[place_of_class] |= own;
    if (is_new) new_ |= own;
}

bool Handful::plan(std::span<const std::uint32_t> features, std::uint32_t largest_put_off,
                   std::uint32_t depth, Plan& plan) {
    if (!load(features)) return false;
    classes_.n = plan.counts.size();
    largest_put_off_ = largest_put_off;
    const auto all = static_cast<Rows>((1u << n_) - 1);
    open_.assign(1, {0, depth, all, 0});
    while (!open_.empty()) {
        const Open open = open_.back();
        open_.pop_back();
        plan_node(open, plan);
    }
    return true;
}

// False if a value is missing.
bool Handful::load(std::span<const std::uint32_t> features) {
    differing_.resize(packing_->record_bytes() + Packing::kSlack);
    wide::mark_differing(records_.data(), n_, packing_->record_bytes(), differing_.data());
    features_.clear();
    at_most_.resize(features.size() * kMostRows);
    std::array<std::uint64_t, kMostRows> keys{};
    for (const std::uint32_t feature : features) {
        const bool varies = packing_->code(differing_.data(), feature) != 0;
        // What is missing in all rows does not vary.
        if (!varies) continue;
        const std::uint64_t missing = missing_code(bytes_of(packing_->form(feature)));
        bool any_missing = false;
        for (std::size_t i = 0; i < n_; ++i) {
            keys[i] = packing_->code(records_[i], feature);
            any_missing |= keys[i] == missing;
        }
        if (any_missing) return false;
        wide::handful::at_most(keys.data(), n_, at_most_.data() + features_.size() * kMostRows);
        features_.push_back(feature);
    }
    return true;
}

void Handful::plan_node(const Open& open, Plan& plan) {
    const wide::handful::Cut cut =
        wide::handful::best_cut(at_most_.data(), features_.size(), n_, open.rows, classes_);
    if (!cut.found) {
        plan.nodes[open.node].inseparable = true;
        return put_rows(open.rows, open.begin);
    }
    const auto left_rows =
        static_cast<Rows>(at_most_[cut.feature * kMostRows + cut.row] & open.rows);
    const auto right_rows = static_cast<Rows>(open.rows & ~left_rows);
    const auto left = static_cast<std::uint32_t>(plan.nodes.size());
    plan.nodes.resize(plan.nodes.size() + 2);
    plan.nodes[open.node].split = split_at(features_[cut.feature], cut.row, left_rows, right_rows);
    plan.nodes[open.node].left = left;
    Open on_left{left, open.depth + 1, left_rows, open.begin};
    Open on_right{left + 1, open.depth + 1, right_rows, open.begin + count(left_rows)};
    const bool search_left = plan_child(on_left, plan), search_right = plan_child(on_right, plan);
    plan.nodes[open.node].floor = mass({plan.nodes[left].tally, plan.nodes[left + 1].tally});
    if (search_right) open_.push_back(on_right);
    if (search_left) open_.push_back(on_left);
}

// Rows and counts of a child; whether there is anything to be searched in it, and now.
bool Handful::plan_child(const Open& own, Plan& plan) {
    PlannedNode& child = plan.nodes[own.node];
    child.counts_begin = static_cast<std::uint32_t>(plan.counts.size());
    for (std::size_t c = 0; c < classes_.n; ++c) {
        const std::uint32_t n = count(static_cast<Rows>(classes_.of_rows[c] & own.rows));
        if (n == 0) continue;
        plan.counts.push_back({plan.counts[c].label, n});  // those of the root come first
        child.tally.size += n;
        child.tally.squares += std::uint64_t{n} * n;
    }
    child.counts_end = static_cast<std::uint32_t>(plan.counts.size());
    child.begin = own.begin;
    child.end = child.begin + count(own.rows);
    const bool stops = limits_.build_stops(child.tally, own.depth);
    child.put_off = !stops && child.tally.size <= largest_put_off_ && (own.rows & new_) == 0;
    if (!stops && !child.put_off) return true;
    put_rows(own.rows, own.begin);
    return false;
}

Split Handful::split_at(std::uint32_t feature, std::uint32_t last_left, Rows left,
                        Rows right) const {
    std::uint64_t next = ~std::uint64_t{0};
    each_of(right, [&](std::uint32_t row) {
        next = std::min(next, packing_->code(records_[row], feature));
    });
    const double low = packing_->value(records_[last_left], feature);
    const double high = value_of(next, packing_->form(feature));
    return {midpoint(low, high), feature, Kind::real, count(left) >= count(right)};
}

void Handful::put_rows(Rows rows, std::uint32_t begin) {
    each_of(rows, [&](std::uint32_t row) { order_[begin++] = static_cast<std::uint8_t>(row); });
}

}  // namespace evertree
