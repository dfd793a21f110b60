#include "certify.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <utility>

namespace evertree {

namespace {

constexpr double kAllowance = 1e-12;

struct Visit {
    NodeId id;
    NodeId parent;
    std::uint32_t depth;
    std::vector<Slot> rows;
};

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.12g", value);
    return text;
}

std::string in_words(const Split& split) {
    std::string words = "(";
    words += std::to_string(split.feature);
    words += split.kind == Kind::categorical ? ", = " : ", ";
    words += std::isnan(split.value) ? "missing" : number(split.value);
    words += ")";
    return words;
}

using Counts = std::vector<double>;

double gini_index(const Counts& counts, double n) {
    double sum = 0;
    for (const double c : counts) sum += (c / n) * (c / n);
    return n == 0 ? 0.0 : 1.0 - sum;
}

class Auditor {
  public:
    Auditor(const Upkeep& subject, const Examples& examples, Watch& watch)
        : examples_(examples),
          tree_(subject.tree()),
          limits_(subject.limits()),
          kinds_(subject.kinds()),
          watch_(watch) {}

    Audit run(std::vector<Slot> rows) {
        for (const Slot slot : rows) {
            n_classes_ = std::max<std::size_t>(n_classes_, examples_.label(slot) + std::size_t{1});
        }
        audit_examples();
        std::vector<Visit> stack;
        stack.push_back({kRoot, kNoNode, 0, std::move(rows)});
        while (!stack.empty()) {
            const Visit visit = std::move(stack.back());
            stack.pop_back();
            const Node& node = tree_[visit.id];
            if (node.put_off) breach("it has not been built yet");
            audit_node(visit);
            ++audit_.nodes;
            if (node.split.kind == Kind::leaf) continue;
            Visit left{node.left, visit.id, visit.depth + 1, {}};
            Visit right{node.left + 1, visit.id, visit.depth + 1, {}};
            for (const Slot slot : visit.rows) {
                (routes_left(node.split, slot) ? left : right).rows.push_back(slot);
            }
            stack.push_back(std::move(right));
            stack.push_back(std::move(left));
        }
        if (audit_.nodes != tree_.n_nodes()) report("tree", "the number of nodes is wrong");
        return std::move(audit_);
    }

  private:
    void report(const std::string& where, const std::string& what) {
        audit_.breaches.push_back(where + ": " + what);
    }
    void breach(const std::string& what) { report("node " + std::to_string(audit_.nodes), what); }

    double value(Slot slot, std::uint32_t feature) const { return examples_.value(slot, feature); }

    bool routes_left(const Split& split, Slot slot) const {
        const double v = value(slot, split.feature);
        if (split.kind == Kind::real) return std::isnan(v) ? split.missing_left : v <= split.value;
        return std::isnan(v) ? std::isnan(split.value) : v == split.value;
    }

    Counts count(std::span<const Slot> rows) const {
        Counts counts(n_classes_, 0.0);
        for (const Slot slot : rows) ++counts[examples_.label(slot)];
        return counts;
    }

    // Definition 2.1, by counts of the left side and of all.
    static double gain(const Counts& left, const Counts& all, double n) {
        double n_left = 0, of_left = 0, of_right = 0;
        for (const double c : left) n_left += c;
        const double n_right = n - n_left;
        for (std::size_t c = 0; c < left.size(); ++c) {
            const double right = all[c] - left[c];
            of_left += left[c] * left[c];
            of_right += right * right;
        }
        const double g_left = n_left == 0 ? 0.0 : 1.0 - of_left / (n_left * n_left);
        const double g_right = n_right == 0 ? 0.0 : 1.0 - of_right / (n_right * n_right);
        return gini_index(all, n) - (n_left / n * g_left + n_right / n * g_right);
    }

    void audit_examples() {
        const std::vector<Slot> active = examples_.active();
        std::vector<double> x(examples_.n_features());
        if (active.size() != examples_.size()) report("examples", "their number is wrong");
        for (const Slot slot : active) {
            if (examples_.find(examples_.id(slot)) != slot) {
                report("example " + std::to_string(examples_.id(slot)), "not found by its id");
            }
            if (!examples_.values_indexed()) continue;
            examples_.read(slot, x.data());
            const Slot equal = examples_.find(x.data(), examples_.label(slot));
            if (equal == kNoSlot || !same(equal, slot)) {
                report("example " + std::to_string(examples_.id(slot)), "not found by its value");
            }
        }
    }

    bool same(Slot a, Slot b) const {
        for (std::uint32_t j = 0; j < examples_.n_features(); ++j) {
            const double u = value(a, j), v = value(b, j);
            if (u != v && !(std::isnan(u) && std::isnan(v))) return false;
        }
        return true;
    }

    bool separable(std::span<const Slot> rows) const {
        return std::any_of(rows.begin(), rows.end(), [&](Slot s) { return !same(s, rows[0]); });
    }

    void audit_node(const Visit& visit) {
        const Node& node = tree_[visit.id];
        const Counts counts = count(visit.rows);
        if (node.parent != visit.parent) breach("its parent is another node");
        audit_counts(node, visit, counts);
        if (node.split.kind == Kind::leaf) {
            audit_leaf(node, visit, counts);
        } else {
            audit_internal(node, visit, counts);
        }
    }

    void audit_counts(const Node& node, const Visit& visit, const Counts& counts) {
        double squares = 0;
        std::size_t present = 0;
        for (const double c : counts) {
            squares += c * c;
            present += c > 0;
        }
        if (node.tally.size != visit.rows.size()) breach("its size is not that of its examples");
        if (static_cast<double>(node.tally.squares) != squares) breach("its squares are wrong");
        const auto claimed = tree_.counts(node);
        if (claimed.size() != present) breach("it counts a class that is not there, or misses one");
        for (const ClassCount& c : claimed) {
            if (c.label >= counts.size() || counts[c.label] != c.count) {
                breach("its class counts are not those of its examples");
            }
        }
        const double moved =
            std::abs(static_cast<double>(visit.rows.size()) - static_cast<double>(node.built_size));
        if (node.updates_since_build < moved) breach("it has missed updates");
        if (node.deletions_since_build > node.updates_since_build) breach("too many deletions");
    }

    void audit_leaf(const Node& node, const Visit& visit, const Counts& counts) {
        std::vector<Slot> listed(tree_.rows(node).begin(), tree_.rows(node).end());
        for (std::uint32_t i = 0; i < listed.size(); ++i) {
            if (node.places_known && tree_.place_in_leaf(listed[i]) != i)
                breach("an example's place is wrong");
        }
        std::sort(listed.begin(), listed.end());
        std::vector<Slot> routed(visit.rows);
        std::sort(routed.begin(), routed.end());
        if (listed != routed) breach("it does not list exactly the examples that route to it");
        const bool can_be_split = separable(visit.rows);
        if (node.all_equal && can_be_split) breach("it takes different examples for equal");
        const auto n = static_cast<double>(visit.rows.size());
        const double g = gini_index(counts, n);
        if (n >= limits_.min_samples_split && !pure(counts) && visit.depth < limits_.max_depth &&
            g >= limits_.min_impurity + kAllowance && can_be_split) {
            breach("a leaf with " + number(n) + " examples and Gini " + number(g) +
                   ", min_impurity is " + number(limits_.min_impurity));
        }
    }

    static bool pure(const Counts& counts) {
        return std::count_if(counts.begin(), counts.end(), [](double c) { return c > 0; }) <= 1;
    }

    void audit_internal(const Node& node, const Visit& visit, const Counts& counts) {
        const auto n = static_cast<double>(visit.rows.size());
        if (n < limits_.min_samples_split) breach("internal with " + number(n) + " examples");
        if (pure(counts)) breach("internal, but all its examples have one label");
        if (visit.depth >= limits_.max_depth) breach("internal at max_depth");
        if (visit.rows.empty()) return;
        std::vector<Slot> left;
        for (const Slot slot : visit.rows) {
            if (routes_left(node.split, slot)) left.push_back(slot);
        }
        const double own = gain(count(left), counts, n);
        best_gain_ = 0.0;  // of a split that separates nothing
        for (std::uint32_t j = 0; j < examples_.n_features(); ++j) try_splits(j, visit, counts);
        const double gap = best_gain_ - own;
        if (audit_.worst_node < 0 || gap > audit_.worst_gap) {
            audit_.worst_gap = std::max(gap, 0.0);
            audit_.worst_node = static_cast<std::int64_t>(audit_.nodes);
        }
        if (gap > limits_.max_gap + kAllowance) {
            breach("split " + in_words(node.split) + " is " + number(gap) + " below " +
                   in_words(best_split_) + ", max_gap is " + number(limits_.max_gap));
        }
        audit_departures(node, counts);
        if (limits_.epsilon < 0) audit_floor(node, counts, n);
    }

    void audit_departures(const Node& node, const Counts& counts) {
        double built = 0, gone = 0;
        for (const Departures& each : tree_.departures(node)) {
            const double present = each.label < counts.size() ? counts[each.label] : 0.0;
            if (present + each.gone < each.built) breach("it has missed deletions of a class");
            built += each.built;
            gone += each.gone;
        }
        if (built != node.built_size)
            breach("its classes were not as many as it when it was built");
        if (gone > node.deletions_since_build) breach("more have gone of its classes than of it");
    }

    // The floor must lie below the mass that the best split leaves: n * (g(S) - best gain).
    void audit_floor(const Node& node, const Counts& counts, double n) {
        double floor = node.floor_at_build;
        for (const Departures& each : tree_.departures(node)) {
            if (each.gone > 0) floor -= lost_by(each, node);
        }
        const double least = n * (gini_index(counts, n) - best_gain_);
        if (!(floor <= least + kAllowance * n * 4)) {
            breach("its floor " + number(floor) + " is above the least mass " + number(least));
        }
    }

    // What a split can lose that sent all that went, of one class, to one side, with as many of the
    // others as there may have been: all sides together had left `wanted`, the others taken for one
    // class. (A millionth of the set less, so that rounding does not matter.)
    double lost_by(const Departures& own, const Node& node) const {
        const double built = node.built_size, others = built - own.built;
        const double went = std::min(own.gone, own.built), stayed = own.built - went;
        double of_others = others, of_all = built;
        for (const Departures& each : tree_.departures(node)) {
            const double share = static_cast<double>(each.built) * each.built;
            of_all -= share / built;
            if (each.label != own.label) of_others -= share / others;
        }
        const double gained = of_all - node.floor_at_build;
        const double wanted =
            std::max(node.floor_at_build - of_others, mass_of(own.built, others) - 2 * gained) -
            1e-6 * built;
        const auto both = [&](double with) {
            return mass_of(went, with) + mass_of(stayed, others - with);
        };
        // Most is left where all is mixed evenly; from there on it falls.
        double possible = others * went / own.built, impossible = others;
        if (both(impossible) >= wanted) return mass_of(went, impossible);
        for (int halvings = 0; halvings < 60; ++halvings) {
            const double middle = (possible + impossible) / 2;
            (both(middle) >= wanted ? possible : impossible) = middle;
        }
        return mass_of(went, impossible);
    }

    static double mass_of(double n_one, double n_other) {
        return n_one > 0 && n_other > 0 ? 2 * n_one * n_other / (n_one + n_other) : 0.0;
    }

    void try_split(const Counts& left, const Counts& all, double n, const Split& split) {
        const double g = gain(left, all, n);
        if (g > best_gain_) {
            best_gain_ = g;
            best_split_ = split;
        }
    }

    // Every value, in order, as the last one on the left side (real-valued) or as the only one
    // there (categorical); the missing ones on either side, or as the only ones there.
    void try_splits(std::uint32_t feature, const Visit& visit, const Counts& all) {
        watch_.worked(16 * visit.rows.size());
        const auto n = static_cast<double>(visit.rows.size());
        const bool categorical = kinds_[feature] == Kind::categorical;
        Counts missing(n_classes_, 0.0);
        std::vector<std::pair<double, ClassId>> present;
        for (const Slot slot : visit.rows) {
            const double v = value(slot, feature);
            if (std::isnan(v)) {
                ++missing[examples_.label(slot)];
            } else {
                present.emplace_back(v, examples_.label(slot));
            }
        }
        const bool any_missing = present.size() < visit.rows.size();
        std::sort(present.begin(), present.end());
        Split split{std::nan(""), feature, kinds_[feature], true};
        if (any_missing && categorical) try_split(missing, all, n, split);
        Counts left(n_classes_, 0.0), left_and_missing(missing);
        for (std::size_t i = 0; i < present.size(); ++i) {
            const auto& [v, label] = present[i];
            ++left[label];
            ++left_and_missing[label];
            if (i + 1 < present.size() && present[i + 1].first == v) continue;
            split = {v, feature, kinds_[feature], false};
            try_split(left, all, n, split);
            if (categorical) {
                std::fill(left.begin(), left.end(), 0.0);
            } else if (any_missing) {
                split.missing_left = true;
                try_split(left_and_missing, all, n, split);
            }
        }
    }

    const Examples& examples_;
    const Tree& tree_;
    const Limits limits_;
    const std::span<const Kind> kinds_;
    Watch& watch_;
    std::size_t n_classes_ = 0;
    double best_gain_ = 0;
    Split best_split_;
    Audit audit_;
};

}  // namespace

Audit certify(const Upkeep& subject, const Examples& examples, std::vector<Slot> rows,
              Watch& watch) {
    return Auditor(subject, examples, watch).run(std::move(rows));
}

Audit certify(const DynamicTree& subject, Watch& watch) {
    return certify(subject.upkeep(), subject.examples(), subject.active(), watch);
}

}  // namespace evertree
