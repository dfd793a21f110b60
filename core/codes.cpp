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
constexpr std::size_t kChunksAWorker = 4;

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
                      std::size_t most, std::size_t n_workers) {
    x_ = x;
    n_ = n;
    n_workers_ = n_workers;
    most_ = std::min(most, kMostValues);
    grow(lists_, capacity_lists_, capacity_for(n));
    grow(places_, capacity_places_, capacity_for(n * n_features));
    grow(ranks_, capacity_ranks_, capacity_for(n * n_features));
    features_.assign(n_features, {});
    vote();
    cut_into_chunks();
    if (seen_.size() < n_workers) seen_.resize(n_workers);
    for (std::size_t w = 0; w < n_workers; ++w) start_worker(seen_[w]);
}

// Not all rows take equally long. The first chunks are far apart: a page of memory is cleared when
// it is first written to, by each of the workers that are the first.
void CodedRows::cut_into_chunks() {
    const std::size_t a_worker = n_workers_ == 1 ? 1 : kChunksAWorker;
    chunks_.resize(a_worker * n_workers_);
    for (std::size_t c = 0; c < chunks_.size(); ++c) {
        const std::size_t place = c % n_workers_ * a_worker + c / n_workers_;
        chunks_[c] = {n_ * place / chunks_.size(), n_ * (place + 1) / chunks_.size(), 0};
    }
}

void CodedRows::start_worker(Seen& seen) {
    const std::size_t n_features = features_.size(), n_words = (n_features + 63) / 64;
    seen.n_rows = 0;
    seen.lists_end = seen.room_end = 0;
    seen.n_codes = 0;
    seen.n_values = 0;
    seen.any_listed = false;
    seen.place_of.clear();
    seen.ranked.clear();
    seen.listed.assign(n_words, 0);
    seen.uncommon.resize(n_words);
    if (seen.values.size() < n_features) seen.values.resize(n_features);
    seen.rank_of.resize(n_features);
    for (std::size_t j = 0; j < n_features; ++j) {
        seen.values[j].start(most_);
        if (features_[j].listed) {
            seen.any_listed = true;
            seen.listed[j / 64] |= std::uint64_t{1} << j % 64;
        } else {
            seen.ranked.push_back(static_cast<std::uint32_t>(j));
        }
    }
}

void CodedRows::release() {
    capacity_lists_ = capacity_places_ = capacity_ranks_ = 0;
    lists_ = {};
    places_ = {};
    ranks_ = {};
    seen_.clear();
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

void CodedRows::code(std::size_t c, std::size_t worker, Watch& watch) {
    Chunk& chunk = chunks_[c];
    Seen& seen = seen_[worker];
    chunk.worker = worker;
    if (!seen.any_listed && seen.ranked.empty()) return;
    touch_ranks(chunk);
    const std::size_t n_features = features_.size();
    for (std::size_t row = chunk.begin; row < chunk.end; ++row) {
        // A row at a time: more at once would be waited for.
        if (row + kRowsAhead < chunk.end) fetch(x_[row + kRowsAhead], n_features);
        const std::size_t n_values = seen.n_values;
        code_ranked(seen, row);
        if (seen.any_listed) {
            // On where the last list ended, as long as any list would fit there.
            if (seen.lists_end + n_features > seen.room_end) {
                seen.lists_end = row * n_features;
                seen.room_end = chunk.end * n_features;
            }
            code_listed(seen, row);
        }
        ++seen.n_rows;
        if (seen.n_values > n_values && !drop_given_up(seen)) return;
        watch.worked(n_features);
    }
}

// For the sake of pages again: the workers begin with different columns.
void CodedRows::touch_ranks(const Chunk& chunk) {
    const std::span<const std::uint32_t> ranked = seen_[chunk.worker].ranked;
    const std::size_t first = ranked.size() * chunk.worker / n_workers_;
    for (std::size_t i = 0; i < ranked.size(); ++i) {
        ranks(ranked[(first + i) % ranked.size()])[chunk.begin] = 0;
    }
}

void CodedRows::code_ranked(Seen& seen, std::size_t row) {
    const double* const x = x_[row];
    for (const std::uint32_t j : seen.ranked) {
        const auto n_before = static_cast<std::uint32_t>(seen.values[j].entries().size());
        std::uint32_t next = n_before;
        ranks(j)[row] = static_cast<std::uint16_t>(seen.values[j].code(bits_of(x[j]), next));
        seen.n_values += next - n_before;
    }
}

void CodedRows::code_listed(Seen& seen, std::size_t row) {
    const double* const x = x_[row];
    const std::size_t first = seen.lists_end;
    const std::uint32_t n_before = seen.n_codes;
    wide::mark_uncommon(x, features_.size(), common_.data(), seen.listed.data(),
                        seen.uncommon.data());
    for (std::size_t w = 0; w < seen.listed.size(); ++w) {
        for (std::uint64_t rest = seen.uncommon[w]; rest != 0; rest &= rest - 1) {
            const std::size_t j = 64 * w + static_cast<std::size_t>(std::countr_zero(rest));
            places_[seen.lists_end++] = seen.values[j].code(bits_of(x[j]), seen.n_codes);
        }
    }
    lists_[row] = {first, seen.lists_end - first};
    seen.n_values += seen.n_codes - n_before;
}

// Whether any feature is left. Where nearly every row brings a new value, there will be too many.
bool CodedRows::drop_given_up(Seen& seen) const {
    for (const std::uint32_t j : seen.ranked) {
        const std::size_t n_values = seen.values[j].entries().size();
        if (n_values > kManyValues && 10 * n_values > 9 * seen.n_rows) seen.values[j].give_up();
    }
    const auto given_up = [&](std::size_t j) { return seen.values[j].given_up(); };
    std::erase_if(seen.ranked, given_up);
    for (std::size_t j = 0; j < features_.size(); ++j) {
        if (given_up(j)) seen.listed[j / 64] &= ~(std::uint64_t{1} << j % 64);
    }
    seen.any_listed = std::any_of(seen.listed.begin(), seen.listed.end(),
                                  [](std::uint64_t word) { return word != 0; });
    return seen.any_listed || !seen.ranked.empty();
}

// ---- places -------------------------------------------------------------------------------------

void CodedRows::find_keys(std::size_t j) {
    std::vector<std::uint64_t>& keys = features_[j].keys;
    keys.assign(1, key_of_bits(common_[j]));
    for (std::size_t w = 0; w < n_workers_; ++w) {
        const ValueCodes& values = seen_[w].values[j];
        if (values.given_up()) return keys.clear();
        for (const auto& entry : values.entries()) keys.push_back(key_of_bits(entry.bits));
    }
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    if (keys.size() > most_) keys.clear();
}

void CodedRows::set_first_place(std::size_t j, std::uint32_t first_place, std::uint32_t step) {
    Feature& feature = features_[j];
    feature.placed = true;
    feature.first_place = first_place;
    feature.width = static_cast<std::uint32_t>(feature.keys.size()) * step;
    feature.step = step;
}

void CodedRows::make_room_for_places() {
    const auto lists_places = [](const Feature& f) { return f.listed && f.placed; };
    if (std::none_of(features_.begin(), features_.end(), lists_places)) return;
    for (std::size_t w = 0; w < n_workers_; ++w) {
        seen_[w].place_of.assign(seen_[w].n_codes, kNowhere);
    }
}

void CodedRows::find_places(std::size_t j) {
    Feature& feature = features_[j];
    if (!feature.placed) return;
    feature.common_rank = rank_of(common_[j], feature.keys);
    for (std::size_t w = 0; w < n_workers_; ++w) {
        Seen& seen = seen_[w];
        seen.rank_of[j].resize(feature.listed ? 0 : seen.values[j].entries().size());
        for (const auto& entry : seen.values[j].entries()) {
            const std::uint32_t rank = rank_of(entry.bits, feature.keys);
            if (feature.listed) {
                seen.place_of[entry.code] = feature.first_place + feature.step * rank;
            } else {
                seen.rank_of[j][entry.code] = static_cast<std::uint16_t>(rank);
            }
        }
    }
}

void CodedRows::place(std::size_t c, const std::uint32_t* rows, const std::uint32_t* classes,
                      std::uint32_t* counts, Watch& watch) {
    const Chunk& chunk = chunks_[c];
    const std::size_t n_rows = chunk.end - chunk.begin;
    place_listed(chunk, classes, counts);
    watch.worked(n_rows);
    for (std::size_t j = 0; j < features_.size(); ++j) {
        if (!features_[j].placed || features_[j].listed) continue;
        place_ranked(chunk, j);
        count_ranked(j, {rows + chunk.begin, n_rows}, classes, 1, counts);
        watch.worked(2 * n_rows);
    }
}

void CodedRows::place_ranked(const Chunk& chunk, std::size_t j) {
    const std::uint16_t* const rank_of_code = seen_[chunk.worker].rank_of[j].data();
    std::uint16_t* const codes = ranks(j);
    for (std::size_t row = chunk.begin; row < chunk.end; ++row) {
        codes[row] = rank_of_code[codes[row]];
    }
}

// Features that were given up may be on the lists still.
void CodedRows::place_listed(const Chunk& chunk, const std::uint32_t* classes,
                             std::uint32_t* counts) {
    const std::span<const std::uint32_t> place_of = seen_[chunk.worker].place_of;
    if (place_of.empty()) return;
    for (std::size_t row = chunk.begin; row < chunk.end; ++row) {
        const wide::List codes = lists_[row];
        std::size_t to = codes.first();
        for (std::size_t i = codes.first(); i < codes.first() + codes.size(); ++i) {
            const std::uint32_t place = place_of[places_[i]];
            if (place == kNowhere) continue;
            places_[to++] = place;
            ++counts[place + classes[row]];
        }
        lists_[row] = {codes.first(), to - codes.first()};
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
