#include <algorithm>
#include <bit>

#include "avx2/avx2.hpp"
#include "avx512/avx512.hpp"
#include "wide.hpp"

namespace evertree::wide::handful {

namespace {

// What a cut leaves on both sides, as a fraction: squares_left / left + squares_right / right. All
// of it is small: equal fractions are equal as floats too, and different ones are not.
struct Purity {
    std::uint32_t purity = 0, sides = 1;
};

std::uint32_t count(unsigned rows) { return static_cast<std::uint32_t>(std::popcount(rows)); }

}  // namespace

namespace plain {

void at_most(const std::uint64_t* keys, std::size_t n, Rows* at_most) {
    for (std::size_t i = 0; i < n; ++i) {
        unsigned rows = 0;
        for (std::size_t j = 0; j < n; ++j) rows |= (keys[j] <= keys[i] ? 1u : 0u) << j;
        at_most[i] = static_cast<Rows>(rows);
    }
}

Purity purity_of(unsigned left, unsigned right, const Classes& classes) {
    std::uint32_t squares_left = 0, squares_right = 0;
    for (std::size_t c = 0; c < classes.n; ++c) {
        const std::uint32_t on_left = count(left & classes.of_rows[c]);
        const std::uint32_t on_right = count(right & classes.of_rows[c]);
        squares_left += on_left * on_left;
        squares_right += on_right * on_right;
    }
    const std::uint32_t n_left = count(left), n_right = count(right);
    return {squares_left * n_right + squares_right * n_left, n_left * n_right};
}

Cut best_cut(const Rows* at_most, std::size_t n_features, std::size_t n, Rows set,
             const Classes& classes) {
    Cut best;
    Purity best_purity;
    std::uint32_t best_left = 0;
    for (std::uint32_t f = 0; f < n_features; ++f) {
        for (std::uint32_t row = 0; row < n; ++row) {
            if ((set >> row & 1) == 0) continue;
            const unsigned left = at_most[f * kMostRows + row] & set, right = set & ~left;
            if (right == 0) continue;
            const Purity own = purity_of(left, right, classes);
            const std::uint32_t here = own.purity * best_purity.sides;
            const std::uint32_t there = best_purity.purity * own.sides;
            const bool ties = here == there && best.feature == f && count(left) < best_left;
            if (best.found && here <= there && !ties) continue;
            best = {f, row, true};
            best_purity = own;
            best_left = count(left);
        }
    }
    return best;
}

}  // namespace plain

void at_most(const std::uint64_t* keys, std::size_t n, Rows* at_most) {
#ifdef EVERTREE_AVX512
    if (level == Level::avx512_icl) return avx512::at_most<Level::avx512_icl>(keys, n, at_most);
    if (level == Level::avx512) return avx512::at_most<Level::avx512>(keys, n, at_most);
    if (level == Level::avx2) return avx2::at_most(keys, n, at_most);
#endif
    plain::at_most(keys, n, at_most);
}

Cut best_cut(const Rows* at_most, std::size_t n_features, std::size_t n, Rows set,
             const Classes& classes) {
#ifdef EVERTREE_AVX512
    if (level == Level::avx512_icl)
        return avx512::best_cut<Level::avx512_icl>(at_most, n_features, set, classes);
    if (level == Level::avx512)
        return avx512::best_cut<Level::avx512>(at_most, n_features, set, classes);
    if (level == Level::avx2) return avx2::best_cut(at_most, n_features, set, classes);
#endif
    return plain::best_cut(at_most, n_features, n, set, classes);
}

}  // namespace evertree::wide::handful
