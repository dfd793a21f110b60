#include "update.hpp"

namespace evertree {

void DynamicTree::update(std::span<const Slot> deleted, std::span<const Insertion> inserted,
                         Watch& watch) {
    if (deleted.empty() && inserted.empty()) return;
    stage(deleted, inserted);
    try {
        upkeep_.prepare(examples_, changes_, watch);
    } catch (...) {
        for (const Change& change : changes_) {
            if (change.is_insertion) examples_.discard(change.slot);
        }
        throw;
    }
    upkeep_.commit();
    for (const Slot slot : deleted) examples_.remove(slot);
    for (const Change& change : changes_) {
        if (change.is_insertion) examples_.admit(change.slot);
    }
}

void DynamicTree::rebuild(Watch& watch) {
    examples_.narrow(watch);
    upkeep_.prepare_rebuild(examples_, watch);
    upkeep_.commit();
}

void DynamicTree::stage(std::span<const Slot> deleted, std::span<const Insertion> inserted) {
    changes_.clear();
    changes_.reserve(deleted.size() + inserted.size());
    staged_.resize(inserted.size());
    examples_.stage(inserted, staged_);
    for (const Slot slot : deleted) changes_.push_back({slot, false});
    for (std::size_t i = 0; i < inserted.size(); ++i) {
        changes_.push_back({staged_[i], true, inserted[i].x});
    }
}

}  // namespace evertree
