// How far a loop over a list has got, for another one that goes on from there.
#pragma once

#include <cstdint>

#include "wide.hpp"

namespace evertree::wide {

// A list that is divided: where both sides have got to, and whether a new value was passed since
// the last row of each.
struct Dividing {
    std::uint32_t *left, *right;
    std::uint32_t n_read = 0;
    std::uint32_t left_new = element::kNewValue, right_new = element::kNewValue;
};

// The best score so far, the next cut, and what is on its left.
struct TwoClassScores {
    std::uint32_t cut = 0, ones_left = 0;
    float best = -1.0f;
};
struct ManyClassScores {
    std::uint32_t cut = 0;
    float left[ManyClassRows::kMostClasses] = {};
    float best = -1.0f;
};

}  // namespace evertree::wide
