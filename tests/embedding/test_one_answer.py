"""One question has one answer: forty ledgers asked through Python, the C library and a C++ program give the same bits.

C and C++ compose in the reverse order. They also ask with other rounding modes, and with subnormal numbers taken for zero.
"""

import json
import math
import os
import random
import sys

import pytest

import compiled
import effort
import environments
import processes

pytestmark = pytest.mark.slow

# kind -> (Python, C++), each of the numbers of one step; C has a function of the kind's name.
DOORS = {
    "gaussian": ("hs.Gaussian({0})", "hs::gaussian({0})"),
    "laplace": ("hs.Laplace({0})", "hs::laplace({0})"),
    "poisson_gaussian": ("hs.PoissonSampled(hs.Gaussian({0}), {1})", "hs::poisson_sampled(hs::gaussian({0}), {1})"),
    "poisson_laplace": ("hs.PoissonSampled(hs.Laplace({0}), {1})", "hs::poisson_sampled(hs::laplace({0}), {1})"),
    "discrete_laplace": ("hs.DiscreteLaplace({0})", "hs::discrete_laplace({0}, 1.0)"),
    "discrete_gaussian": ("hs.DiscreteGaussian({0})", "hs::discrete_gaussian({0}, 1.0)"),
    "approximate_dp": ("hs.ApproximateDP({0}, {1})", "hs::approximate_dp({0}, {1})"),
}


def draw(generator):
    """Return a ledger, as (kind, numbers, count), and a delta."""
    ledger = []
    for _ in range(generator.randint(1, 3)):
        kind = generator.choice(list(DOORS))
        numbers = [math.exp(generator.uniform(math.log(0.7), math.log(20.0)))]
        if kind.startswith("poisson"):
            numbers.append(math.exp(generator.uniform(math.log(1e-4), math.log(0.3))))
        if kind == "approximate_dp":
            numbers = [0.05 * numbers[0], generator.choice([0.0, 1e-7])]
        if kind == "discrete_laplace":
            numbers = [1.0 / numbers[0]]
        ledger.append((kind, numbers, generator.choice([1, 3, 40, 700])))
    return ledger, math.exp(generator.uniform(math.log(1e-10), math.log(1e-3)))


GENERATOR = random.Random(7)
LEDGERS = [draw(GENERATOR) for _ in range(40)]

IN_PYTHON = """
import json, sys
import hockeystick as hs
for steps, delta in json.loads(sys.argv[1]):
    accountant = hs.Accountant()
    for text, count in steps:
        accountant.compose(eval(text), count)
    epsilon = accountant.epsilon_bracket(delta)
    print(epsilon.lower.hex(), epsilon.upper.hex())
"""

IN_CPP = """
#include <hockeystick/accountant.hpp>
#include <cfenv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif
namespace hs = hockeystick;
int main(int, char** words) {{
    const int modes[] = {{FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO}};
    std::fesetround(modes[std::atoi(words[1])]);
#if defined(__SSE2__)
    if (std::atoi(words[2])) _mm_setcsr(_mm_getcsr() | 0x8040);
    const unsigned before = _mm_getcsr() & 0xffc0;
#endif
    char kind[32];
    double a, b, count;
    std::optional<hs::Accountant> accountant(std::in_place);
    while (std::scanf("%31s %la %la %la", kind, &a, &b, &count) == 4) {{
{doors}
        if (std::strcmp(kind, "epsilon") == 0) {{
            const hs::Interval epsilon = accountant->epsilon(a);
            std::printf("%a %a\\n", epsilon.lower, epsilon.upper);
            accountant.emplace();
        }}
    }}
#if defined(__SSE2__)
    if ((_mm_getcsr() & 0xffc0) != before) return 1;
#endif
    return std::fegetround() != modes[std::atoi(words[1])];
}}
"""
DOOR = '        if (std::strcmp(kind, "{}") == 0) accountant->compose({}, count);'


def exact(line):
    """Return the numbers of a line of hexadecimal doubles."""
    return tuple(float.fromhex(word) for word in line.split())


def by_python(environment):
    """Return the brackets as Python gives them, in a process of its own."""
    text = json.dumps(
        [
            [[(DOORS[kind][0].format(*numbers), count) for kind, numbers, count in steps], delta]
            for steps, delta in LEDGERS
        ]
    )
    found = processes.run([sys.executable, "-c", IN_PYTHON, text], limit=300, env=environment)
    return [exact(line) for line in found.stdout.splitlines()]


def by_c():
    """Return the brackets as the C library gives them, in this process."""
    library, found = compiled.library(), []
    for steps, delta in LEDGERS:
        accountant = compiled.Accountant(library)
        for kind, numbers, count in reversed(steps):
            accountant.compose(kind, *numbers, *([1.0] if kind.startswith("discrete_") else []), count)
        found += accountant.ask("epsilon", delta)
    return found


def by_cpp(folder):
    """Return the brackets as a C++ program gives them that is compiled for the machine's baseline, for each environment."""
    doors = "\n".join(DOOR.format(kind, call.format("a", "b")) for kind, (_, call) in DOORS.items())
    optimised = compiled.KERNEL_FLAGS[0] if effort.NIGHT else "-O1"
    program = compiled.program(folder, IN_CPP.format(doors=doors), optimised, *compiled.KERNEL_FLAGS[1:])
    asked = folder / "asked"
    with asked.open("w", encoding="utf-8") as lines:
        for steps, delta in LEDGERS:
            for kind, (first, *second), count in reversed(steps):
                lines.write(f"{kind} {first.hex()} {sum(second, 0.0).hex()} {float(count).hex()}\n")
            lines.write(f"epsilon {delta.hex()} 0 0\n")
    found = []
    for mode in range(4):
        for flush in "01":
            with asked.open(encoding="utf-8") as stdin:
                answer = processes.run([program, str(mode), flush], limit=300, stdin=stdin).stdout
            found.append([exact(line) for line in answer.splitlines()])
    return found


@compiled.needs_library
def test_c_and_python_are_one():
    """The C library chooses the best instruction set, as Python does."""
    expected = by_python(dict(os.environ))
    assert by_c() == expected
    for rounding, flush in environments.WRONG if environments.AVAILABLE else []:
        with environments.environment(rounding, flush):
            found = by_c()
        assert found == expected, (rounding, flush)


@compiled.needs_compiler
def test_cpp_and_python_are_one(tmp_path):
    """A program that includes the headers is compiled for the baseline: what Python does where it is told to."""
    expected = by_python(os.environ | {"HOCKEYSTICK_ISA": "portable"})
    assert by_cpp(tmp_path) == [expected] * 8
