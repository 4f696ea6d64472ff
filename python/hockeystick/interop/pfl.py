"""pfl-research: a privacy accountant with the fields of its own; pfl is not imported.

.. code-block:: python

    accountant = PrivacyAccountant(...)  # was: pfl.privacy.PLDPrivacyAccountant(...)
    mechanism = GaussianMechanism.from_privacy_accountant(accountant=accountant, clipping_bound=1.0)
"""

from __future__ import annotations

from dataclasses import dataclass

from hockeystick._checks import choice, count_scalar, probability_scalar, scalar
from hockeystick._numeric.printing import format_upper
from hockeystick.accounting.accountant import Accountant
from hockeystick.accounting.calibration import calibrate
from hockeystick.accounting.dpsgd import dpsgd_noise_multiplier
from hockeystick.mechanisms import Gaussian, Laplace, PoissonSampled

__all__ = ["PrivacyAccountant"]

_MECHANISMS = {"gaussian": Gaussian, "laplace": Laplace}
SEARCHED = (1e-3, 1e9)  # noise multipliers between which a budget's is looked for, unless given


@dataclass
class PrivacyAccountant:
    """Epsilon, delta and noise of a training: two are given, the third follows, certified.

    Parameters
    ----------
    num_compositions : int
        Rounds, at least 1.
    sampling_probability : float
        Of each client in each round, independently of others, in [0, 1].
    mechanism : {"gaussian", "laplace"}
        What the noise is.
    epsilon, delta, noise_parameter : float, optional
        At most one is missing. noise_parameter is over a sensitivity of 1: standard deviation, or scale.
    noise_scale : float
        In (0, 1]: `cohort_noise_parameter` is that much of the noise. For simulations of a larger cohort only: what is run
        with less than 1 does not have this epsilon.
    min_bound_noise_parameter, max_bound_noise_parameter : float, optional
        Ends of the search for noise_parameter.

    Raises
    ------
    ValueError
        If more than one is missing, an argument is outside its domain, or three are given that do not hold together.

    Examples
    --------
    >>> from hockeystick import format_upper
    >>> accountant = PrivacyAccountant(1000, 0.01, "gaussian", epsilon=2.0, delta=1e-5)
    >>> print(format_upper(accountant.noise_parameter, ".4f"))
    0.9592
    """

    num_compositions: int
    sampling_probability: float
    mechanism: str
    epsilon: float | None = None
    delta: float | None = None
    noise_parameter: float | None = None
    noise_scale: float = 1.0
    min_bound_noise_parameter: float | None = None
    max_bound_noise_parameter: float | None = None

    def __post_init__(self) -> None:
        """Find what is missing."""
        self.num_compositions = count_scalar("num_compositions", self.num_compositions)
        probability_scalar("sampling_probability", self.sampling_probability)
        self.mechanism = choice("mechanism", self.mechanism.lower(), tuple(_MECHANISMS))
        scalar("noise_scale", self.noise_scale, lambda x: 0 < x <= 1, "lie in (0, 1]")
        missing = [name for name in ("epsilon", "delta", "noise_parameter") if getattr(self, name) is None]
        if len(missing) > 1:
            raise ValueError(
                f"at most one of epsilon, delta and noise_parameter may be missing, not {', '.join(missing)}"
            )
        if self.noise_parameter is None:
            self.noise_parameter = self._search()
        accountant = self.accountant()
        if self.epsilon is None:
            self.epsilon = float(accountant.epsilon(self.delta))  # type: ignore[arg-type]
        elif self.delta is None:
            self.delta = float(accountant.delta(self.epsilon))
        elif accountant.epsilon(self.delta) > self.epsilon:
            reached = accountant.epsilon(self.delta)
            raise ValueError(
                f"noise_parameter must be large enough for epsilon={self.epsilon} at delta={self.delta}, "
                f"not {self.noise_parameter}, whose epsilon is {format_upper(reached)}"
            )

    @property
    def cohort_noise_parameter(self) -> float:
        """The noise for a cohort, after `noise_scale`."""
        return float(self.noise_parameter) * self.noise_scale  # type: ignore[arg-type]

    def accountant(self) -> Accountant:
        """Return hockeystick's accountant of this training, for brackets and explanations."""
        return self._with_noise(float(self.noise_parameter))  # type: ignore[arg-type]

    def _with_noise(self, noise: float) -> Accountant:
        step = PoissonSampled(_MECHANISMS[self.mechanism](noise), self.sampling_probability)
        return Accountant().compose(step, self.num_compositions)

    def _search(self) -> float:
        ends = (self.min_bound_noise_parameter or SEARCHED[0], self.max_bound_noise_parameter or SEARCHED[1])
        if self.mechanism == "gaussian":
            least = float(
                dpsgd_noise_multiplier(self.sampling_probability, self.num_compositions, self.epsilon, self.delta)  # type: ignore[arg-type]
            )
            if least <= ends[1]:
                return max(least, ends[0])
        return float(calibrate(self._with_noise, epsilon=self.epsilon, delta=self.delta, bracket=ends))
