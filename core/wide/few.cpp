#include <algorithm>
#include <optional>

#include "avx2/avx2.hpp"
#include "avx512/avx512.hpp"
#include "tables.hpp"
#include "wide.hpp"

namespace evertree::wide::few {

namespace {

std::optional<bool> is_wanted;

}  // namespace

// The way of many rows is faster where there is nothing but this: it is here to be compared with.
namespace plain {

float score(std::uint32_t n, const Classes& classes, const std::uint32_t* counts_left,
            std::uint32_t left) {
    const float of_left = kInverse.to[left], of_right = kInverse.to[n - left];
    if (classes.n == 2) {
        const auto n_ones = static_cast<std::int32_t>(counts_left[classes.numbers[1]] * n);
        const auto even = static_cast<std::int32_t>(classes.counts[1] * left);
        const auto excess = static_cast<float>(n_ones - even);
        return excess * excess * (of_left * of_right);
    }
    std::uint32_t squares_left = 0, squares_right = 0;
    for (std::size_t c = 0; c < classes.n; ++c) {
        const std::uint32_t own = counts_left[classes.numbers[c]], others = classes.counts[c] - own;
        squares_left += own * own;
        squares_right += others * others;
    }
    return static_cast<float>(squares_left) * of_left +
           static_cast<float>(squares_right) * of_right;
}

float score_cuts(const Lists& lists, const Classes& classes, float* scores,
                 std::uint8_t* has_cuts) {
    float best = -1.0f;
    for (std::size_t l = 0; l < lists.n_lists; ++l) {
        const Element* const list = lists.list(l);
        float* const own = scores + l * lists.stride;
        std::uint32_t counts_left[kMostClasses] = {}, any_new = 0;
        for (std::uint32_t left = 1; left < lists.n; ++left) {
            ++counts_left[(list[left - 1] & kClass) >> kRowBits];
            const bool is_cut = (list[left] & kNewValue) != 0;
            own[left - 1] = is_cut ? score(lists.n, classes, counts_left, left) : -1.0f;
            any_new |= list[left] & kNewValue;
            best = std::max(best, own[left - 1]);
        }
        has_cuts[l] = any_new != 0 ? 1 : 0;
    }
    return best;
}

std::uint32_t cuts_that_reach(const float* scores, std::uint32_t n, float score,
                              std::uint16_t* cuts) {
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i + 1 < n; ++i) {
        cuts[count] = static_cast<std::uint16_t>(i);
        count += scores[i] >= score ? 1 : 0;
    }
    return count;
}

std::uint32_t count_class(const Element* list, std::uint32_t n, Element number) {
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < n; ++i) count += (list[i] & kClass) >> kRowBits == number ? 1 : 0;
    return count;
}

void divide(const Lists& lists, const std::uint64_t* goes_left, const Sides& to) {
    for (std::size_t l = 0; l < lists.n_lists; ++l) {
        const std::size_t at = lists.which[l] * lists.stride;
        const Element* const from = lists.list(l);
        const auto take = [&](bool left, Element* side) {
            Element is_new = kNewValue;
            for (std::uint32_t i = 0; i < lists.n; ++i) {
                const std::uint32_t row = from[i] & kRow;
                is_new |= from[i] & kNewValue;
                if ((goes_left[row / 64] >> row % 64 & 1) != (left ? 1u : 0u)) continue;
                *side++ = from[i] | is_new;
                is_new = 0;
            }
        };
        if (to.left != nullptr) take(true, to.left + at);
        if (to.right != nullptr) take(false, to.right + at);
    }
}

}  // namespace plain

bool pays() {
#ifdef EVERTREE_AVX512
    return is_wanted.value_or(level != Level::plain);
#else
    return is_wanted.value_or(false);
#endif
}

void use(std::optional<bool> use) { is_wanted = use; }

float score_cuts(const Lists& lists, const Classes& classes, float* scores,
                 std::uint8_t* has_cuts) {
#ifdef EVERTREE_AVX512
    if (level == Level::avx512_icl)
        return avx512::score_cuts<Level::avx512_icl>(lists, classes, scores, has_cuts);
    if (level == Level::avx512)
        return avx512::score_cuts<Level::avx512>(lists, classes, scores, has_cuts);
    if (level == Level::avx2) return avx2::score_cuts(lists, classes, scores, has_cuts);
#endif
    return plain::score_cuts(lists, classes, scores, has_cuts);
}

std::uint32_t cuts_that_reach(const float* scores, std::uint32_t n, float score,
                              std::uint16_t* cuts) {
#ifdef EVERTREE_AVX512
    if (level == Level::avx512_icl)
        return avx512::cuts_that_reach<Level::avx512_icl>(scores, n, score, cuts);
    if (level == Level::avx512)
        return avx512::cuts_that_reach<Level::avx512>(scores, n, score, cuts);
    if (level == Level::avx2) return avx2::cuts_that_reach(scores, n, score, cuts);
#endif
    return plain::cuts_that_reach(scores, n, score, cuts);
}

std::uint32_t count_class(const Element* list, std::uint32_t n, Element number) {
#ifdef EVERTREE_AVX512
    if (level == Level::avx512_icl) return avx512::count_class<Level::avx512_icl>(list, n, number);
    if (level == Level::avx512) return avx512::count_class<Level::avx512>(list, n, number);
    if (level == Level::avx2) return avx2::count_class(list, n, number);
#endif
    return plain::count_class(list, n, number);
}

void divide(const Lists& lists, const std::uint64_t* goes_left, [[maybe_unused]] std::size_t n_rows,
            const Sides& to) {
#ifdef EVERTREE_AVX512
    if (level == Level::avx512_icl)
        return avx512::divide<Level::avx512_icl>(lists, goes_left, n_rows, to);
    if (level == Level::avx512) return avx512::divide<Level::avx512>(lists, goes_left, n_rows, to);
    if (level == Level::avx2) return avx2::divide(lists, goes_left, n_rows, to);
#endif
    plain::divide(lists, goes_left, to);
}

}  // namespace evertree::wide::few
