// Large arrays come from the system and go back to it, alone.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "checks.hpp"
#include "memory.hpp"

namespace evertree {

namespace {

#ifdef __linux__

// Blocks from the system, and smaller ones in the gaps between them: one that is given back must
// leave the others alone. A few bytes of each tell.
class Taken {
  public:
    Taken(std::size_t bytes, std::uint8_t value)
        : large_(static_cast<std::uint8_t*>(LargeMemory::take(bytes))),
          bytes_(bytes),
          small_(bytes % kStep * 16, value),
          value_(value) {
        expect(reinterpret_cast<std::uintptr_t>(large_) % LargeMemory::kPage == 0, "not aligned");
        for (std::size_t at = 0; at < bytes; at += kStep) large_[at] = value;
    }
    void give_back() {
        for (std::size_t at = 0; at < bytes_; at += kStep) {
            expect(large_[at] == value_, "a large block has changed");
        }
        expect(std::ranges::count(small_, value_) == std::ssize(small_), "a small one has changed");
        LargeMemory::give_back(large_, bytes_);
    }

  private:
    static constexpr std::size_t kStep = 1 << 14;
    std::uint8_t* large_;
    std::size_t bytes_;
    std::vector<std::uint8_t> small_;
    std::uint8_t value_;
};

void large_memory() {
    std::vector<Taken> blocks;
    for (std::size_t turn = 0; turn < 3000; ++turn) {
        const std::size_t bytes = LargeMemory::kPage + turn * 7919 % (LargeMemory::kPage / 2);
        blocks.emplace_back(bytes, static_cast<std::uint8_t>(turn));
        if (blocks.size() < 16) continue;
        const std::size_t at = turn * 5 % blocks.size();
        blocks[at].give_back();
        blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(at));
    }
    for (Taken& block : blocks) block.give_back();
}

#else

void large_memory() {}  // from operator new, as all else

#endif

}  // namespace

void test_memory() { large_memory(); }

}  // namespace evertree
