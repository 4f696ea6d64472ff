"""Published numbers of compositions: noisy SGD, Gaussian and Laplace noise, groups."""

from __future__ import annotations

import hockeystick as hs
from published_numbers.value import Value, delta, epsilon

GAUSSIAN = "Bu, Dong, Long and Su 2020 (1911.11607), caption of Figure 4, moments accountant"
AUTODP = "yuxiangw/autodp, tutorials/"
STATEMENT = "tensorflow/privacy, analysis/compute_dp_sgd_privacy_test.py"
BATCHES = "Chua et al. 2024 (2403.17673); computed with dp_accounting 0.6.0 as by google-research, dpsgd_batch_sampler_accounting/example.py"
RENYI = "converted from Rényi divergences"


def group_of_two() -> tuple[float, float]:
    """Return epsilon of two records in five Gaussian steps."""
    training = hs.Accountant().compose(hs.Gaussian(1.0), 5)
    return hs.group_accountant(training, 2).epsilon_bracket(1e-6)[:2]


VALUES = [
    Value(
        "DP-SGD, 60,000 records, batches of 256, noise 1.3, 20 epochs: ε at δ = 1e-5",
        GAUSSIAN,
        "1.34",
        "upper bound",
        epsilon(1e-5, (hs.PoissonSampled(hs.Gaussian(1.3), 256 / 60_000), 4687)),
        RENYI,
    ),
    Value(
        "the same, noise .7, 70 epochs",
        GAUSSIAN,
        "8.68",
        "upper bound",
        epsilon(1e-5, (hs.PoissonSampled(hs.Gaussian(0.7), 256 / 60_000), 16_406)),
        RENYI,
    ),
    Value(
        "DP-SGD, 60,000 records, batches of 150, noise 1.3, 15 epochs: ε at δ = 1e-5",
        STATEMENT,
        "0.7242234026109595",
        "upper bound",
        epsilon(1e-5, (hs.PoissonSampled(hs.Gaussian(1.3), 150 / 60_000), 6000)),
        RENYI,
    ),
    Value(
        "DP-SGD, 10,000 records, batches of 64, noise 2 on microbatches, which count twice, 5 epochs: ε at δ = 1e-6",
        STATEMENT,
        "1.199",
        "upper bound",
        epsilon(1e-6, (hs.PoissonSampled(hs.Gaussian(1.0), 0.0064), 782)),
        "a coarser grid of losses",
    ),
    Value(
        "the same without sampling, a record once in an epoch",
        STATEMENT,
        "12.595",
        "upper bound",
        epsilon(1e-6, (hs.Gaussian(1.0), 5)),
    ),
    Value(
        "the same for users with two records",
        STATEMENT,
        "30.579",
        "upper bound",
        group_of_two,
        "by group privacy of (ε, δ); ours has a mechanism for the group",
    ),
    Value(
        "DP-SGD, noise .35, rate .001, 1000 steps: δ at ε = 4",
        BATCHES,
        "6.47516693e-03",
        "upper bound",
        delta(4.0, (hs.PoissonSampled(hs.Gaussian(0.35), 0.001), 1000)),
        "a grid of losses of width .001",
    ),
    Value(
        "the same",
        BATCHES,
        "5.36880167e-03",
        "lower bound",
        delta(4.0, (hs.PoissonSampled(hs.Gaussian(0.35), 0.001), 1000)),
        "a grid of losses of width .001",
    ),
    Value(
        "Gaussian noise 5 three times and 8 five times: ε at δ = 1e-6",
        AUTODP + "tutorial_new_api.ipynb",
        "1.984273919801572",
        "exact",
        epsilon(1e-6, (hs.Gaussian(5.0), 3), (hs.Gaussian(8.0), 5)),
    ),
    Value(
        "Laplace noise 5, 100 times: ε at δ = 1e-6",
        AUTODP + "tutorial_private_deep_learning.ipynb",
        "10.850346958780321",
        "upper bound",
        epsilon(1e-6, (hs.Laplace(5.0), 100)),
        RENYI,
    ),
    Value(
        "Laplace noise 5, rate .01, 1000 steps: ε at δ = 1e-6",
        AUTODP + "tutorial_private_deep_learning.ipynb",
        "0.2569326333160541",
        "upper bound",
        epsilon(1e-6, (hs.PoissonSampled(hs.Laplace(5.0), 0.01), 1000)),
        RENYI,
    ),
    Value(
        "1000 steps, each on 10 of 1000 records, a record replaced, noise twice the distance that this makes: ε at δ = 1e-5",
        "Zhu and Wang 2019 (1808.00087); computed by dp_accounting 0.6.0, RdpAccountant",
        "1.445298242121019",
        "upper bound",
        epsilon(1e-5, (hs.FixedSizeSampled(hs.Gaussian(4.0), 1000, 10, replacement=False), 1000), adjacency="replace"),
        RENYI,
    ),
]
