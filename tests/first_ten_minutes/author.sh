#!/usr/bin/env bash
# The author of an accountant: does my program in C++, C or Rust get the certified number?
source "$(dirname "$0")/role.bash"

step "install, README.md's first line" commands "$(blocks README.md sh 'main job' | sed -n '1s/ *&& *$//p')"
page=docs/project/embedding.md
linked $page
"$python" - $page "$work" <<'END'
import pathlib, re, sys

page, work = map(pathlib.Path, sys.argv[1:])
found = re.findall(r"```(?:cpp|c)\n(#include.*?)```\n\n.*?`(program\.\w+)`.*?```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
assert [name for _, name, _ in found] == ["program.cpp", "program.c"], found
for text, name, lines in found:
    (work / name).write_text(text, encoding="utf-8")
    (work / f"{name}.sh").write_text(f"PATH={work}/clone/.venv/bin:$PATH\ncd {work}\n{lines}", encoding="utf-8")
END
for program in program.cpp program.c; do # dp_accounting says 1.515362
  step "$program, the page's lines" clean bash -euo pipefail -x "$work/$program.sh" | tee "$work/printed"
  says "$work/printed" "^1\.51536[0-9]* 1\.51536[0-9]*$"
done
if command -v cargo >/dev/null; then
  rust() { PATH="$PWD/.venv/bin:$PATH" CARGO_TARGET_DIR="$work/target" bash -euo pipefail -x -c "$(blocks $page sh rust)"; }
  step "examples/rust, the page's lines" rust | tee "$work/printed"
  says "$work/printed" "^noise_multiplier must be positive and finite, not -1"
fi
echo "the author has one number in every language, in $(steps_taken) steps"
