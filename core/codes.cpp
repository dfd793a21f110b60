#include "codes.hpp"

#include <algorithm>
#include <bit>

#include "order.hpp"

namespace evertree {

namespace {

constexpr std::size_t kVoters = 64;   // rows that are asked what is common
constexpr std::uint32_t kVotes = 24;  // over those against it: common in two thirds of the rows
constexpr std::size_t kManyValues = 2048;
constexpr std::size_t kRowsAhead = 12;
constexpr std::size_t kLine = 8;  // values of a line of the cache
constexpr std::size_t kFirstTable = 64;

// A row lies anywhere in memory: all of its lines are asked for before any is waited for.
void fetch(const double* row, std::size_t n_features) {
    for (std::size_t j = 0; j < n_features; j += kLine) __builtin_prefetch(row + j);
    __builtin_prefetch(row + n_features - 1);
}

std::uint64_t bits_of(double value) { return std::bit_cast<std::uint64_t>(value); }

std::uint64_t key_of_bits(std::uint64_t bits) { return sort_key(std::bit_cast<double>(bits)); }

std::uint32_t rank_of(std::uint64_t bits, std::span<const std::uint64_t> keys) {
    const auto at = std::lower_bound(keys.begin(), keys.end(), key_of_bits(bits));
    return static_cast<std::uint32_t>(at - keys.begin());
}

}  // namespace

void ValueCodes::start(std::size_t most) {
    most_ = most;
    entries_.clear();
    table_.assign(kFirstTable, kNone);
}

std::uint32_t ValueCodes::add(std::uint64_t bits, std::uint32_t& next) {
    if (given_up()) return entries_[0].code;
    entries_.push_back({bits, next++});
    if (4 * entries_.size() > table_.size()) {
        table_.assign(2 * table_.size(), kNone);
        for (std::size_t entry = 0; entry < entries_.size(); ++entry) place(entry);
    } else {
        place(entries_.size() - 1);
    }
    return entries_.back().code;
}

void ValueCodes::place(std::size_t entry) {
    std::size_t at = hash(entries_[entry].bits);
    while (table_[at & (table_.size() - 1)] != kNone) ++at;
    table_[at & (table_.size() - 1)] = static_cast<std::uint16_t>(entry);
}

// ---- coding -------------------------------------------------------------------------------------

void CodedRows::start(const double* const* x, std::size_t n, std::size_t n_features,
                      std::size_t most, std::size_t n_parts) {
    x_ = x;
    n_ = n;
    n_parts_ = n_parts;
    most_ = std::min(most, kMostValues);
    grow(lists_, capacity_lists_, capacity_for(n));
    grow(places_, capacity_places_, capacity_for(n * n_features));
    grow(ranks_, capacity_ranks_, capacity_for(n * n_features));
    features_.assign(n_features, {});
    vote();
    if (parts_.size() < n_parts) parts_.resize(n_parts);
    for (std::size_t p = 0; p < n_parts; ++p) {
        parts_[p].begin = n * p / n_parts;
        parts_[p].end = n * (p + 1) / n_parts;
        start_part(parts_[p]);
    }
}

void CodedRows::start_part(Part& part) {
    const std::size_t n_features = features_.size(), n_words = (n_features + 63) / 64;
    part.n_codes = 0;
    part.n_values = 0;
    part.any_listed = false;
    part.place_of.clear();
    part.ranked.clear();
    part.listed.assign(n_words, 0);
    part.uncommon.resize(n_words);
    if (part.values.size() < n_features) part.values.resize(n_features);
    for (std::size_t j = 0; j < n_features; ++j) {
        part.values[j].start(most_);
        if (features_[j].listed) {
            part.any_listed = true;
            part.listed[j / 64] |= std::uint64_t{1} << j % 64;
        } else {
            part.ranked.push_back(static_cast<std::uint32_t>(j));
        }
    }
}

void CodedRows::release() {
    capacity_lists_ = capacity_places_ = capacity_ranks_ = 0;
    lists_ = {};
    places_ = {};
    ranks_ = {};
    parts_.clear();
}

// A value that more than half of the voters have wins. Without one, a value that is left over may
// look common; then the lists are longer, no more.
void CodedRows::vote() {
    common_.assign(features_.size(), 0);
    votes_.assign(features_.size(), 0);
    const std::size_t step = std::max<std::size_t>(n_ / kVoters, 1);
    for (std::size_t row = 0; row < n_; row += step) {
        for (std::size_t j = 0; j < features_.size(); ++j) {
            const std::uint64_t bits = bits_of(x_[row][j]);
            common_[j] = votes_[j] == 0 ? bits : common_[j];
            votes_[j] += common_[j] == bits ? 1u : ~0u;
        }
    }
    for (std::size_t j = 0; j < features_.size(); ++j) features_[j].listed = votes_[j] >= kVotes;
}

void CodedRows::code(std::size_t p, Watch& watch) {
    Part& part = parts_[p];
    const std::size_t n_features = features_.size();
    std::size_t to = part.begin * n_features;
    for (std::size_t row = part.begin; row < part.end; ++row) {
        // A row at a time: more at once would be waited for.
        if (row + kRowsAhead < part.end) fetch(x_[row + kRowsAhead], n_features);
        const std::size_t n_values = part.n_values;
        code_ranked(part, row);
        if (part.any_listed) to = code_listed(part, row, to);
        if (part.n_values > n_values && !drop_given_up(part, row + 1 - part.begin)) return;
        watch.worked(n_features);
    }
}

void CodedRows::code_ranked(Part& part, std::size_t row) {
    const double* const x = x_[row];
    for (const std::uint32_t j : part.ranked) {
        const auto n_before = static_cast<std::uint32_t>(part.values[j].entries().size());
        std::uint32_t next = n_before;
        ranks(j)[row] = static_cast<std::uint16_t>(part.values[j].code(bits_of(x[j]), next));
        part.n_values += next - n_before;
    }
}

std::size_t CodedRows::code_listed(Part& part, std::size_t row, std::size_t to) {
    const double* const x = x_[row];
    const std::size_t first = to;
    const std::uint32_t n_before = part.n_codes;
    wide::mark_uncommon(x, features_.size(), common_.data(), part.listed.data(),
                        part.uncommon.data());
    for (std::size_t w = 0; w < part.listed.size(); ++w) {
        for (std::uint64_t rest = part.uncommon[w]; rest != 0; rest &= rest - 1) {
            const std::size_t j = 64 * w + static_cast<std::size_t>(std::countr_zero(rest));
            places_[to++] = part.values[j].code(bits_of(x[j]), part.n_codes);
        }
    }
    lists_[row] = {first, to - first};
    part.n_values += part.n_codes - n_before;
    return to;
}

// Whether any feature is left. Where nearly every row brings a new value, there will be too many.
bool CodedRows::drop_given_up(Part& part, std::size_t n_seen) const {
    for (const std::uint32_t j : part.ranked) {
        const std::size_t n_values = part.values[j].entries().size();
        if (n_values > kManyValues && 10 * n_values > 9 * n_seen) part.values[j].give_up();
    }
    const auto given_up = [&](std::size_t j) { return part.values[j].given_up(); };
    std::erase_if(part.ranked, given_up);
    for (std::size_t j = 0; j < features_.size(); ++j) {
        if (given_up(j)) part.listed[j / 64] &= ~(std::uint64_t{1} << j % 64);
    }
    part.any_listed = std::any_of(part.listed.begin(), part.listed.end(),
                                  [](std::uint64_t word) { return word != 0; });
    return part.any_listed || !part.ranked.empty();
}

// ---- places -------------------------------------------------------------------------------------

std::vector<std::uint64_t> CodedRows::keys_of(std::size_t feature) const {
    std::vector<std::uint64_t> keys{key_of_bits(common_[feature])};
    for (std::size_t p = 0; p < n_parts_; ++p) {
        const ValueCodes& values = parts_[p].values[feature];
        if (values.given_up()) return {};
        for (const auto& entry : values.entries()) keys.push_back(key_of_bits(entry.bits));
    }
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    if (keys.size() > most_) keys.clear();
    return keys;
}

void CodedRows::set_places(std::size_t j, std::span<const std::uint64_t> keys,
                           std::uint32_t first_place, std::uint32_t step) {
    Feature& feature = features_[j];
    feature.placed = true;
    feature.common_rank = rank_of(common_[j], keys);
    feature.first_place = first_place;
    feature.width = static_cast<std::uint32_t>(keys.size()) * step;
    feature.step = step;
    for (std::size_t p = 0; feature.listed && p < n_parts_; ++p) {
        Part& part = parts_[p];
        part.place_of.resize(part.n_codes, kNowhere);
        for (const auto& entry : part.values[j].entries()) {
            part.place_of[entry.code] = first_place + step * rank_of(entry.bits, keys);
        }
    }
    feature.keys.assign(keys.begin(), keys.end());
}

void CodedRows::place(std::size_t p, const std::uint32_t* rows, const std::uint32_t* classes,
                      std::uint32_t* counts, Watch& watch) {
    const Part& part = parts_[p];
    place_listed(part, classes, counts);
    watch.worked(part.end - part.begin);
    for (std::size_t j = 0; j < features_.size(); ++j) {
        if (!features_[j].placed || features_[j].listed) continue;
        place_ranked(part, j);
        count_ranked(j, {rows + part.begin, part.end - part.begin}, classes, 1, counts);
        watch.worked(2 * (part.end - part.begin));
    }
}

void CodedRows::place_ranked(const Part& part, std::size_t j) {
    const Feature& feature = features_[j];
    std::vector<std::uint16_t> rank_of_code;
    for (const auto& entry : part.values[j].entries()) {
        rank_of_code.push_back(static_cast<std::uint16_t>(rank_of(entry.bits, feature.keys)));
    }
    std::uint16_t* const codes = ranks(j);
    for (std::size_t row = part.begin; row < part.end; ++row) codes[row] = rank_of_code[codes[row]];
}

// Features that were given up may be on the lists still.
void CodedRows::place_listed(const Part& part, const std::uint32_t* classes,
                             std::uint32_t* counts) {
    if (part.place_of.empty()) return;
    std::size_t to = part.begin * features_.size();
    for (std::size_t row = part.begin; row < part.end; ++row) {
        const wide::List codes = lists_[row];
        const std::size_t first = to;
        for (std::size_t i = codes.first(); i < codes.first() + codes.size(); ++i) {
            const std::uint32_t place = part.place_of[places_[i]];
            if (place == kNowhere) continue;
            places_[to++] = place;
            ++counts[place + classes[row]];
        }
        lists_[row] = {first, to - first};
    }
}

// ---- counting -----------------------------------------------------------------------------------

void CodedRows::count_ranked(std::size_t j, std::span<const std::uint32_t> rows,
                             const std::uint32_t* classes, std::uint32_t by,
                             std::uint32_t* counts) const {
    const Feature& feature = features_[j];
    const std::uint16_t* const rank_of = ranks(j);
    std::uint32_t* const first = counts + feature.first_place;
    const auto place = [&](std::uint32_t row) {
        return rank_of[row] * feature.step + classes[row];
    };
    std::size_t i = 0;
    // The next row often needs the same count, and would wait for it: four sets.
    constexpr std::size_t few = 1024;
    if (feature.width <= few && rows.size() >= 4 * feature.width) {
        std::uint32_t sets[4][few];
        for (auto& set : sets) std::fill_n(set, feature.width, 0u);
        for (; i + 4 <= rows.size(); i += 4) {
            for (std::size_t s = 0; s < 4; ++s) ++sets[s][place(rows[i + s])];
        }
        for (std::size_t c = 0; c < feature.width; ++c) {
            first[c] += by * (sets[0][c] + sets[1][c] + sets[2][c] + sets[3][c]);
        }
    }
    for (; i < rows.size(); ++i) first[place(rows[i])] += by;
}

void CodedRows::count_listed(std::span<const std::uint32_t> rows, const std::uint32_t* classes,
                             std::uint32_t by, std::uint32_t* counts) const {
    const wide::Lists lists{lists_.get(), places_.get()};
    for (std::size_t i = 0; i < rows.size(); ++i) {
        lists.fetch_ahead(rows.data(), rows.size(), i);
        const wide::List list = lists_[rows[i]];
        std::uint32_t* const of_class = counts + classes[rows[i]];
        const std::uint32_t* const place = places_.get() + list.first();
        for (std::size_t k = 0; k < list.size(); ++k) of_class[place[k]] += by;
    }
}

void CodedRows::mark(std::size_t j, std::span<const std::uint32_t> rows, const Ranks& wanted,
                     std::uint32_t* spare, std::uint8_t* marks) const {
    const Feature& feature = features_[j];
    if (!feature.listed) {
        const std::uint16_t* const rank_of = ranks(j);
        const std::uint32_t width = wanted.end - wanted.begin;
        for (const std::uint32_t row : rows) {
            const std::uint32_t rank = rank_of[row];
            marks[row] = (rank - wanted.begin < width) | (rank == wanted.one_more);
        }
        return;
    }
    const auto place = [&](std::uint32_t rank) {
        return feature.first_place + rank * feature.step;
    };
    const std::uint32_t first = place(wanted.begin), width = place(wanted.end) - first;
    const std::uint32_t one_more = place(wanted.one_more);
    places(j, rows, spare);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        marks[rows[i]] = (spare[i] - first < width) | (spare[i] == one_more);
    }
}

void CodedRows::places(std::size_t j, std::span<const std::uint32_t> rows,
                       std::uint32_t* out) const {
    const Feature& feature = features_[j];
    if (feature.listed) {
        const std::uint32_t common = feature.first_place + feature.common_rank * feature.step;
        return wide::find_places({lists_.get(), places_.get()}, rows.data(), rows.size(),
                                 feature.first_place, feature.width, common, out);
    }
    const std::uint16_t* const rank_of = ranks(j);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        out[i] = feature.first_place + rank_of[rows[i]] * feature.step;
    }
}

}  // namespace evertree
