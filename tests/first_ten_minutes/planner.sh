#!/usr/bin/env bash
# The planner of a federated training: which noise, rounds and local steps stay within a budget?
source "$(dirname "$0")/role.bash"

step "README.md's main job" commands "$(blocks README.md sh 'main job')" | tee "$work/best"
within "$work/best" 1 4
says "$work/best" "^noise_std = 0\.35"
[ -s out/_views/epsilon.png ]

page=docs/sweep/plans.md
linked $page
blocks $page toml >"$work/tomls"
sed '/^\[\[zip\]\]/,$d' "$work/tomls" >"$work/plan.toml" # the first block is the whole example
for command in "functions" "describe federated.fedavg_epsilon" "init first.toml --function dpsgd_epsilon"; do
  grep -q "hockeystick sweep $command" $page
  step "sweep $command" commands ".venv/bin/hockeystick sweep $command" >>"$work/told"
done
step "a plan of one's own" commands ".venv/bin/hockeystick sweep run $work/plan.toml -o own"
for question in "--maximise rounds" "--maximise local_steps" "--minimise noise_std"; do
  step "best $question" commands ".venv/bin/hockeystick sweep best own --where 'epsilon <= 4' $question" | tee "$work/own"
  within "$work/own" 0 4
done

# Whole clients, 1000 of 100,000 drawn for each of 500 rounds: dp_accounting's pessimistic grid says 1.580332.
clients="--num-clients 100000 --clients-per-round 1000 --rounds 500 --noise-multiplier 1 --delta 1e-6"
step "sampled clients" commands ".venv/bin/hockeystick epsilon $clients" | tee "$work/clients"
within "$work/clients" 1.580 1.581
says "$work/clients" "one client with all its records is added or removed"

linked docs/guide/federated.md
grep -q "## Noise, rounds and local steps under a budget" docs/guide/federated.md
echo "the planner has settings, in $(steps_taken) steps"
