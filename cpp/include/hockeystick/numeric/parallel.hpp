// Independent tasks on several threads, with exceptions carried to the caller and a way to stop early.
//
// Threads are started per call: a few tens of microseconds, nothing to keep, nothing to lose in a fork. The calling
// thread only waits and polls, so that Ctrl-C is answered within a tenth of a second however long a task takes.
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

namespace hockeystick::numeric {

// Calls body(task, stop) for each task in [0, tasks). A long task should return once `stop` is true; what it computed
// is thrown away. `interrupted()` is called from the calling thread about ten times a second; if it returns true, all
// work stops. Returns whether every task was completed. The first exception of a task is rethrown.
template <class Body, class Interrupted>
bool parallel_for(std::size_t tasks, std::size_t threads, const Body& body, const Interrupted& interrupted) {
    std::atomic<bool> stop{false};
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::condition_variable finished;
    std::exception_ptr failure;
    std::size_t running = std::min(threads, tasks);

    const auto work = [&] {
        try {
            for (std::size_t task = next++; task < tasks && !stop; task = next++) body(task, stop);
        } catch (...) {
            const std::lock_guard<std::mutex> lock(mutex);
            if (!failure) failure = std::current_exception();
            stop = true;
        }
        const std::lock_guard<std::mutex> lock(mutex);
        if (--running == 0) finished.notify_one();
    };

    std::vector<std::thread> workers;
    const std::size_t wanted = running;
    for (std::size_t i = 0; i < wanted; ++i) {
        try {
            workers.emplace_back(work);
        } catch (const std::system_error&) {  // no more threads to be had: those that run do it all
            if (workers.empty()) throw;
            const std::lock_guard<std::mutex> lock(mutex);
            --running;
        }
    }
    {
        std::unique_lock<std::mutex> lock(mutex);
        while (!finished.wait_for(lock, std::chrono::milliseconds(100), [&] { return running == 0; })) {
            lock.unlock();
            if (interrupted()) stop = true;
            lock.lock();
        }
    }
    for (std::thread& worker : workers) worker.join();
    if (failure) std::rethrow_exception(failure);
    return !stop;
}

}  // namespace hockeystick::numeric
