#include "panel.hpp"

#include <algorithm>
#include <cmath>

namespace evertree {

namespace {

// How much of the accuracy is the last test. 1/500: slow enough to tell two good trees apart, fast
// enough to follow a change within a thousand examples.
constexpr double kWeightOfLast = 0.002;
// "Clearly worse": by two per cent, and for a thousand tests before a tree goes to rest.
constexpr double kClearly = 0.02;
constexpr std::uint64_t kPatience = 1000;
// The first rest; each next one is twice as long, but at most a quarter of what has been seen, so
// that what is built anew is paid for by what was not done in the meantime.
constexpr std::uint64_t kFirstRest = 4000;
// The best tree has lost so much since a tree went to rest: something has changed.
constexpr double kChange = 0.05;

}  // namespace

Panel::Panel(std::span<const Kind> kinds, std::span<const Candidate> candidates,
             std::size_t n_workers)
    : kinds_(kinds.begin(), kinds.end()),
      n_workers_(n_workers),
      examples_(kinds.size()),
      x_(kinds.size()) {
    for (const Candidate& candidate : candidates) {
        Seat& seat = seats_.emplace_back();
        seat.candidate = candidate;
        seat.record.awake = candidate.window == candidates[0].window;
        seat.record.wakes_at = candidate.window;  // full by then; before, the longest has the same
        if (seat.record.awake) {
            seat.upkeep = std::make_unique<Upkeep>(kinds_, candidate.limits, n_workers_);
        }
    }
}

std::vector<Slot> Panel::members(std::size_t i) const {
    std::vector<Slot> slots;
    for (std::size_t at = seats_[i].record.begin; at < order_.size(); ++at) {
        if (order_[at] != kNoSlot) slots.push_back(order_[at]);
    }
    return slots;
}

double Panel::accuracy(std::size_t i) const {
    const Record& record = seats_[i].record;
    if (record.n_tests == 0) return 0;
    return record.accuracy / (1 - std::pow(1 - kWeightOfLast, static_cast<double>(record.n_tests)));
}

Stats Panel::stats() const {
    Stats all = retired_;
    all.inserts = n_insertions_ + n_corrections_;
    all.deletes = n_removals_;
    for (const Seat& seat : seats_) {
        if (!seat.upkeep) continue;
        all.rebuilds += seat.upkeep->stats().rebuilds;
        all.rows_rebuilt += seat.upkeep->stats().rows_rebuilt;
    }
    return all;
}

void Panel::insert(std::span<const Insertion> inserted, std::span<const std::uint32_t> ranks,
                   Watch& watch) {
    if (inserted.empty()) return;
    start(inserted);
    try {
        for (const Slot slot : staged_) test(slot, ranks, watch);
        decide_who_sleeps();
        for (Seat& seat : seats_) {
            leaving_.clear();
            move_window(seat, leaving_);
            std::sort(leaving_.begin(), leaving_.end());
            prepare(seat, leaving_, entering(seat), watch);
        }
    } catch (...) {
        cancel();
        unstage();
        throw;
    }
    for (const Slot slot : staged_) {
        order_.push_back(slot);
        admit(slot, order_.size() - 1);
    }
    n_insertions_ += inserted.size();
    commit();
}

void Panel::remove(std::span<const Slot> slots, Watch& watch) {
    if (slots.empty()) return;
    start({});
    try {
        for (Seat& seat : seats_) {
            const auto is_member = [&](Slot slot) { return places_[slot] >= seat.record.begin; };
            seat.next.n_members -=
                static_cast<std::size_t>(std::count_if(slots.begin(), slots.end(), is_member));
        }
        wake_if_none_can_answer();
        for (Seat& seat : seats_) {
            leaving_.clear();
            for (const Slot slot : slots) {
                if (places_[slot] >= seat.record.begin) leaving_.push_back(slot);
            }
            std::sort(leaving_.begin(), leaving_.end());
            prepare(seat, leaving_, {}, watch);
        }
    } catch (...) {
        cancel();
        throw;
    }
    for (const Slot slot : slots) strike_out(slot);
    commit();
}

void Panel::replace(Slot slot, const Insertion& insertion, Watch& watch) {
    start({&insertion, 1});
    const std::size_t place = places_[slot];
    try {
        for (Seat& seat : seats_) {
            const std::size_t n = place >= seat.record.begin ? 1 : 0;
            prepare(seat, {&slot, n}, {staged_.data(), n}, watch);
        }
    } catch (...) {
        cancel();
        unstage();
        throw;
    }
    strike_out(slot);
    order_[place] = staged_[0];
    admit(staged_[0], place);
    ++n_corrections_;
    commit();
}

void Panel::rebuild(Watch& watch) {
    examples_.narrow(watch);
    start({});
    try {
        for (Seat& seat : seats_) {
            if (seat.upkeep) seat.upkeep->prepare_rebuild(examples_, watch);
            ++n_prepared_;
        }
    } catch (...) {
        cancel();
        throw;
    }
    commit();
}

bool Panel::is_finished() const {
    return std::ranges::all_of(
        seats_, [](const Seat& seat) { return !seat.upkeep || seat.upkeep->is_finished(); });
}

void Panel::finish_way(const double* x, Watch& watch) {
    for (Seat& seat : seats_) {
        if (seat.upkeep) seat.upkeep->finish_way(examples_, x, watch);
    }
}

void Panel::finish(Watch& watch) {
    for (Seat& seat : seats_) {
        if (seat.upkeep) seat.upkeep->finish(examples_, watch);
    }
}

// ---- who is good --------------------------------------------------------------------------------

void Panel::test(Slot slot, std::span<const std::uint32_t> ranks, Watch& watch) {
    const double* const x = x_.data();
    examples_.read(slot, x_.data());
    finish_way(x, watch);
    for (Seat& seat : seats_) {
        if (!seat.upkeep || seat.upkeep->tree().root().tally.size == 0) continue;
        const Tree& tree = seat.upkeep->tree();
        const bool right = tree.majority(tree.answering(x), ranks) == examples_.label(slot);
        seat.next.accuracy += kWeightOfLast * ((right ? 1.0 : 0.0) - seat.next.accuracy);
        ++seat.next.n_tests;
    }
    const double best = best_record().accuracy;
    for (Seat& seat : seats_) {
        if (seat.next.accuracy < best - kClearly) {
            ++seat.next.n_behind;
        } else {
            seat.next.n_behind = 0;
        }
        if (seat.next.accuracy == best) seat.next.rest = 0;
    }
}

const Panel::Record& Panel::best_record() const {
    const Record* best = nullptr;
    for (const Seat& seat : seats_) {
        if (!seat.upkeep) continue;
        if (best == nullptr || seat.next.accuracy > best->accuracy) best = &seat.next;
    }
    return *best;  // there is always a tree that is awake
}

void Panel::decide_who_sleeps() {
    const Record best = best_record();
    const std::uint64_t n = n_insertions_ + staged_.size();
    for (Seat& seat : seats_) {
        Record& next = seat.next;
        if (next.awake) {
            if (!seat.candidate.may_rest || next.n_behind < kPatience) continue;
            next.rest = std::clamp(2 * next.rest, kFirstRest, std::max(kFirstRest, n / 4));
            next.wakes_at = n + next.rest;
            next.accuracy_of_best = best.accuracy;
            next.awake = false;
        } else if (n > next.wakes_at || best.accuracy < next.accuracy_of_best - kChange) {
            wake(next, best);
        }
    }
}

void Panel::wake(Record& next, const Record& best) {
    // Not the best before it has shown something, and otherwise as if it had been tested all along.
    next.accuracy = std::max(best.accuracy - kClearly, 0.0);
    next.n_tests = best.n_tests;
    next.n_behind = 0;
    next.awake = true;
}

// Deletions may empty every window that is awake while older examples are still there.
void Panel::wake_if_none_can_answer() {
    const auto can_answer = [](const Seat& s) { return s.next.awake && s.next.n_members > 0; };
    Record& longest = seats_[0].next;
    if (longest.n_members == 0 || std::any_of(seats_.begin(), seats_.end(), can_answer)) return;
    wake(longest, best_record());
}

// ---- all trees, or none -------------------------------------------------------------------------

void Panel::start(std::span<const Insertion> inserted) {
    if (order_.capacity() < order_.size() + inserted.size()) {
        order_.reserve(std::max(2 * order_.size(), order_.size() + inserted.size()));
    }
    places_.resize(std::max<std::size_t>(places_.size(), examples_.slots_end() + inserted.size()));
    for (const Insertion& i : inserted) {
        if (i.label >= n_of_class_.size()) n_of_class_.resize(i.label + std::size_t{1});
    }
    staged_.resize(inserted.size());
    examples_.stage(inserted, staged_);
    for (Seat& seat : seats_) seat.next = seat.record;
    n_prepared_ = 0;
    class_has_gone_ = false;
}

void Panel::unstage() noexcept {
    for (const Slot slot : staged_) examples_.discard(slot);
}

// The staged examples that the window will hold: the last ones.
std::span<const Slot> Panel::entering(const Seat& seat) const {
    const std::uint64_t n = std::min<std::uint64_t>(staged_.size(), seat.candidate.window);
    return std::span(staged_).last(static_cast<std::size_t>(n));
}

void Panel::move_window(Seat& seat, std::vector<Slot>& leaving) const {
    Record& next = seat.next;
    const std::size_t n_entering = entering(seat).size();
    for (; next.n_members + n_entering > seat.candidate.window; ++next.begin) {
        if (order_[next.begin] == kNoSlot) continue;
        leaving.push_back(order_[next.begin]);
        --next.n_members;
    }
    // Of a batch that is larger than the window, the first ones never enter.
    if (n_entering < staged_.size()) next.begin = order_.size() + staged_.size() - n_entering;
    next.n_members += n_entering;
}

void Panel::prepare(Seat& seat, std::span<const Slot> leaving, std::span<const Slot> entering,
                    Watch& watch) {
    changes_.clear();
    if (seat.next.awake && seat.upkeep) {
        for (const Slot slot : leaving) changes_.push_back({slot, false});
    } else if (seat.next.awake) {
        // Just woken: from nothing to all that its window will hold.
        seat.woken = std::make_unique<Upkeep>(kinds_, seat.candidate.limits, n_workers_);
        for (std::size_t at = seat.next.begin; at < order_.size(); ++at) {
            if (order_[at] == kNoSlot) continue;
            if (std::binary_search(leaving.begin(), leaving.end(), order_[at])) continue;
            changes_.push_back({order_[at], true});
        }
    }
    if (seat.next.awake) {
        for (const Slot slot : entering) changes_.push_back({slot, true});
        (seat.woken ? seat.woken : seat.upkeep)->prepare(examples_, changes_, watch);
    }
    ++n_prepared_;
}

void Panel::cancel() noexcept {
    for (std::size_t i = 0; i < seats_.size(); ++i) {
        Seat& seat = seats_[i];
        if (i < n_prepared_ && seat.next.awake && seat.upkeep) seat.upkeep->cancel(examples_);
        seat.woken.reset();
    }
}

void Panel::commit() noexcept {
    best_ = 0;
    for (std::size_t i = 0; i < seats_.size(); ++i) {
        Seat& seat = seats_[i];
        if (seat.woken) seat.upkeep = std::move(seat.woken);
        if (!seat.next.awake && seat.upkeep) {
            retired_.rebuilds += seat.upkeep->stats().rebuilds;
            retired_.rows_rebuilt += seat.upkeep->stats().rows_rebuilt;
            seat.upkeep.reset();
        }
        seat.record = seat.next;
        if (!seat.upkeep) continue;
        seat.upkeep->commit();
        // A window of which all has been deleted has no answer, however good it was.
        const Seat& so_far = seats_[best_];
        const bool better = seat.record.accuracy > so_far.record.accuracy;
        const bool can_answer = seat.record.n_members > 0;
        if (!so_far.upkeep || (can_answer && (better || so_far.record.n_members == 0))) best_ = i;
    }
    give_up_old();
    if (order_.size() > 2 * examples_.size() + 64) compact();
}

void Panel::give_up_old() noexcept {
    // The longest windows come first, and they are equally long.
    for (std::size_t at = given_up_; at < seats_[0].record.begin; ++at) {
        if (order_[at] != kNoSlot) strike_out(order_[at]);
    }
    given_up_ = seats_[0].record.begin;
}

void Panel::admit(Slot slot, std::size_t place) noexcept {
    places_[slot] = static_cast<std::uint32_t>(place);
    ++n_of_class_[examples_.label(slot)];
    examples_.admit(slot);
}

void Panel::strike_out(Slot slot) noexcept {
    if (--n_of_class_[examples_.label(slot)] == 0) class_has_gone_ = true;
    order_[places_[slot]] = kNoSlot;
    examples_.remove(slot);
    ++n_removals_;
}

// Without the places of those that have gone.
void Panel::compact() noexcept {
    std::size_t n_kept = 0;
    for (std::size_t at = 0; at <= order_.size(); ++at) {
        for (Seat& seat : seats_) {
            if (seat.record.begin == at) seat.next.begin = n_kept;
        }
        if (at == order_.size() || order_[at] == kNoSlot) continue;
        places_[order_[at]] = static_cast<std::uint32_t>(n_kept);
        order_[n_kept++] = order_[at];
    }
    order_.resize(n_kept);
    for (Seat& seat : seats_) seat.record.begin = seat.next.begin;
    given_up_ = seats_[0].record.begin;
}

}  // namespace evertree
