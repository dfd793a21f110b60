#include "columns.hpp"

#include <algorithm>

namespace evertree {

namespace {

// While there are so many rows a value and class, counting pays. Sorted rows of two classes are
// searched many at a time, so it pays later there.
std::size_t rows_to_stay_counted(std::size_t n_classes) { return n_classes == 2 ? 8 : 2; }

template <typename T>
void grow(Buffer<T>& memory, std::size_t& capacity, std::size_t wanted) {
    if (capacity >= wanted) return;
    capacity = 0;
    memory = {};  // first: both at once may not fit
    memory = Buffer<T>(wanted);
    capacity = wanted;
}

}  // namespace

void Columns::prepare(const Examples& examples, std::span<const Slot> slots,
                      std::span<const std::uint32_t> row_classes, std::uint32_t n_row_classes) {
    n = slots.size();
    classes = row_classes;
    n_classes = n_row_classes;
    make_room(n);
    for (std::uint32_t row = 0; row < n; ++row) {
        rows[row] = row;
        x[row] = examples.x(slots[row]);
        tags[row] = row << 1 | (n_classes == 2 ? classes[row] : 0);
    }
    for (Column& column : columns) column.varies = column.counted = column.any_missing = false;
    counts_size = 0;
    counts_free_.clear();
    for (const auto& block : counts_blocks_) counts_free_.push_back(block.get());
}

// Each by its own size: any of these may fail, and the next build must find that out.
void Columns::make_room(std::size_t n_rows) {
    const std::size_t n_elements = n_rows * kinds.size();
    grow(rows, capacity_rows_, capacity_for(n_rows));
    grow(goes_left, capacity_goes_left_, capacity_for(n_rows));
    grow(sorted, capacity_sorted_, capacity_for(n_elements));
    grow(ranked, capacity_ranked_, capacity_for(n_elements));
    grow(x, capacity_x_, capacity_for(n_rows));
    grow(tags, capacity_tags_, capacity_for(n_rows));
    if (n_inverses <= n_rows) make_inverses(n_rows);
}

void Columns::make_inverses(std::size_t n_rows) {
    // rough_inverse_back[size - n + i] is 1/(n - 1 - i): what remains on the right of i + 1 rows.
    const std::size_t size = capacity_for(n_rows + 1);
    n_inverses = 0;
    rough_inverse = Buffer<float>(size);
    rough_inverse_back = Buffer<float>(size);
    inverse = Buffer<double>(size);
    n_inverses = size;
    for (std::size_t i = 0; i < size; ++i) {
        inverse[i] = 1.0 / static_cast<double>(std::max<std::size_t>(i, 1));
        rough_inverse[i] = static_cast<float>(inverse[i]);
        rough_inverse_back[size - 1 - i] = rough_inverse[i];
    }
}

void Columns::release() {
    n_inverses = capacity_x_ = capacity_tags_ = capacity_rows_ = capacity_goes_left_ =
        capacity_sorted_ = capacity_ranked_ = 0;
    rows = {};
    goes_left = {};
    sorted = {};
    ranked = {};
    x = {};
    tags = {};
    inverse = {};
    rough_inverse = {};
    rough_inverse_back = {};
    counts_free_.clear();
    counts_blocks_.clear();
    counts_block_size_ = 0;
}

bool Columns::counting_pays(const Column& column, std::size_t n_rows) const {
    return rows_to_stay_counted(n_classes) * column.n_values * n_classes <= n_rows;
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
        counts_blocks_.push_back(std::make_unique<std::uint32_t[]>(counts_block_size_));
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
