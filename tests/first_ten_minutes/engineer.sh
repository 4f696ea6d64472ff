#!/usr/bin/env bash
# The machine-learning engineer: what is the ε of my training, and what do I write into the model card?
source "$(dirname "$0")/role.bash"

step "install, README.md's first line" commands "$(blocks README.md sh 'main job' | sed -n '1s/ *&& *$//p')"
step "a statement" commands "$(blocks README.md sh statement)" | tee "$work/signed"
says "$work/signed" "differentially private with ε = 1\.[0-9]+ at δ = 1e-05"

page=docs/guide/statement.md
linked $page
step "$page" lines_of $page | tee "$work/statement"
says "$work/statement" "differentially private with ε = 1\.[0-9]+ at δ = 1e-05"
says "$work/statement" "[Nn]ot covered"
says "$work/statement" "shuffled, .*at least 6\.[0-9]+, at most 20\.[0-9]+"
# A loader of Opacus that drops the last batch: 3 batches of 300 of 1000 records, so that each is a sample at the rate 1/3. dp_accounting says 12.8598.
dropping="statement --num-records 1000 --steps 30 --noise-multiplier 1 --delta 1e-5"
grep -q "1/len(data_loader)" $page
for said in "--batch-size 300 --drop-last" "--sampling-rate 1/3"; do
  step "Opacus, $said" commands ".venv/bin/hockeystick $dropping $said" | tee "$work/dropped"
  says "$work/dropped" "differentially private with ε = 12\.8[67] at δ = 1e-05"
done
echo "the engineer has a statement, in $(steps_taken) steps"
