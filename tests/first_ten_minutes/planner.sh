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

linked docs/guide/federated.md
grep -q "## Noise, rounds and local steps under a budget" docs/guide/federated.md
echo "the planner has settings"
