#include "build.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace evertree {

namespace {

constexpr std::size_t kKeepScratchUpTo = std::size_t{1} << 23;  // bytes
constexpr std::size_t kTogetherFrom = std::size_t{1} << 18;     // elements: below, one is faster
constexpr std::size_t kPartsAWorker = 6;                        // to look for copies in
constexpr std::size_t kTasksAWorker = 8;  // nodes with a smaller share are one worker's

}  // namespace

void Builder::build(const Examples& examples, std::span<const ClassCount> counts,
                    std::uint32_t depth, std::optional<PutOff> put_off, Plan& plan, Watch& watch) {
    const std::span<const Slot> rows = plan.rows;
    plan.nodes.clear();
    plan.counts.clear();
    put_off_ = put_off.value_or(PutOff{});
    if (plan_handful(examples, counts, depth, plan, watch)) return give_back_scratch(examples);
    start_scratch(examples, rows.size());
    std::optional<Crew> crew;
    const bool together = rows.size() * columns_.kinds.size() >= kTogetherFrom;
    if (n_workers_ > 1 && together) crew.emplace(n_workers_);
    crew_ = crew ? &*crew : nullptr;
    number_classes(examples, rows, counts, watch);
    plan_root(plan, counts);
    if (!limits_.build_stops(plan.nodes[0].tally, depth)) {
        plan_splits(examples, rows, depth, plan, watch);
        order_rows(plan, watch);
    }
    for (ClassCount& c : plan.counts) c.label = class_ids_[c.label];
    // Without the others: to take memory from several, the system has to stop them all.
    crew_ = nullptr;
    crew.reset();
    if (!keeps_scratch_) release();
}

// Fresh memory costs up to a quarter of a rebuild, but a large one must not leave more behind than
// packing has saved of the values: then rows and scratch take no more than the bare numbers.
void Builder::start_scratch(const Examples& examples, std::size_t n_rows) {
    const std::size_t n_features = columns_.kinds.size(), unpacked = n_features * sizeof(double);
    const std::size_t packed = std::min(examples.packing().record_bytes(), unpacked);
    // As measured: a code takes two bytes, and what has many values is wide, and sorted besides.
    const std::size_t of_row = 28 + 4 * n_workers_ + 2 * n_features + packed / 2;
    scratch_bytes_ = std::max(scratch_bytes_, n_rows * of_row);
    keeps_scratch_ =
        scratch_bytes_ <= std::max(kKeepScratchUpTo, examples.size() * (unpacked - packed));
}

// After a build that needs none: of a set that was large before, much may be left.
void Builder::give_back_scratch(const Examples& examples) {
    if (scratch_bytes_ <= kKeepScratchUpTo) return;
    start_scratch(examples, 0);
    if (!keeps_scratch_) release();
}

void Builder::release() {
    scratch_bytes_ = 0;
    columns_.release();
    workers_.resize(1);
    workers_[0]->search.release();
    give_back_freed();
}

// Classes are numbered in the order of their ids, so that counts stay sorted by class.
void Builder::number_classes(const Examples& examples, std::span<const Slot> rows,
                             std::span<const ClassCount> counts, Watch& watch) {
    class_ids_.clear();
    for (const ClassCount& c : counts) class_ids_.push_back(c.label);
    if (!counts.empty()) numbers_.resize(counts.back().label + std::size_t{1});
    for (std::size_t i = 0; i < class_ids_.size(); ++i) {
        numbers_[class_ids_[i]] = static_cast<std::uint32_t>(i);
    }
    classes_.resize(rows.size());
    each_chunk(rows.size(), watch, [&](std::size_t, std::size_t begin, std::size_t end) {
        for (std::size_t row = begin; row < end; ++row) {
            classes_[row] = numbers_[examples.label(rows[row])];
        }
    });
}

void Builder::plan_root(Plan& plan, std::span<const ClassCount> counts) {
    PlannedNode& root = plan.nodes.emplace_back();
    for (std::uint32_t c = 0; c < counts.size(); ++c) {
        const std::uint32_t count = counts[c].count;
        plan.counts.push_back({c, count});
        root.tally.size += count;
        root.tally.squares += std::uint64_t{count} * count;
    }
    root.end = static_cast<std::uint32_t>(root.tally.size);
    root.counts_end = static_cast<std::uint32_t>(plan.counts.size());
}

// All of the build, if it has so few rows; false, and nothing is done, if it has to go another way.
bool Builder::plan_handful(const Examples& examples, std::span<const ClassCount> counts,
                           std::uint32_t depth, Plan& plan, Watch& watch) {
    const std::size_t n = plan.rows.size();
    if (n > Handful::kMostRows || counts.size() > Handful::kMostClasses) return false;
    if (features_if_real_.empty() || !wide::few::pays()) return false;
    watch.worked(n * features_if_real_.size());
    handful_.start(examples.packing());
    for (std::size_t i = 0; i < n; ++i) {
        const auto own =
            std::ranges::find(counts, examples.label(plan.rows[i]), &ClassCount::label);
        handful_.add(examples.record(plan.rows[i]), static_cast<std::size_t>(own - counts.begin()),
                     i >= put_off_.first_new);
    }
    plan_root(plan, counts);
    for (std::size_t c = 0; c < counts.size(); ++c) plan.counts[c].label = counts[c].label;
    if (limits_.build_stops(plan.nodes[0].tally, depth)) return true;
    if (!handful_.plan(features_if_real_, put_off_.largest, depth, plan)) {
        plan.nodes.clear();
        plan.counts.clear();
        return false;
    }
    std::array<Slot, Handful::kMostRows> rows;
    std::ranges::copy(plan.rows, rows.begin());
    for (std::size_t i = 0; i < n; ++i) plan.rows[i] = rows[handful_.order()[i]];
    return true;
}

void Builder::plan_splits(const Examples& examples, std::span<const Slot> rows, std::uint32_t depth,
                          Plan& plan, Watch& watch) {
    Worker& first = *workers_[0];
    first.open.clear();
    columns_.prepare(examples.packing(), classes_, static_cast<std::uint32_t>(class_ids_.size()));
    bring_in(examples, rows, watch);
    merge_copies(watch);
    hire(n_at_work());
    const bool may_be_few = crew_ == nullptr && columns_.times == nullptr;
    if (may_be_few && plan_few(depth, plan, watch)) return;
    first.open.push_back({0, depth, crew_ == nullptr ? load(watch) : load_together(watch)});
    if (crew_ == nullptr) {
        plan_alone(first, plan, watch);
    } else {
        plan_together(plan, watch);
    }
}

// All rows at once, if they are few; false if they have to go the general way.
bool Builder::plan_few(std::uint32_t depth, Plan& plan, Watch& watch) {
    Worker& first = *workers_[0];
    const Segment whole = first.search.open_unloaded();
    if (FewRows::can_plan(columns_, first.search.features(whole), whole.size(),
                          class_ids_.size()) &&
        first.few.plan(columns_, first.search, whole, put_off_, plan, 0, depth, watch)) {
        return true;
    }
    columns_.forget_features();
    return false;
}

// Chunk by chunk, each array for itself: of two workers that write to a page of memory as the
// first, both would clear it.
void Builder::bring_in(const Examples& examples, std::span<const Slot> rows, Watch& watch) {
    constexpr std::size_t n_arrays = 3;
    const std::size_t n = rows.size(), at_once = crew_ == nullptr ? n : kRowsAtOnce;
    const std::size_t n_chunks = (n + at_once - 1) / at_once;
    each_near(n_arrays * n_chunks, watch, [&](std::size_t, std::size_t item, Watch& own_watch) {
        const std::size_t begin = item / n_arrays * at_once, end = std::min(begin + at_once, n);
        if (item % n_arrays == 0) columns_.find_records(examples, rows, begin, end);
        if (item % n_arrays == 1) columns_.number_rows(begin, end);
        if (item % n_arrays == 2) columns_.tag_rows(begin, end);
        own_watch.worked(end - begin);
    });
}

// What is put off depends on the age of rows, which copies do not share.
void Builder::merge_copies(Watch& watch) {
    Copies& copies = columns_.copies;
    const Copies::Rows rows{columns_.records.get(), columns_.packing->record_bytes(), classes_};
    if (put_off_.largest > 0 || !copies.are_likely(rows)) return;
    // Where rows have been ordered before, some parts are all copies, and done in no time: whoever
    // is free takes the next one.
    const std::size_t n_parts = crew_ == nullptr ? 1 : kPartsAWorker * crew_->size();
    copies.start(rows, n_parts);
    each(n_parts, watch,
         [&](std::size_t, std::size_t part, Watch& own_watch) { copies.find(part, own_watch); });
    if (!copies.settle()) return;
    each(n_parts, watch, [&](std::size_t, std::size_t part, Watch&) {
        copies.list(part);
        copies.gather(part, columns_.records.get());
        copies.gather(part, classes_.data());
    });
    for (std::size_t part = 0; part < n_parts; ++part) {
        copies.bring_forward(part, columns_.records.get());
        copies.bring_forward(part, classes_.data());
    }
    classes_.resize(copies.size());
    columns_.merge_copies(classes_);
    each_chunk(columns_.n, watch, [&](std::size_t, std::size_t begin, std::size_t end) {
        columns_.tag_rows(begin, end);
    });
}

// The rows of a leaf as they were before copies were merged.
void Builder::end_rows(const Segment& segment) {
    if (columns_.times == nullptr) return;
    columns_.name_all_rows(segment.begin, segment.rows_end, segment.end);
}

void Builder::hire(std::size_t n_workers) {
    while (workers_.size() < n_workers) {
        workers_.push_back(std::make_unique<Worker>(columns_, limits_));
    }
    for (std::size_t w = 0; w < n_workers; ++w) {
        workers_[w]->search.reserve();
        workers_[w]->class_counts.assign(class_ids_.size(), 0);
    }
}

void Builder::plan_alone(Worker& worker, Plan& plan, Watch& watch) {
    SplitSearch& search = worker.search;
    const auto best_of = [&](Segment& segment, std::span<const ClassCount> counts) {
        return search.best(segment, counts, watch);
    };
    const auto divide_rows = [&](const Segment& segment, const Candidate& split, Segment& left,
                                 Segment& right) {
        search.mark_left(segment, split);
        search.divide_rows(segment, split, left, right, watch);
        const Segment& smaller = left.size() <= right.size() ? left : right;
        count_classes(worker, smaller.begin, smaller.rows_end);
    };
    const auto divide_features = [&](const Segment& segment, const Segment& left,
                                     const Segment& right) {
        search.divide_features(search.features(segment), segment, watch);
        search.divide_counts(search.features(segment), left, right, watch);
    };
    const auto end_rows_now = [&](const Segment& segment) { end_rows(segment); };
    search.work_alone();
    while (!worker.open.empty()) {
        const Open open = worker.open.back();
        worker.open.pop_back();
        const PlannedNode& node = plan.nodes[open.node];
        if (FewRows::can_plan(columns_, search.features(open.segment), open.segment.size(),
                              node.counts_end - node.counts_begin)) {
            plan_few(worker, plan, open, watch);
        } else {
            plan_node(worker, plan, open, best_of, divide_rows, divide_features, end_rows_now);
        }
    }
}

// What was loaded has no missing value, so this succeeds. Copies are rows again.
void Builder::plan_few(Worker& worker, Plan& plan, Open open, Watch& watch) {
    SplitSearch& search = worker.search;
    const bool merged = columns_.times != nullptr;
    if (merged) search.repeat_rows(open.segment);
    worker.few.plan(columns_, search, open.segment, put_off_, plan, open.node, open.depth, watch);
    if (merged) columns_.name_rows(open.segment.begin, open.segment.end);
    search.close(open.segment);
}

template <typename Best, typename DivideRows, typename DivideFeatures, typename End>
void Builder::plan_node(Worker& worker, Plan& plan, Open open, Best best_of, DivideRows divide_rows,
                        DivideFeatures divide_features, End end) {
    PlannedNode* node = &plan.nodes[open.node];
    const std::span<const ClassCount> counts(plan.counts.data() + node->counts_begin,
                                             node->counts_end - node->counts_begin);
    const Candidate best = best_of(open.segment, counts);
    if (!best.found) {
        node->inseparable = true;
        end(open.segment);
        return worker.search.close(open.segment);
    }
    node->split = best.split;
    node->floor = mass(best.sides);
    node->left = static_cast<std::uint32_t>(plan.nodes.size());
    const std::uint32_t left = node->left;
    plan.nodes.resize(plan.nodes.size() + 2);
    plan.nodes[left].tally = best.sides.left;
    plan.nodes[left + 1].tally = best.sides.right;
    Open on_left{left, open.depth + 1, {}}, on_right{left + 1, open.depth + 1, {}};
    divide_rows(open.segment, best, on_left.segment, on_right.segment);
    plan_children(worker, plan, open, on_left.segment.end);
    const bool search_left = search_on(plan.nodes[left], open.depth + 1);
    const bool search_right = search_on(plan.nodes[left + 1], open.depth + 1);
    if (search_left || search_right) {
        worker.search.begin_counts(open.segment, worker.search.features(open.segment),
                                   on_left.segment, search_left, on_right.segment, search_right);
        divide_features(open.segment, on_left.segment, on_right.segment);
    } else {
        worker.search.close(open.segment);
    }
    if (!search_left) end(on_left.segment);
    if (!search_right) end(on_right.segment);
    // The smaller side first: then at most log2(n) sides wait at any time.
    const bool left_first = on_left.segment.size() <= on_right.segment.size();
    if (left_first && search_right) worker.open.push_back(on_right);
    if (search_left) worker.open.push_back(on_left);
    if (!left_first && search_right) worker.open.push_back(on_right);
}

// Whether there is anything to be searched in a child, and now. Its rows have been put in place.
bool Builder::search_on(PlannedNode& child, std::uint32_t depth) const {
    if (limits_.build_stops(child.tally, depth)) return false;
    const auto is_new = [&](std::uint32_t row) { return row >= put_off_.first_new; };
    child.put_off = child.tally.size <= put_off_.largest &&
                    std::ranges::none_of(columns_.row_span(child.begin, child.end), is_new);
    return !child.put_off;
}

void Builder::count_classes(Worker& worker, std::uint32_t begin, std::uint32_t end) const {
    for (const std::uint32_t row : columns_.row_span(begin, end)) {
        worker.class_counts[classes_[row]] += columns_.times == nullptr ? 1 : columns_.times[row];
    }
}

// Row ranges and class counts of the two children, of which the smaller one has been counted.
void Builder::plan_children(Worker& worker, Plan& plan, const Open& parent, std::uint32_t middle) {
    std::vector<std::uint32_t>& class_counts = worker.class_counts;
    const std::uint32_t left_id = plan.nodes[parent.node].left;
    const std::uint32_t counts_begin = plan.nodes[parent.node].counts_begin;
    const std::uint32_t counts_end = plan.nodes[parent.node].counts_end;
    PlannedNode &left = plan.nodes[left_id], &right = plan.nodes[left_id + 1];
    left.begin = parent.segment.begin;
    left.end = right.begin = middle;
    right.end = parent.segment.end;
    const bool left_smaller = left.end - left.begin <= right.end - right.begin;
    const auto append = [&](PlannedNode& node, bool is_smaller) {
        node.counts_begin = static_cast<std::uint32_t>(plan.counts.size());
        for (std::uint32_t i = counts_begin; i < counts_end; ++i) {
            const ClassCount all = plan.counts[i];
            const std::uint32_t of_smaller = class_counts[all.label];
            const std::uint32_t count = is_smaller ? of_smaller : all.count - of_smaller;
            if (count > 0) plan.counts.push_back({all.label, count});
        }
        node.counts_end = static_cast<std::uint32_t>(plan.counts.size());
    };
    append(left, left_smaller);
    append(right, !left_smaller);
    for (std::uint32_t i = counts_begin; i < counts_end; ++i)
        class_counts[plan.counts[i].label] = 0;
}

// As the leaves have them. Fresh memory would cost more than the second step.
void Builder::order_rows(Plan& plan, Watch& watch) {
    std::uint32_t* const ordered = columns_.rows.get();
    each_chunk(columns_.n_all, watch, [&](std::size_t, std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) ordered[i] = plan.rows[ordered[i]];
    });
    each_chunk(columns_.n_all, watch, [&](std::size_t, std::size_t begin, std::size_t end) {
        std::copy(ordered + begin, ordered + end, plan.rows.data() + begin);
    });
}

Segment Builder::load(Watch& watch) {
    SplitSearch& search = workers_[0]->search;
    const bool coding = columns_.start_codes(1);
    if (coding) columns_.coded.code(0, 0, watch);
    if (coding) settle_codes(watch);
    find_bins(watch);
    search.sort(0, columns_.kinds.size(), watch);
    columns_.settle_bins();
    settle_sorting();
    const Segment whole = search.open();
    if (whole.counts == nullptr) return whole;
    std::fill_n(whole.counts, columns_.counts_size, 0u);
    count_chunk(0, whole.counts, watch);
    return whole;
}

// Where no feature has few values, what was tried must not take memory from what follows.
void Builder::settle_codes(Watch& watch) {
    const std::size_t n_features = columns_.kinds.size();
    // Apart, as the values of one feature may be more than those of all others.
    each(n_features * n_at_work(), watch, [&](std::size_t, std::size_t item, Watch&) {
        columns_.coded.sort_keys(item / n_at_work(), item % n_at_work());
    });
    each(n_features, watch,
         [&](std::size_t, std::size_t j, Watch&) { columns_.coded.find_keys(j); });
    columns_.settle_codes();
    each(n_features, watch, [&](std::size_t, std::size_t j, Watch&) { columns_.find_values(j); });
    const bool in_vain = columns_.counts_size == 0 && !columns_.can_bin();
    if (in_vain && !keeps_scratch_) columns_.coded.release();
}

// Where bins begin, group by group; then the bins of all features of a row at once.
void Builder::find_bins(Watch& watch) {
    if (!columns_.can_bin()) return;
    columns_.start_bins();
    const std::size_t n_chunks = (columns_.n + kRowsAtOnce - 1) / kRowsAtOnce;
    do {
        each(columns_.bin_groups.size(), watch, [&](std::size_t w, std::size_t g, Watch& own) {
            workers_[w]->search.begin_bins(g, own);
        });
        each_near(n_chunks, watch, [&](std::size_t w, std::size_t chunk, Watch& own) {
            const std::size_t begin = chunk * kRowsAtOnce;
            workers_[w]->search.find_bins(begin, std::min(begin + kRowsAtOnce, columns_.n), own);
        });
        for (std::size_t w = 0; w < n_at_work(); ++w) workers_[w]->search.tell_seen();
    } while (!columns_.settle_groups());
}

// The same for what sorts, where all features are sorted by now, and few rows are not loaded anew.
void Builder::settle_sorting() {
    const bool is_done = columns_.counts_size == 0 && columns_.times == nullptr;
    if (!is_done || keeps_scratch_) return;
    for (const auto& worker : workers_) worker->search.release_sorting();
}

void Builder::count_chunk(std::size_t chunk, std::uint32_t* counts, Watch& watch) {
    const CodedRows::Counted counted{classes_.data(), columns_.times, 1};
    columns_.coded.place(chunk, columns_.rows.get(), counted, counts, watch);
}

// ---- several workers ----------------------------------------------------------------------------

template <typename Do>
void Builder::each(std::size_t n_items, Watch& watch, Do do_this) {
    if (crew_ == nullptr) {
        for (std::size_t item = 0; item < n_items; ++item) do_this(0, item, watch);
    } else {
        crew_->each(n_items, watch, do_this);
    }
}

template <typename Do>
void Builder::each_near(std::size_t n_items, Watch& watch, Do do_this) {
    if (crew_ == nullptr) return each(n_items, watch, do_this);
    crew_->each_near(n_items, watch, do_this);
}

template <typename Do>
void Builder::each_chunk(std::size_t n, Watch& watch, Do do_this) {
    if (crew_ == nullptr) return do_this(0, 0, n);
    each_near((n + kRowsAtOnce - 1) / kRowsAtOnce, watch,
              [&](std::size_t w, std::size_t item, Watch& own_watch) {
                  do_this(w, item * kRowsAtOnce, std::min((item + 1) * kRowsAtOnce, n));
                  own_watch.worked(kRowsAtOnce);
              });
}

void Builder::plan_together(Plan& plan, Watch& watch) {
    Worker& first = *workers_[0];
    const auto best_of = [&](Segment& segment, std::span<const ClassCount> counts) {
        return best_together(segment, counts, watch);
    };
    const auto divide_rows = [&](const Segment& segment, const Candidate& split, Segment& left,
                                 Segment& right) {
        mark_left_together(segment, split, watch);
        const std::uint32_t n_left = divide_rows_together(segment, split, watch);
        first.search.set_sides(segment, split, n_left, left, right);
    };
    const auto divide_features = [&](const Segment& segment, const Segment& left,
                                     const Segment& right) {
        divide_features_together(segment, left, right, watch);
    };
    std::vector<Segment> ended;
    const auto end_later = [&](const Segment& segment) { ended.push_back(segment); };
    std::vector<Subtree> subtrees;
    while (!first.open.empty()) {
        const Open open = first.open.back();
        first.open.pop_back();
        if (open.segment.n_rows() * kTasksAWorker * crew_->size() >= columns_.n) {
            plan_node(first, plan, open, best_of, divide_rows, divide_features, end_later);
        } else {
            const auto features = first.search.features(open.segment);
            subtrees.push_back({open, {features.begin(), features.end()}, {}});
        }
    }
    std::sort(subtrees.begin(), subtrees.end(), [](const Subtree& a, const Subtree& b) {
        return a.root.segment.n_rows() > b.root.segment.n_rows();
    });
    const std::size_t n_ended = ended.size();
    crew_->each(n_ended + subtrees.size(), watch, [&](std::size_t w, std::size_t item, Watch& own) {
        if (item < n_ended) return end_rows(ended[item]);
        plan_subtree(*workers_[w], plan, subtrees[item - n_ended], own);
    });
    append_together(plan, subtrees, watch);
}

void Builder::plan_subtree(Worker& worker, const Plan& plan, Subtree& subtree, Watch& watch) {
    const PlannedNode& root = plan.nodes[subtree.root.node];
    subtree.plan.nodes.push_back(root);
    subtree.plan.counts.assign(plan.counts.begin() + root.counts_begin,
                               plan.counts.begin() + root.counts_end);
    subtree.plan.nodes[0].counts_begin = 0;
    subtree.plan.nodes[0].counts_end = root.counts_end - root.counts_begin;
    Open open = subtree.root;
    open.node = 0;
    worker.search.set_features(open.segment, subtree.features);
    worker.open.assign(1, open);
    plan_alone(worker, subtree.plan, watch);
}

// A subtree's root has its place in the plan, all its other nodes and its counts come behind.
void Builder::append_together(Plan& plan, std::span<Subtree> subtrees, Watch& watch) {
    std::size_t n_nodes = plan.nodes.size(), n_counts = plan.counts.size();
    for (Subtree& subtree : subtrees) {
        subtree.nodes_at = static_cast<std::uint32_t>(n_nodes);
        subtree.counts_at = static_cast<std::uint32_t>(n_counts);
        n_nodes += subtree.plan.nodes.size() - 1;
        n_counts += subtree.plan.counts.size();
    }
    plan.nodes.resize(n_nodes);
    plan.counts.resize(n_counts);
    crew_->each(subtrees.size(), watch,
                [&](std::size_t, std::size_t item, Watch&) { append(plan, subtrees[item]); });
}

void Builder::append(Plan& plan, const Subtree& subtree) {
    std::ranges::copy(subtree.plan.counts, plan.counts.begin() + subtree.counts_at);
    for (std::size_t i = 0; i < subtree.plan.nodes.size(); ++i) {
        PlannedNode& node = plan.nodes[i == 0 ? subtree.root.node : subtree.nodes_at + i - 1];
        node = subtree.plan.nodes[i];
        node.left += subtree.nodes_at - 1;
        node.counts_begin += subtree.counts_at;
        node.counts_end += subtree.counts_at;
    }
}

}  // namespace evertree
