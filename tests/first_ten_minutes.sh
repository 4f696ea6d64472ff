#!/usr/bin/env bash
# What a newcomer does first, as README.md and docs/guide/start.md have it, in a clean clone with a home and an environment of their own:
# every marked shell block and every Python block. Then a wheel is built, and installed where there is no compiler; last,
# what `import hockeystick` costs. Fails on the first thing that does not work.
set -euo pipefail

source=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python=$(python3 -c 'import sys; print(sys.executable)')
mapfile -t origins < <(env | grep -E '^(PIP_|https?_proxy=)')
mkdir "$work/home" "$work/empty"

clean() { # run a command in a bare environment; of the caller's, only where packages come from
  env -i HOME="$work/home" PATH="$(dirname "$python"):/usr/local/bin:/usr/bin:/bin" PIP_NO_CACHE_DIR=1 "${origins[@]}" "$@"
}
step() { # name command...
  local start=$SECONDS name=$1
  shift
  echo "== $name"
  "$@"
  echo "== $name: $((SECONDS - start)) s"
}
blocks() { # page language: the blocks of a page, shell ones only where they are marked
  "$python" - "$1" "$2" <<'END'
import pathlib, re, sys

text, marked = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"), r"<!-- (?:main job|first ten minutes) -->\n"
found = re.findall((marked if sys.argv[2] == "sh" else "") + f"```{sys.argv[2]}\n(.*?)```", text, re.DOTALL)
assert found, f"{sys.argv[1]} has no {sys.argv[2]} block to try"
print("\n".join(found))
END
}

step "a clean clone" git clone -q "$source" "$work/clone"
cd "$work/clone"
for page in README.md docs/guide/start.md; do
  blocks "$page" sh >"$work/commands.sh"
  blocks "$page" python >"$work/lines.py"
  step "$page, the commands" clean bash -euo pipefail -x "$work/commands.sh"
  step "$page, the Python" clean .venv/bin/python "$work/lines.py"
done
[ -s demo.png ] && ls out/_views/*.png

step "a wheel" clean .venv/bin/pip wheel -q --no-deps . -w "$work/wheels"
ls -l "$work/wheels"
clean "$python" -m venv "$work/bare"
without_compiler() { clean env PATH="$work/empty" CC=/bin/false CXX=/bin/false "$@"; }
step "the wheel where there is no compiler" without_compiler "$work/bare/bin/pip" install -q "$work"/wheels/*.whl
without_compiler "$work/bare/bin/pip" list --format freeze
cd "$work"
step "one number" without_compiler "$work/bare/bin/hockeystick" epsilon --noise-multiplier 1 --sampling-rate 0.01 --steps 1000 --delta 1e-5
step "what import costs" without_compiler "$work/bare/bin/python" - <<'END'
import subprocess, sys

code = """
import resource, time
import numpy
kb, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
import hockeystick
print(1e3 * (time.perf_counter() - start), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - kb) / 1024)
"""
runs = [tuple(map(float, subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.split())) for _ in range(7)]
print(f"import hockeystick: {min(ms for ms, _ in runs):.0f} ms and {min(mb for _, mb in runs):.1f} MB beyond NumPy, the best of 7")
END
echo "all of it works"
