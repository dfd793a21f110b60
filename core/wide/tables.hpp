// Tables that the wide loops look things up in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "wide.hpp"

namespace evertree::wide {

// For each set of eight lanes: those in it, then the others, in order; a byte a lane.
struct Orders {
    std::array<std::uint64_t, 256> of{};

    constexpr Orders() {
        for (std::size_t lanes = 0; lanes < of.size(); ++lanes) {
            int at = 0;
            for (const bool in_it : {true, false}) {
                for (std::uint64_t lane = 0; lane < 8; ++lane) {
                    if (((lanes >> lane & 1) != 0) == in_it) of[lanes] |= lane << 8 * at++;
                }
            }
        }
    }
};
inline constexpr Orders kOrders;

// For each set of eight lanes: how many of them are up to each lane; a byte a lane.
struct CountsUpTo {
    std::array<std::uint64_t, 256> of{};

    constexpr CountsUpTo() {
        for (std::size_t lanes = 0; lanes < of.size(); ++lanes) {
            std::uint64_t count = 0;
            for (std::size_t lane = 0; lane < 8; ++lane) {
                count += lanes >> lane & 1;
                of[lanes] |= count << 8 * lane;
            }
        }
    }
};
inline constexpr CountsUpTo kCountsUpTo;

namespace few {

// 1/n, and the same from the end: back[kMostRows - n] is 1/n.
struct Inverses {
    alignas(64) std::array<float, kMostRows + kLanes> to{}, back{};

    constexpr Inverses() {
        for (std::size_t i = 1; i <= kMostRows; ++i) {
            to[i] = 1.0f / static_cast<float>(i);
            back[kMostRows - i] = to[i];
        }
    }
};
inline constexpr Inverses kInverse;

}  // namespace few

}  // namespace evertree::wide
