#include "codes.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <utility>

namespace evertree {

namespace {

constexpr std::size_t kVoters = 64;   // rows that are asked what is common
constexpr std::uint32_t kVotes = 24;  // over those against it: common in two thirds of the rows
constexpr std::size_t kManyValues = 2048;
constexpr std::size_t kRowsAhead = 32, kRowsAtOnce = 256;
constexpr std::size_t kFirstTable = 64;
constexpr std::size_t kChunksAWorker = 12;

std::uint32_t rank_of(std::uint64_t key, std::span<const std::uint64_t> keys) {
    const auto at = std::lower_bound(keys.begin(), keys.end(), key);
    return static_cast<std::uint32_t>(at - keys.begin());
}

}  // namespace

void ValueCodes::start(std::size_t most, std::size_t code_bytes) {
    most_ = most;
    // Where all values have a place of their own, none is looked for.
    shift_ = code_bytes == 1 ? 0 : 48;
    factor_ = code_bytes == 1 ? 1 : 0x9e3779b97f4a7c15u;
    entries_.clear();
    table_.assign(code_bytes == 1 ? kBytes : kFirstTable, kNone);
}

std::uint32_t ValueCodes::add(std::uint64_t key, std::uint32_t& next) {
    if (given_up()) return entries_[0].code;
    entries_.push_back({key, next++});
    if (shift_ > 0 && 4 * entries_.size() > table_.size()) {
        table_.assign(2 * table_.size(), kNone);
        for (std::size_t entry = 0; entry < entries_.size(); ++entry) place(entry);
    } else {
        place(entries_.size() - 1);
    }
    return entries_.back().code;
}

void ValueCodes::place(std::size_t entry) {
    std::size_t at = hash(entries_[entry].key);
    while (table_[at & (table_.size() - 1)] != kNone) ++at;
    table_[at & (table_.size() - 1)] = static_cast<std::uint16_t>(entry);
}

// ---- coding -------------------------------------------------------------------------------------

void CodedRows::start(const Packing& packing, const std::byte* const* records, std::size_t n,
                      std::size_t most, std::size_t n_workers) {
    const std::size_t n_features = packing.n_features();
    packing_ = &packing;
    records_ = records;
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

// Not all rows take equally long: a worker that has done its own chunks helps others.
void CodedRows::cut_into_chunks() {
    const std::size_t a_worker = n_workers_ == 1 ? 1 : kChunksAWorker;
    chunks_.resize(a_worker * n_workers_);
    for (std::size_t c = 0; c < chunks_.size(); ++c) {
        chunks_[c] = {n_ * c / chunks_.size(), n_ * (c + 1) / chunks_.size(), 0};
    }
}

void CodedRows::start_worker(Seen& seen) {
    const std::size_t n_features = features_.size();
    const std::size_t n_words = (packing_->record_bytes() + 63) / 64;
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
    seen.keys.resize(n_features);
    for (std::uint32_t j = 0; j < n_features; ++j) {
        seen.values[j].start(most_, bytes_of(packing_->form(j)));
        if (features_[j].listed) {
            seen.any_listed = true;
            seen.listed[packing_->offset(j) / 64] |= bits_of_bytes(j);
        } else {
            seen.ranked.push_back(j);
        }
    }
}

// Those of a feature, in their word of a record.
std::uint64_t CodedRows::bits_of_bytes(std::size_t j) const {
    const std::uint64_t bits = (std::uint64_t{1} << bytes_of(packing_->form(j))) - 1;
    return bits << packing_->offset(j) % 64;
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
            const std::uint64_t key = packing_->code(records_[row], j);
            common_[j] = votes_[j] == 0 ? key : common_[j];
            votes_[j] += common_[j] == key ? 1u : ~0u;
        }
    }
    common_record_.assign(packing_->record_bytes(), std::byte{0});
    for (std::size_t j = 0; j < features_.size(); ++j) {
        features_[j].listed = votes_[j] >= kVotes;
        packing_->set_code(common_record_.data(), j, common_[j]);
    }
}

void CodedRows::code(std::size_t c, std::size_t worker, Watch& watch) {
    Chunk& chunk = chunks_[c];
    Seen& seen = seen_[worker];
    chunk.worker = worker;
    if (!seen.any_listed && seen.ranked.empty()) return;
    touch_ranks(chunk);
    for (std::size_t begin = chunk.begin; begin < chunk.end; begin += kRowsAtOnce) {
        const std::size_t end = std::min(begin + kRowsAtOnce, chunk.end);
        const std::size_t n_values = seen.n_values;
        if (seen.any_listed) list(seen, chunk, begin, end);
        for (const std::uint32_t j : seen.ranked) rank(seen, j, begin, end);
        seen.n_rows += end - begin;
        if (seen.n_values > n_values && !drop_given_up(seen)) return;
        watch.worked((end - begin) * features_.size());
    }
}

// A page of memory is cleared when it is first written to, by each of the workers that are the
// first: so they begin with different columns.
void CodedRows::touch_ranks(const Chunk& chunk) {
    const std::span<const std::uint32_t> ranked = seen_[chunk.worker].ranked;
    const std::size_t first = ranked.size() * chunk.worker / n_workers_;
    for (std::size_t i = 0; i < ranked.size(); ++i) {
        ranks(ranked[(first + i) % ranked.size()])[chunk.begin] = 0;
    }
}

void CodedRows::rank(Seen& seen, std::size_t j, std::size_t begin, std::size_t end) {
    switch (bytes_of(packing_->form(j))) {
        case 1:
            return rank<std::uint8_t>(seen, j, begin, end);
        case 2:
            return rank<std::uint16_t>(seen, j, begin, end);
        case 4:
            return rank<std::uint32_t>(seen, j, begin, end);
        default:
            return rank<std::uint64_t>(seen, j, begin, end);
    }
}

template <typename Code>
void CodedRows::rank(Seen& seen, std::size_t j, std::size_t begin, std::size_t end) {
    ValueCodes& values = seen.values[j];
    const std::size_t offset = packing_->offset(j);
    std::uint16_t* const codes = ranks(j);
    const auto n_before = static_cast<std::uint32_t>(values.entries().size());
    std::uint32_t next = n_before;  // a code is the number of an entry
    ValueCodes::Glance glance(values);
    const std::byte* const* const records = records_;
    for (std::size_t row = begin; row < end; ++row) {
        Code key;
        std::memcpy(&key, records[row] + offset, sizeof key);
        codes[row] = glance.entry(key);
        if (codes[row] != ValueCodes::kNone) continue;
        codes[row] = static_cast<std::uint16_t>(values.code(key, next));
        glance = ValueCodes::Glance(values);
    }
    seen.n_values += next - n_before;
}

void CodedRows::list(Seen& seen, const Chunk& chunk, std::size_t begin, std::size_t end) {
    const std::size_t n_features = features_.size(), n_bytes = packing_->record_bytes();
    const std::uint32_t n_before = seen.n_codes;
    for (std::size_t row = begin; row < end; ++row) {
        // A row at a time: more at once would be waited for.
        if (row + kRowsAhead < chunk.end) fetch(records_[row + kRowsAhead], n_bytes);
        // On where the last list ended, as long as any list would fit there.
        if (seen.lists_end + n_features > seen.room_end) {
            seen.lists_end = row * n_features;
            seen.room_end = chunk.end * n_features;
        }
        list(seen, row);
    }
    seen.n_values += seen.n_codes - n_before;
}

void CodedRows::list(Seen& seen, std::size_t row) {
    const std::byte* const record = records_[row];
    const std::size_t first = seen.lists_end;
    std::size_t list_end = first;
    wide::mark_uncommon(record, packing_->record_bytes(), common_record_.data(), seen.listed.data(),
                        seen.uncommon.data());
    for (std::size_t w = 0; w < seen.listed.size(); ++w) {
        for (std::uint64_t rest = seen.uncommon[w]; rest != 0;) {
            const std::size_t byte = 64 * w + static_cast<std::size_t>(std::countr_zero(rest));
            const auto [j, end] = packing_->owner(byte);
            places_[list_end++] = seen.values[j].code(packing_->code(record, j), seen.n_codes);
            // On behind it. Values do not lie across words: the widest come first.
            rest &= end - 64 * w < 64 ? ~std::uint64_t{0} << (end - 64 * w) : 0;
        }
    }
    seen.lists_end = list_end;
    lists_[row] = {first, list_end - first};
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
        if (given_up(j)) seen.listed[packing_->offset(j) / 64] &= ~bits_of_bytes(j);
    }
    seen.any_listed = std::any_of(seen.listed.begin(), seen.listed.end(),
                                  [](std::uint64_t word) { return word != 0; });
    return seen.any_listed || !seen.ranked.empty();
}

// ---- places -------------------------------------------------------------------------------------

void CodedRows::sort_keys(std::size_t j, std::size_t worker) {
    const ValueCodes& values = seen_[worker].values[j];
    std::vector<std::uint64_t>& keys = seen_[worker].keys[j];
    keys.clear();
    if (values.given_up()) return;
    for (const auto& entry : values.entries()) keys.push_back(entry.key);
    if (keys.size() < 2) return;
    std::vector<std::uint64_t> spare(keys.size());
    if (!wide::sort(keys.data(), spare.data(), keys.size(), 0)) std::ranges::sort(keys);
}

void CodedRows::find_keys(std::size_t j) {
    std::vector<std::uint64_t>& keys = features_[j].keys;
    keys.assign(1, common_[j]);
    for (std::size_t w = 0; w < n_workers_; ++w) {
        if (seen_[w].values[j].given_up()) return keys.clear();
        std::vector<std::uint64_t> both;
        std::ranges::set_union(keys, std::exchange(seen_[w].keys[j], {}), std::back_inserter(both));
        keys = std::move(both);
    }
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
        for (std::uint32_t rank = 0; rank < feature.keys.size(); ++rank) {
            const ValueCodes::Entry* const entry = seen.values[j].find(feature.keys[rank]);
            if (entry == nullptr) continue;
            if (feature.listed) {
                seen.place_of[entry->code] = feature.first_place + feature.step * rank;
            } else {
                seen.rank_of[j][entry->code] = static_cast<std::uint16_t>(rank);
            }
        }
    }
}

void CodedRows::place(std::size_t c, const std::uint32_t* rows, const Counted& counted,
                      std::uint32_t* counts, Watch& watch) {
    const Chunk& chunk = chunks_[c];
    const std::size_t n_rows = chunk.end - chunk.begin;
    place_listed(chunk, counted, counts);
    watch.worked(n_rows);
    for (std::size_t j = 0; j < features_.size(); ++j) {
        if (!features_[j].placed || features_[j].listed) continue;
        if (features_[j].several.empty()) place_ranked(chunk, j);
        count_ranked(j, {rows + chunk.begin, n_rows}, counted, counts);
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
void CodedRows::place_listed(const Chunk& chunk, const Counted& counted, std::uint32_t* counts) {
    const std::span<const std::uint32_t> place_of = seen_[chunk.worker].place_of;
    if (place_of.empty()) return;
    for (std::size_t row = chunk.begin; row < chunk.end; ++row) {
        const wide::List codes = lists_[row];
        std::size_t to = codes.first();
        const std::uint32_t by = counted.of(row);
        for (std::size_t i = codes.first(); i < codes.first() + codes.size(); ++i) {
            const std::uint32_t place = place_of[places_[i]];
            if (place == kNowhere) continue;
            places_[to++] = place;
            counts[place + counted.classes[row]] += by;
        }
        lists_[row] = {codes.first(), to - codes.first()};
    }
}

// About as many rows a bin, and what many rows share a bin of its own; if there are few, each.
wide::Bounds CodedRows::begin_bins(std::size_t j, std::span<const std::uint64_t> some,
                                   std::uint64_t differing) {
    wide::Bounds bounds;
    bounds.shift = std::max(static_cast<int>(std::bit_width(differing)) - 32, 0);
    std::vector<std::uint64_t>& begins = features_[j].keys;
    begins.assign(1, some[0]);
    const auto begin_at = [&](std::uint64_t key) {
        if (bounds.upper_bits(key) > bounds.upper_bits(begins.back())) begins.push_back(key);
    };
    const auto begin_behind = [&](std::uint64_t key) {
        if (bounds.upper_bits(key) < ~std::uint32_t{0})
            begin_at(key + (std::uint64_t{1} << bounds.shift));
    };
    for (std::size_t i = 0; i < some.size() && begins.size() < wide::kBins; ++i) {
        begin_at(some[i]);
        begin_behind(some[i]);
    }
    if (begins.size() >= wide::kBins) {
        begins.resize(1);
        for (std::size_t i = 1; i < wide::kBins; ++i) {
            const std::uint64_t key = some[i * some.size() / wide::kBins];
            if (key == begins.back()) {
                begin_behind(key);
            } else {
                begin_at(key);
            }
        }
    }
    bounds.n = begins.size();
    std::fill_n(bounds.upper, wide::kBins, ~std::uint32_t{0});
    std::ranges::transform(begins, bounds.upper, [&](auto key) { return bounds.upper_bits(key); });
    // One value alone is known by the next bin, which begins right behind it.
    std::vector<std::uint8_t>& several = features_[j].several;
    several.assign(begins.size(), 1);
    for (std::size_t i = 1; i + 1 < begins.size() && bounds.shift == 0; ++i) {
        several[i] = begins[i + 1] == begins[i] + 1 ? 0 : 1;
    }
    features_[j].listed = false;
    return bounds;
}

void CodedRows::find_bins(std::size_t j, std::size_t row, std::span<const std::uint64_t> keys,
                          const wide::Bounds& bounds) {
    wide::find_bins(keys.data(), keys.size(), bounds, ranks(j) + row);
}

// ---- counting -----------------------------------------------------------------------------------

void CodedRows::count_ranked(std::size_t j, std::span<const std::uint32_t> rows,
                             const Counted& counted, std::uint32_t* counts) const {
    if (counted.times == nullptr) {
        count_ranked(j, rows, counted, [](std::uint32_t) { return 1u; }, counts);
    } else {
        const auto times = [of_row = counted.times](std::uint32_t row) { return of_row[row]; };
        count_ranked(j, rows, counted, times, counts);
    }
}

template <typename Times>
void CodedRows::count_ranked(std::size_t j, std::span<const std::uint32_t> rows,
                             const Counted& counted, Times times, std::uint32_t* counts) const {
    const Feature& feature = features_[j];
    const std::uint16_t* const rank_of = ranks(j);
    std::uint32_t* const first = counts + feature.first_place;
    const auto place = [rank_of, step = feature.step, classes = counted.classes](
                           std::uint32_t row) { return rank_of[row] * step + classes[row]; };
    std::size_t i = 0;
    // The next row often needs the same count, and would wait for it: four sets.
    constexpr std::size_t few = 1024;
    if (feature.width <= few && rows.size() >= 4 * feature.width) {
        std::uint32_t sets[4][few];
        for (auto& set : sets) std::fill_n(set, feature.width, 0u);
        for (; i + 4 <= rows.size(); i += 4) {
            for (std::size_t s = 0; s < 4; ++s) sets[s][place(rows[i + s])] += times(rows[i + s]);
        }
        for (std::size_t c = 0; c < feature.width; ++c) {
            first[c] += counted.by * (sets[0][c] + sets[1][c] + sets[2][c] + sets[3][c]);
        }
    }
    for (; i < rows.size(); ++i) first[place(rows[i])] += counted.by * times(rows[i]);
}

void CodedRows::count_listed(std::span<const std::uint32_t> rows, const Counted& counted,
                             std::uint32_t* counts) const {
    const wide::Lists lists{lists_.get(), places_.get()};
    for (std::size_t i = 0; i < rows.size(); ++i) {
        lists.fetch_ahead(rows.data(), rows.size(), i);
        const wide::List list = lists_[rows[i]];
        std::uint32_t* const of_class = counts + counted.classes[rows[i]];
        const std::uint32_t by = counted.of(rows[i]);
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
