// The bits of an element of a sorted feature, in either size (see wide.hpp), and what becomes of
// one of them when a list is divided.
#pragma once

#include <cstdint>

#include "wide.hpp"

namespace evertree::wide {

template <typename Element>
struct ElementBits;
template <>
struct ElementBits<std::uint32_t> {
    static constexpr std::uint32_t kNew = element::kNewValue;
    static constexpr int kClassShift = 30;
};
template <>
struct ElementBits<few::Element> {
    static constexpr std::uint32_t kNew = few::kNewValue;
    static constexpr int kClassShift = few::kRowBits;
};

// Elements that are divided, of which kLanes are at hand: the lanes of a side that are new there.
// `others` are the lanes of the other side, `pending` says that a new value was passed since the
// side's last row. Adding is what carries a new value over a run of the others to the first lane
// behind it.
template <int kLanes>
std::uint32_t new_lanes(std::uint32_t is_new, std::uint32_t side, std::uint32_t others,
                        std::uint32_t& pending) {
    const std::uint64_t carried = std::uint64_t{is_new & others} + others + pending;
    pending = static_cast<std::uint32_t>(carried >> kLanes);
    return (static_cast<std::uint32_t>(carried) | is_new) & side;
}

}  // namespace evertree::wide
