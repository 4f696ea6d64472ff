"""The small projects of examples/: CMake's three ways to the headers, and the C library from Rust and Go."""

import os
import shutil
from pathlib import Path

import pytest

import compiled
import effort
import hockeystick as hs
from compiled import CMAKE, needs_cmake, run

ROOT = Path(__file__).parents[2]
PROJECTS = ROOT / "examples" / "embedding"
POCKETFFT = compiled.FOLDER / "include" / "hockeystick" / "pocketfft"
LIBRARIES = [*compiled.FOLDER.glob("lib/libhockeystick_c.*[0-9]*")]

pytestmark = pytest.mark.slow
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
