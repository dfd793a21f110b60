#include "copies.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

namespace evertree {

namespace {

constexpr std::size_t kLookFrom = 4096;  // rows: below, there is little to be gained
constexpr std::size_t kSample = 256;
constexpr std::size_t kAtOnce = 128, kRowsAhead = 32;
constexpr std::size_t kStepsARow = 8;  // whoever needs more has met hashes that were made equal

// Rows that differ, as a share of all, up to which merging pays.
bool are_few(std::size_t n_different, std::size_t n) { return 3 * n_different <= 2 * n; }

}  // namespace

// Odd numbers without a pattern.
std::uint64_t Copies::factor(std::uint64_t word) {
    std::uint64_t bits = (word + 1) * 0x9e3779b97f4a7c15u;
    bits = (bits ^ bits >> 32) * 0xd6e8feb86659fd93u;
    bits = (bits ^ bits >> 32) * 0xd6e8feb86659fd93u;
    return bits | 1;
}

// The upper half of a sum of products: they do not wait for each other.
std::uint32_t Copies::hash(std::size_t row) const {
    const std::byte* const record = rows_.records[row];
    const std::size_t n_words = rows_.record_bytes / sizeof(std::uint64_t);
    std::uint64_t sum = rows_.classes[row] * factors_[n_words];
    for (std::size_t w = 0; w < n_words; ++w) {
        std::uint64_t word;
        std::memcpy(&word, record + w * sizeof word, sizeof word);
        sum += (word ^ word >> 32) * factors_[w];
    }
    return static_cast<std::uint32_t>(sum >> 32);
}

bool Copies::are_equal(std::size_t row, std::size_t other) const {
    return rows_.classes[row] == rows_.classes[other] &&
           std::memcmp(rows_.records[row], rows_.records[other], rows_.record_bytes) == 0;
}

bool Copies::are_likely(const Rows& rows) {
    if (rows.size() < kLookFrom) return false;
    rows_ = rows;
    factors_.resize(rows.record_bytes / sizeof(std::uint64_t) + 1);
    for (std::size_t w = 0; w < factors_.size(); ++w) factors_[w] = factor(w);
    sample_.clear();
    const auto row = [&](std::size_t i) {
        return std::min(i, kSample - 1) * rows.size() / kSample;
    };
    for (std::size_t i = 0; i < kSample; ++i) {
        fetch(rows.records[row(i + kRowsAhead)], rows.record_bytes);
        sample_.push_back(hash(row(i)));
    }
    std::sort(sample_.begin(), sample_.end());
    const auto end = std::unique(sample_.begin(), sample_.end());
    n_in_sample_ = static_cast<std::size_t>(end - sample_.begin());
    return are_few(n_in_sample_, kSample);
}

void Copies::start(const Rows& rows, std::size_t n_parts) {
    rows_ = rows;
    grow(listed_, capacity_, capacity_for(rows.size()));
    parts_.resize(n_parts);
    for (std::size_t p = 0; p < n_parts; ++p) {
        Part& part = parts_[p];
        part.begin = static_cast<std::uint32_t>(rows.size() * p / n_parts);
        part.end = static_cast<std::uint32_t>(rows.size() * (p + 1) / n_parts);
        part.steps_left = kStepsARow * (part.end - part.begin);
        part.first.clear();
        part.counts.clear();
        part.runs.clear();
    }
}

void Copies::find(std::size_t p, Watch& watch) {
    Part& part = parts_[p];
    // A table that is likely to be large enough.
    const std::size_t n_different = (part.end - part.begin) * n_in_sample_ / kSample;
    start_table(part, static_cast<int>(std::bit_width(2 * (n_different + kAtOnce))));
    for (std::uint32_t begin = part.begin; begin < part.end && part.steps_left > 0;) {
        const auto end = std::min<std::uint32_t>(begin + kAtOnce, part.end);
        number(part, begin, end);
        watch.worked(kAtOnce * factors_.size());
        begin = end;
    }
}

// What lies anywhere in memory is asked for before any of it is waited for. Where a tree has been
// built of the rows before, those that are equal lie side by side.
void Copies::number(Part& part, std::uint32_t begin, std::uint32_t end) {
    struct Hashed {
        std::uint32_t begin, hash;
    };
    Hashed runs[kAtOnce + 1];
    std::size_t n_runs = 0;
    make_room(part, kAtOnce);
    for (std::uint32_t row = begin; row < end; ++row) {
        const std::size_t soon = std::min<std::size_t>(row + kRowsAhead, rows_.size() - 1);
        fetch(rows_.records[soon], rows_.record_bytes);
        if (row > begin && are_equal(row, row - 1)) continue;
        runs[n_runs] = {row, hash(row)};
        __builtin_prefetch(&part.table[place(part, runs[n_runs++].hash)]);
    }
    for (std::size_t r = 0; r < n_runs; ++r) {
        const Entry& entry = part.table[place(part, runs[r].hash)];
        if (entry.number == 0 || entry.hash != runs[r].hash) continue;
        fetch(rows_.records[part.first[entry.number - 1]], rows_.record_bytes);
    }
    runs[n_runs].begin = end;
    for (std::size_t r = 0; r < n_runs; ++r) {
        const std::uint32_t number = number_of(part, runs[r].begin, runs[r].hash);
        part.counts[number] += runs[r + 1].begin - runs[r].begin;
        part.runs.push_back({runs[r].begin, number});
    }
}

std::uint32_t Copies::number_of(Part& part, std::uint32_t row, std::uint32_t hash) const {
    for (std::size_t at = place(part, hash);; at = place_after(part, at)) {
        Entry& entry = part.table[at];
        if (entry.number == 0) {
            part.first.push_back(row);
            part.counts.push_back(0);
            entry = {hash, static_cast<std::uint32_t>(part.first.size())};
        } else if (entry.hash != hash || !are_equal(row, part.first[entry.number - 1])) {
            part.steps_left -= std::min<std::size_t>(part.steps_left, 1);
            continue;
        }
        return entry.number - 1;
    }
}

void Copies::start_table(Part& part, int bits) {
    part.table = Buffer<Entry>(std::size_t{1} << bits);
    part.table_bits = bits;
    std::fill_n(part.table.get(), std::size_t{1} << bits, Entry{});
}

void Copies::make_room(Part& part, std::size_t n_more) {
    const std::size_t old_size = std::size_t{1} << part.table_bits;
    if (2 * (part.first.size() + n_more) <= old_size) return;
    const Buffer<Entry> old = std::move(part.table);
    start_table(part, part.table_bits + 1);
    for (std::size_t i = 0; i < old_size; ++i) {
        if (old[i].number == 0) continue;
        std::size_t at = place(part, old[i].hash);
        while (part.table[at].number != 0) at = place_after(part, at);
        part.table[at] = old[i];
    }
}

bool Copies::settle() {
    std::size_t n_different = 0;
    for (Part& part : parts_) {
        if (part.steps_left == 0) return false;
        part.numbers_begin = static_cast<std::uint32_t>(n_different);
        n_different += part.first.size();
    }
    if (!are_few(n_different, rows_.size())) return false;
    counts_.resize(n_different);
    next_.resize(n_different);
    return true;
}

void Copies::list(std::size_t p) {
    const Part& part = parts_[p];
    std::ranges::copy(part.counts, counts_.begin() + part.numbers_begin);
    std::uint32_t* const next = next_.data() + part.numbers_begin;
    std::uint32_t begin = part.begin;
    for (std::size_t number = 0; number < part.first.size(); ++number) {
        next[number] = begin;
        begin += part.counts[number];
    }
    for (std::size_t r = 0; r < part.runs.size(); ++r) {
        const auto [row, number] = part.runs[r];
        const std::uint32_t end = r + 1 < part.runs.size() ? part.runs[r + 1].begin : part.end;
        std::uint32_t* const to = listed_.get() + next[number];
        std::iota(to, to + (end - row), row);
        next[number] += end - row;
    }
    for (std::size_t number = 0; number < part.first.size(); ++number) {
        next[number] -= part.counts[number];
    }
}

void Copies::release() { *this = {}; }

}  // namespace evertree
