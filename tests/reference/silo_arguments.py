"""Arguments by the names of the formulas of inter-silo privacy, and how numbers are compared with the specification."""

import numpy as np

REL = 1e-6


def close(value: object, expected: object, rel: float = REL) -> None:
    """Compare numbers, or tuples of them."""
    np.testing.assert_allclose(np.asarray(value, dtype=float), np.asarray(expected, dtype=float), rtol=rel)


def setting(names: str, values: tuple[float, ...], **more: object) -> dict[str, object]:
    """Return arguments by their names."""
    return dict(zip(names.split(), values, strict=True)) | more


STABILITY = "lipschitz rounds learning_rate num_records num_silos"
EMPIRICAL = "diameter learning_rate rounds dimension noise_std silos_per_round lipschitz"
GRADIENT = "gradient_std batch_size silos_per_round heterogeneity num_silos dimension noise_std"

BATCH_SC = (
    "num_records smoothness strong_convexity initial_gap epsilon silos_per_round lipschitz dimension delta gradient_std"
)

LOWER = "gradient_std diameter num_silos num_records lipschitz dimension epsilon"
ROUNDS = "smoothness diameter silos_per_round lipschitz num_records epsilon dimension"
ERM = "smoothness diameter lipschitz silos_per_round epsilon num_records dimension delta batch_size num_silos"
ERM_SC = (
    "smoothness strong_convexity initial_gap silos_per_round epsilon num_records lipschitz dimension delta batch_size "
    "num_silos"
)

STICH = "strong_convexity distance_squared rounds second_moment max_step"
SIGMA = "lipschitz num_records rounds epsilon delta"
STAGES = "smoothness strong_convexity gradient_std initial_gap rounds"
OPTIMAL = "unprotected log_ratio utility_constant ratio near_optimal_gap conditional_variance"
