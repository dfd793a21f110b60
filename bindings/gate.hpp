// Gate: many readers or one writer, and never a deadlock with Python's own lock.
//
// The rule: nobody waits for the gate while holding the GIL; whoever is inside may wait for the
// GIL. A thread that is writing and comes back (a label's __eq__ that calls the tree, a signal
// handler) is told so instead of waiting for itself. Nobody starves: a writer that waits comes
// before new readers, and the readers that wait when it is done come before the next writer.
//
// Readers make no Python objects inside: making one may call the garbage collector, that a __del__,
// and that the tree; a reader that came back as a writer would wait for itself.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace evertree {

class Gate {
  public:
    void lock() {
        refuse_reentry();
        std::unique_lock state(state_);
        if (readers_ == 0 && admitted_ == 0 && !writing_) {
            writing_ = true;
        } else {
            const nanobind::gil_scoped_release release;
            ++writers_waiting_;
            changed_.wait(state, [&] { return readers_ == 0 && admitted_ == 0 && !writing_; });
            --writers_waiting_;
            writing_ = true;
            state.unlock();  // before the GIL is waited for
        }
        writer_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    }
    void unlock() { stop_writing(false); }
    // From writer to reader, with nobody in between.
    void stay_to_read() { stop_writing(true); }
    void lock_shared() {
        refuse_reentry();
        std::unique_lock state(state_);
        if (!writing_ && writers_waiting_ == 0) {
            ++readers_;
            return;
        }
        const nanobind::gil_scoped_release release;
        ++readers_waiting_;
        changed_.wait(state, [&] { return !writing_ && (admitted_ > 0 || writers_waiting_ == 0); });
        --readers_waiting_;
        if (admitted_ > 0) --admitted_;
        ++readers_;
        state.unlock();  // before the GIL is waited for
    }
    void unlock_shared() {
        const std::lock_guard state(state_);
        if (--readers_ == 0 && writers_waiting_ > 0) changed_.notify_all();
    }

  private:
    void stop_writing(bool stays_to_read) {
        writer_.store(std::thread::id(), std::memory_order_relaxed);
        const std::lock_guard state(state_);
        writing_ = false;
        readers_ += stays_to_read ? 1 : 0;
        admitted_ = readers_waiting_;
        changed_.notify_all();
    }
    void refuse_reentry() const {
        if (writer_.load(std::memory_order_relaxed) == std::this_thread::get_id()) {
            throw std::runtime_error(
                "this tree is in the middle of an update on this very thread, or builds what one "
                "has left for later: code that runs during it (a label's __eq__ or __hash__, a "
                "signal handler) must not use the tree");
        }
    }

    std::mutex state_;  // held for a moment only, and never while waiting for the GIL
    std::condition_variable changed_;
    std::size_t readers_ = 0, readers_waiting_ = 0, writers_waiting_ = 0;
    std::size_t admitted_ = 0;  // readers that were waiting when the last writer was done
    bool writing_ = false;
    // Whoever asks looks for itself, and knows what it has written: no order is needed.
    std::atomic<std::thread::id> writer_;
};

}  // namespace evertree
