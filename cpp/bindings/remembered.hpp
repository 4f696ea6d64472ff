// A cache of the last few results, by their keys.
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

// Keys are compared with ==. While another thread uses the cache, a call computes its value anew
// and does not wait.
template <class Key, class Value> class Remembered {
  public:
    explicit Remembered(std::size_t most) : most_(most) {}

    // The value of `key`, made by `make` if it is not remembered.
    template <class Make> Value get(const Key& key, const Make& make) {
        if (std::optional<Value> known = find(key)) return *std::move(known);
        Value value = make();
        keep(key, value);
        return value;
    }

  private:
    std::optional<Value> find(const Key& key) {
        const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
        if (!lock) return std::nullopt;
        for (const auto& [known, value] : entries_)
            if (known == key) return value;
        return std::nullopt;
    }
    void keep(const Key& key, const Value& value) {
        const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
        if (!lock) return;
        entries_.emplace_front(key, value);
        if (entries_.size() > most_) entries_.pop_back();
    }

    std::size_t most_;
    std::mutex mutex_;
    std::deque<std::pair<Key, Value>> entries_;
};
