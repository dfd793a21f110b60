#include "order.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "wide/wide.hpp"

namespace evertree {

namespace {

constexpr std::size_t kRun = 4;         // sorted by comparing fixed pairs
constexpr std::size_t kRadixFrom = 96;  // below, merging beats filling histograms
constexpr std::size_t kWideDigitsFrom = 1 << 13;
constexpr int kDigitBitsMax = 11;
constexpr std::size_t kDigitsMax = 8;

using Words = std::uint64_t*;

void order_pair(std::uint64_t& a, std::uint64_t& b) {
    const std::uint64_t smaller = std::min(a, b), larger = std::max(a, b);
    a = smaller;
    b = larger;
}

void sort_run(Words run, std::size_t length) {
    if (length == 4) {
        order_pair(run[0], run[1]);
        order_pair(run[2], run[3]);
        order_pair(run[0], run[2]);
        order_pair(run[1], run[3]);
        order_pair(run[1], run[2]);
    } else if (length == 3) {
        order_pair(run[0], run[1]);
        order_pair(run[1], run[2]);
        order_pair(run[0], run[1]);
    } else if (length == 2) {
        order_pair(run[0], run[1]);
    }
}

// From both ends at once, two runs of equal length: neither can run out before the middle, so
// nothing is checked, and nothing branches on the comparison, which is not predictable.
void merge(const std::uint64_t* a, const std::uint64_t* b, std::size_t length, Words out) {
    const std::uint64_t *a_back = a + length - 1, *b_back = b + length - 1;
    Words out_back = out + 2 * length - 1;
    for (std::size_t i = 0; i < length; ++i) {
        const std::size_t take_b = *b < *a;
        *out++ = take_b != 0 ? *b : *a;
        b += take_b;
        a += 1 - take_b;
        const std::size_t take_a = *b_back < *a_back;
        *out_back-- = take_a != 0 ? *a_back : *b_back;
        a_back -= take_a;
        b_back -= 1 - take_a;
    }
}

// How many runs of which length: a power of two, so that all merges are of equal lengths.
struct Runs {
    std::size_t count = 1, length;
    explicit Runs(std::size_t n) : length(n) {
        while (length > kRun) {
            count *= 2;
            length = (n + count - 1) / count;
        }
    }
    std::size_t total() const { return count * length; }
};

void merge_sort(Words words, Words spare, std::size_t n) {
    const Runs runs(n);
    std::fill(words + n, words + runs.total(), ~std::uint64_t{0});
    for (std::size_t run = 0; run < runs.count; ++run) {
        sort_run(words + run * runs.length, runs.length);
    }
    Words from = words, to = spare;
    for (std::size_t width = runs.length; width < n; width *= 2) {
        for (std::size_t at = 0; at < runs.total(); at += 2 * width) {
            merge(from + at, from + at + width, width, to + at);
        }
        std::swap(from, to);
    }
    if (from != words) std::memcpy(words, from, n * sizeof *words);
}

// By the digits from bit `first_bit` up: as few as the number of words is worth, of equal width.
class Digits {
  public:
    Digits(std::size_t n, int first_bit) : first_bit_(first_bit) {
        const int bits = 64 - first_bit, widest = n < kWideDigitsFrom ? 8 : kDigitBitsMax;
        count_ = (bits + widest - 1) / widest;
        width_ = (bits + count_ - 1) / count_;
    }
    int count() const { return count_; }
    std::size_t n_buckets() const { return std::size_t{1} << width_; }
    std::size_t of(std::uint64_t word, int digit) const {
        return (word >> (first_bit_ + digit * width_)) & (n_buckets() - 1);
    }

  private:
    int first_bit_, count_, width_;
};

void radix_sort(Words words, Words spare, std::size_t n, int first_bit, Watch& watch) {
    const Digits digits(n, first_bit);
    std::array<std::uint32_t, kDigitsMax << kDigitBitsMax> all_counts;
    std::fill_n(all_counts.data(), static_cast<std::size_t>(digits.count()) * digits.n_buckets(),
                0u);
    const auto counts = [&](int digit) {
        return all_counts.data() + static_cast<std::size_t>(digit) * digits.n_buckets();
    };
    for (int digit = 0; digit < digits.count(); ++digit) {
        std::uint32_t* const count = counts(digit);
        for (std::size_t i = 0; i < n; ++i) ++count[digits.of(words[i], digit)];
    }
    Words from = words, to = spare;
    for (int digit = 0; digit < digits.count(); ++digit) {
        std::uint32_t* const places = counts(digit);
        // A digit that all words share moves nothing.
        if (places[digits.of(from[0], digit)] == n) continue;
        std::uint32_t place = 0;
        for (std::size_t b = 0; b < digits.n_buckets(); ++b) {
            place += std::exchange(places[b], place);
        }
        for (std::size_t i = 0; i < n; ++i) to[places[digits.of(from[i], digit)]++] = from[i];
        std::swap(from, to);
        watch.worked(2 * n);
    }
    if (from != words) std::memcpy(words, from, n * sizeof *words);
}

}  // namespace

void Sorter::sort(std::span<const std::uint64_t> keys, std::uint64_t differing, const Tags& tags,
                  Watch& watch) {
    const std::size_t n = keys.size();
    // Runs of equal length may need a few words more than there are rows.
    const std::size_t n_words = n + std::min(n, kRadixFrom);
    if (capacity_ < n_words) {
        release();
        const std::size_t wanted = capacity_for(n_words);
        words_ = Buffer<std::uint64_t>(wanted);
        spare_ = Buffer<std::uint64_t>(wanted);
        narrow_words_ = Buffer<std::uint32_t>(wanted);
        narrow_spare_ = Buffer<std::uint32_t>(wanted);
        capacity_ = wanted;
    }
    keys_ = keys;
    tag_mask_ = (std::uint64_t{1} << tags.bits) - 1;
    class_bits_ = tags.class_bits;
    const int shared = std::countl_zero(differing);
    const int low = std::countr_zero(differing) + shared;  // below this bit the words are equal
    all_bits_fit_ = low >= tags.bits;
    narrow_ = low >= 32 + tags.bits && sort_narrow(tags.of_key, shared);
    if (narrow_) return watch.worked(n);
    for (std::size_t i = 0; i < n; ++i) {
        words_[i] = ((keys[i] << shared) & ~tag_mask_) | tags.of_key[i];
    }
    if (wide::sort(words_.get(), spare_.get(), n, tag_mask_)) {
        watch.worked(n);
    } else if (n < kRadixFrom) {
        merge_sort(words_.get(), spare_.get(), n);
    } else {
        radix_sort(words_.get(), spare_.get(), n, std::max(low, tags.bits), watch);
    }
    if (!all_bits_fit_) settle_by_keys();
}

void Sorter::release() {
    capacity_ = 0;
    words_ = {};
    spare_ = {};
    narrow_words_ = {};
    narrow_spare_ = {};
}

bool Sorter::sort_narrow(const std::uint32_t* tags, int shared) {
    const auto tag_mask = static_cast<std::uint32_t>(tag_mask_);
    for (std::size_t i = 0; i < keys_.size(); ++i) {
        const auto upper = static_cast<std::uint32_t>((keys_[i] << shared) >> 32);
        narrow_words_[i] = (upper & ~tag_mask) | tags[i];
    }
    return wide::sort(narrow_words_.get(), narrow_spare_.get(), keys_.size(), tag_mask);
}

void Sorter::settle_by_keys() {
    const std::size_t n = keys_.size();
    const auto is_before = [&](std::uint64_t a, std::uint64_t b) { return key_of(a) < key_of(b); };
    for (std::size_t begin = 0, end; begin < n; begin = end) {
        end = begin + 1;
        while (end < n && ((words_[end] ^ words_[begin]) & ~tag_mask_) == 0) ++end;
        std::uint64_t *const first = words_.get() + begin, *const last = words_.get() + end;
        // Mostly they are equal altogether.
        if (end - begin > 1 && !std::is_sorted(first, last, is_before)) {
            std::sort(first, last, is_before);
        }
    }
}

template <typename Element>
void Sorter::elements(Element* out) const {
    constexpr bool is_few = sizeof(Element) == sizeof(wide::few::Element);
    constexpr auto new_value =
        static_cast<Element>(is_few ? wide::few::kNewValue : element::kNewValue);
    const std::size_t n = keys_.size();
    if (narrow_) {
        const auto tag_mask = static_cast<std::uint32_t>(tag_mask_);
        return wide::to_elements(narrow_words_.get(), n, tag_mask, class_bits_, out);
    }
    wide::to_elements(words_.get(), n, tag_mask_, class_bits_, out);
    if (all_bits_fit_) return;
    for (std::size_t i = 1; i < n; ++i) {
        const bool seems_equal = (out[i] & new_value) == 0;
        if (seems_equal && key_of(words_[i]) != key_of(words_[i - 1])) out[i] |= new_value;
    }
}

template void Sorter::elements(std::uint32_t*) const;
template void Sorter::elements(wide::few::Element*) const;

}  // namespace evertree
