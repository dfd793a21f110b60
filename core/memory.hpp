// Memory: arrays that are not filled before they are used.
//
// Large ones are taken from the system and given back to it, so that a large rebuild leaves nothing
// behind; and they ask for large pages, because rows are read in any order, and with small pages
// most of those reads would first have to look up where the page is.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif
#ifdef __GLIBC__
#include <malloc.h>
#endif

#if defined(_MSC_VER) && !defined(__clang__)
// A hint that Visual C++ spells otherwise, and on each processor; it does without.
#define __builtin_prefetch(address, ...) static_cast<void>(address)
#endif

namespace evertree {

// What different threads write lies so far apart, in bytes, that they do not take the same line of
// the cache from each other.
inline constexpr std::size_t kApart = 128;

// What lies anywhere in memory: all of its lines are asked for before any is waited for.
inline void fetch(const std::byte* first, std::size_t bytes) {
    constexpr std::size_t line = 64;
    for (std::size_t at = 0; at < bytes; at += line) __builtin_prefetch(first + at);
    __builtin_prefetch(first + bytes - 1);
}

// Room for n elements: arrays for few grow in steps, those for many take what they need.
inline std::size_t capacity_for(std::size_t n) { return n < 65536 ? std::bit_ceil(n) : n; }

template <typename T>
class Buffer {
  public:
    Buffer() = default;
    explicit Buffer(std::size_t size) : memory_(take(size * sizeof(T))) {}

    // Little of this part will be touched: in small pages, for a page is cleared as a whole.
    void expect_little([[maybe_unused]] std::size_t begin, [[maybe_unused]] std::size_t end) const {
#ifdef MADV_NOHUGEPAGE
        if (memory_.get_deleter().from_system == nullptr) return;
        constexpr std::uintptr_t page = 4096;
        const auto first = reinterpret_cast<std::uintptr_t>(get() + begin) & ~(page - 1);
        const auto last = reinterpret_cast<std::uintptr_t>(get() + end) & ~(page - 1);
        madvise(reinterpret_cast<void*>(first), last - first, MADV_NOHUGEPAGE);
#endif
    }
    T* get() const { return memory_.get(); }
    T& operator[](std::size_t i) const { return memory_.get()[i]; }

  private:
    struct Free {
        void* from_system = nullptr;  // where it begins, if it came from there
        std::size_t bytes = 0;

        void operator()(T* p) const noexcept {
#ifdef __linux__
            if (from_system != nullptr) {
                munmap(from_system, bytes);
                return;
            }
#endif
            ::operator delete(p);
        }
    };
    using Owner = std::unique_ptr<T, Free>;

    static Owner take(std::size_t bytes) {
#ifdef __linux__
        if (bytes >= kLarge) return take_from_system(bytes);
#endif
        return Owner(static_cast<T*>(::operator new(bytes)), Free{});
    }

#ifdef __linux__
    static constexpr std::size_t kLargePage = std::size_t{1} << 21, kLarge = 2 * kLargePage;

    // From the start of a large page on.
    static Owner take_from_system(std::size_t bytes) {
        const std::size_t all = bytes + kLargePage;
        void* const from =
            mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (from == MAP_FAILED) throw std::bad_alloc();
        const auto address = reinterpret_cast<std::uintptr_t>(from);
        const auto aligned = (address + kLargePage - 1) & ~(kLargePage - 1);
        Owner owner(reinterpret_cast<T*>(aligned), Free{from, all});
#ifdef MADV_HUGEPAGE
        madvise(owner.get(), bytes, MADV_HUGEPAGE);  // a wish: without it all works the same
#endif
        return owner;
    }
#endif

    Owner memory_;
};

// Gives back to the system what was freed in pieces: small blocks between others keep it otherwise.
inline void give_back_freed() {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

template <typename T>
void grow(Buffer<T>& memory, std::size_t& capacity, std::size_t wanted) {
    if (capacity >= wanted) return;
    capacity = 0;
    memory = {};  // first: both at once may not fit
    memory = Buffer<T>(wanted);
    capacity = wanted;
}

}  // namespace evertree
