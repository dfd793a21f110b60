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
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#include "memory.hpp"
#include "watch.hpp"

namespace evertree {

class Crew {
  public:
    // Fewer than n_workers if the system refuses threads, or memory for them.
    explicit Crew(std::size_t n_workers) : shares_(n_workers) {
        threads_.reserve(n_workers - 1);
        try {
            while (size() < n_workers) {
                threads_.emplace_back([this, worker = size()] { serve(worker); });
            }
        } catch (const std::system_error&) {
        } catch (const std::bad_alloc&) {
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

    using Job = std::function<void(std::size_t, std::size_t, Watch&)>;

    // Calls job(worker, item, watch) for every item, in their order by whichever worker is free.
    // Only the caller's own watch is asked, on the caller's thread. The first exception ends it
    // all.
    void each(std::size_t n_items, Watch& watch, const Job& job) {
        in_order_ = true;
        shares_[0].rest = n_items;
        do_all(watch, job);
    }
    // The same, but neighbours by one worker as far as possible, and each time by the same one:
    // what it has written is in its own cache.
    void each_near(std::size_t n_items, Watch& watch, const Job& job) {
        in_order_ = false;
        for (std::size_t w = 0; w < size(); ++w) {
            shares_[w].rest = n_items * w / size() << 32 | n_items * (w + 1) / size();
        }
        do_all(watch, job);
    }

  private:
    struct Quiet : Watch {
        void poll() override {}
    };
    // The items from one to another that are still to be done: two halves of a word.
    struct alignas(kApart) Share {
        std::atomic<std::uint64_t> rest = 0;
    };

    void do_all(Watch& watch, const Job& job) {
        job_ = &job;
        error_ = nullptr;
        n_busy_ = threads_.size();
        next_job();
        work(0, watch);
        for (std::size_t busy; (busy = n_busy_) > 0;) wait_while(n_busy_, busy);
        if (error_) std::rethrow_exception(error_);
    }

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
    // The next item of one's own share, then the last one of another's; in order, the next one of
    // the first share, which is everybody's. False if there is none.
    bool take(std::size_t worker, std::size_t& item) {
        for (std::size_t i = 0; i < size(); ++i) {
            Share& share = shares_[(worker + i) % size()];
            const bool from_front = i == 0 || in_order_;
            std::uint64_t rest = share.rest;
            while (rest >> 32 < (rest & 0xffffffff)) {
                item = from_front ? rest >> 32 : (rest & 0xffffffff) - 1;
                const std::uint64_t less = from_front ? rest + (std::uint64_t{1} << 32) : rest - 1;
                if (share.rest.compare_exchange_weak(rest, less)) return true;
            }
        }
        return false;
    }
    void work(std::size_t worker, Watch& watch) {
        try {
            for (std::size_t item; take(worker, item);) (*job_)(worker, item, watch);
        } catch (...) {
            for (Share& share : shares_) share.rest = 0;
            const std::lock_guard lock(mutex_);
            if (!error_) error_ = std::current_exception();
        }
    }

    std::atomic<std::uint32_t> n_jobs_ = 0;
    std::atomic<bool> ending_ = false;
    std::atomic<std::size_t> n_busy_ = 0;
    std::vector<Share> shares_;  // by worker
    bool in_order_ = true;
    const Job* job_ = nullptr;
    std::mutex mutex_;
    std::exception_ptr error_;
    std::vector<std::thread> threads_;
};

}  // namespace evertree
