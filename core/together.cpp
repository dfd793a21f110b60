// The steps of a build that several workers share: loading, and those of one large node.
#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "build.hpp"

namespace evertree {

namespace {

constexpr std::size_t kGroups = 4;  // of features to be searched, for each worker

// Ties go to the lower feature, then to the lower threshold, as one worker finds them in order.
bool comes_before(const Candidate& a, const Candidate& b) {
    if (!a.found || !b.found) return a.found && !b.found;
    if (leaves_less(a.sides, b.sides)) return true;
    if (leaves_less(b.sides, a.sides)) return false;
    const auto place = [](const Candidate& c) {
        return std::tuple(c.split.feature, c.last_left, !c.within, c.last_key);
    };
    return place(a) < place(b);
}

}  // namespace

Segment Builder::load_together(Watch& watch) {
    if (columns_.start_codes(crew_->size())) {
        crew_->each_near(columns_.coded.n_chunks(), watch,
                         [&](std::size_t w, std::size_t chunk, Watch& own_watch) {
                             columns_.coded.code(chunk, w, own_watch);
                         });
        settle_codes(watch);
    }
    find_bins(watch);
    sort_together(watch);
    columns_.settle_bins();
    settle_sorting();
    const Segment whole = workers_[0]->search.open();
    if (whole.counts != nullptr) count_together(whole.counts, watch);
    return whole;
}

// Neighbours together, as each row is read once for all of them, and as much for each worker.
void Builder::sort_together(Watch& watch) {
    std::vector<std::size_t> to_sort;
    for (std::size_t j = 0; j < columns_.columns.size(); ++j) {
        if (!columns_.columns[columns_.packing->order()[j]].counted) to_sort.push_back(j);
    }
    const std::size_t n = to_sort.size(), at_once = workers_[0]->search.n_columns_at_once();
    const std::size_t n_turns = (n + at_once * crew_->size() - 1) / (at_once * crew_->size());
    const std::size_t n_groups = std::min(n, n_turns * crew_->size());
    const auto group_begin = [&](std::size_t group) {  // the larger groups first
        return group * (n / n_groups) + std::min(group, n % n_groups);
    };
    crew_->each(n_groups, watch, [&](std::size_t w, std::size_t group, Watch& own_watch) {
        const std::size_t begin = group_begin(group), end = group_begin(group + 1);
        workers_[w]->search.sort(to_sort[begin], to_sort[end - 1] + 1, own_watch);
    });
}

// Each worker into a block of its own.
void Builder::count_together(std::uint32_t* all, Watch& watch) {
    std::vector<std::uint32_t*> counts(crew_->size(), all);
    for (std::size_t w = 1; w < counts.size(); ++w) counts[w] = columns_.take_counts();
    crew_->each_near(counts.size(), watch, [&](std::size_t, std::size_t item, Watch&) {
        std::fill_n(counts[item], columns_.counts_size, 0u);
    });
    crew_->each_near(columns_.coded.n_chunks(), watch,
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
    // Neighbours together: most of them are not worth a second look, once one has been found.
    std::vector<std::size_t> costs(features.size() + 1, 0);
    for (std::size_t i = 0; i < features.size(); ++i) {
        costs[i + 1] = costs[i] + first.cost(features[i], segment);
    }
    // Each group alone would look for its own best within many bins. Of a feature that has to be
    // looked at within bins, each worker takes some of them; mostly it is one feature, and most of
    // the work.
    const SplitSearch::Glance glance = first.first_glance(features, segment, counts);
    const std::size_t n_groups = kGroups * crew_->size();
    const std::size_t n_parts = glance.within.size() < n_groups ? crew_->size() : 1;
    const std::size_t n_looks = glance.within.size() * n_parts;
    const auto group_begin = [&](std::size_t group) {
        const std::size_t share = costs.back() * group / n_groups;
        return static_cast<std::size_t>(std::ranges::lower_bound(costs, share) - costs.begin());
    };
    std::vector<Candidate> found(n_looks + n_groups);
    crew_->each(found.size(), watch, [&](std::size_t w, std::size_t item, Watch& own_watch) {
        SplitSearch& search = workers_[w]->search;
        if (item < n_looks) {
            std::uint32_t feature = glance.within[item / n_parts];
            const BinShare share{static_cast<std::uint32_t>(item % n_parts),
                                 static_cast<std::uint32_t>(n_parts)};
            found[item] =
                search.best_of({&feature, 1}, segment, counts, glance.to_reach, share, own_watch);
            return;
        }
        const std::size_t group = item - n_looks;
        const std::size_t begin = group_begin(group), end = group_begin(group + 1);
        const auto some = features.subspan(begin, end - begin);
        found[item] = search.best_of(some, segment, counts, glance.to_reach, {0, 0}, own_watch);
    });
    Candidate best = *std::ranges::min_element(found, comes_before);
    first.close_features(segment);
    first.set_value(best, segment);
    return best;
}

void Builder::mark_left_together(const Segment& segment, const Candidate& split, Watch& watch) {
    if (!split.counted) {
        // In the order of the values rows lie anywhere: two workers would share every line.
        return workers_[0]->search.mark_left(segment, split);
    }
    const std::size_t n_marks = (segment.n_rows() + kRowsAtOnce - 1) / kRowsAtOnce;
    crew_->each_near(n_marks, watch, [&](std::size_t w, std::size_t item, Watch& own_watch) {
        const auto begin = static_cast<std::uint32_t>(segment.begin + item * kRowsAtOnce);
        const auto end = static_cast<std::uint32_t>(begin + kRowsAtOnce);
        workers_[w]->search.mark_left_counted(split, begin, std::min(end, segment.rows_end));
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
        return static_cast<std::uint32_t>(smaller.begin + smaller.n_rows() * part / n_parts);
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
// far, and all that went right. How many went left.
std::uint32_t Builder::divide_rows_together(const Segment& segment, const Candidate& split,
                                            Watch& watch) {
    const std::size_t n_parts = crew_->size();
    const bool left_smaller = split.sides.left.size <= split.sides.right.size;
    std::uint32_t* const rows = columns_.rows.get();
    const auto part_begin = [&](std::size_t part) {
        return static_cast<std::uint32_t>(segment.begin + segment.n_rows() * part / n_parts);
    };
    std::vector<std::uint32_t> n_left(n_parts);
    crew_->each_near(n_parts, watch, [&](std::size_t w, std::size_t part, Watch& own_watch) {
        const std::uint32_t begin = part_begin(part), end = part_begin(part + 1);
        n_left[part] = workers_[w]->search.divide_some_rows(begin, end);
        const std::uint32_t middle = begin + n_left[part];
        count_classes(*workers_[w], left_smaller ? begin : middle, left_smaller ? middle : end);
        own_watch.worked(2 * segment.n_rows() / n_parts);
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
    return static_cast<std::uint32_t>(middle - rows) - segment.begin;
}

}  // namespace evertree
