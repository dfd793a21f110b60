#include "descent.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace evertree {

namespace {

constexpr std::size_t kRowsPerNode = 4;  // with fewer nodes a row than this, a copy pays
constexpr std::size_t kSideBySide = 16;
constexpr std::size_t kStepsAtOnce = 4;
constexpr std::size_t kPartValues = 16384;

// Whether any value is infinite, and whether any is missing.
struct Unusual {
    bool infinite, missing;
};

// Zero times a value is zero, but for those that are infinite or missing.
bool all_finite(const double* values, std::size_t n) {
    double zeros[8] = {};
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        for (std::size_t k = 0; k < 8; ++k) zeros[k] += 0.0 * values[i + k];
    }
    for (; i < n; ++i) zeros[0] += 0.0 * values[i];
    return std::none_of(zeros, zeros + 8, is_missing);
}

Unusual unusual_in(const double* values, std::size_t n) {
    if (all_finite(values, n)) return {false, false};
    const auto is_infinite = [](double v) { return std::isinf(v); };
    return {std::any_of(values, values + n, is_infinite),
            std::any_of(values, values + n, is_missing)};
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
    // The same where nothing is missing and nothing a category.
    std::uint32_t after_number(const double* x) const {
        return next + (x[feature & (kMissingLeft - 1)] <= value ? 0u : 1u);
    }
};

std::int32_t answer_of(const Tree& tree, NodeId node, std::span<const std::uint32_t> ranks) {
    return static_cast<std::int32_t>(ranks[tree.majority(node, ranks)]);
}

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
                                        : answer_of(tree, nodes[i], ranks));
            if (node.is_leaf()) {
                steps_.push_back(leaf(static_cast<std::uint32_t>(i)));
                continue;
            }
            steps_.push_back(step(node.split, static_cast<std::uint32_t>(nodes.size())));
            any_category_ |= node.split.kind == Kind::categorical;
            parents_.push_back(static_cast<std::uint32_t>(i));
            nodes.push_back(node.left);
            nodes.push_back(node.right());
        }
    }

    void label(const double* X, std::size_t n_features, bool any_missing,
               std::span<std::int32_t> answers) const {
        if (any_missing || any_category_) {
            descend(X, n_features, answers,
                    [](const Step& step, const double* x) { return step.after(x); });
        } else {
            descend(X, n_features, answers,
                    [](const Step& step, const double* x) { return step.after_number(x); });
        }
    }

  private:
    // Some rows go down side by side; where one has arrived, the next one starts. Places without a
    // row go down with the first, for nobody.
    template <typename After>
    void descend(const double* X, std::size_t n_features, std::span<std::int32_t> answers,
                 After after) const {
        struct Place {
            const double* x;
            std::int32_t* answer;
        };
        std::int32_t nobody = 0;
        const auto place_for = [&](std::size_t row) {
            return row < answers.size() ? Place{X + row * n_features, answers.data() + row}
                                        : Place{X, &nobody};
        };
        const Step* const steps = steps_.data();
        Place places[kSideBySide];
        std::uint32_t at[kSideBySide] = {};
        std::size_t n_started = 0, n_arrived = 0;
        for (Place& place : places) place = place_for(n_started++);
        while (n_arrived < answers.size()) {
            for (std::size_t step = 0; step < kStepsAtOnce; ++step) {
                for (std::size_t i = 0; i < kSideBySide; ++i) {
                    at[i] = after(steps[at[i]], places[i].x);
                }
            }
            // Without a branch again: who has not arrived answers too, and once more later.
            for (std::size_t i = 0; i < kSideBySide; ++i) {
                Place& place = places[i];
                const bool arrived = steps[at[i]].next == at[i];
                *place.answer = answers_[at[i]];
                n_arrived += arrived & (place.answer != &nobody);
                const Place next = place_for(n_started);
                n_started += arrived;
                place.x = arrived ? next.x : place.x;
                place.answer = arrived ? next.answer : place.answer;
                at[i] = arrived ? 0 : at[i];
            }
        }
    }

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
    std::vector<std::int32_t> answers_;
    std::vector<std::uint32_t> parents_;
    bool any_category_ = false;
};

}  // namespace

bool label_all(const Tree& tree, std::span<const std::uint32_t> ranks, const double* X,
               std::size_t n_features, std::span<std::int32_t> answers) {
    if (answers.size() * kRowsPerNode < tree.n_nodes()) {
        if (unusual_in(X, answers.size() * n_features).infinite) return false;
        for (std::size_t i = 0; i < answers.size(); ++i) {
            answers[i] = answer_of(tree, tree.answering(X + i * n_features), ranks);
        }
        return true;
    }
    const Steps steps(tree, ranks);
    // In parts, so that what has been checked is still in the cache.
    const std::size_t part = std::max(kPartValues / n_features, 4 * kSideBySide);
    for (std::size_t i = 0; i < answers.size(); i += part) {
        const std::size_t n = std::min(answers.size() - i, part);
        const Unusual found = unusual_in(X + i * n_features, n * n_features);
        if (found.infinite) return false;
        steps.label(X + i * n_features, n_features, found.missing, answers.subspan(i, n));
    }
    return true;
}

}  // namespace evertree
