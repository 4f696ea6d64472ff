"""What embedders get: the downstream project of tests/embed, built against this installation and a plain CMake install."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

import compiled
import effort
import hockeystick as hs
import processes
from compiled import CMAKE, check_bracket, needs_cmake, run, sampled_training
from hockeystick import last_iterate

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "tests" / "embed"
SUBPROJECT = ROOT / "examples" / "embedding" / "add_subdirectory"

pytestmark = pytest.mark.slow


def last_iterate_cells():
    """Return what the program prints of the last iterate, by the package, which computes it by other code."""
    cell = {"num_records": 100, "learning_rate": 0.8, "lipschitz": 1.0, "smoothness": 1.0, "strong_convexity": 0.3}
    return [
        last_iterate.pnsgd_gaussian(0.5, index=95, noise_std=2.0, diameter=1.0, **cell),
        last_iterate.pnsgd_laplace(0.2, index=95, noise_scale=2.0, diameter=1.0, **cell),
        last_iterate.pnsgd_gaussian_random_stop(0.5, noise_std=2.0, diameter=1.0, **cell),
        last_iterate.pnsgd_rdp(3.0, index=95, noise_std=2.0, **cell),
    ]


def build(folder, config, *targets):
    """Configure the downstream project, and build its programs, or those that are named."""
    options = [f"-Dhockeystick_DIR={config}", f"-DCMAKE_BUILD_TYPE={effort.BUILD_TYPE}"]
    run(CMAKE, "-S", PROJECT, "-B", folder, *options)
    run(CMAKE, "--build", folder, "--config", effort.BUILD_TYPE, *(["--target", *targets] if targets else []))
    return folder


def check_compiled(folder):
    """Check that the compiled library gives the bits of the headers, which are returned, and that its user compiles no engine."""
    printed = run(folder / "compiled")
    assert printed == run(folder / "mechanisms")
    assert len(printed.splitlines()) == 12
    size = {name: (folder / "CMakeFiles" / f"{name}.dir" / "mechanisms.cpp.o") for name in ("compiled", "mechanisms")}
    if all(path.exists() for path in size.values()):
        assert size["compiled"].stat().st_size < 0.3 * size["mechanisms"].stat().st_size
    return printed


def check_headers(folder):
    """Check what is printed: theta(1, 1), an inverse, and brackets that overlap those of the Python package."""
    theta, eps, *cells = map(float, run(folder / "kernels").split())
    assert cells == pytest.approx(last_iterate_cells(), rel=1e-12)
    assert theta == pytest.approx(0.1269367375066439458, rel=1e-14)
    assert eps == pytest.approx(1.0, rel=1e-13)
    check_brackets(run(folder / "accountant"))


def check_brackets(line):
    """Check the brackets of a training."""
    training = sampled_training().compose(hs.Laplace(20.0))
    lower, upper, *of_delta = line.split()
    check_bracket(f"{lower} {upper}", training.epsilon_bracket(1e-5))
    check_bracket(" ".join(of_delta), training.delta_bracket(2.0))


def check_c(folder):
    """Check what is printed through the C library: the same, shuffled batches, and the message of an error."""
    first, kernel, epochs, message = run(folder / "from_c").splitlines()
    check_brackets(first)
    assert float(kernel) == pytest.approx(0.1269367375066439458, rel=1e-14)
    shuffled = hs.shuffled_batches_epsilon_bracket(1e-5, noise_multiplier=1.1, num_batches=100, epochs=10)
    assert tuple(map(float, epochs.split())) == pytest.approx(shuffled[:2], rel=1e-9)
    assert message == "noise_multiplier must be positive and finite, not -1"


@needs_cmake
def test_installed_package(tmp_path):
    """find_package works with get_cmake_dir(), in C and in C++."""
    folder = build(tmp_path, hs.get_cmake_dir(), "kernels", "accountant", "from_c")
    check_headers(folder)
    check_c(folder)


@needs_cmake
def test_plain_install(tmp_path):
    """Without Python, CMake installs headers, the C library, its CMake package and pkg-config file, elsewhere too."""
    prefix, moved = tmp_path / "prefix", tmp_path / "moved"
    pocketfft = Path(hs.get_include()) / "hockeystick" / "pocketfft"
    options = [
        f"-DPOCKETFFT_INCLUDE_DIR={pocketfft}",
        "-DHOCKEYSTICK_PYTHON=OFF",
        f"-DCMAKE_INSTALL_PREFIX={prefix}",
        f"-DCMAKE_BUILD_TYPE={effort.BUILD_TYPE}",
        "-DHOCKEYSTICK_LEVELS=native",
    ]
    run(CMAKE, "-S", ROOT, "-B", tmp_path / "library", *options, "-DHOCKEYSTICK_WERROR=ON")
    run(CMAKE, "--build", tmp_path / "library", "--target", "install", "--config", effort.BUILD_TYPE)
    prefix.rename(moved)
    targets = ("from_c", "mechanisms", "compiled")  # the test above has the others
    check_c(build(tmp_path / "downstream", moved / "lib" / "cmake" / "hockeystick", *targets))
    printed = check_compiled(tmp_path / "downstream")
    if shutil.which("pkg-config") and shutil.which("cc"):
        environment = os.environ | {"PKG_CONFIG_PATH": str(moved / "lib" / "pkgconfig")}
        flags = run("pkg-config", "--cflags", "--libs", "hockeystick", env=environment).split()
        program = tmp_path / "from_c"
        static = run("pkg-config", "--cflags", "--libs", "hockeystick_compiled", env=environment).split()
        assert "-DHOCKEYSTICK_COMPILED" in static
        run("c++", "-std=c++17", PROJECT / "mechanisms.cpp", *static, "-o", tmp_path / "by_hand")
        assert run(tmp_path / "by_hand") == printed
        run("cc", PROJECT / "from_c.c", *flags, "-o", program)
        assert run(program) == run(tmp_path / "downstream" / "from_c")


PAGE = (ROOT / "docs" / "project" / "embedding.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```(cpp|c)\n(#include.*?)```\n\n.*?`(program\.\w+)`.*?```sh\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(("language", "program", "name", "commands"), PROGRAMS, ids=[each[0] for each in PROGRAMS])
def test_the_commands_of_the_page(tmp_path, language, program, name, commands):
    """The programs of the page compile, link and start by its lines, as they stand, and print the bracket of the package."""
    compiler = {"cpp": "c++", "c": "cc"}[language]
    for tool in (compiler, "bash", *(["pkg-config"] if "pkg-config" in commands else [])):
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool}")
    (tmp_path / name).write_text(program, encoding="utf-8")
    tools = tmp_path / "bin"
    tools.mkdir()
    quickly = "" if effort.NIGHT else "-O0"
    for tool, command in (("python", f'"{sys.executable}" "$@"'), ("c++", f'{shutil.which("c++")} "$@" {quickly}')):
        (tools / tool).write_text(f"#!/bin/sh\nexec {command}\n", encoding="utf-8")
        (tools / tool).chmod(0o755)
    environment = os.environ | {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    environment.pop("LD_LIBRARY_PATH", None)
    printed = run("bash", "-euc", commands, cwd=tmp_path, env=environment)
    check_bracket(printed, sampled_training().epsilon_bracket(1e-5), wide=1e-6)


def test_the_page_has_both_programs():
    """One in C++ and one in C, each with its commands."""
    assert [(language, name) for language, _, name, _ in PROGRAMS] == [("cpp", "program.cpp"), ("c", "program.c")]


@needs_cmake
def test_headers_without_a_transform(tmp_path):
    """Told to leave out the C library, CMake installs headers without pocketfft; what needs no transform builds on them."""
    options = [
        "-DHOCKEYSTICK_PYTHON=OFF",
        "-DHOCKEYSTICK_C=OFF",
        "-DPOCKETFFT_INCLUDE_DIR=/nowhere",
        f"-DCMAKE_INSTALL_PREFIX={tmp_path}",
    ]
    run(CMAKE, "-S", ROOT, "-B", tmp_path / "library", *options)
    run(CMAKE, "--build", tmp_path / "library", "--target", "install")
    assert not list(tmp_path.glob("lib/*hockeystick_c*"))
    downstream = build(tmp_path / "downstream", tmp_path / "lib" / "cmake" / "hockeystick")
    assert float(run(downstream / "kernels").split()[0]) == pytest.approx(0.1269367375066439458, rel=1e-14)
    assert not (downstream / "from_c").exists()


@needs_cmake
@pytest.mark.parametrize(
    ("project", "options", "message"),
    [
        (ROOT, ["-DPOCKETFFT_INCLUDE_DIR=/nowhere"], "pocketfft.hpp was not found in '/nowhere'"),
        (
            ROOT,
            ["-DCMAKE_CXX_FLAGS=-funsafe-math-optimizations"],
            "do not survive the flag -funsafe-math-optimizations",
        ),
        (SUBPROJECT, ["-DPOCKETFFT_INCLUDE_DIR=/nowhere"], "pocketfft.hpp was not found in '/nowhere'"),
    ],
)
def test_refused_configurations(tmp_path, project, options, message):
    """CMake neither drops the C library in silence nor builds with flags under which bounds are false; a parent gets the error that names what is missing."""
    command = [CMAKE, "-S", project, "-B", tmp_path, "-DHOCKEYSTICK_PYTHON=OFF", *options]
    result = processes.run(command, check=False, limit=300)
    assert result.returncode != 0
    assert message in " ".join(result.stderr.split())


# The small projects of examples/: CMake's three ways to the headers, and the C library from Rust and Go.


PROJECTS = ROOT / "examples" / "embedding"
POCKETFFT = compiled.FOLDER / "include" / "hockeystick" / "pocketfft"
LIBRARIES = [*compiled.FOLDER.glob("lib/libhockeystick_c.*[0-9]*")]

needs_library = pytest.mark.skipif(not LIBRARIES, reason="the C library is not installed as a shared object")


def check_printed(line):
    """Check a bracket that a program prints: Python's accountant has the same epsilon."""
    compiled.check_bracket(line, compiled.sampled_training().compose(hs.Laplace(20.0)).epsilon_bracket(1e-5))


def check_project(name, folder, *options, whole=effort.NIGHT):
    """Check that a project, as configured, has its program; of the whole, that this builds, runs, and is all that is installed."""
    prefix = folder / "prefix"
    options = [*options, f"-DCMAKE_BUILD_TYPE={effort.BUILD_TYPE}", f"-DCMAKE_INSTALL_PREFIX={prefix}"]
    run(CMAKE, "-S", PROJECTS / name, "-B", folder, *options, "-DHOCKEYSTICK_LEVELS=native")
    assert "training" in run(CMAKE, "--build", folder, "--target", "help")
    if whole:
        run(CMAKE, "--build", folder, "--target", "training")
        run(CMAKE, "--install", folder)
        check_printed(run(prefix / "bin" / "training"))
        assert [path for path in prefix.rglob("*") if path.is_file()] == [prefix / "bin" / "training"]


@needs_cmake
def test_find_package(tmp_path):
    """The example finds the installed package, against which test_embed builds another program, and at night is built."""
    check_project("find_package", tmp_path, f"-Dhockeystick_DIR={hs.get_cmake_dir()}")


@needs_cmake
def test_add_subdirectory(tmp_path):
    """A clone inside a project builds without Python, by day, too, and installs nothing of its own."""
    check_project("add_subdirectory", tmp_path, f"-DPOCKETFFT_INCLUDE_DIR={POCKETFFT}", whole=True)


@needs_cmake
@pytest.mark.skipif(shutil.which("git") is None or not (ROOT / ".git").exists(), reason="no git, or no clone")
def test_fetch_content(tmp_path):
    """CMake fetches a clone by git. The rules of installation come only if asked for."""
    origin = tmp_path / "origin"
    run("git", "init", "--quiet", origin)
    for name in ("CMakeLists.txt", "cpp"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, origin / name)
    author = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"]
    run("git", "-C", origin, "add", ".")
    run("git", "-C", origin, *author, "commit", "--quiet", "-m", "as it is")
    commit = run("git", "-C", origin, "rev-parse", "HEAD").strip()
    options = [f"-DHOCKEYSTICK_REPOSITORY={origin.as_uri()}", f"-DHOCKEYSTICK_TAG={commit}"]
    options += [f"-DPOCKETFFT_INCLUDE_DIR={POCKETFFT}", "-DHOCKEYSTICK_C=OFF"]
    build_folder = tmp_path / "build"
    check_project("fetch_content", build_folder, *options)
    if effort.NIGHT:
        run(CMAKE, "-S", PROJECTS / "fetch_content", "-B", build_folder, "-DHOCKEYSTICK_INSTALL=ON")
        run(CMAKE, "--build", build_folder)
        run(CMAKE, "--install", build_folder)
        assert (build_folder / "prefix" / "include" / "hockeystick" / "accountant.hpp").exists()


def check_program(output):
    """Check a program that prints the bracket, then the message of a refused argument."""
    bracket, message = output.splitlines()
    check_printed(bracket)
    assert message == "noise_multiplier must be positive and finite, not -1"


@needs_library
@pytest.mark.skipif(shutil.which("cargo") is None, reason="no cargo")
def test_rust(tmp_path):
    """The Rust example builds offline, with no crate but its own, and without a warning."""
    environment = os.environ | {"HOCKEYSTICK_LIB": str(LIBRARIES[0].parent), "RUSTFLAGS": "-D warnings"}
    project = shutil.copytree(ROOT / "examples" / "rust", tmp_path / "rust")
    command = ["cargo", "run", "--quiet", "--offline", "--manifest-path", project / "Cargo.toml"]
    check_program(run(*command, env=environment))


@needs_library
@pytest.mark.skipif(not (shutil.which("go") and shutil.which("pkg-config")), reason="no go or no pkg-config")
def test_go(tmp_path):
    """The Go example builds by cgo and pkg-config."""
    environment = os.environ | {
        "PKG_CONFIG_PATH": str(compiled.FOLDER / "lib" / "pkgconfig"),
        "CGO_ENABLED": "1",
        "GOFLAGS": "-mod=mod",
        "GOCACHE": str(tmp_path / "cache"),
        "GOPROXY": "off",
        "LD_LIBRARY_PATH": str(LIBRARIES[0].parent),
    }
    run("go", "vet", ".", cwd=ROOT / "examples" / "go", env=environment)
    run("go", "build", "-o", tmp_path / "training", ".", cwd=ROOT / "examples" / "go", env=environment)
    check_program(run(tmp_path / "training", env=environment))
