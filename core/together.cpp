// The steps of a build that several workers share: loading, and those of one large node.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "build.hpp"

namespace evertree {

Segment Builder::load_together(Watch& watch) {
    const std::size_t n_features = columns_.kinds.size();
    if (columns_.start_codes(crew_->size())) {
        crew_->each(columns_.coded.n_chunks(), watch,
                    [&](std::size_t w, std::size_t chunk, Watch& own_watch) {
                        columns_.coded.code(chunk, w, own_watch);
                    });
        settle_codes(watch);
    }
    constexpr std::size_t few = 2;
    crew_->each((n_features + few - 1) / few, watch,
                [&](std::size_t w, std::size_t item, Watch& own_watch) {
                    const std::size_t begin = item * few;
                    const std::size_t end = std::min(begin + few, n_features);
                    workers_[w]->search.sort(begin, end, own_watch);
                });
    settle_sorting();
    const Segment whole = workers_[0]->search.open();
    if (whole.counts != nullptr) count_together(whole.counts, watch);
    return whole;
}

// Each worker into a block of its own.
void Builder::count_together(std::uint32_t* all, Watch& watch) {
    std::vector<std::uint32_t*> counts(crew_->size(), all);
    for (std::size_t w = 1; w < counts.size(); ++w) counts[w] = columns_.take_counts();
    crew_->each(counts.size(), watch, [&](std::size_t, std::size_t item, Watch&) {
        std::fill_n(counts[item], columns_.counts_size, 0u);
    });
    crew_->each(columns_.coded.n_chunks(), watch,
                [&](std::size_t w, std::size_t chunk, Watch& own_watch) {
                    count_chunk(chunk, counts[w], own_watch);
                });
    for (std::size_t w = 1; w < counts.size(); ++w) {
        for (std::size_t c = 0; c < columns_.counts_size; ++c) all[c] += counts[w][c];
        columns_.give_back_counts(counts[w]);
    }
}

Candidate Builder::best_together(Segment& segment, std::span<const ClassCount> counts,
                                 Watch& watch) {
    SplitSearch& first = workers_[0]->search;
    const std::span<std::uint32_t> features = first.open_features(segment);
    std::vector<std::size_t> order(features.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    // What takes longest first: then nobody waits for it in the end.
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return first.cost(features[a], segment) > first.cost(features[b], segment);
    });
    std::vector<Candidate> found(features.size());
    crew_->each(features.size(), watch, [&](std::size_t w, std::size_t item, Watch& own_watch) {
        const std::size_t i = order[item];
        found[i] = workers_[w]->search.best_of(features.subspan(i, 1), segment, counts, own_watch);
    });
    Candidate best;
    for (const Candidate& other : found) {  // ties go to the lower feature
        if (!other.found) continue;
        if (!best.found || leaves_less(other.sides, best.sides)) best = other;
    }
    first.close_features(segment);
    first.set_value(best);
    return best;
}

void Builder::mark_left_together(const Segment& segment, const Candidate& split, Watch& watch) {
    const std::size_t n_marks = (segment.size() + kRowsAtOnce - 1) / kRowsAtOnce;
    crew_->each(n_marks, watch, [&](std::size_t w, std::size_t item, Watch& own_watch) {
        const auto begin = static_cast<std::uint32_t>(segment.begin + item * kRowsAtOnce);
        const auto end = static_cast<std::uint32_t>(begin + kRowsAtOnce);
        workers_[w]->search.mark_left(segment, split, begin, std::min(end, segment.end));
        own_watch.worked(kRowsAtOnce);
    });
}

// The features that rows list by parts of the rows, the others one by one.
void Builder::divide_features_together(const Segment& segment, const Segment& left,
                                       const Segment& right, Watch& watch) {
    SplitSearch& first = workers_[0]->search;
    const SplitSearch::Shares shares = first.shares(first.features(segment));
    const std::span<const std::uint32_t> listed = shares.listed, others = shares.others;
    const Segment& smaller = by_size(left, right).smaller;
    const bool long_walk = first.walk_is_long(listed, left, right);
    const std::size_t n_parts = long_walk ? crew_->size() : 1;
    const auto part_begin = [&](std::size_t part) {
        return static_cast<std::uint32_t>(smaller.begin + smaller.size() * part / n_parts);
    };
    std::vector<std::uint32_t*> rest(n_parts, nullptr);
    for (std::size_t part = 1; part < n_parts; ++part) rest[part] = columns_.take_counts();
    crew_->each(n_parts + others.size(), watch,
                [&](std::size_t w, std::size_t item, Watch& own_watch) {
                    SplitSearch& search = workers_[w]->search;
                    if (item >= n_parts) {
                        const auto one = others.subspan(item - n_parts, 1);
                        search.divide_features(one, segment, own_watch);
                        search.divide_counts(one, left, right, own_watch);
                        return;
                    }
                    const auto some = columns_.row_span(part_begin(item), part_begin(item + 1));
                    if (item == 0) {
                        search.divide_counts(listed, left, right, some, own_watch);
                    } else {
                        search.count_rest(listed, left, right, some, rest[item]);
                    }
                });
    if (!long_walk) return;
    crew_->each(listed.size(), watch, [&](std::size_t w, std::size_t item, Watch&) {
        for (std::size_t part = 1; part < n_parts; ++part) {
            workers_[w]->search.merge_rest(listed.subspan(item, 1), left, right, rest[part]);
        }
    });
    for (std::size_t part = 1; part < n_parts; ++part) columns_.give_back_counts(rest[part]);
}

// Part by part, and the smaller side's classes counted; then all that went left of the parts so
// far, and all that went right.
void Builder::divide_rows_together(const Segment& segment, const Candidate& split, Watch& watch) {
    const std::size_t n_parts = crew_->size();
    const bool left_smaller = split.sides.left.size <= split.sides.right.size;
    std::uint32_t* const rows = columns_.rows.get();
    const auto part_begin = [&](std::size_t part) {
        return static_cast<std::uint32_t>(segment.begin + segment.size() * part / n_parts);
    };
    std::vector<std::uint32_t> n_left(n_parts);
    crew_->each(n_parts, watch, [&](std::size_t w, std::size_t part, Watch& own_watch) {
        const std::uint32_t begin = part_begin(part), end = part_begin(part + 1);
        n_left[part] = workers_[w]->search.divide_some_rows(begin, end);
        const std::uint32_t middle = begin + n_left[part];
        count_classes(*workers_[w], left_smaller ? begin : middle, left_smaller ? middle : end);
        own_watch.worked(2 * segment.size() / n_parts);
    });
    std::uint32_t* middle = rows + segment.begin + n_left[0];
    for (std::size_t part = 1; part < n_parts; ++part) {
        std::uint32_t *const begin = rows + part_begin(part), *const end = begin + n_left[part];
        std::uint32_t* const right = workers_[0]->search.spare();
        std::uint32_t* const right_end = std::copy(middle, begin, right);
        middle = std::copy(begin, end, middle);
        std::copy(right, right_end, middle);
    }
    Worker& first = *workers_[0];
    for (std::size_t w = 1; w < crew_->size(); ++w) {
        for (std::size_t c = 0; c < first.class_counts.size(); ++c) {
            first.class_counts[c] += std::exchange(workers_[w]->class_counts[c], 0);
        }
    }
}

}  // namespace evertree
