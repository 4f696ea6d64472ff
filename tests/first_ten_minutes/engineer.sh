#!/usr/bin/env bash
# The machine-learning engineer: what is the ε of my training, and what do I write into the model card?
source "$(dirname "$0")/role.bash"

step "install, README.md's first line" commands "$(blocks README.md sh 'main job' | head -1 | sed 's/ *&& *$//')"
step "a statement" commands "$(blocks README.md sh statement)" | tee "$work/signed"
says "$work/signed" "differentially private with ε = 1\.[0-9]+ at δ = 1e-05"

page=docs/guide/statement.md
linked $page
step "$page" lines_of $page | tee "$work/statement"
says "$work/statement" "differentially private with ε = 1\.[0-9]+ at δ = 1e-05"
says "$work/statement" "[Nn]ot covered"
says "$work/statement" "shuffled, .*at least 6\.[0-9]+, at most 20\.[0-9]+"
echo "the engineer has a statement"
