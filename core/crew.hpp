// Crew: several threads that do one thing together, for the length of one build.
//
// The calling thread is worker 0 and takes part. The threads end with the crew: nothing stays
// behind in a process that forks later.
//
// Must not know: what the work is.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#include "watch.hpp"

namespace evertree {

class Crew {
  public:
    // Fewer than n_workers if the system refuses threads.
    explicit Crew(std::size_t n_workers) {
        threads_.reserve(n_workers - 1);
        try {
            while (size() < n_workers) {
                threads_.emplace_back([this, worker = size()] { serve(worker); });
            }
        } catch (const std::system_error&) {
        }
    }
    ~Crew() {
        ending_ = true;
        next_job();
        for (std::thread& thread : threads_) thread.join();
    }
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;

    std::size_t size() const { return threads_.size() + 1; }

    // Calls job(worker, item, watch) for every item, each by whichever worker is free. Only the
    // caller's own watch is asked, on the caller's thread. The first exception ends it all.
    void each(std::size_t n_items, Watch& watch,
              const std::function<void(std::size_t, std::size_t, Watch&)>& job) {
        n_items_ = n_items;
        next_item_ = 0;
        job_ = &job;
        error_ = nullptr;
        n_busy_ = threads_.size();
        next_job();
        work(0, watch);
        for (std::size_t busy; (busy = n_busy_) > 0;) wait_while(n_busy_, busy);
        if (error_) std::rethrow_exception(error_);
    }

  private:
    struct Quiet : Watch {
        void poll() override {}
    };

    // The steps of a build are short: whoever falls asleep between them is woken too late.
    template <typename T>
    static void wait_while(const std::atomic<T>& value, T old) {
        constexpr int patience = 2500;  // about a millisecond
        for (int i = 0; i < patience && value == old; ++i) std::this_thread::yield();
        value.wait(old);
    }
    void next_job() {
        ++n_jobs_;
        n_jobs_.notify_all();
    }
    void serve(std::size_t worker) {
        Quiet watch;
        for (std::uint32_t done = 0;;) {
            wait_while(n_jobs_, done);
            done = n_jobs_;
            if (ending_) return;
            work(worker, watch);
            --n_busy_;
            n_busy_.notify_one();
        }
    }
    void work(std::size_t worker, Watch& watch) {
        try {
            for (std::size_t item; (item = next_item_++) < n_items_;) (*job_)(worker, item, watch);
        } catch (...) {
            next_item_ = n_items_;
            const std::lock_guard lock(mutex_);
            if (!error_) error_ = std::current_exception();
        }
    }

    std::atomic<std::uint32_t> n_jobs_ = 0;
    std::atomic<bool> ending_ = false;
    std::atomic<std::size_t> next_item_ = 0, n_busy_ = 0;
    std::size_t n_items_ = 0;
    const std::function<void(std::size_t, std::size_t, Watch&)>* job_ = nullptr;
    std::mutex mutex_;
    std::exception_ptr error_;
    std::vector<std::thread> threads_;
};

}  // namespace evertree
