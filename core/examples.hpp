// Examples: the active multiset S. Each example is stored once and found by id or by value.
//
// An example lives in a slot, whose number does not change while it is active. A new example is
// first staged (it has a slot, nobody finds it), then admitted or discarded: that is how an update
// can be prepared completely before anything changes. Values are bit for bit comparable: the one
// missing value is kMissing and -0.0 does not occur (see `normalized`).
//
// The values of an example are a packed record. When one comes that does not fit, all records are
// packed anew, some features in another form; the number of times is bounded (see `make_fit`).
//
// An example whose id is the number of its slot is found without an index: as long as rows only
// come in and ids are automatic, that is all of them, and no id is written down.
//
// Equal examples form a list, the last admitted first; the value index knows the head of each list.
// Many streams never ask for a value: lists and index are made when one is first looked for.
//
// Must not know: nodes, rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "memory.hpp"
#include "packing.hpp"
#include "watch.hpp"

namespace evertree {

using Slot = std::uint32_t;
using ClassId = std::uint32_t;
using ExampleId = std::int64_t;

inline constexpr Slot kNoSlot = 0xffffffff;
inline constexpr std::size_t kMaxExamples = std::size_t{1} << 30;

struct Insertion {
    const double* x;
    ClassId label;
    ExampleId id;
};

// A hash table from keys that the caller compares to slots; open addressing, linear probing.
class SlotIndex {
  public:
    void reserve(std::size_t count);
    void insert(std::uint32_t hash, Slot slot) noexcept;
    void erase(std::uint32_t hash, Slot slot) noexcept;
    // Fetches the place of a key that will soon be needed.
    void prefetch(std::uint32_t hash) const noexcept {
        __builtin_prefetch(entries_.data() + (hash & mask()), 1);
    }
    void replace(std::uint32_t hash, Slot from, Slot to) noexcept;

    template <typename IsWanted>
    Slot find(std::uint32_t hash, IsWanted is_wanted) const {
        if (entries_.empty()) return kNoSlot;
        for (std::size_t at = hash & mask();; at = (at + 1) & mask()) {
            const Entry& entry = entries_[at];
            if (entry.slot == kNoSlot) return kNoSlot;
            if (entry.hash == hash && is_wanted(entry.slot)) return entry.slot;
        }
    }

  private:
    struct Entry {
        std::uint32_t hash = 0;
        Slot slot = kNoSlot;
    };
    std::size_t mask() const { return entries_.size() - 1; }
    std::size_t position(std::uint32_t hash, Slot slot) const noexcept;
    static void place(std::vector<Entry>& entries, Entry entry) noexcept;

    std::vector<Entry> entries_;  // a power of two, at most 3/4 full
};

class Examples {
  public:
    explicit Examples(std::size_t n_features);

    std::size_t n_features() const { return packing_.n_features(); }
    std::size_t size() const { return size_; }

    // Slots for these examples, with all that they need, so that admit cannot fail. The values are
    // normalized on the way in. May fail, and changes nothing then.
    void stage(std::span<const Insertion> coming, std::span<Slot> slots);
    void admit(Slot slot) noexcept;
    void discard(Slot slot) noexcept;
    void remove(Slot slot) noexcept;

    // The narrowest forms for those that are in: nothing tells what others once needed. O(n·d) if
    // any was removed or discarded since; may fail, and changes nothing then.
    void narrow(Watch& watch);

    Slot find(ExampleId id) const;
    // From now on examples are also found by value. O(n), once; may fail, and changes nothing then.
    void index_values();
    bool values_indexed() const { return values_indexed_; }
    // The last admitted of the examples equal to (x, label), x normalized; the others follow by
    // next_equal. Values have to be indexed.
    Slot find(const double* x, ClassId label) const;
    Slot next_equal(Slot slot) const { return equals_[slot].next; }

    double value(Slot slot, std::size_t feature) const {
        return packing_.value(record(slot), feature);
    }
    void read(Slot slot, double* x) const { packing_.unpack(record(slot), x); }
    ClassId label(Slot slot) const { return heads_[slot].label(); }
    ExampleId id(Slot slot) const { return ids_kept_ ? ids_[slot] : ExampleId{slot}; }
    bool same_x(Slot a, Slot b) const {
        return std::memcmp(record(a), record(b), packing_.record_bytes()) == 0;
    }

    // For those who read many: both are good until examples come in.
    const Packing& packing() const { return packing_; }
    const std::byte* record(Slot slot) const {
        return chunks_[slot >> kChunkBits] + (slot & kChunkMask) * packing_.record_bytes();
    }

    // For going through all of them: slots below slots_end are active, staged or free.
    Slot slots_end() const { return static_cast<Slot>(slots_used_); }
    bool is_active(Slot slot) const { return heads_[slot].is_active(); }
    std::vector<Slot> active() const;

  private:
    // What is asked of many examples at once: apart from their records, it lies close together.
    struct Head {
        static constexpr std::uint32_t kActive = std::uint32_t{1} << 31;

        std::uint32_t label_and_active = 0;
        // Its number, until values are indexed; of a free slot: the next one.
        std::uint32_t admission = 0;

        ClassId label() const { return label_and_active & ~kActive; }
        bool is_active() const { return (label_and_active & kActive) != 0; }
    };
    // Neighbours in the list of equal examples.
    struct Equals {
        Slot next = kNoSlot;
        Slot previous = kNoSlot;
    };
    static constexpr std::size_t kChunkBits = 9;  // examples of a chunk: memory grows smoothly
    static constexpr std::size_t kChunkMask = (std::size_t{1} << kChunkBits) - 1;

    std::byte* record(Slot slot) {
        return const_cast<std::byte*>(std::as_const(*this).record(slot));
    }
    static bool is_number_of(ExampleId id, Slot slot) { return id == ExampleId{slot}; }
    void reserve(std::span<const Insertion> coming);
    std::size_t most_to_index(std::span<const Insertion> coming) const;
    // The slots that come next, in their order: free ones, then new ones.
    struct NextSlots {
        Slot free, fresh;
    };
    Slot take(NextSlots& next) const {
        return next.free == kNoSlot ? next.fresh++
                                    : std::exchange(next.free, heads_[next.free].admission);
    }
    NextSlots next_slots() const { return {first_free_, slots_end()}; }
    void add_chunks(std::size_t count);
    void make_room_for_heads(std::size_t n_slots);
    void keep_ids();
    std::size_t pack(std::span<const Insertion> coming) noexcept;
    void make_fit(std::span<const Insertion> coming, std::size_t first_misfit);
    // Any form is the best one now; a wider one has all values of the one so far, and lasts.
    enum class Choice : bool { any, wider };
    void refit(Packing& packing, const double* x, Choice choice, std::span<const Insertion> before,
               Slot slots_before) const;
    void repack(Packing packing);
    void wipe(Slot slot) noexcept;
    void link_equals(Slot slot) noexcept;
    void unlink_equals(Slot slot) noexcept;
    template <typename ValueOf>
    std::uint32_t value_hash(ValueOf value_of, ClassId label) const;
    std::uint32_t value_hash(Slot slot) const;
    bool has_x(Slot slot, const double* x) const;

    Packing packing_;
    std::size_t n_repacks_ = 0;  // since there were so many slots:
    std::size_t slots_at_repacks_ = 0;
    bool may_narrow_ = false;  // a value that needed its form may be gone
    std::size_t size_ = 0;
    std::size_t slots_used_ = 0;
    std::size_t slots_free_ = 0;
    Slot first_free_ = kNoSlot;             // free slots are chained by their heads
    std::size_t n_heads_ = 0;               // at least as many as there are slots
    Buffer<Head> heads_;                    // by slot
    std::vector<Buffer<std::byte>> slabs_;  // one or more chunks each
    std::vector<std::byte*> chunks_;        // of records
    bool ids_kept_ = false;                 // else all are the numbers of their slots
    Buffer<ExampleId> ids_;                 // by slot, as many as heads
    std::uint64_t n_admissions_ = 0;
    bool values_indexed_ = false;
    std::vector<Equals> equals_;  // by slot; empty until values are indexed
    std::size_t n_by_id_ = 0;
    SlotIndex by_id_;  // those whose id is not the number of their slot
    SlotIndex by_value_;
};

}  // namespace evertree
