// Watch: how long work is interrupted.
#pragma once

#include <cstddef>

namespace evertree {

// Long work asks now and then whether it should go on; the answer "no" is an exception.
class Watch {
  public:
    virtual ~Watch() = default;
    virtual void poll() = 0;

    // Roughly one memory access per unit.
    void worked(std::size_t units) {
        since_poll_ += units;
        if (since_poll_ < kUnitsBetweenPolls) return;
        since_poll_ = 0;
        poll();
    }

  private:
    static constexpr std::size_t kUnitsBetweenPolls = std::size_t{1} << 21;
    std::size_t since_poll_ = 0;
};

}  // namespace evertree
