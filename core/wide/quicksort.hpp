// Quicksort from one array to another and back. How words are divided, and how few of them are
// sorted, is what each set of instructions has of its own:
//     Ways::few<Word>(), Ways::sort_few(from, n, to), Ways::divide(from, n, pivot, low_bits, to).
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

namespace evertree::wide {

// Words below the pivot to the front, the others to the back. A part is done when its upper bits
// are all the pivot's.
struct Divided {
    std::size_t n_below;
    bool below_done, others_done;
};

template <typename Word>
Word middle(Word a, Word b, Word c) {
    return std::max(std::min(a, b), std::min(std::max(a, b), c));
}

template <typename Word>
Word pivot_of(const Word* words, std::size_t n) {
    const std::size_t step = n / 9;
    const auto middle_from = [&](std::size_t at) {
        return middle(words[at], words[at + step], words[at + 2 * step]);
    };
    return middle(middle_from(0), middle_from(3 * step), middle_from(6 * step));
}

template <typename Word>
struct Part {
    Word *words, *spare;
    std::size_t n;
    Word* out;  // where they end: in one of the two arrays
    bool done;  // in order already

    Part of(std::size_t begin, std::size_t end, bool is_done) const {
        return {words + begin, spare + begin, end - begin, out + begin, is_done};
    }
};

// The shorter part first and the longer one in the loop: the depth is at most log2(n).
template <typename Ways, typename Word>
void quicksort(Part<Word> part, Word low_bits, int patience = 64) {
    while (!part.done && part.n > Ways::template few<Word>()) {
        if (patience-- == 0) {  // bad luck, or somebody's intention
            std::sort(part.words, part.words + part.n);
            part.done = true;
            break;
        }
        const Divided divided =
            Ways::divide(part.words, part.n, pivot_of(part.words, part.n), low_bits, part.spare);
        std::swap(part.words, part.spare);
        const Part<Word> below = part.of(0, divided.n_below, divided.below_done);
        const Part<Word> others = part.of(divided.n_below, part.n, divided.others_done);
        const bool below_first = below.n <= others.n;
        quicksort<Ways>(below_first ? below : others, low_bits, patience);
        part = below_first ? others : below;
    }
    if (!part.done) {
        Ways::sort_few(part.words, part.n, part.out);
    } else if (part.words != part.out) {
        std::copy_n(part.words, part.n, part.out);
    }
}

}  // namespace evertree::wide
