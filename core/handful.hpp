// Handful: the subtree of up to sixteen rows, planned without sorting anything.
//
// Most builds of a stream have so few rows, and what there is to prepare would take longer than
// they do. A set of rows is the bits of one word here. For each feature and row, the rows that are
// not above it are such a set, found once; what a cut leaves is then counted in a few instructions.
// Features are real, have no value missing, and classes are few. All others, and those on
// processors without AVX2, go other ways (few.hpp, split.hpp), which find the same splits.
//
// Must not know: the tree that is there now, when to rebuild.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "limits.hpp"
#include "packing.hpp"
#include "tree.hpp"
#include "wide/wide.hpp"

namespace evertree {

class Handful {
  public:
    static constexpr std::size_t kMostRows = wide::handful::kMostRows;
    static constexpr std::size_t kMostClasses = wide::handful::kMostClasses;
    using Rows = wide::handful::Rows;

    explicit Handful(const Limits& limits) : limits_(limits) {}

    // The rows to be planned, one by one: a record, and which of the root's classes it has.
    void start(const Packing& packing);
    void add(const std::byte* record, std::size_t place_of_class, bool is_new);

    // Plans what is below the root of a plan, whose rows and classes these are. Where each of the
    // rows has come to lie is told by `order`. False, and nothing is done, if a value is missing.
    bool plan(std::span<const std::uint32_t> features, std::uint32_t largest_put_off,
              std::uint32_t depth, Plan& plan);
    std::span<const std::uint8_t> order() const { return {order_.data(), n_}; }

  private:
    struct Open {
        std::uint32_t node, depth;
        Rows rows;
        std::uint32_t begin;
    };

    bool load(std::span<const std::uint32_t> features);
    void plan_node(const Open& open, Plan& plan);
    Split split_at(std::uint32_t feature, std::uint32_t last_left, Rows left, Rows right) const;
    bool plan_child(const Open& own, Plan& plan);
    void put_rows(Rows rows, std::uint32_t begin);

    Limits limits_;
    const Packing* packing_ = nullptr;
    std::size_t n_ = 0;
    std::array<const std::byte*, kMostRows> records_;
    Rows new_ = 0;
    std::uint32_t largest_put_off_ = 0;
    wide::handful::Classes classes_;
    std::vector<std::byte> differing_;     // of the records
    std::vector<std::uint32_t> features_;  // those that vary
    std::vector<Rows> at_most_;            // of each of them and each row
    std::vector<Open> open_;
    std::array<std::uint8_t, kMostRows> order_;
};

}  // namespace evertree
