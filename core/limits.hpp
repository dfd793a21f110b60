// Limits: alpha, beta, k, h and epsilon of the paper, and the two questions about a single set that
// Build and Update must answer alike. (certify has its own answers: it shares no code with them.)
#pragma once

#include <cstdint>

#include "impurity.hpp"

namespace evertree {

struct Limits {
    static constexpr std::uint32_t kNoDepthLimit = 0xffffffff;
    static constexpr double kCertifiedRule = -1.0;

    double max_gap = 0.1;                     // beta
    double min_impurity = 0.01;               // alpha
    std::uint32_t min_samples_split = 2;      // k + 1
    std::uint32_t max_depth = kNoDepthLimit;  // h
    double epsilon = kCertifiedRule;          // of the paper's counter rule, or kCertifiedRule

    bool certified_rule() const { return epsilon < 0; }

    // Condition 1 of Definition 3.1: no split may be here, whatever the gains.
    bool may_split(const Tally& t, std::uint32_t depth) const {
        return t.size >= min_samples_split && !is_pure(t) && depth != max_depth;
    }
    // Condition 1 of Definition 3.1: a split has to be here if there is any that separates.
    bool must_split(const Tally& t, std::uint32_t depth) const {
        return may_split(t, depth) && gini(t) >= min_impurity - kTolerance;
    }
    // Algorithm 2, line 3. Stopping at alpha/2, not alpha, is what pays for the next build.
    bool build_stops(const Tally& t, std::uint32_t depth) const {
        return !may_split(t, depth) || gini(t) <= min_impurity / 2 + kTolerance;
    }
};

}  // namespace evertree
