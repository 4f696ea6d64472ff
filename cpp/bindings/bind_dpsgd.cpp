// Grids of DP-SGD (accounting/dpsgd.hpp): arrays of cells, on several threads.
#include <algorithm>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <utility>
#include <vector>

#include <hockeystick/accounting/dpsgd.hpp>

#include "active_kernels.hpp"
#include "bind.hpp"
#include "contour_cache.hpp"
#include "grid.hpp"

namespace {

namespace hs = hockeystick;

using hs::accounting::Engine;
using Dense = py::array_t<double, py::array::c_style | py::array::forcecast>;
// One cell of a grid, from its four arguments.
using Cell = double (*)(Engine&, double, double, double, double);

// The indices of the cells, sorted by their first two arguments. Neighbours in this order can reuse
// the contours that an engine keeps.
std::vector<std::size_t> grouped(const double* first, const double* second, std::size_t cells) {
    std::vector<std::size_t> order(cells);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [=](std::size_t i, std::size_t j) {
        return first[i] != first[j] ? first[i] < first[j] : second[i] < second[j];
    });
    return order;
}

// The engines of one call, one for each thread at most. They keep their contours from one task to
// the next.
class Engines {
  public:
    explicit Engines(const hs::simd::Kernels& kernels) : kernels_(kernels) {}

    std::unique_ptr<Engine> acquire(const std::atomic<bool>& stop) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (idle_.empty()) return std::make_unique<Engine>(kernels_, &contour_cache(), &stop);
        std::unique_ptr<Engine> engine = std::move(idle_.back());
        idle_.pop_back();
        return engine;
    }

    void release(std::unique_ptr<Engine> engine) {
        const std::lock_guard<std::mutex> lock(mutex_);
        idle_.push_back(std::move(engine));
    }

    // Returns their contours to the cache of the process, for later calls.
    void release_contours() const {
        for (const auto& engine : idle_) engine->release();
    }

  private:
    const hs::simd::Kernels& kernels_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<Engine>> idle_;
};

// A thread costs more than a cheap cell: its start, and memory that no call before has touched. So
// one thread's work is done by the caller, all but discretised losses, which take long.
template <class Body> void run_in_caller(const hs::simd::Kernels& kernels, const Body& body) {
    const py::gil_scoped_release released;
    Engine engine(kernels, &contour_cache(), nullptr, grid::run_long_job, grid::SignalCheck());
    body(engine);
    engine.release();
}

// The array without gaps. (A caster that has no memory for it would say that the type is wrong.)
Dense dense(const grid::Double& array) {
    if (Dense found = Dense::ensure(array)) return found;
    throw std::bad_alloc();
}

grid::Double map(const std::vector<grid::Double>& arguments, std::size_t threads, Cell function,
                 const hs::simd::Kernels& kernels) {
    const std::vector<py::ssize_t> shape = grid::shape_of(grid::require_size(arguments, "arguments", 4)[0]);
    grid::require_shape(arguments, shape);
    grid::Double result(shape);
    const auto cells = static_cast<std::size_t>(result.size());
    std::vector<Dense> columns;
    const double* in[4];
    for (std::size_t k = 0; k < 4; ++k) in[k] = columns.emplace_back(dense(arguments[k])).data();
    double* out = result.mutable_data();
    const std::vector<std::size_t> order = grouped(in[0], in[1], cells);
    const auto answer = [&](Engine& engine, std::size_t i) {
        out[i] = function(engine, in[0][i], in[1][i], in[2][i], in[3][i]);
    };
    if (threads == 1 || cells == 1) {
        run_in_caller(kernels, [&](Engine& engine) {
            for (const std::size_t i : order) answer(engine, i);
        });
        return result;
    }
    const std::size_t chunk = std::clamp<std::size_t>(cells / (8 * std::max<std::size_t>(threads, 1)), 1, 256);
    Engines engines(kernels);
    grid::run((cells + chunk - 1) / chunk, threads, [&](std::size_t task, const std::atomic<bool>& stop) {
        std::unique_ptr<Engine> engine = engines.acquire(stop);
        for (std::size_t at = task * chunk; at < std::min(cells, (task + 1) * chunk); ++at) answer(*engine, order[at]);
        engines.release(std::move(engine));
    });
    engines.release_contours();
    return result;
}

}  // namespace

void bind_dpsgd(door::Module& m) {
    const auto define = [&](const char* name, Cell function) {
        m.def(
            name,
            [function](const std::vector<grid::Double>& arguments, std::size_t threads) {
                return map(arguments, threads, function, active::kernels().contour);
            },
            py::arg("arguments"), py::arg("threads"));
    };
    // (epsilon, points visited on the way), for tests that cap the work rather than the time.
    m.def(
        "dpsgd_epsilon_work",
        [](double sigma, double rate, double steps, double delta) {
            std::pair<double, double> result;
            const hs::simd::Kernels& kernels = active::kernels().contour;
            grid::run_in_worker([&](const std::atomic<bool>& stop) {
                Engine engine(kernels, nullptr, &stop);
                result.first = hs::accounting::dpsgd_epsilon(engine, sigma, rate, steps, delta);
                result.second = engine.work();
            });
            return result;
        },
        py::arg("sigma"), py::arg("rate"), py::arg("steps"), py::arg("delta"));
    define("dpsgd_delta", hs::accounting::dpsgd_delta);
    define("dpsgd_epsilon", hs::accounting::dpsgd_epsilon);
    define("dpsgd_noise_multiplier", hs::accounting::dpsgd_noise_multiplier);
    define("dpsgd_steps", hs::accounting::dpsgd_steps);
    define("dpsgd_sampling_rate", hs::accounting::dpsgd_sampling_rate);
}
