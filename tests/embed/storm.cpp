// A storm over the C library, for the sanitizers: `storm SECONDS [SEED]`. Threads call every function of c_api.h, with arguments inside
// and outside of their domains, and ask one accountant that they share. It ends with 1 after an error that has no message or is
// a bug by its code, or when the shared accountant does not say the same to all.
#include <hockeystick/c_api.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <random>
#include <thread>
#include <vector>

constexpr int threads = 4;
constexpr double deltas[] = {1e-3, 1e-5, 1e-7, 1e-9};
using Answer = hs_bracket[4];

struct Shared {
    hs_accountant* accountant = nullptr;
    Answer epsilon, delta;  // what it says to one thread
};

class Storm {
  public:
    explicit Storm(std::uint64_t seed) : generator(seed) {}
    long calls = 0, accepted = 0, faults = 0;

    void round(const Shared& shared) {
        kernels();
        batches();
        bounds();
        ledger();
        ask(shared);
    }

  private:
    std::mt19937_64 generator;

    std::uint64_t below(std::uint64_t end) { return generator() % end; }
    double uniform() { return std::uniform_real_distribution<>(0.0, 1.0)(generator); }
    double wild() {
        const double ends[] = {0.0,          -0.0, 5e-324, 1e-310, 1.79e308, HUGE_VAL, -HUGE_VAL,
                               std::nan(""), -1.0, 1.0,    2.0,    1e-300,   1e16};
        if (below(2) == 0) return ends[below(std::size(ends))];
        return below(2) == 0 ? std::exp(1400.0 * (uniform() - 0.5)) : 10.0 * (uniform() - 0.3);
    }
    double mostly(double value) { return below(8) != 0 ? value : wild(); }
    double positive() { return mostly(std::exp(4.0 * (uniform() - 0.4))); }
    double rate() { return mostly(std::exp(-8.0 * uniform())); }
    double count(std::uint64_t most = 200) { return mostly(static_cast<double>(1 + below(most))); }
    double small() { return mostly(std::exp(-30.0 * uniform())); }
    std::vector<double> probabilities(std::size_t size) {
        std::vector<double> weights(size);
        double total = 0.0;
        for (double& weight : weights) total += weight = uniform();
        for (double& weight : weights) weight = mostly(weight / total);
        return weights;
    }

    void check(hs_status status) {
        ++calls;
        accepted += status == HS_OK;
        if (status == HS_OK || (status != HS_INTERNAL_ERROR && hs_last_error_message()[0] != '\0')) return;
        ++faults;
        std::printf("status %d: %s\n", static_cast<int>(status), hs_last_error_message());
    }

    void kernels() {
        faults += hs_abi_version() != HS_ABI_VERSION || hs_version()[0] == '\0';
        for (auto* kernel : {hs_q, hs_log_q, hs_q_inv}) kernel(wild()), ++calls;
        for (auto* kernel : {hs_theta, hs_log_theta, hs_laplace_theta, hs_theta_inverse, hs_gaussian_epsilon,
                             hs_gdp_delta, hs_gdp_epsilon, hs_gdp_trade_off})
            kernel(wild(), wild()), ++calls;
    }

    void batches() {
        const std::size_t size = below(70);
        std::vector<double> x(size), y(size), out(size);
        for (std::size_t i = 0; i < size; ++i) x[i] = wild(), y[i] = wild();
        for (auto* batch : {hs_q_batch, hs_log_q_batch, hs_q_inv_batch}) check(batch(x.data(), out.data(), size));
        for (auto* batch : {hs_theta_batch, hs_log_theta_batch, hs_laplace_theta_batch})
            check(batch(x.data(), y.data(), out.data(), size));
    }

    void bounds() {
        hs_bracket bracket;
        double number;
        check(hs_dpsgd_delta(positive(), rate(), count(), positive(), &bracket));
        check(hs_dpsgd_epsilon(positive(), rate(), count(), small(), &bracket));
        if (below(4) == 0) check(hs_dpsgd_noise_multiplier(rate(), count(), positive(), small(), &number));
        check(hs_fedavg_gdp(static_cast<int>(below(5)), count(), count(5), count(), positive(), positive(), positive(),
                            rate(), mostly(HUGE_VAL), &number));
        check(hs_pnsgd_gaussian(positive(), count(), count(), rate(), positive(), positive(), positive(), rate(),
                                positive(), &number));
        check(hs_shuffled_batches_delta(positive(), count(), count(4), positive(), &bracket));
        check(hs_shuffled_batches_epsilon(positive(), count(), count(4), small(), &bracket));
    }

    void check_one(std::initializer_list<std::function<hs_status()>> calls) {
        check(calls.begin()[below(calls.size())]());
    }

    hs_status profile(hs_mechanism** made) {
        std::vector<double> epsilons, remove;
        for (double epsilon = 0.0, delta = 0.5; epsilons.size() < 1 + below(6);
             epsilon += uniform(), delta *= uniform())
            epsilons.push_back(mostly(epsilon)), remove.push_back(mostly(delta));
        const double* add = below(2) == 0 ? remove.data() : nullptr;
        return hs_mechanism_privacy_profile(epsilons.data(), remove.data(), add, epsilons.size(), made);
    }

    hs_mechanism* simple() {
        hs_mechanism* made = nullptr;
        const std::size_t size = 1 + below(5);
        const auto p = probabilities(size), q = probabilities(size), r = probabilities(size);
        check_one({
            [&] { return hs_mechanism_gaussian(positive(), &made); },
            [&] { return hs_mechanism_laplace(positive(), &made); },
            [&] { return hs_mechanism_discrete_gaussian(positive(), count(3), &made); },
            [&] { return hs_mechanism_discrete_laplace(positive(), count(3), &made); },
            [&] { return hs_mechanism_discrete_gaussian_vector(positive(), count(3), count(3), &made); },
            [&] { return hs_mechanism_distributed_discrete_gaussian(positive(), count(5), count(3), 1.0, &made); },
            [&] { return hs_mechanism_skellam(positive(), count(3), 1.0, &made); },
            [&] { return hs_mechanism_gaussian_mixture(positive(), q.data(), p.data(), size, &made); },
            [&] { return hs_mechanism_exponential(positive(), &made); },
            [&] { return hs_mechanism_permute_and_flip(positive(), &made); },
            [&] { return hs_mechanism_approximate_dp(positive(), small(), &made); },
            [&] { return hs_mechanism_discrete(p.data(), q.data(), size, &made); },
            [&] { return hs_mechanism_discrete_pairs(p.data(), q.data(), size, p.data(), r.data(), size, &made); },
            [&] { return hs_mechanism_randomized_response(rate(), count(5), &made); },
            [&] { return hs_mechanism_shuffled(positive(), count(300), static_cast<int>(below(3)), &made); },
            [&] { return hs_mechanism_truncated_poisson(positive(), count(1000), rate(), count(), &made); },
            [&] { return hs_mechanism_truncated_poisson_zeroed_out(positive(), count(1000), rate(), count(), &made); },
            [&] { return profile(&made); },
        });
        return made;
    }

    hs_mechanism* compound() {
        hs_mechanism *one = simple(), *other = simple(), *made = nullptr;
        const hs_mechanism* both[] = {one, other};
        const double counts[] = {count(3), count(3)};
        if (one != nullptr && other != nullptr)
            check_one({
                [&] { return hs_mechanism_composed(both, counts, 2, &made); },
                [&] { return hs_mechanism_poisson_sampled(one, rate(), &made); },
                [&] {
                    return hs_mechanism_fixed_size_sampled(one, count(500), count(60), static_cast<int>(below(2)),
                                                           &made);
                },
                [&] { return hs_mechanism_allocated(one, count(20), count(3), &made); },
                [&] { return hs_mechanism_random_allocation(positive(), count(40), count(3), &made); },
            });
        hs_mechanism_free(one);
        hs_mechanism_free(other);
        return made;
    }

    void compose(hs_accountant* ledger) {
        const auto p = probabilities(3), q = probabilities(3);
        check_one({
            [&] { return hs_accountant_gaussian(ledger, positive(), count()); },
            [&] { return hs_accountant_laplace(ledger, positive(), count()); },
            [&] { return hs_accountant_poisson_gaussian(ledger, positive(), rate(), count()); },
            [&] { return hs_accountant_poisson_laplace(ledger, positive(), rate(), count()); },
            [&] { return hs_accountant_fixed_size_gaussian(ledger, positive(), count(500), count(60), count()); },
            [&] { return hs_accountant_fixed_size_laplace(ledger, positive(), count(500), count(60), count()); },
            [&] { return hs_accountant_discrete_gaussian(ledger, positive(), count(3), count()); },
            [&] { return hs_accountant_discrete_laplace(ledger, positive(), count(3), count()); },
            [&] { return hs_accountant_randomized_response(ledger, rate(), count(5), count()); },
            [&] { return hs_accountant_exponential(ledger, positive(), count()); },
            [&] { return hs_accountant_permute_and_flip(ledger, positive(), count()); },
            [&] { return hs_accountant_approximate_dp(ledger, positive(), small(), count()); },
            [&] { return hs_accountant_discrete(ledger, p.data(), q.data(), 3, count()); },
            [&] { return hs_accountant_discrete_pairs(ledger, p.data(), q.data(), 3, q.data(), p.data(), 3, count()); },
        });
    }

    void ledger() {
        hs_accountant* ledger = nullptr;
        check(hs_accountant_create(below(9) != 0 ? static_cast<int>(below(2)) : 7, &ledger));
        if (ledger == nullptr) return;
        for (hs_mechanism* step : {simple(), compound()}) {
            if (step != nullptr) check(hs_accountant_compose(ledger, step, count()));
            hs_mechanism_free(step);
        }
        compose(ledger);
        const double eps[] = {positive(), wild()}, delta[] = {small(), wild()};
        Answer answer;
        check(hs_accountant_delta(ledger, eps, 1 + below(2), answer));
        check(hs_accountant_epsilon(ledger, delta, 1 + below(2), answer));
        hs_accountant_destroy(ledger);
    }

    void ask(const Shared& shared) {
        Answer epsilon, delta;
        check(hs_accountant_epsilon(shared.accountant, deltas, 4, epsilon));
        check(hs_accountant_delta(shared.accountant, deltas, 4, delta));
        faults += std::memcmp(epsilon, shared.epsilon, sizeof epsilon) != 0;
        faults += std::memcmp(delta, shared.delta, sizeof delta) != 0;
    }
};

hs_accountant* training() {
    hs_accountant* made = nullptr;
    hs_accountant_create(HS_ADD_OR_REMOVE, &made);
    hs_accountant_poisson_gaussian(made, 1.1, 0.01, 1000.0);
    hs_accountant_laplace(made, 20.0, 5.0);
    hs_accountant_discrete_gaussian(made, 3.0, 1.0, 10.0);
    return made;
}

int main(int argc, char** argv) {
    const double seconds = argc > 1 ? std::strtod(argv[1], nullptr) : 10.0;
    const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    Shared shared;
    hs_accountant* alone = training();
    hs_accountant_epsilon(alone, deltas, 4, shared.epsilon);
    hs_accountant_delta(alone, deltas, 4, shared.delta);
    hs_accountant_destroy(alone);
    shared.accountant = training();
    std::vector<Storm> storms;
    for (int k = 0; k < threads; ++k) storms.emplace_back(seed * threads + k);
    std::vector<std::thread> running;
    for (Storm& storm : storms)
        running.emplace_back([&] {
            do storm.round(shared);
            while (std::chrono::steady_clock::now() < end);
        });
    for (std::thread& thread : running) thread.join();
    hs_accountant_destroy(shared.accountant);
    long calls = 0, accepted = 0, faults = 0;
    for (const Storm& storm : storms) calls += storm.calls, accepted += storm.accepted, faults += storm.faults;
    std::printf("%ld calls, %ld with HS_OK, %ld faults\n", calls, accepted, faults);
    return faults != 0;
}
