#include "columns.hpp"

#include <algorithm>

namespace evertree {

namespace {

// While there are so many rows a value, counting pays: with many classes, counts are cleared and
// subtracted for each. Few rows of two classes are searched many at a time, so it pays later.
double rows_to_stay_counted(std::size_t n_classes) {
    return n_classes == 2 ? 16.0 : 2.0 + static_cast<double>(n_classes) / 16;
}

// From so many a value and class on, it pays to try.
std::size_t rows_to_count(std::size_t n_classes) { return n_classes == 2 ? 128 : 2; }
constexpr std::size_t kCountFrom = 8;  // values: below, it is not worth trying

}  // namespace

void Columns::prepare(const Packing& of_records, std::span<const std::uint32_t> row_classes,
                      std::uint32_t n_row_classes) {
    packing = &of_records;
    n = n_all = row_classes.size();
    times = nullptr;
    classes = row_classes;
    n_classes = n_row_classes;
    make_room(n);
    forget_features();
    counts_size = 0;
    counts_free_.clear();
    for (const auto& block : counts_blocks_) counts_free_.push_back(block.get());
}

void Columns::forget_features() {
    for (Column& column : columns) {
        column.varies = column.counted = column.binned = column.any_missing = false;
    }
}

void Columns::find_records(const Examples& examples, std::span<const Slot> slots, std::size_t begin,
                           std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) records[row] = examples.record(slots[row]);
}

void Columns::number_rows(std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) rows[row] = static_cast<std::uint32_t>(row);
}

void Columns::tag_rows(std::size_t begin, std::size_t end) {
    const std::uint32_t class_bit = n_classes == 2 ? 1 : 0;
    for (std::size_t row = begin; row < end; ++row) {
        tags[row] = static_cast<std::uint32_t>(row) << 1 | (classes[row] & class_bit);
    }
}

void Columns::merge_copies(std::span<const std::uint32_t> row_classes) {
    n = copies.size();
    times = copies.counts();
    classes = row_classes;
}

// From the end on: the list never reaches what is still to be read.
void Columns::repeat(std::uint32_t* list, std::size_t n_rows, std::size_t n_listed) const {
    for (std::size_t i = n_rows; i-- > 0;) {
        const std::uint32_t first = list[i], again = first & ~element::kNewValue;
        const std::size_t count = times[first & element::kRow];
        n_listed -= count;
        std::fill_n(list + n_listed, count, again);
        list[n_listed] = first;
    }
}

void Columns::name_rows(std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t i = begin; i < end; ++i) rows[i] = copies.next(rows[i]);
}

void Columns::name_all_rows(std::uint32_t begin, std::uint32_t rows_end, std::uint32_t end) {
    for (std::uint32_t i = rows_end; i-- > begin;) {
        const std::span<const std::uint32_t> all = copies.all(rows[i]);
        end -= static_cast<std::uint32_t>(all.size());
        std::ranges::copy(all, rows.get() + end);
    }
}

// Each by its own size: any of these may fail, and the next build must find that out.
void Columns::make_room(std::size_t n_rows) {
    grow(rows, capacity_rows_, capacity_for(n_rows));
    grow(goes_left, capacity_goes_left_, capacity_for(n_rows));
    grow(sorted, capacity_sorted_, capacity_for(n_rows * kinds.size()));
    grow(records, capacity_records_, capacity_for(n_rows));
    grow(tags, capacity_tags_, capacity_for(n_rows));
}

void Columns::make_inverses() {
    std::size_t n_rows = 0;
    for (const Column& column : columns) {
        if (column.varies) n_rows = std::max(n_rows, longest_list(column));
    }
    if (n_inverses <= n_rows) make_inverses(n_rows);
}

// Features that are counted are sorted below.
std::size_t Columns::longest_list(const Column& column) const {
    if (!column.counted) return n_all;
    const double rows = rows_to_stay_counted(n_classes) * column.n_values;
    return n_classes == 2 ? wide::few::kMostRows : std::min(n_all, static_cast<std::size_t>(rows));
}

void Columns::make_inverses(std::size_t n_rows) {
    // rough_inverse_back[size - n + i] is 1/(n - 1 - i): what remains on the right of i + 1 rows.
    const std::size_t size = capacity_for(n_rows + 1);
    n_inverses = 0;
    rough_inverse = Buffer<float>(size);
    rough_inverse_back = Buffer<float>(size);
    n_inverses = size;
    for (std::size_t i = 0; i < size; ++i) {
        rough_inverse[i] = 1.0f / static_cast<float>(std::max<std::size_t>(i, 1));
        rough_inverse_back[size - 1 - i] = rough_inverse[i];
    }
}

void Columns::release() {
    n_inverses = capacity_records_ = capacity_tags_ = capacity_rows_ = capacity_goes_left_ =
        capacity_sorted_ = 0;
    rows = {};
    goes_left = {};
    sorted = {};
    coded.release();
    copies.release();
    bin_groups = {};
    some_records = {};
    records = {};
    tags = {};
    rough_inverse = {};
    rough_inverse_back = {};
    counts_free_.clear();
    counts_blocks_.clear();
    counts_block_size_ = 0;
}

bool Columns::counting_pays(const Column& column, std::size_t n_rows) const {
    if (n_classes == 2 && n_rows > wide::few::kMostRows) return true;
    if (column.binned) return false;
    return rows_to_stay_counted(n_classes) * column.n_values <= static_cast<double>(n_rows);
}

bool Columns::start_codes(std::size_t n_workers) {
    coding_ = false;
    sharing_ = n_workers > 1;
    if (columns.size() > CodedRows::kMostFeatures) return false;
    const std::size_t most = n_all / n_classes / rows_to_count(n_classes);
    if (most < kCountFrom) return false;
    coded.start(*packing, records.get(), n, most, n_workers);
    coding_ = true;
    return true;
}

void Columns::settle_codes() {
    for (std::size_t j = 0; j < columns.size(); ++j) {
        const std::span<const std::uint64_t> keys = coded.keys(j);
        const std::size_t n_counts = keys.size() * n_classes;
        if (keys.empty() || counts_size + n_counts > kMostCounts) continue;
        Column& column = columns[j];
        column.counted = true;
        column.varies = keys.size() > 1;
        if (!column.varies) continue;
        column.n_values = static_cast<std::uint32_t>(keys.size());
        column.any_missing = keys.back() == missing_code(bytes_of(packing->form(j)));
        column.counts_at = static_cast<std::uint32_t>(counts_size);
        coded.set_first_place(j, column.counts_at, n_classes);
        if (sharing_) sorted.expect_little(j * n_all, (j + 1) * n_all);
        counts_size += n_counts;
    }
    if (counts_size > 0) coded.make_room_for_places();
}

void Columns::find_values(std::size_t j) {
    Column& column = columns[j];
    if (!column.counted || !column.varies) return;
    column.values.clear();
    for (const std::uint64_t key : coded.keys(j)) {
        column.values.push_back(value_of(key, packing->form(j)));
    }
    coded.find_places(j);
}

std::uint32_t* Columns::take_counts() {
    const std::lock_guard lock(counts_mutex_);
    if (counts_block_size_ < counts_size) {  // of an earlier build, and too small
        counts_free_.clear();
        counts_blocks_.clear();
        counts_block_size_ = counts_size;
    }
    if (counts_free_.empty()) {
        counts_free_.reserve(counts_blocks_.size() + 1);  // giving back must not fail
        counts_blocks_.push_back(
            std::make_unique_for_overwrite<std::uint32_t[]>(counts_block_size_));
        return counts_blocks_.back().get();
    }
    std::uint32_t* const block = counts_free_.back();
    counts_free_.pop_back();
    return block;
}

void Columns::give_back_counts(std::uint32_t* block) {
    if (block == nullptr) return;
    const std::lock_guard lock(counts_mutex_);
    counts_free_.push_back(block);
}

}  // namespace evertree
