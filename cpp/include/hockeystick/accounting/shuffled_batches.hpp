// Shuffled batches: Gaussian noise on batches that a shuffle of the records fills, every record in
// one of T batches of an epoch. What is proven, and what is attained; no amplification by sampling
// is claimed. A record that is added or removed leaves its place in its batch empty.
//
//   upper end   with the order of the records shown, an epoch is one Gaussian step for a record.
//               Nothing smaller is known to hold for all data: a shuffle is no Poisson sample, and
//               may leak far more (Chua et al. 2024, arXiv:2403.17673).
//   lower end   the largest of what `attained_epochs` lists: data on which an epoch leaks at least
//               this, composed. release/shuffled_outputs.hpp has those whose other records
//               contribute -1; where they contribute nothing, an epoch is a random allocation.
//
// Both ends are those of the accountant, rounding included. Cost: 50 to 500 ms, most of it
// compositions of discrete pairs. docs/accounting/allocation.md has the proofs.
#pragma once

#include <hockeystick/accounting/accountant.hpp>
#include <hockeystick/mechanism/gaussian.hpp>
#include <hockeystick/release/random_allocation.hpp>
#include <hockeystick/release/shuffled_outputs.hpp>

namespace hockeystick::accounting {
inline namespace HOCKEYSTICK_ISA {

// Every epoch is shuffled anew; the upper end holds for one shuffle, too.
struct ShuffledBatches {
    double noise_multiplier, num_batches, epochs;
};

// A pair that an epoch attains, and of what data and which function of the outputs.
struct AttainedEpoch {
    const char* by;
    PairPointer pair;
};

// What an epoch attains. A query whose `stop` is set throws Stopped.
inline std::vector<AttainedEpoch> attained_epochs(double noise_multiplier, double num_batches,
                                                  const std::atomic<bool>* stop = nullptr) {
    require_noise_multiplier(noise_multiplier);
    require(numeric::count(num_batches) && num_batches <= 1e6, "num_batches", "be an integer in [1, 1000000]",
            num_batches);
    if (num_batches == 1.0) return {{"one batch", gaussian(noise_multiplier)}};
    const release::EpochOutputs outputs(noise_multiplier, num_batches);
    std::vector<AttainedEpoch> found{{"the largest output against others of -1", release::largest_output(outputs)}};
    if (noise_multiplier < 0.25 || noise_multiplier > 1000.0) return found;  // no random allocation either
    if (const PairPointer sum = release::sum_of_outputs(outputs, stop))
        found.push_back({"a sum of the outputs against others of -1", sum});
    const auto allocate = [stop](const release::Selection& s, End end) { return release::allocated(s, end, stop); };
    const Steps epoch = release::random_allocation(noise_multiplier, {num_batches, 1.0}, End::lower, allocate);
    found.push_back({"random allocation, others of 0", epoch[0].pair});
    return found;
}

struct ShuffledAnswer {
    Interval ends;
    const char* by;  // what attains the lower end
};

// Both ends of delta or epsilon, given what an epoch attains. `accountant()` makes an Accountant.
template <class MakeAccountant>
ShuffledAnswer shuffled_batches(const ShuffledBatches& training, const std::vector<AttainedEpoch>& attained,
                                const Question& question, const MakeAccountant& accountant) {
    require(numeric::count(training.epochs), "epochs", "be an integer in [1, 2^53]", training.epochs);
    const auto ask = [&](const PairPointer& epoch) {
        Accountant composed = accountant();
        composed.compose(epoch, training.epochs);
        return question.for_epsilon ? composed.epsilon(question.value) : composed.delta(question.value);
    };
    ShuffledAnswer answer{{-infinity, ask(gaussian(training.noise_multiplier)).upper}, ""};
    for (const AttainedEpoch& epoch : attained) {
        const double lower = ask(epoch.pair).lower;
        if (lower > answer.ends.lower) answer.ends.lower = lower, answer.by = epoch.by;
    }
    answer.ends.lower = min(answer.ends.lower, answer.ends.upper);
    return answer;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::accounting
