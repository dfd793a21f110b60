// Descent: the labels of many rows at once.
//
// A row alone waits for memory at every step. Several that go down side by side wait together, over
// a copy of the tree that has only what a descent needs.
//
// Must not know: how a tree changes.
#pragma once

#include <cstdint>
#include <span>

#include "tree.hpp"

namespace evertree {

// For each of the rows, side by side in X, the rank of the label that its leaf answers with; false
// if a value is infinite. The tree is not empty.
bool label_all(const Tree& tree, std::span<const std::uint32_t> ranks, const double* X,
               std::size_t n_features, std::span<std::int32_t> answers);

}  // namespace evertree
