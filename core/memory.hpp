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

// What is large comes from the system, from the start of a large page on. The rest of it that does
// not fill one has small pages, so that none is taken up for nothing.
class LargeMemory {
  public:
    static constexpr std::size_t kPage = std::size_t{1} << 21;

    // Sanitizers watch only what comes from operator new.
#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)
    static bool is_for(std::size_t bytes) { return bytes >= kPage; }
#else
    static bool is_for(std::size_t) { return false; }
#endif

#ifdef __linux__
    static void* take(std::size_t bytes) {
        const std::size_t used = whole_pages(bytes), all = used + kPage;
        void* const from =
            mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (from == MAP_FAILED) throw std::bad_alloc();
        const std::size_t before = -reinterpret_cast<std::uintptr_t>(from) % kPage;
        std::byte* const first = static_cast<std::byte*>(from) + before;
        if (before > 0) munmap(from, before);
        munmap(first + used, kPage - before);
#ifdef MADV_HUGEPAGE
        madvise(first, bytes, MADV_HUGEPAGE);  // a wish: without it all works the same
#endif
        return first;
    }
    static void give_back(void* first, std::size_t bytes) noexcept {
        munmap(first, whole_pages(bytes));
    }

  private:
    // As large as small pages are on any machine.
    static std::size_t whole_pages(std::size_t bytes) {
        constexpr std::size_t page = std::size_t{1} << 16;
        return (bytes + page - 1) / page * page;
    }
#else
    static void* take(std::size_t) { throw std::bad_alloc(); }
    static void give_back(void*, std::size_t) noexcept {}
#endif
};

// The same for vectors.
template <typename T>
struct LargePages {
    using value_type = T;

    LargePages() = default;
    template <typename Other>
    LargePages(const LargePages<Other>&) {}

    T* allocate(std::size_t n) {
        const std::size_t bytes = n * sizeof(T);
        return static_cast<T*>(LargeMemory::is_for(bytes) ? LargeMemory::take(bytes)
                                                          : ::operator new(bytes));
    }
    void deallocate(T* first, std::size_t n) noexcept {
        if (LargeMemory::is_for(n * sizeof(T))) return LargeMemory::give_back(first, n * sizeof(T));
        ::operator delete(first);
    }
    bool operator==(const LargePages&) const { return true; }
};

template <typename T>
class Buffer {
  public:
    Buffer() = default;
    explicit Buffer(std::size_t size) : memory_(LargePages<T>().allocate(size), Free{size}) {}

    // Little of this part will be touched: in small pages, for a page is cleared as a whole.
    void expect_little([[maybe_unused]] std::size_t begin, [[maybe_unused]] std::size_t end) const {
#ifdef MADV_NOHUGEPAGE
        if (!LargeMemory::is_for(memory_.get_deleter().size * sizeof(T))) return;
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
        std::size_t size = 0;
        void operator()(T* first) const noexcept { LargePages<T>().deallocate(first, size); }
    };
    std::unique_ptr<T, Free> memory_;
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
