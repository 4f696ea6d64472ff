# What the four roles share: a clean clone, a bare environment, the blocks of a page, and a clock. Sourced, not run.
#
# Each role begins with README.md alone and follows its commands and links. Run it as a Unix user that has nothing yet (CONTRIBUTING.md); it
# installs from the clone, and fails at the first thing that does not work or after ten minutes.
set -euo pipefail

source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mapfile -t origins < <(env | grep -E '^(PIP_|https?_proxy=)')
mkdir "$work/home"
python=$(python3 -c 'import sys; print(sys.executable)')

clean() { # run a command in a bare environment; of the caller's, only where packages come from
  env -i HOME="$work/home" PATH="$(dirname "$python"):/usr/local/bin:/usr/bin:/bin" "${origins[@]}" "$@"
}
step() { # name command...: say what is done and how long it took; no step may end after the ten minutes
  local start=$SECONDS name=$1
  echo "$name" >>"$work/steps"
  shift
  echo "== $name" >&2
  "$@"
  echo "== $name: $((SECONDS - start)) s, $SECONDS s in all" >&2
  ((SECONDS <= 600 * ${HOCKEYSTICK_PATIENCE:-1})) || { echo "that took more than ten minutes" >&2; exit 1; }
}
steps_taken() { wc -l <"$work/steps" | tr -d " "; } # those before a pipe among them
blocks() { # page language [mark]: the blocks of a page, or only those after <!-- mark -->
  "$python" - "$@" <<'END'
import pathlib, re, sys

page, language, *mark = sys.argv[1:]
before = rf"<!-- {re.escape(mark[0])} -->\n" if mark else r"(?<!-->\n)"
found = re.findall(before + rf"```{language}\n(.*?)```", pathlib.Path(page).read_text(encoding="utf-8"), re.DOTALL)
assert found, f"{page} has no {language} block to try"
print("\n".join(found))
END
}
commands() { clean bash -euo pipefail -x -c "$1"; }
lines_of() { # page: its Python, as a reader runs it, with the output
  blocks "$1" python >"$work/lines.py"
  clean .venv/bin/python "$work/lines.py"
}
linked() { # page: fail unless README.md links to it
  grep -q "($1)" README.md || { echo "README.md does not link to $1" >&2; exit 1; }
}
says() { # file words...: fail unless the file has a line with these words
  grep -Eq -- "$2" "$1" || { echo "nothing says: $2" >&2; cat "$1" >&2; exit 1; }
}
within() { # file low high: the last "epsilon = X" of a file lies between
  "$python" - "$@" <<'END'
import pathlib, re, sys

found = re.findall(r"epsilon = ([\d.]+)", pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
assert found and float(sys.argv[2]) <= float(found[-1]) <= float(sys.argv[3]), f"epsilon is {found}, not {sys.argv[2:]}"
END
}

mkdir "$work/clone"
snapshot() { git -c safe.directory="*" -C "$source" archive HEAD | tar -x -C "$work/clone"; } # a clone would refuse the files of another user
step "what a clone has" snapshot
cd "$work/clone"
