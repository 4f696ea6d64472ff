#!/usr/bin/env bash
# The researcher: which bound of one algorithm is the smallest, how far is it from the truth, and which printed ones are false?
source "$(dirname "$0")/role.bash"

step "install, README.md's first line" commands "$(blocks README.md sh 'main job' | head -1 | sed 's/ *&& *$//')"
step "README.md" lines_of README.md | tee "$work/bounds"
says "$work/bounds" "shifted +delta <= 0\.[0-9]+"
says "$work/bounds" "lower=.*upper=|between .* and "

page=docs/guide/researcher.md
linked $page
step "$page" lines_of $page | tee "$work/compared"
says "$work/compared" "exact chain +[0-9]"
says "$work/compared" "printed mu +certified mu"
echo "the researcher has bounds side by side"
