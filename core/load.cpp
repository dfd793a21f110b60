// SplitSearch, the first part: the features of a set, gathered and put into sorted or counted form.

#include <algorithm>
#include <bit>

#include "split.hpp"

namespace evertree {

namespace {

constexpr std::size_t kRowsPerCount = 2;  // from so many rows a value and class on, counting pays
constexpr std::size_t kCountFrom = 64;    // rows
constexpr std::size_t kGatherFewFrom = std::size_t{1} << 17;  // for the sake of memory
constexpr std::size_t kManyFeatures = 40;

}  // namespace

void SplitSearch::reserve(std::size_t n) {
    const std::size_t n_elements = n * kinds_.size();
    if (capacity_rows_ < n) {
        capacity_rows_ = 0;
        const std::size_t capacity = n < 65536 ? std::bit_ceil(n) : n;
        rows_.reset(new std::uint32_t[capacity]);
        spare_.reset(new std::uint32_t[capacity]);
        goes_left_.reset(new std::uint8_t[capacity]);
        capacity_rows_ = capacity;
    }
    if (capacity_elements_ < n_elements) {
        capacity_elements_ = 0;
        const std::size_t capacity = n < 65536 ? std::bit_ceil(n_elements) : n_elements;
        elements_.reset(new std::uint32_t[capacity]);  // not touched before it is used
        capacity_elements_ = capacity;
    }
    n_gathered_ = n < kGatherFewFrom || kinds_.size() >= kManyFeatures ? 8 : 4;
    // Each by its own size: any of these may fail, and the next build must find that out.
    if (keys_.size() < n * n_gathered_) keys_.resize(n * n_gathered_);
    if (x_.size() < n) x_.resize(n);
    if (tagged_.size() < n) tagged_.resize(n);
    if (ones_left_.size() < n) ones_left_.resize(n);
    if (inverse_.size() > n) return;
    // inverse_back[size - n + i] is 1/(n - 1 - i): what remains on the right of i + 1 rows.
    const std::size_t size = std::bit_ceil(n + 1);
    rough_inverse_.resize(size);
    rough_inverse_back_.resize(size);
    inverse_.resize(size);  // the last: its size says that all three are there
    for (std::size_t i = 0; i < size; ++i) {
        inverse_[i] = 1.0 / static_cast<double>(std::max<std::size_t>(i, 1));
        rough_inverse_[i] = static_cast<float>(inverse_[i]);
        rough_inverse_back_[size - 1 - i] = rough_inverse_[i];
    }
}

void SplitSearch::release() {
    capacity_rows_ = capacity_elements_ = 0;
    rows_.reset();
    spare_.reset();
    goes_left_.reset();
    elements_.reset();
    keys_ = {};
    x_ = {};
    tagged_ = {};
    sorter_.release();
    ranks_ = {};
    values_ = {};
    counts_ = {};
    counts_free_ = {};
    inverse_ = {};
    rough_inverse_ = rough_inverse_back_ = {};
    ones_left_ = {};
}

Segment SplitSearch::load(const Examples& examples, std::span<const Slot> slots,
                          std::span<const std::uint32_t> classes, std::uint32_t n_classes,
                          Watch& watch) {
    classes_ = classes;
    n_ = slots.size();
    n_classes_ = n_classes;
    reserve(n_);
    for (std::uint32_t row = 0; row < n_; ++row) {
        rows_[row] = row;
        x_[row] = examples.x(slots[row]);
        tagged_[row] = n_classes == 2 ? row | classes[row] << 30 : row;
    }
    columns_.assign(kinds_.size(), Column{});
    ranks_.clear();
    values_.clear();
    counts_size_ = 0;
    features_.clear();
    counts_free_.clear();
    for (std::uint32_t block = 0; block < counts_.size(); ++block) counts_free_.push_back(block);

    const auto n_features = static_cast<std::uint32_t>(kinds_.size());
    for (std::uint32_t first = 0; first < n_features; first += n_gathered_) {
        gather(first, std::min(first + n_gathered_, n_features));
        watch.worked(n_ * n_gathered_);
        for (std::uint32_t j = first; j < std::min(first + n_gathered_, n_features); ++j) {
            load_column(j, {keys_.data() + (j - first) * n_, n_}, watch);
        }
    }
    Segment whole;
    whole.end = static_cast<std::uint32_t>(n_);
    whole.n_features = static_cast<std::uint32_t>(features_.size());
    if (counts_size_ > 0) {
        whole.counts = take_counts();
        for (const std::uint32_t entry : features_) {
            if ((entry & kCounted) == 0) continue;
            const Column& column = columns_[entry & ~kCounted];
            count(column, whole, counts_[whole.counts].data() + column.counts_at);
            watch.worked(n_);
        }
    }
    return whole;
}

// A row's neighbouring values lie in one line of the cache: they are fetched together.
void SplitSearch::gather(std::uint32_t first, std::uint32_t end) {
    for (std::size_t row = 0; row < n_; ++row) {
        const double* const x = x_[row];
        std::uint64_t* key = keys_.data() + row;
        for (std::uint32_t feature = first; feature < end; ++feature, key += n_) {
            *key = sort_key(x[feature]);
        }
    }
}

void SplitSearch::load_column(std::uint32_t feature, std::span<const std::uint64_t> keys,
                              Watch& watch) {
    std::uint64_t differing = 0, largest = 0;
    for (const std::uint64_t key : keys) {
        differing |= key ^ keys[0];
        largest = std::max(largest, key);
    }
    watch.worked(n_);
    if (differing == 0) return;
    Column& column = columns_[feature];
    column.any_missing = is_missing(value_of_key(largest));
    if (n_ >= kCountFrom && load_counted(feature, keys)) return;
    watch.worked(n_);
    sorter_.sort(keys, differing, watch);
    load_sorted(feature, 0, static_cast<std::uint32_t>(n_), nullptr);
    features_.push_back(feature);
}

bool SplitSearch::load_counted(std::uint32_t feature, std::span<const std::uint64_t> keys) {
    Column& column = columns_[feature];
    const std::size_t ranks_at = ranks_.size();
    ranks_.resize(ranks_at + n_);
    if (!distinct_.rank(keys, n_ / n_classes_ / kRowsPerCount, ranks_.data() + ranks_at)) {
        ranks_.resize(ranks_at);
        return false;
    }
    column.n_values = static_cast<std::uint32_t>(distinct_.keys().size());
    column.ranks_at = static_cast<std::uint32_t>(ranks_at / n_);
    column.values_at = static_cast<std::uint32_t>(values_.size());
    column.counts_at = static_cast<std::uint32_t>(counts_size_);
    for (const std::uint64_t key : distinct_.keys()) values_.push_back(value_of_key(key));
    counts_size_ += std::size_t{column.n_values} * n_classes_;
    features_.push_back(feature | kCounted);
    return true;
}

// What the sorter holds becomes the sorted form; `rows` says which rows were sorted (null: all).
void SplitSearch::load_sorted(std::uint32_t feature, std::uint32_t begin, std::uint32_t end,
                              const std::uint32_t* rows) {
    std::uint32_t* const out = elements(feature) + begin;
    for (std::uint32_t i = 0; i < end - begin; ++i) {
        const std::uint32_t row = rows == nullptr ? sorter_.row(i) : rows[sorter_.row(i)];
        out[i] = tagged_[row];
    }
    out[0] |= kNewValue;
    for (std::uint32_t i = 1; i < end - begin; ++i) out[i] |= sorter_.is_new(i) ? kNewValue : 0;
}

bool SplitSearch::counting_pays(const Column& column, std::size_t n_rows) const {
    return kRowsPerCount * column.n_values * n_classes_ <= n_rows;
}

bool SplitSearch::any_counting_pays(const Segment& segment, std::size_t n_rows) const {
    const std::uint32_t* const list = features_.data() + segment.features_at;
    return std::any_of(list, list + segment.n_features, [&](std::uint32_t entry) {
        return (entry & kCounted) != 0 && counting_pays(columns_[entry & ~kCounted], n_rows);
    });
}

}  // namespace evertree
