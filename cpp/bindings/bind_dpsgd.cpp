#include <hockeystick/dpsgd.hpp>
#include <hockeystick/pld.hpp>

#include "bind.hpp"
#include "grid.hpp"

namespace {

namespace hs = hockeystick;

struct Stopped {};  // thrown out of a cell that nobody waits for any more

// What dpsgd.hpp asks an engine for: the larger of both directions. Removing mostly leaks more: adding then need only be
// known roughly.
class PldEngine {
  public:
    explicit PldEngine(const std::atomic<bool>& stop) : stop_(stop) {}
    double delta(double sigma, double rate, double steps, double eps) const {
        return larger(sigma, rate, steps, [&](const hs::Composition& composition, const hs::PldSettings& settings) {
            return composition.delta(eps, settings).upper;
        });
    }
    double epsilon(double sigma, double rate, double steps, double delta) const {
        return larger(sigma, rate, steps, [&](const hs::Composition& composition, const hs::PldSettings& settings) {
            return composition.epsilon(delta, settings).upper;
        });
    }

    double slack() const { return 0.5 * hs::PldSettings{}.tolerance; }

  private:
    template <class Query> double larger(double sigma, double rate, double steps, const Query& query) const {
        const double remove = query(composed(sigma, rate, steps, true), {});
        const hs::Composition adding = composed(sigma, rate, steps, false);
        hs::PldSettings rough;
        rough.tolerance = 1.0;
        return query(adding, rough) <= remove ? remove : std::max(remove, query(adding, {}));
    }

    hs::Composition composed(double sigma, double rate, double steps, bool forward) const {
        if (stop_) throw Stopped{};
        return hs::Composition({{hs::make_loss({"gaussian", {1.0 / sigma}, rate}, forward), steps}});
    }

    const std::atomic<bool>& stop_;
};

// Binds function(engine, four numbers) as name(arrays, threads). A cell may take long.
template <class Function> void define(py::module_& m, const char* name, const Function& function) {
    m.def(
        name,
        [function](const std::vector<grid::Double>& arguments, std::size_t threads) {
            const auto cell = [function](const std::atomic<bool>& stop, double a, double b, double c, double d) {
                return function(PldEngine(stop), a, b, c, d);
            };
            return grid::map<4>(arguments, threads, cell, 1);
        },
        py::arg("arguments"), py::arg("threads"));
}

}  // namespace

void bind_dpsgd(py::module_& m) {
    define(m, "dpsgd_delta", hs::dpsgd_delta<PldEngine>);
    define(m, "dpsgd_epsilon", hs::dpsgd_epsilon<PldEngine>);
    define(m, "dpsgd_noise_multiplier", hs::dpsgd_noise_multiplier<PldEngine>);
    define(m, "dpsgd_steps", hs::dpsgd_steps<PldEngine>);
    define(m, "dpsgd_sampling_rate", hs::dpsgd_sampling_rate<PldEngine>);
}
