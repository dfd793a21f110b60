// Memory: arrays that are not filled before they are used.
//
// Large ones ask for large pages: rows are read in any order, and with small pages most of those
// reads would first have to look up where the page is.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace evertree {

template <typename T>
class Buffer {
  public:
    Buffer() = default;
    explicit Buffer(std::size_t size) : memory_(take(size * sizeof(T))) {}

    T* get() const { return memory_.get(); }
    T& operator[](std::size_t i) const { return memory_.get()[i]; }

  private:
    static constexpr std::size_t kLargePage = std::size_t{1} << 21;
    static constexpr std::align_val_t kAligned{kLargePage};

    struct Free {
        bool is_large = false;
        void operator()(T* p) const noexcept {
            is_large ? ::operator delete(p, kAligned) : ::operator delete(p);
        }
    };
    using Owner = std::unique_ptr<T, Free>;

    static Owner take(std::size_t bytes) {
        if (bytes < 2 * kLargePage) return Owner(static_cast<T*>(::operator new(bytes)), Free{});
        Owner owner(static_cast<T*>(::operator new(bytes, kAligned)), Free{true});
#if defined(__linux__) && defined(MADV_HUGEPAGE)
        madvise(owner.get(), bytes, MADV_HUGEPAGE);  // a wish: without it all works the same
#endif
        return owner;
    }

    Owner memory_;
};

}  // namespace evertree
