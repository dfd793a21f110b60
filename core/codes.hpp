// Codes: the values of features that have few of them, as small numbers.
//
// A feature most of whose rows have the same value is listed: a row lists its other values alone,
// each as a place in a block of counts (rank of the value * classes, behind those of the features
// before). Counting all listed features is one walk through the lists, and what a common value
// counts is what remains. The other features are ranked: a column of ranks each.
//
// Rows are read once, chunk by chunk; each of several workers numbers the values that it sees.
//
// Must not know: what is counted for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "memory.hpp"
#include "packing.hpp"
#include "watch.hpp"
#include "wide/wide.hpp"

namespace evertree {

// The values of a feature, numbered as they appear.
class ValueCodes {
  public:
    void start(std::size_t most, std::size_t code_bytes);
    // The code of a value, which is known by its sort key; `next` is the code for a new one. When
    // there get to be too many, the feature is given up, and codes mean nothing.
    std::uint32_t code(std::uint64_t key, std::uint32_t& next) {
        for (std::size_t at = hash(key);; ++at) {
            const std::uint16_t found = table_[at & (table_.size() - 1)];
            if (found == kNone) return add(key, next);
            if (entries_[found].key == key) return entries_[found].code;
        }
    }
    struct Entry {
        std::uint64_t key = 0;
        std::uint32_t code = 0;
    };
    // Nothing if the value has no entry.
    const Entry* find(std::uint64_t key) const {
        for (std::size_t at = hash(key);; ++at) {
            const std::uint16_t found = table_[at & (table_.size() - 1)];
            if (found == kNone) return nullptr;
            if (entries_[found].key == key) return &entries_[found];
        }
    }
    // A glance at the table as it is, until a value is added.
    class Glance {
      public:
        explicit Glance(const ValueCodes& of)
            : table_(of.table_.data()),
              entries_(of.entries_.data()),
              factor_(of.factor_),
              mask_(of.table_.size() - 1),
              shift_(of.shift_) {}
        // The entry of a value; kNone if it is not where it is looked for first.
        std::uint16_t entry(std::uint64_t key) const {
            const std::uint16_t found = table_[((key * factor_) >> shift_) & mask_];
            return found != kNone && entries_[found].key == key ? found : kNone;
        }

      private:
        const std::uint16_t* table_;
        const Entry* entries_;
        std::uint64_t factor_, mask_;
        int shift_;
    };
    static constexpr std::uint16_t kNone = 0xffff;
    bool given_up() const { return entries_.size() > most_; }
    void give_up() { most_ = 0; }
    std::span<const Entry> entries() const { return entries_; }

  private:
    static constexpr std::size_t kBytes = 256;
    std::size_t hash(std::uint64_t key) const {
        return static_cast<std::size_t>((key * factor_) >> shift_);
    }
    std::uint32_t add(std::uint64_t key, std::uint32_t& next);
    void place(std::size_t entry);

    std::size_t most_ = 0;
    int shift_ = 0;
    std::uint64_t factor_ = 1;
    std::vector<Entry> entries_;
    std::vector<std::uint16_t> table_;  // of entries, by hash; at most a quarter full
};

class CodedRows {
  public:
    static constexpr std::size_t kMostFeatures = wide::List::kMostPlaces;

    // `most` values a feature may have.
    void start(const Packing& packing, const std::byte* const* records, std::size_t n,
               std::size_t most, std::size_t n_workers);
    std::size_t n_chunks() const { return chunks_.size(); }
    void code(std::size_t chunk, std::size_t worker, Watch& watch);

    // When all chunks are coded: the values that each worker has seen of a feature; then all of its
    // values, as sort keys in ascending order, or nothing if there are too many. Then where their
    // places begin, and how far they are apart. Then all places.
    void sort_keys(std::size_t feature, std::size_t worker);
    void find_keys(std::size_t feature);
    std::span<const std::uint64_t> keys(std::size_t feature) const {
        return features_[feature].keys;
    }
    void set_first_place(std::size_t feature, std::uint32_t first_place, std::uint32_t step);
    void make_room_for_places();
    void find_places(std::size_t feature);
    // How rows are counted: in their classes, `by` for each or so many times that.
    struct Counted {
        const std::uint32_t* classes;
        const std::uint32_t* times;  // by row, or nothing
        std::uint32_t by;

        std::uint32_t of(std::size_t row) const { return times == nullptr ? by : by * times[row]; }
    };
    // Codes become ranks and places, and the chunk is counted; `rows` are 0, 1, 2, ...
    void place(std::size_t chunk, const std::uint32_t* rows, const Counted& counted,
               std::uint32_t* counts, Watch& watch);
    void release();

    // A feature of many values: each rank stands for a bin of neighbouring ones. Some keys, sorted,
    // say where bins begin, if all differ in these bits only. Then the bins of keys, those of the
    // rows from one on.
    wide::Bounds begin_bins(std::size_t feature, std::span<const std::uint64_t> some,
                            std::uint64_t differing);
    void find_bins(std::size_t feature, std::size_t row, std::span<const std::uint64_t> keys,
                   const wide::Bounds& bounds);
    std::span<const std::uint8_t> several(std::size_t feature) const {
        return features_[feature].several;
    }
    const std::uint16_t* ranks_of(std::size_t feature) const { return ranks(feature); }

    bool is_listed(std::size_t feature) const { return features_[feature].listed; }
    std::uint32_t common_rank(std::size_t feature) const { return features_[feature].common_rank; }
    // counts[place + class] += by, for these rows: of one ranked feature, or of all listed ones,
    // their common values left out.
    void count_ranked(std::size_t feature, std::span<const std::uint32_t> rows,
                      const Counted& counted, std::uint32_t* counts) const;
    void count_listed(std::span<const std::uint32_t> rows, const Counted& counted,
                      std::uint32_t* counts) const;
    // marks[row] = whether its rank is in a range or is one more.
    struct Ranks {
        std::uint32_t begin, end, one_more;
    };
    void mark(std::size_t feature, std::span<const std::uint32_t> rows, const Ranks& ranks,
              std::uint32_t* spare, std::uint8_t* marks) const;
    // The place of each of the rows.
    void places(std::size_t feature, std::span<const std::uint32_t> rows, std::uint32_t* out) const;

  private:
    static constexpr std::size_t kMostValues = 1 << 14;
    static constexpr std::uint32_t kNowhere = 0xffffffff;

    struct Feature {
        bool listed = false, placed = false;
        std::uint32_t common_rank = 0, first_place = 0, width = 0, step = 0;
        std::vector<std::uint64_t> keys;
        std::vector<std::uint8_t> several;  // of a binned feature: whether a rank has several keys
    };
    struct Chunk {
        std::size_t begin = 0, end = 0;  // rows
        std::size_t worker = 0;          // whose codes they have
    };
    // What one worker has seen.
    struct alignas(kApart) Seen {
        std::size_t n_rows = 0;
        std::size_t lists_end = 0, room_end = 0;  // where it writes lists
        std::uint32_t n_codes = 0;                // of listed features
        std::size_t n_values = 0;                 // of all features
        std::vector<ValueCodes> values;           // by feature
        std::vector<std::uint32_t> ranked;        // features, not given up
        std::vector<std::uint64_t> listed;        // the same for listed ones: a bit a byte
        bool any_listed = false;
        std::vector<std::uint64_t> uncommon;              // of those, in the row at hand
        std::vector<std::uint32_t> place_of;              // by code of a listed feature
        std::vector<std::vector<std::uint16_t>> rank_of;  // by ranked feature and code
        std::vector<std::vector<std::uint64_t>> keys;     // by feature
    };
    void vote();
    void cut_into_chunks();
    void start_worker(Seen& seen);
    void touch_ranks(const Chunk& chunk);
    void rank(Seen& seen, std::size_t feature, std::size_t begin, std::size_t end);
    template <typename Code>
    void rank(Seen& seen, std::size_t feature, std::size_t begin, std::size_t end);
    void list(Seen& seen, const Chunk& chunk, std::size_t begin, std::size_t end);
    void list(Seen& seen, std::size_t row);
    std::uint64_t bits_of_bytes(std::size_t feature) const;
    bool drop_given_up(Seen& seen) const;
    void place_ranked(const Chunk& chunk, std::size_t feature);
    void place_listed(const Chunk& chunk, const Counted& counted, std::uint32_t* counts);
    template <typename Times>
    void count_ranked(std::size_t feature, std::span<const std::uint32_t> rows,
                      const Counted& counted, Times times, std::uint32_t* counts) const;
    std::uint16_t* ranks(std::size_t feature) const { return ranks_.get() + feature * n_; }

    const Packing* packing_ = nullptr;
    const std::byte* const* records_ = nullptr;
    std::size_t n_ = 0, n_workers_ = 0, most_ = 0;
    std::size_t capacity_lists_ = 0, capacity_places_ = 0, capacity_ranks_ = 0;
    std::vector<Feature> features_;
    std::vector<std::uint64_t> common_;     // by feature: the key of a value that many rows have
    std::vector<std::byte> common_record_;  // of these values
    std::vector<std::uint32_t> votes_;
    std::vector<Chunk> chunks_;
    std::vector<Seen> seen_;        // by worker
    Buffer<wide::List> lists_;      // by row
    Buffer<std::uint32_t> places_;  // of all lists; while they are made, codes
    Buffer<std::uint16_t> ranks_;   // by feature and row; while they are made, codes
};

}  // namespace evertree
