// Gate: many readers or one writer, and never a deadlock with Python's own lock.
//
// The rule: nobody waits for the gate while holding the GIL; whoever is inside may wait for the
// GIL. A thread that is writing and comes back (a label's __eq__ that calls the tree, a signal
// handler) is told so instead of waiting for itself.
//
// Readers make no Python objects inside: making one may call the garbage collector, that a __del__,
// and that the tree; a reader that came back as a writer would wait for itself.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <shared_mutex>
#include <stdexcept>
#include <thread>

namespace evertree {

class Gate {
  public:
    void lock() {
        refuse_reentry();
        if (!mutex_.try_lock()) {
            nanobind::gil_scoped_release release;
            mutex_.lock();
        }
        writer_ = std::this_thread::get_id();
    }
    void unlock() {
        writer_ = std::thread::id();
        mutex_.unlock();
    }
    void lock_shared() {
        refuse_reentry();
        if (!mutex_.try_lock_shared()) {
            nanobind::gil_scoped_release release;
            mutex_.lock_shared();
        }
    }
    void unlock_shared() { mutex_.unlock_shared(); }

  private:
    void refuse_reentry() const {
        if (writer_ == std::this_thread::get_id()) {
            throw std::runtime_error(
                "this tree is in the middle of an update on this very thread: code that runs "
                "during it (a label's __eq__ or __hash__, a signal handler) must not use the tree");
        }
    }
    std::shared_mutex mutex_;
    std::atomic<std::thread::id> writer_;
};

}  // namespace evertree
