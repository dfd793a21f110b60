#include "examples.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <new>
#include <numeric>
#include <utility>

namespace evertree {

namespace {

// All records may be packed anew so often until there are twice as many: then every feature gets a
// form that has all its values and more each time, which ends it. Few records are packed as often
// as need be.
constexpr std::size_t kFewRepacks = 16, kFewSlots = 128;

std::uint64_t mixed(std::uint64_t h) {
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    return h ^ (h >> 32);
}

std::uint32_t id_hash(ExampleId id) {
    return static_cast<std::uint32_t>(mixed(static_cast<std::uint64_t>(id)));
}

}  // namespace

void SlotIndex::place(std::vector<Entry>& entries, Entry entry) noexcept {
    const std::size_t mask = entries.size() - 1;
    std::size_t at = entry.hash & mask;
    while (entries[at].slot != kNoSlot) at = (at + 1) & mask;
    entries[at] = entry;
}

void SlotIndex::reserve(std::size_t count) {
    if (count * 4 <= entries_.size() * 3) return;
    std::vector<Entry> larger(std::bit_ceil(count * 4 / 3 + 1));
    for (const Entry& entry : entries_)
        if (entry.slot != kNoSlot) place(larger, entry);
    entries_.swap(larger);
}

void SlotIndex::insert(std::uint32_t hash, Slot slot) noexcept {
    place(entries_, Entry{hash, slot});
}

std::size_t SlotIndex::position(std::uint32_t hash, Slot slot) const noexcept {
    std::size_t at = hash & mask();
    while (entries_[at].slot != slot) at = (at + 1) & mask();
    return at;
}

void SlotIndex::replace(std::uint32_t hash, Slot from, Slot to) noexcept {
    entries_[position(hash, from)].slot = to;
}

void SlotIndex::erase(std::uint32_t hash, Slot slot) noexcept {
    std::size_t hole = position(hash, slot);
    // Entries behind the hole move up unless that would put them before their own place.
    for (std::size_t at = (hole + 1) & mask(); entries_[at].slot != kNoSlot;
         at = (at + 1) & mask()) {
        const std::size_t home = entries_[at].hash & mask();
        if (((at - home) & mask()) >= ((at - hole) & mask())) {
            entries_[hole] = entries_[at];
            hole = at;
        }
    }
    entries_[hole] = Entry{};
}

Examples::Examples(std::size_t n_features) : packing_(n_features) {}

void Examples::stage(std::span<const Insertion> coming, std::span<Slot> slots) {
    reserve(coming);
    const std::size_t n_packed = pack(coming);
    if (n_packed < coming.size()) {
        try {
            make_fit(coming, n_packed);
        } catch (...) {
            NextSlots next = next_slots();
            for (std::size_t i = 0; i <= n_packed; ++i) wipe(take(next));
            throw;
        }
        pack(coming);
    }
    NextSlots next = next_slots();
    for (std::size_t i = 0; i < coming.size(); ++i) {
        const Slot slot = slots[i] = take(next);
        if (!is_number_of(coming[i].id, slot)) by_id_.prefetch(id_hash(coming[i].id));
        heads_[slot] = {coming[i].label, 0};
        if (ids_kept_) ids_[slot] = coming[i].id;
    }
    slots_free_ -= std::min(slots_free_, coming.size());
    first_free_ = next.free;
    slots_used_ = next.fresh;
}

void Examples::reserve(std::span<const Insertion> coming) {
    const std::size_t more = coming.size();
    if (size_ + more > kMaxExamples) throw std::bad_alloc();
    const std::size_t to_index = most_to_index(coming);
    by_id_.reserve(n_by_id_ + to_index);
    if (to_index > 0) keep_ids();
    // Before their numbers run out, the order of the admissions moves into the lists.
    if (n_admissions_ + more > std::numeric_limits<std::uint32_t>::max()) index_values();
    const std::size_t capacity = chunks_.size() << kChunkBits;
    const std::size_t fresh = more > slots_free_ ? more - slots_free_ : 0;
    if (values_indexed_) {
        by_value_.reserve(size_ + more);
        equals_.resize(std::max(equals_.size(), slots_used_ + fresh));
    }
    if (slots_used_ + fresh <= capacity) return;
    const std::size_t missing = slots_used_ + fresh - capacity;
    // An eighth more each time: memory grows smoothly, and a large tree lies in large pieces.
    add_chunks(std::max((missing + kChunkMask) >> kChunkBits, chunks_.size() / 8));
}

std::size_t Examples::most_to_index(std::span<const Insertion> coming) const {
    if (slots_free_ > 0) return coming.size();
    auto slot = static_cast<Slot>(slots_used_);
    return static_cast<std::size_t>(
        std::count_if(coming.begin(), coming.end(),
                      [&](const Insertion& i) { return !is_number_of(i.id, slot++); }));
}

void Examples::add_chunks(std::size_t count) {
    const std::size_t chunk_bytes = packing_.record_bytes() << kChunkBits;
    const std::size_t n_slots = (chunks_.size() + count) << kChunkBits;
    chunks_.reserve(chunks_.size() + count);
    if (n_slots > n_heads_) make_room_for_heads(std::max(n_slots, 2 * n_heads_));
    slabs_.emplace_back(count * chunk_bytes + Packing::kSlack);
    for (std::size_t i = 0; i < count; ++i) {
        chunks_.push_back(slabs_.back().get() + i * chunk_bytes);
    }
}

// Twice as many each time: what is not used yet takes no memory of the machine.
void Examples::make_room_for_heads(std::size_t n_slots) {
    Buffer<Head> heads(n_slots);
    Buffer<ExampleId> ids = ids_kept_ ? Buffer<ExampleId>(n_slots) : Buffer<ExampleId>();
    std::copy_n(heads_.get(), slots_used_, heads.get());
    if (ids_kept_) std::copy_n(ids_.get(), slots_used_, ids.get());
    heads_ = std::move(heads);
    ids_ = std::move(ids);
    n_heads_ = n_slots;
}

void Examples::keep_ids() {
    if (ids_kept_) return;
    ids_ = Buffer<ExampleId>(n_heads_);
    std::iota(ids_.get(), ids_.get() + slots_used_, ExampleId{0});
    ids_kept_ = true;
}

// Right into the slots that they will get. Returns how many fit before one does not.
std::size_t Examples::pack(std::span<const Insertion> coming) noexcept {
    NextSlots next = next_slots();
    std::size_t n = 0;
    while (n < coming.size() && packing_.pack(coming[n].x, record(take(next)))) ++n;
    return n;
}

void Examples::make_fit(std::span<const Insertion> coming, std::size_t first_misfit) {
    if (slots_used_ >= 2 * slots_at_repacks_) {
        slots_at_repacks_ = std::max(slots_used_, kFewSlots);
        n_repacks_ = 0;
    }
    const bool too_often = slots_used_ > kFewSlots && ++n_repacks_ > kFewRepacks;
    const Choice choice = too_often ? Choice::wider : Choice::any;
    Packing fitting = packing_;
    std::vector<std::byte> record(packing_.record_bytes());
    for (std::size_t i = first_misfit; i < coming.size(); ++i) {
        if (fitting.pack(coming[i].x, record.data())) continue;
        refit(fitting, coming[i].x, choice, coming.first(i), slots_end());
        record.resize(std::max(record.size(), fitting.record_bytes()));
    }
    if (too_often) {
        fitting.widen_all();
        may_narrow_ = true;
    }
    repack(std::move(fitting));
}

// Features that x does not fit get the first form that it fits, and all that come before it, and
// all that are in before a slot. Mostly x alone tells: that form has all values of the one so far.
void Examples::refit(Packing& packing, const double* x, Choice choice,
                     std::span<const Insertion> before, Slot slots_before) const {
    for (std::size_t j = 0; j < n_features(); ++j) {
        if (packing.fits(x[j], j)) continue;
        Forms forms;
        if (choice == Choice::wider) forms.keep_those_with_all_of(packing.form(j));
        forms.keep_those_of(x[j]);
        const auto is_found = [&] { return has_all_of(forms.first(), packing.form(j)); };
        for (Slot slot = 0; slot < slots_before && !is_found(); ++slot) {
            if (is_active(slot)) forms.keep_those_of(value(slot, j));
        }
        for (std::size_t i = 0; i < before.size() && !is_found(); ++i) {
            forms.keep_those_of(before[i].x[j]);
        }
        packing.set_form(j, forms.first());
    }
    packing.lay_out();
}

void Examples::narrow(Watch& watch) {
    if (!may_narrow_) return;
    Packing narrowest(n_features());
    std::vector<double> x(n_features());
    std::vector<std::byte> scratch(packing_.record_bytes());  // enough: none is wider than now
    for (Slot slot = 0; slot < slots_end(); ++slot) {
        if (!is_active(slot)) continue;
        read(slot, x.data());
        watch.worked(2 * n_features());
        if (narrowest.pack(x.data(), scratch.data())) continue;
        refit(narrowest, x.data(), Choice::any, {}, slot);
    }
    repack(std::move(narrowest));
    may_narrow_ = false;
    n_repacks_ = 0;
}

void Examples::repack(Packing packing) {
    const std::size_t chunk_bytes = packing.record_bytes() << kChunkBits;
    const Packing::Change change(packing_, packing);
    std::vector<Buffer<std::byte>> slabs;
    if (!chunks_.empty()) slabs.emplace_back(chunks_.size() * chunk_bytes + Packing::kSlack);
    for (Slot slot = 0; slot < slots_end(); ++slot) {
        std::byte* const to = slabs[0].get() + slot * packing.record_bytes();
        std::memset(to, 0, packing.record_bytes());
        if (is_active(slot)) change.repack(record(slot), to);
    }
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
        chunks_[i] = slabs[0].get() + i * chunk_bytes;
    }
    slabs_.swap(slabs);
    packing_ = std::move(packing);
}

// Erased means erased: nothing of the values stays behind in a free slot.
void Examples::wipe(Slot slot) noexcept { std::memset(record(slot), 0, packing_.record_bytes()); }

void Examples::discard(Slot slot) noexcept {
    wipe(slot);
    may_narrow_ = true;
    heads_[slot].label_and_active &= ~Head::kActive;
    heads_[slot].admission = first_free_;
    first_free_ = slot;
    ++slots_free_;
}

void Examples::admit(Slot slot) noexcept {
    Head& own = heads_[slot];
    if (!is_number_of(id(slot), slot)) {
        by_id_.insert(id_hash(id(slot)), slot);
        ++n_by_id_;
    }
    if (values_indexed_) {
        link_equals(slot);
    } else {
        own.admission = static_cast<std::uint32_t>(n_admissions_++);
    }
    own.label_and_active |= Head::kActive;
    ++size_;
}

void Examples::link_equals(Slot slot) noexcept {
    const std::uint32_t hash = value_hash(slot);
    const Slot equal = by_value_.find(
        hash, [&](Slot other) { return label(other) == label(slot) && same_x(other, slot); });
    equals_[slot] = {equal, kNoSlot};
    if (equal == kNoSlot) {
        by_value_.insert(hash, slot);
    } else {
        equals_[equal].previous = slot;
        by_value_.replace(hash, equal, slot);
    }
}

void Examples::unlink_equals(Slot slot) noexcept {
    const auto [next, previous] = equals_[slot];
    if (next != kNoSlot) equals_[next].previous = previous;
    if (previous != kNoSlot) {
        equals_[previous].next = next;
        return;
    }
    const std::uint32_t hash = value_hash(slot);
    if (next != kNoSlot) {
        by_value_.replace(hash, slot, next);
    } else {
        by_value_.erase(hash, slot);
    }
}

std::vector<Slot> Examples::active() const {
    std::vector<Slot> active;
    active.reserve(size_);
    for (Slot slot = 0; slot < slots_end(); ++slot) {
        if (is_active(slot)) active.push_back(slot);
    }
    return active;
}

void Examples::index_values() {
    if (values_indexed_) return;
    std::vector<Slot> active = this->active();
    by_value_.reserve(size_);
    equals_.resize(slots_used_);
    std::sort(active.begin(), active.end(),
              [&](Slot a, Slot b) { return heads_[a].admission < heads_[b].admission; });
    for (const Slot slot : active) link_equals(slot);
    values_indexed_ = true;
}

void Examples::remove(Slot slot) noexcept {
    if (!is_number_of(id(slot), slot)) {
        by_id_.erase(id_hash(id(slot)), slot);
        --n_by_id_;
    }
    if (values_indexed_) unlink_equals(slot);
    --size_;
    discard(slot);
}

Slot Examples::find(ExampleId id) const {
    if (id >= 0 && static_cast<std::uint64_t>(id) < slots_used_) {
        const auto slot = static_cast<Slot>(id);
        if (is_active(slot) && this->id(slot) == id) return slot;
    }
    return by_id_.find(id_hash(id), [&](Slot slot) { return this->id(slot) == id; });
}

Slot Examples::find(const double* x, ClassId label) const {
    const auto value_of = [&](std::size_t j) { return x[j]; };
    return by_value_.find(value_hash(value_of, label),
                          [&](Slot slot) { return this->label(slot) == label && has_x(slot, x); });
}

bool Examples::has_x(Slot slot, const double* x) const {
    for (std::size_t j = 0; j < n_features(); ++j) {
        const double own = value(slot, j);
        if (std::memcmp(&own, x + j, sizeof own) != 0) return false;
    }
    return true;
}

// Of the values, not of their codes: it must not change with the forms.
template <typename ValueOf>
std::uint32_t Examples::value_hash(ValueOf value_of, ClassId label) const {
    std::uint64_t h = label;
    for (std::size_t j = 0; j < n_features(); ++j) {
        h = (std::rotl(h, 27) ^ std::bit_cast<std::uint64_t>(value_of(j))) * 0x9e3779b97f4a7c15u;
    }
    return static_cast<std::uint32_t>(mixed(h));
}

std::uint32_t Examples::value_hash(Slot slot) const {
    return value_hash([&](std::size_t j) { return value(slot, j); }, label(slot));
}

}  // namespace evertree
