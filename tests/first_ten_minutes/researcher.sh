#!/usr/bin/env bash
# The researcher: which bound of one algorithm is the smallest, how far is it from the truth, and which printed ones are false?
source "$(dirname "$0")/role.bash"

step "install, README.md's first line" commands "$(blocks README.md sh 'main job' | sed -n '1s/ *&& *$//p')"
step "README.md" lines_of README.md | tee "$work/bounds"
says "$work/bounds" "shifted +delta <= 0\.[0-9]+"
says "$work/bounds" "lower=.*upper=|between .* and "

page=docs/guide/researcher.md
linked $page
step "$page" lines_of $page | tee "$work/compared"
says "$work/compared" "exact chain +[0-9]"
says "$work/compared" "printed mu +certified mu"
step "a million cells and a curve" clean .venv/bin/python - <<'END' | tee "$work/cells"
import math
import numpy as np
from hockeystick import federated

settings = {"rounds": 100, "local_steps": 10, "num_clients": 100, "smoothness": 1.0, "learning_rate": 0.01, "clip_norm": 1.0}
noise = np.linspace(0.1, 2.0, 1_000_000)
epsilons = federated.fedavg_epsilon(1e-5, noise_std=noise, **settings)
assert epsilons.shape == noise.shape and np.all(np.diff(epsilons) <= 0)
for epsilon, deviation in zip(epsilons[::99_999], noise[::99_999]):
    # A client moves the mean of 100 by 2 rate clip steps/100 in a round, beside noise of deviation/10: mu = 0.2/deviation after 100 rounds
    mu = 0.2 / deviation
    tail = [0.5 * math.erfc((epsilon / mu + sign * mu / 2) / math.sqrt(2)) for sign in (-1, 1)]
    assert abs(tail[0] - math.exp(epsilon) * tail[1] - 1e-5) < 1e-11, (epsilon, mu)  # the delta of Gaussian DP
print("right on the curve")
END
says "$work/cells" "right on the curve"
echo "the researcher has bounds side by side, in $(steps_taken) steps"
