// Independent tasks on several threads, with exceptions carried to the caller and a way to stop
// early.
//
// Threads are started per call: that takes a few tens of microseconds, keeps nothing between calls,
// and loses nothing in a fork. The calling thread only waits and polls, so that Ctrl-C is answered
// within a tenth of a second however long a task takes.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include <hockeystick/numeric/floating_environment.hpp>

namespace hockeystick::numeric {

// The tasks that no worker has claimed yet, how many workers still run, and how they ended.
class TaskQueue {
  public:
    TaskQueue(std::size_t tasks, std::size_t workers) : tasks_(tasks), running_(workers) {}

    // One worker: claims and runs tasks until none is left, somebody fails, or all are told to
    // stop.
    template <class Body> void work(const Body& body) {
        const FloatingEnvironment environment;  // a new thread's is its creator's, or that of the platform
        try {
            for (std::size_t task = next_++; task < tasks_ && !stop_; task = next_++) body(task, stop_);
        } catch (...) {
            const std::lock_guard<std::mutex> lock(mutex_);
            if (!failure_) failure_ = std::current_exception();
            stop_ = true;
        }
        leave();
    }

    // A worker has ended, or could not be started.
    void leave() {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (--running_ == 0) finished_.notify_one();
    }

    // Returns when no worker runs; asks ten times a second whether to stop.
    template <class Interrupted> void wait(const Interrupted& interrupted) {
        std::unique_lock<std::mutex> lock(mutex_);
        while (!finished_.wait_for(lock, std::chrono::milliseconds(100), [this] { return running_ == 0; })) {
            lock.unlock();
            if (interrupted()) stop_ = true;
            lock.lock();
        }
    }

    // Whether every task was completed; rethrows what a task threw. For when no worker runs.
    bool completed() const {
        if (failure_) std::rethrow_exception(failure_);
        return !stop_;
    }

  private:
    std::size_t tasks_, running_;
    std::atomic<bool> stop_{false};
    std::atomic<std::size_t> next_{0};
    std::mutex mutex_;
    std::condition_variable finished_;
    std::exception_ptr failure_;
};

// Calls body(task, stop) for each task in [0, tasks). A long task should return once `stop` is
// true; what it computed is thrown away. `interrupted()` is called from the calling thread about
// ten times a second; if it returns true, all work stops. Returns whether every task was completed.
// The first exception of a task is rethrown.
template <class Body, class Interrupted>
bool parallel_for(std::size_t tasks, std::size_t threads, const Body& body, const Interrupted& interrupted) {
    const std::size_t wanted = std::max<std::size_t>(std::min(threads, tasks), 1);
    TaskQueue queue(tasks, wanted);
    std::vector<std::thread> workers;
    for (std::size_t i = 0; i < wanted; ++i) {
        try {
            workers.emplace_back([&] { queue.work(body); });
        } catch (const std::system_error&) {  // the system has no more threads: those that run do all the work
            if (workers.empty()) throw;
            queue.leave();
        }
    }
    queue.wait(interrupted);
    for (std::thread& worker : workers) worker.join();
    return queue.completed();
}

}  // namespace hockeystick::numeric
