// The floating-point environment that certified bounds need, at every door.
//
// A thread may round downward, upward or towards zero (fesetround), and may take subnormal numbers
// for zero: FTZ flushes results, DAZ operands. One shared object that gcc before 13 linked with
// -ffast-math sets both for its process. The margins of numeric/rounding.hpp hold for rounding to
// nearest with subnormal numbers, the x87 unit's for its full precision. Under rounding downward
// [4.6918869, 4.6918870] came out as [2.2310, 2.2313].
//
// So every door sets the environment right, and restores the caller's: the bindings, the functions
// of C, the public classes and the functions that door headers export, and threads of our own.
// Functions of a room that are called past the doors rely on their caller.
//
// Cost: where the environment is right, one or two control registers are read and compared, which
// takes less than two nanoseconds.
#pragma once

#include <cfloat>
#include <utility>

#include <hockeystick/version.hpp>

#if defined(__SSE2__) || defined(_M_X64) || (defined(_M_IX86_FP) && _M_IX86_FP >= 2)
#define HOCKEYSTICK_HAS_MXCSR
#include <xmmintrin.h>
#if LDBL_MANT_DIG == 64 && (defined(__GNUC__) || defined(__clang__))
#define HOCKEYSTICK_HAS_X87  // long double is computed there, under a control word of its own
#endif
#elif defined(__aarch64__) && (defined(__GNUC__) || defined(__clang__))
#define HOCKEYSTICK_HAS_FPCR
#elif defined(_M_ARM64)
#define HOCKEYSTICK_HAS_FPCR
#include <intrin.h>
#elif !defined(__wasm__)  // WebAssembly has one environment, the right one
#define HOCKEYSTICK_HAS_FENV
#include <cfenv>
#endif

namespace hockeystick::numeric {
inline namespace HOCKEYSTICK_ISA {

#if defined(HOCKEYSTICK_HAS_MXCSR)

// The control words of both units. Traps are masked: kernels compute all branches and select.
class ControlWords {
  public:
    static ControlWords now() {
        ControlWords words;
        words.mxcsr_ = _mm_getcsr();
#if defined(HOCKEYSTICK_HAS_X87)
        __asm__ __volatile__("fnstcw %0" : "=m"(words.x87_));
#endif
        return words;
    }
    bool right() const { return (mxcsr_ & ~mxcsr_flags) == right_mxcsr && (x87_ & x87_control) == right_x87; }

    static void set_right() { ControlWords().load(); }
    void load() const {
        _mm_setcsr((mxcsr_ & ~mxcsr_flags) | (_mm_getcsr() & mxcsr_flags));
#if defined(HOCKEYSTICK_HAS_X87)
        // A flag that is raised would trap as soon as its trap is unmasked.
        __asm__ __volatile__("fnclex\n\tfldcw %0" : : "m"(x87_) : "memory");
#endif
    }

  private:
    static constexpr unsigned mxcsr_flags = 0x3f, right_mxcsr = 0x1f80;        // all masked, to nearest, no FTZ, no DAZ
    static constexpr unsigned short x87_control = 0x0f3f, right_x87 = 0x033f;  // all masked, to nearest, 64 bits

    unsigned mxcsr_ = right_mxcsr;
    unsigned short x87_ = right_x87;
};

#elif defined(HOCKEYSTICK_HAS_FPCR)

class ControlWords {
  public:
    static ControlWords now() { return ControlWords(read()); }
    bool right() const { return (fpcr_ & control) == 0; }

    static void set_right() { write(read() & ~control); }
    void load() const { write(fpcr_); }

  private:
    // Flushing of inputs and outputs, the other subnormals of FEAT_AFP, traps, the rounding mode.
    static constexpr unsigned long long control = 0x01c09f07;

    explicit ControlWords(unsigned long long fpcr) : fpcr_(fpcr) {}

#if defined(_M_ARM64)
    static constexpr int reg = ARM64_SYSREG(3, 3, 4, 4, 0);
    static unsigned long long read() { return static_cast<unsigned long long>(_ReadStatusReg(reg)); }
    static void write(unsigned long long fpcr) { _WriteStatusReg(reg, static_cast<__int64>(fpcr)); }
#else
    static unsigned long long read() {
        unsigned long long fpcr;
        __asm__ __volatile__("mrs %0, fpcr" : "=r"(fpcr));
        return fpcr;
    }
    static void write(unsigned long long fpcr) { __asm__ __volatile__("msr fpcr, %0" : : "r"(fpcr) : "memory"); }
#endif

    unsigned long long fpcr_;
};

#elif defined(HOCKEYSTICK_HAS_FENV)

// Only the rounding mode has a portable name. Flushing is seen by what it does.
class ControlWords {
  public:
    static ControlWords now() {
        const volatile double least = DBL_MIN;
        const volatile double half = 0.5 * least;  // flushed as a result or as an operand
        ControlWords words;
        words.right_ = std::fegetround() == FE_TONEAREST && half + half > 0.0;
        if (!words.right_) std::fegetenv(&words.environment_);
        return words;
    }
    bool right() const { return right_; }

    static void set_right() { std::fesetenv(FE_DFL_ENV); }
    void load() const { std::fesetenv(&environment_); }

  private:
    bool right_ = true;
    std::fenv_t environment_{};
};

#else

class ControlWords {
  public:
    static ControlWords now() { return {}; }
    bool right() const { return true; }
    static void set_right() {}
    void load() const {}
};

#endif

// While it lives, its thread rounds to nearest, with subnormal numbers and without traps. It must
// end in the thread in which it began.
class FloatingEnvironment {
  public:
    FloatingEnvironment() : before_(ControlWords::now()) {
        if (!before_.right()) ControlWords::set_right();
    }
    ~FloatingEnvironment() {
        if (!before_.right()) before_.load();
    }
    FloatingEnvironment(const FloatingEnvironment&) = delete;
    FloatingEnvironment& operator=(const FloatingEnvironment&) = delete;

    // Whether the thread is in it already.
    static bool is_right() { return ControlWords::now().right(); }

  private:
    const ControlWords before_;
};

// The function with a guard around it, for doors. The call goes through a volatile pointer, because
// compilers know nothing of environments: they may move arithmetic that they see past the guard.
template <auto Function> struct Guarded;

template <class Result, class... Arguments, Result (*Function)(Arguments...)> struct Guarded<Function> {
    static Result call(Arguments... arguments) {
        Result (*const volatile function)(Arguments...) = Function;
        const FloatingEnvironment environment;
        return function(std::forward<Arguments>(arguments)...);
    }
};

template <auto Function> inline constexpr auto at_door = &Guarded<Function>::call;

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::numeric

#undef HOCKEYSTICK_HAS_MXCSR
#undef HOCKEYSTICK_HAS_X87
#undef HOCKEYSTICK_HAS_FPCR
#undef HOCKEYSTICK_HAS_FENV
