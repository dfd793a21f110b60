#include "descent.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace evertree {

namespace {

constexpr std::size_t kRowsPerNode = 4;  // with fewer nodes a row than this, a copy pays
constexpr std::size_t kSideBySide = 16;
constexpr std::size_t kPartValues = 16384;

bool any_infinite(const double* values, std::size_t n) {
    int found = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const double size = values[i] < 0 ? -values[i] : values[i];
        found |= size > std::numeric_limits<double>::max() ? 1 : 0;
    }
    return found != 0;
}

// A step down: to `next` or, if the row does not go left, to the one behind it. A leaf leads to
// itself, and its answer stands elsewhere.
struct Step {
    double value;
    std::uint32_t feature;
    std::uint32_t next;

    static constexpr std::uint32_t kCategorical = std::uint32_t{1} << 31;
    static constexpr std::uint32_t kMissingLeft = std::uint32_t{1} << 30;

    // Without a branch: which way a row goes is not predictable.
    std::uint32_t after(const double* x) const {
        const double v = x[feature & (kMissingLeft - 1)];
        const std::uint32_t at_most = v <= value, equal = v == value, missing = is_missing(v);
        const std::uint32_t categorical = feature >> 31, missing_left = (feature >> 30) & 1;
        const std::uint32_t left =
            (at_most & (equal | (categorical ^ 1))) | (missing & missing_left);
        return next + 1 - left;
    }
};

class Steps {
  public:
    Steps(const Tree& tree, std::span<const std::uint32_t> ranks) {
        steps_.reserve(tree.n_nodes());
        answers_.reserve(tree.n_nodes());
        // Parents before children, children side by side: the top of the tree lies together.
        std::vector<NodeId> nodes{kRoot};
        nodes.reserve(tree.n_nodes());
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            const Node& node = tree[nodes[i]];
            const bool is_empty = node.tally.size == 0;
            answers_.push_back(is_empty ? answers_[parent_of(i)]
                                        : ranks[tree.majority(nodes[i], ranks)]);
            if (node.is_leaf()) {
                steps_.push_back(leaf(static_cast<std::uint32_t>(i)));
                continue;
            }
            steps_.push_back(step(node.split, static_cast<std::uint32_t>(nodes.size())));
            parents_.push_back(static_cast<std::uint32_t>(i));
            nodes.push_back(node.left);
            nodes.push_back(node.right());
        }
    }

    // Each of some places holds a row on its way; one that has arrived makes room for the next.
    void label(const double* X, std::size_t n_features, std::span<std::int32_t> answers) const {
        struct Place {
            const double* x;
            std::size_t row;
            std::uint32_t at;
        };
        Place places[kSideBySide];
        std::size_t n_places = std::min(kSideBySide, answers.size()), next_row = n_places;
        for (std::size_t i = 0; i < n_places; ++i) places[i] = {X + i * n_features, i, 0};
        while (n_places > 0) {
            for (std::size_t i = 0; i < n_places; ++i) {
                Place& place = places[i];
                place.at = steps_[place.at].after(place.x);
                if (steps_[place.at].next != place.at) continue;
                answers[place.row] = static_cast<std::int32_t>(answers_[place.at]);
                if (next_row < answers.size()) {
                    place = {X + next_row * n_features, next_row, 0};
                    ++next_row;
                } else {
                    place = places[--n_places];
                }
            }
        }
    }

  private:
    static Step leaf(std::uint32_t itself) {
        return {std::numeric_limits<double>::infinity(), Step::kMissingLeft, itself};
    }
    static Step step(const Split& split, std::uint32_t next) {
        return {split.value,
                split.feature | (split.kind == Kind::categorical ? Step::kCategorical : 0) |
                    (split.missing_left ? Step::kMissingLeft : 0),
                next};
    }
    // Children come in pairs, in the order of their parents, from node 1 on.
    std::size_t parent_of(std::size_t node) const { return parents_[(node - 1) / 2]; }

    std::vector<Step> steps_;
    std::vector<std::uint32_t> answers_, parents_;
};

}  // namespace

bool label_all(const Tree& tree, std::span<const std::uint32_t> ranks, const double* X,
               std::size_t n_features, std::span<std::int32_t> answers) {
    if (answers.size() * kRowsPerNode < tree.n_nodes()) {
        if (any_infinite(X, answers.size() * n_features)) return false;
        for (std::size_t i = 0; i < answers.size(); ++i) {
            const NodeId node = tree.answering(X + i * n_features);
            answers[i] = static_cast<std::int32_t>(ranks[tree.majority(node, ranks)]);
        }
        return true;
    }
    const Steps steps(tree, ranks);
    // In parts, so that what has been checked is still in the cache.
    const std::size_t part = std::max(kPartValues / n_features, 4 * kSideBySide);
    for (std::size_t i = 0; i < answers.size(); i += part) {
        const std::size_t n = std::min(answers.size() - i, part);
        if (any_infinite(X + i * n_features, n * n_features)) return false;
        steps.label(X + i * n_features, n_features, answers.subspan(i, n));
    }
    return true;
}

}  // namespace evertree
