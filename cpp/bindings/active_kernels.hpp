// Which kernels (src/batch_kernels.hpp) a call uses: those that were chosen at import, unless the
// calling thread has named others. So two threads can compute with two instruction sets at a time,
// and a call keeps one from its beginning to its end, on all threads that it starts.
#pragma once

#include <string>

#include "batch_kernels.hpp"

namespace active {

using hockeystick::batch::Kernels;

inline const Kernels& chosen_at_import() {
    static const Kernels& chosen = hockeystick::batch::choose();
    return chosen;
}

// Null where the thread has named none.
inline const Kernels*& named_by_thread() {
    thread_local const Kernels* named = nullptr;
    return named;
}

inline const Kernels& kernels() {
    const Kernels* named = named_by_thread();
    return named ? *named : chosen_at_import();
}

inline const hockeystick::batch::GridKernels& grid_kernels() { return hockeystick::batch::grid_kernels(kernels()); }

// Returns the name of the set that the thread used before.
inline std::string use_instruction_set(const std::string& name) {
    const std::string before = kernels().isa;
    named_by_thread() = &hockeystick::batch::named(name, "instruction_set");
    return before;
}

}  // namespace active
