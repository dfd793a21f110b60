// Certify: Definition 3.1 of the paper, from scratch and by brute force, answered in words.
//
// Shares no code with split, build, limits or update: it routes every active example down the tree
// by itself, counts by itself, tries every split of every node by the definition of the gain, and
// compares what it finds with what the nodes claim. The structure is audited too: counts, leaf
// lists, parents, floors, indexes.
//
// Breach of condition 2: some split's gain is more than max_gap (plus 1e-12) above the node's own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "update.hpp"

namespace evertree {

struct Audit {
    std::vector<std::string> breaches;
    double worst_gap = 0.0;
    std::int64_t worst_node = -1;  // in preorder
    std::uint64_t nodes = 0;
};

// The tree against the examples that it should have: `rows`, some or all of the active ones.
Audit certify(const Upkeep& subject, const Examples& examples, std::vector<Slot> rows,
              Watch& watch);
Audit certify(const DynamicTree& subject, Watch& watch);

}  // namespace evertree
