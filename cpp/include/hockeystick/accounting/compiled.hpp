// The functions of the compiled library, for programs that would rather link than compile them.
//
// Whatever needs the code of an engine or of a mechanism's class goes through a template that is
// not inline. Without HOCKEYSTICK_COMPILED the compiler instantiates it where it is used, and
// nothing has to be linked. With it these declarations suppress that, and src/compiled.cpp, which
// also defines HOCKEYSTICK_BUILDS_COMPILED, has the instances. The code is the same, and so are the
// answers.
#pragma once

#include <hockeystick/accounting/accountant.hpp>
#include <hockeystick/mechanism/registry.hpp>

#ifdef HOCKEYSTICK_BUILDS_COMPILED
#define HOCKEYSTICK_INSTANCE template
#else
#define HOCKEYSTICK_INSTANCE extern template
#endif

namespace hockeystick::mechanism {
inline namespace HOCKEYSTICK_ISA {

HOCKEYSTICK_INSTANCE PairPointer made<ApproximateDP>(double, double);
HOCKEYSTICK_INSTANCE PairPointer made<BoundedRange>(double);
HOCKEYSTICK_INSTANCE PairPointer made<Discrete>(Masses);
HOCKEYSTICK_INSTANCE PairPointer made<DiscreteGaussian>(double, double);
HOCKEYSTICK_INSTANCE PairPointer made<Gaussian>(double);
HOCKEYSTICK_INSTANCE PairPointer made<Laplace>(double);
HOCKEYSTICK_INSTANCE PairPointer made<Nothing>();
HOCKEYSTICK_INSTANCE PairPointer made<PoissonSampled>(PairPointer, double);
HOCKEYSTICK_INSTANCE PairPointer made<TwoCandidates>(double, CandidateNoise);

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism

namespace hockeystick::accounting {
inline namespace HOCKEYSTICK_ISA {

HOCKEYSTICK_INSTANCE std::shared_ptr<Engine> Accountant::make<Engine>(const simd::Kernels&, contour::ContourCache*,
                                                                      const LongJob&);
HOCKEYSTICK_INSTANCE std::vector<Answer> Accountant::ask<Engine>(const Question&, const Options&) const;

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::accounting

#undef HOCKEYSTICK_INSTANCE
