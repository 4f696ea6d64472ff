// The mechanisms of the C API: what one step releases under either adjacency.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <hockeystick/release/allocated_steps.hpp>
#include <hockeystick/release/fixed_size_sampled.hpp>
#include <hockeystick/release/gaussian_mixture.hpp>
#include <hockeystick/release/integer_noise.hpp>
#include <hockeystick/release/privacy_profile.hpp>
#include <hockeystick/release/shuffled.hpp>
#include <hockeystick/release/truncated_poisson_sampled.hpp>

#include "c_api_support.hpp"

// Immutable. A mechanism that is made of others keeps copies of them.
struct hs_mechanism {
    const char* name;  // of its constructor
    std::function<hs::mechanism::Steps(bool replace, hs::mechanism::End)> steps;
    bool one_adjacency = false;    // a guarantee for the adjacency in use, which says nothing of the other one
    bool several_outputs = false;  // its release may be more than one noisy number
    bool samples = false;          // it draws a Poisson sample itself
    bool draws_batch = false;      // it needs a fixed number of records, as a batch of fixed size does
    double least_records = 0.0, most_records = hs::numeric::infinity;  // on how many its arguments allow it to run
};

namespace c_api {

using Mechanism = hs_mechanism;

Mechanism gaussian(double noise_multiplier);
Mechanism laplace(double noise_multiplier);
Mechanism discrete_gaussian(double sigma, double sensitivity);
Mechanism discrete_laplace(double parameter, double sensitivity);
Mechanism integer_noise(const char* name, hs::release::IntegerNoisePointer noise, double sensitivity, double dimension);
Mechanism randomized_response(double noise_probability, double num_buckets);
Mechanism exponential(double epsilon);
Mechanism permute_and_flip(double epsilon);
Mechanism approximate_dp(double epsilon, double delta);
Mechanism discrete(const double* p, const double* q, size_t n);
Mechanism discrete_pairs(hs::mechanism::Masses removed, hs::mechanism::Masses added);
Mechanism privacy_profile(const hs::release::Profile& profile);
Mechanism gaussian_mixture(double noise_multiplier, hs::release::Distances distances);
Mechanism random_allocation(double noise_multiplier, const hs::release::Allocation& epoch);
Mechanism shuffled(const hs::release::ShuffledRound& round);
Mechanism truncated_poisson(double noise_multiplier, const hs::release::TruncatedSample& sample, bool zeroed_out);
Mechanism composed(std::vector<std::pair<Mechanism, double>> steps);
Mechanism poisson_sampled(Mechanism mechanism, double sampling_rate);
Mechanism allocated(Mechanism mechanism, const hs::release::Allocation& epoch);
Mechanism fixed_size_sampled(Mechanism mechanism, const hs::release::Batch& batch);

// The probabilities of n outcomes, divided by their sum.
std::vector<double> distribution(const double* x, size_t n, const char* name);

// Composes both ends of the mechanism, or throws and composes nothing.
void compose(hs_accountant* accountant, const Mechanism& mechanism, double count);

}  // namespace c_api
