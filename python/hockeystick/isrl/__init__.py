"""Inter-silo record-level differential privacy: budgets, noise, risk bounds and rates.

Lowy and Razaviyayn 2023, "Private Federated Learning Without a Trusted Server: Optimal Algorithms for Convex Losses". Each silo's
transcript is (epsilon, delta)-DP towards everybody else, when one of its records is replaced; other silos' messages may depend on
its earlier ones. Noise comes from `hockeystick.Accountant`, not from the printed constants, which are in
`hockeystick.published`. Arguments have the field's names, with the paper's letters in the docstrings.
"""

from __future__ import annotations

from hockeystick._checks.hints import open_room
from hockeystick.isrl.acceleration import (
    AcceleratedParameters,
    Stage,
    accelerated_parameters,
    acsa_bound,
    multistage_bound,
    multistage_rate,
    multistage_schedule,
)
from hockeystick.isrl.budgets import (
    Budget,
    advanced_composition,
    compositionality_constant,
    deletion_to_group,
    group_privacy,
    isrl_to_central,
    isrl_to_user_level,
    parallel_composition,
    per_round_budget,
    randomized_response_keep_prob,
    subsampling_amplification,
    tv_transfer,
    user_level_to_isrl,
)
from hockeystick.isrl.noise import (
    noisy_mb_sgd_accountant,
    noisy_mb_sgd_epsilon,
    noisy_mb_sgd_sigma,
    one_pass_sigma,
    silo_noise_sigmas,
)
from hockeystick.isrl.rates import (
    Rate,
    erm_rate,
    excess_risk_rate_iid,
    hybrid_user_level_rate,
    one_pass_rate,
    one_pass_rate_sc,
    risk_lower_bound,
    sdp_one_pass_rate,
    sdp_one_pass_rate_sc,
    shuffle_rate,
)
from hockeystick.isrl.risk import (
    mb_sgd_empirical_bound,
    mb_sgd_risk_bound,
    population_bound,
    relative_rmse,
    uniform_stability,
)
from hockeystick.isrl.rounds_and_steps import (
    averaging_weights,
    erm_rounds,
    mb_sgd_rounds,
    one_pass_batch_size,
    one_pass_batch_size_sc,
    sdp_batch_size,
    sdp_batch_size_sc,
    shuffle_rounds,
    step_size_convex,
    step_size_stich,
)
from hockeystick.isrl.shuffling import (
    ShuffledNoise,
    clone_bound,
    shuffle_amplification,
    shuffle_amplification_composed,
    shuffled_mb_sgd_epsilon,
    shuffled_mb_sgd_sigma,
)
from hockeystick.isrl.thresholds import (
    MoreauEnvelope,
    communication_gain,
    harmless_heterogeneity,
    moreau_envelope,
    smoothing_parameter,
)
from hockeystick.isrl.unequal_silos import (
    Heterogeneity,
    Participation,
    ReweightedConstants,
    balanced_batch_sizes,
    harmonic_participation,
    heterogeneity,
    mean_noise_std,
    noisy_gradient_variance,
    reweighted_constants,
    sampled_mean_variance,
    unequal_silos_empirical_rate,
    unequal_silos_rate,
    unequal_silos_rounds,
    unequal_silos_step,
)
from hockeystick.isrl.vector_sums import (
    binomial_mechanism_delta,
    calibrate_binomial_b,
    calibrate_vector_bits,
    shuffle_vector_sum,
    vector_sum_delta,
    vector_sum_epsilon,
    vector_sum_mse,
)

__all__ = [
    "AcceleratedParameters", "Budget", "Heterogeneity", "MoreauEnvelope", "Participation", "Rate",
    "ReweightedConstants", "ShuffledNoise", "Stage", "accelerated_parameters", "acsa_bound", "advanced_composition",
    "averaging_weights", "balanced_batch_sizes", "binomial_mechanism_delta", "calibrate_binomial_b",
    "calibrate_vector_bits", "clone_bound", "communication_gain", "compositionality_constant", "deletion_to_group",
    "erm_rate", "erm_rounds", "excess_risk_rate_iid", "group_privacy", "harmless_heterogeneity",
    "harmonic_participation", "heterogeneity", "hybrid_user_level_rate", "isrl_to_central", "isrl_to_user_level",
    "mb_sgd_empirical_bound", "mb_sgd_risk_bound", "mb_sgd_rounds", "mean_noise_std", "moreau_envelope",
    "multistage_bound", "multistage_rate", "multistage_schedule", "noisy_gradient_variance", "noisy_mb_sgd_accountant",
    "noisy_mb_sgd_epsilon", "noisy_mb_sgd_sigma", "one_pass_batch_size", "one_pass_batch_size_sc", "one_pass_rate",
    "one_pass_rate_sc", "one_pass_sigma", "parallel_composition", "per_round_budget", "population_bound",
    "randomized_response_keep_prob", "relative_rmse", "reweighted_constants", "risk_lower_bound",
    "sampled_mean_variance", "sdp_batch_size", "sdp_batch_size_sc", "sdp_one_pass_rate", "sdp_one_pass_rate_sc",
    "shuffle_amplification", "shuffle_amplification_composed", "shuffle_rate", "shuffle_rounds", "shuffle_vector_sum",
    "shuffled_mb_sgd_epsilon", "shuffled_mb_sgd_sigma", "silo_noise_sigmas", "smoothing_parameter", "step_size_convex",
    "step_size_stich", "subsampling_amplification", "tv_transfer", "unequal_silos_empirical_rate", "unequal_silos_rate",
    "unequal_silos_rounds", "unequal_silos_step", "uniform_stability", "user_level_to_isrl", "vector_sum_delta",
    "vector_sum_epsilon", "vector_sum_mse",
]  # fmt: skip

open_room(__name__)
