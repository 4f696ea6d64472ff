// The nodes of contours, kept for the next question that needs the same ones, the latest of them.
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>
#include <utility>

#include <hockeystick/cumulant/cumulant.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

using namespace cumulant;

// One line's nodes and what they are multiplied by; padded to a multiple of simd::lanes.
struct ContourTable {
    // What it depends on: tilt, spacing, last frequency (contour/truncated_ledger.hpp has their numbers), smoothing.
    struct Place {
        int k, j, i;
        double smoothing;

        friend bool operator==(const Place& x, const Place& y) {
            return x.k == y.k && x.j == y.j && x.i == y.i && x.smoothing == y.smoothing;
        }
    };

    struct Factors {
        std::vector<double> real, imag, size;
        explicit Factors(std::size_t n = 0) : real(n), imag(n), size(n) {}
        simd::NodeFactors pointers() { return {real.data(), imag.data(), size.data()}; }
    };

    NodeTable nodes{0};
    Factors kernel{0}, density{0};  // 1/(s(s+1)), and 1 for the density where there is smoothing
    double c = 0.0, h = 0.0;
    std::size_t n = 0, padded = 0;
    bool usable = false;

    std::size_t bytes() const { return sizeof(ContourTable) + (6 * padded + 3 * density.real.size()) * sizeof(double); }
};

class ContourTables {
  public:
    // Null if it is not kept.
    const ContourTable* find(const ContourTable::Place& place) {
        const auto found = places_.find(place);
        if (found == places_.end()) return nullptr;
        latest_.splice(latest_.begin(), latest_, found->second);
        return &found->second->table;
    }

    // Forgets those not asked for longest, if need be.
    const ContourTable& keep(const ContourTable::Place& place, ContourTable&& table) {
        const std::size_t more = table.bytes();
        for (; !latest_.empty() && bytes_ + more > most_bytes; latest_.pop_back()) {
            bytes_ -= latest_.back().table.bytes();
            places_.erase(latest_.back().place);
        }
        std::list<Kept> made;
        made.push_back({place, std::move(table)});
        places_.emplace(place, made.begin());
        latest_.splice(latest_.begin(), made);
        bytes_ += more;
        return latest_.front().table;
    }

    std::size_t bytes() const { return bytes_; }

  private:
    static constexpr std::size_t most_bytes = 10000000;  // or the last one alone

    struct Kept {
        ContourTable::Place place;
        ContourTable table;
    };
    struct Hash {
        std::size_t operator()(const ContourTable::Place& p) const {  // the numbers are below 2^13
            const auto number = (static_cast<std::uint64_t>(p.k + 8192) << 28) ^
                                (static_cast<std::uint64_t>(p.j + 8192) << 14) ^
                                static_cast<std::uint64_t>(p.i + 8192) ^ to_bits(p.smoothing);
            return static_cast<std::size_t>((number * 0x9e3779b97f4a7c15u) >> 20);  // 2^64/golden ratio
        }
    };

    std::list<Kept> latest_;
    std::unordered_map<ContourTable::Place, std::list<Kept>::iterator, Hash> places_;
    std::size_t bytes_ = 0;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour
