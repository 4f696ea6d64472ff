// What a query may cost, and the flag that ends it early.
//
// Work is counted, not timed, so that a limit means the same on every machine. A unit is one visit
// of a point by a loop that does a few multiplications, about a nanosecond.
#pragma once

#include <atomic>
#include <cmath>
#include <cstddef>
#include <stdexcept>

#include <hockeystick/version.hpp>

namespace hockeystick::numeric {
inline namespace HOCKEYSTICK_ISA {

// Thrown out of a query whose stop flag was set.
struct Stopped : std::runtime_error {
    Stopped() : std::runtime_error("stopped") {}
};

inline constexpr double masses_work = 100.0;  // one call of PrivacyLoss::masses, with what is made of it
inline constexpr double tilting_work = 25.0;  // one exponential and its sums
inline constexpr double power_work = 2.0;     // one complex multiplication, per real value
inline constexpr double reading_work = 4.0;   // one step of the sums that delta is read off

// pocketfft takes about 1 ns a point and stage, half of that for real values.
inline double transform_work(std::size_t n) { return static_cast<double>(n) * std::log2(static_cast<double>(n)); }

class WorkBudget {
  public:
    explicit WorkBudget(const std::atomic<bool>* stop) : stop_(stop) {}
    // Counts work that is about to be done.
    void spend(double work) {
        if (stop_ != nullptr && *stop_) throw Stopped();
        spent_ += work;
    }
    double spent() const { return spent_; }

  private:
    const std::atomic<bool>* stop_;
    double spent_ = 0.0;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::numeric
