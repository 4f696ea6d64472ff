"""The accountant: what a sequence of mechanisms leaks in all, certified."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import islice
from typing import TYPE_CHECKING, Any, Self, cast, overload

import numpy as np
from numpy.typing import ArrayLike

import hockeystick._core as core
from hockeystick._checks import (
    DELTA,
    LARGEST_COUNT,
    NON_NEGATIVE_OR_INFINITE,
    STRICT,
    Array,
    Domain,
    Doubles,
    Result,
    boolean_scalar,
    broadcast,
    checked_count,
    choice,
    count_scalar,
    interval,
    scalar,
    setting_warnings,
    thread_count,
)
from hockeystick._checks.hints import unknown_name
from hockeystick._checks.shown import counted, shown
from hockeystick._numeric.notebook import table
from hockeystick._numeric.search import last_whole
from hockeystick._statements import Format
from hockeystick.accounting import renyi_divergence as renyi
from hockeystick.accounting.brackets import Bracket, Explanation
from hockeystick.accounting.certificate import certificate_path, certified, write
from hockeystick.accounting.composition import ENGINES, Composition, Engine, Question
from hockeystick.accounting.privacy_curve import false_negative_rates
from hockeystick.accounting.state import dump, load
from hockeystick.accounting.statement import guaranteed, stated
from hockeystick.accounting.steps import Block, Record, Steps
from hockeystick.mechanisms import Gaussian, PoissonSampled
from hockeystick.mechanisms.base import LARGEST_ORDER, Adjacency, Mechanism
from hockeystick.mechanisms.premises import Premises

__all__ = ["Accountant", "Premises"]  # what its assumptions are

ROWS = 20  # of the table in a notebook
LONGEST_CURVE = 10**6


class Accountant(Steps):
    """A ledger of mechanisms, with the certified epsilon and delta of their composition.

    Parameters
    ----------
    adjacency : {"add_or_remove", "replace"}
        Which data sets are adjacent.
    engine : {"auto", "contour", "pld"}
        "auto" takes an exact formula where there is one (Gaussian steps, a single step), else the contour engine, else
        discretised privacy losses. The others force one engine, to check it against another.

    Raises
    ------
    ValueError
        If a word is not one of these.

    Notes
    -----
    `delta`, `epsilon` and `log_delta` are certified upper ends: discretisation, truncation, quadrature and rounding are
    included. `delta_bracket` and `epsilon_bracket` have both ends, `explain` says how they were found. Both directions
    of adjacency are computed, and the larger counts.

    Composition is for a sequence of mechanisms fixed in advance. Choosing the noise of a step from the results of
    earlier ones needs a privacy filter: `GaussianFilter`, `RenyiFilter`. Queries change nothing, and order does not matter
    to them.

    Examples
    --------
    >>> import hockeystick as hs
    >>> training = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.0), 0.01), 100)
    >>> print(f"{training.epsilon(1e-5):.2f}")
    0.72
    """

    def __init__(self, adjacency: Adjacency = "add_or_remove", engine: Engine = "auto") -> None:
        """Start with nothing composed."""
        super().__init__(adjacency)
        self._engine: Engine = choice("engine", engine, ENGINES)
        self._composed: tuple[Record, Composition] | None = None  # kept between questions, and what it is of

    if not TYPE_CHECKING:  # a checker would take every name for one that is there

        def __getattr__(self, name):
            """Say which name was meant."""
            raise AttributeError(unknown_name(repr(type(self).__name__), name, dir(type(self))))

    @property
    def engine(self) -> Engine:
        """Which engine answers."""
        return self._engine

    def __repr__(self) -> str:
        """Return adjacency, engine and ledger in words."""
        steps = counted(self._counts())
        return f"<{type(self).__name__}: {steps or 'nothing composed'}; {self._adjacency}, engine {self._engine!r}>"

    def _repr_html_(self) -> str:
        """Return what was composed as a table, for a notebook."""
        caption = f"{type(self).__name__}: {self._adjacency}, engine {self._engine!r}"
        ledger = self._counts()
        steps = [(f"{count} x", shown(mechanism)) for mechanism, count in islice(ledger.items(), ROWS)]
        more = [("", f"and {len(ledger) - ROWS} more mechanisms")] if len(ledger) > ROWS else []
        return table(caption, [*steps, *more] or [("", "nothing composed")])

    def compose(self, mechanism: Mechanism, count: int = 1) -> Self:
        """Add steps, and return the accountant itself. Threads may compose at once.

        Parameters
        ----------
        mechanism : Mechanism
            What each step releases.
        count : int
            How many equal steps, in [0, 2^53]; 1202.0, as arrays of `dpsgd_steps` have it, is 1202. Composing one at a time costs queries nothing: equal steps are merged.

        Returns
        -------
        Accountant
            The same object, so that calls can be chained.

        Raises
        ------
        ValueError
            If the mechanism has no proven dominating pair under this adjacency, or a total count exceeds 2^53.
        TypeError
            If an argument is of the wrong type.
        """
        step, count = self._step(mechanism), checked_count(count)
        if count:
            self._change(Record.plus, step, count)
        return self

    def _compose_together(self, steps: Sequence[tuple[Mechanism, int]]) -> None:
        """Add all the steps, or none of them if one is refused."""
        runs = [(self._step(mechanism), checked_count(count)) for mechanism, count in steps]
        self._change(lambda record: reduce(lambda longer, run: longer.plus(*run) if run[1] else longer, runs, record))

    def _composition(self) -> Composition:
        """Return the present ledger as the core holds it. A query asks one composition alone, and so sees one ledger."""
        record, kept = self._state, self._composed
        if kept is None or kept[0] is not record:
            self._composed = kept = (record, Composition(record.totals(), self._adjacency, self._engine))
        return kept[1]

    def state_dict(self) -> dict[str, Any]:
        """Return the accountant as plain JSON values, with a version.

        Returns
        -------
        dict
            For `from_state_dict`, today or in a later release.
        """
        return dump(self._adjacency, self._engine, self._state.steps())

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> Self:
        """Return the accountant whose `state_dict` this is.

        Parameters
        ----------
        state : mapping
            What `state_dict` returned, perhaps through JSON.

        Returns
        -------
        Accountant
            Equal in every answer.

        Raises
        ------
        ValueError
            If the version is unknown, or something is missing or wrong.
        """
        adjacency, engine, steps = load(state)
        accountant = cls(adjacency, engine)
        for what, count in steps:
            more = Record.plus_block if isinstance(what, tuple) else Record.plus
            accountant._change(more, *accountant._checked_item(what, count))
        return accountant

    def _checked_item(self, what: Mechanism | Block, count: int) -> Any:
        if isinstance(what, tuple):
            return tuple(self._checked_item(*item) for item in what), count_scalar("count", count)
        return self._step(what), checked_count(count, 1)

    @overload
    def delta(self, epsilon: float) -> float: ...
    @overload
    def delta(self, epsilon: ArrayLike) -> Doubles: ...
    def delta(self, epsilon: ArrayLike) -> Result:
        """Return the certified upper end of delta at `epsilon`.

        Parameters
        ----------
        epsilon : array_like
            Non-negative; infinity is legal.

        Returns
        -------
        ndarray or float
            An upper bound of delta(epsilon), exactly 0 beyond the largest possible loss.

        Raises
        ------
        ValueError
            If epsilon is outside its domain, or a forced engine has no answer.
        """
        upper = _each("epsilon", epsilon, NON_NEGATIVE_OR_INFINITE, self._composition().upper_delta)
        setting_warnings.warn(setting_warnings.epsilon_like_delta(epsilon))
        return upper

    @overload
    def epsilon(self, delta: float) -> float: ...
    @overload
    def epsilon(self, delta: ArrayLike) -> Doubles: ...
    def epsilon(self, delta: ArrayLike) -> Result:
        """Return the certified upper end of the smallest epsilon >= 0 at `delta`.

        Parameters
        ----------
        delta : array_like
            In [0, 1); 0 asks for pure differential privacy, the largest possible loss.

        Returns
        -------
        ndarray or float
            An upper bound of epsilon, infinity where no epsilon will do.

        Raises
        ------
        ValueError
            If delta is outside its domain, or a forced engine has no answer.
        """
        composed = self._composition()
        upper = _each("delta", delta, DELTA, composed.upper_epsilon)
        _warn_of_large(delta, composed)
        return upper

    @overload
    def log_delta(self, epsilon: float) -> float: ...
    @overload
    def log_delta(self, epsilon: ArrayLike) -> Doubles: ...
    def log_delta(self, epsilon: ArrayLike) -> Result:
        """Return the certified upper end of log delta at `epsilon`.

        Parameters
        ----------
        epsilon : array_like
            Non-negative; infinity is legal.

        Returns
        -------
        ndarray or float
            An upper bound of log delta(epsilon), minus infinity where delta is 0. At any depth for Gaussian steps; others
            stop at about -744, where delta leaves the doubles.

        Raises
        ------
        ValueError
            If epsilon is outside its domain, or a forced engine has no answer.
        """
        return _each("epsilon", epsilon, NON_NEGATIVE_OR_INFINITE, self._composition().upper_log_delta)

    def delta_bracket(self, epsilon: float) -> Bracket:
        """Return certified ends of delta at `epsilon`.

        Parameters
        ----------
        epsilon : float
            Non-negative; infinity is legal.

        Returns
        -------
        Bracket
            delta(epsilon) lies between the ends; `method` names the engine that found the upper one.

        Raises
        ------
        ValueError
            If epsilon is outside its domain, or a forced engine has no answer.
        """
        epsilon = scalar("epsilon", epsilon, *NON_NEGATIVE_OR_INFINITE)
        setting_warnings.warn(setting_warnings.epsilon_like_delta(epsilon))
        return self._composition().bracket(Question(False, epsilon))

    def epsilon_bracket(self, delta: float) -> Bracket:
        """Return certified ends of the smallest epsilon >= 0 at `delta`.

        Parameters
        ----------
        delta : float
            In [0, 1).

        Returns
        -------
        Bracket
            epsilon lies between the ends; `method` names the engine that found the upper one.

        Raises
        ------
        ValueError
            If delta is outside its domain, or a forced engine has no answer.
        """
        delta = scalar("delta", delta, *DELTA)
        composed = self._composition()
        _warn_of_large(delta, composed)
        return composed.bracket(Question(True, delta))

    def explain(self, *, epsilon: float | None = None, delta: float | None = None) -> Explanation:
        """Return how a number is found: the method, the direction that won, the errors by origin, the assumptions.

        Parameters
        ----------
        epsilon : float, optional
            Explain delta at this epsilon.
        delta : float, optional
            Explain epsilon at this delta. Exactly one of the two must be given.

        Returns
        -------
        Explanation
            Prints as text.

        Raises
        ------
        ValueError
            If not exactly one argument is given, or it is outside its domain.
        """
        return self._composition().explanation(_question(epsilon, delta))

    def certificate(
        self, *, epsilon: float | None = None, delta: float | None = None, lower: bool = False, slack: float = 0.0
    ) -> str:
        """Return a certificate: a claim in JSON that a program proves which shares no code with this library.

        Parameters
        ----------
        epsilon : float, optional
            Claim that delta at this epsilon is at most the upper end of `delta_bracket`.
        delta : float, optional
            Claim that at the upper end of `epsilon_bracket` delta is at most this. Exactly one of the two must be given.
        lower : bool
            Claim that delta is at least as large as that at the lower end.
        slack : float
            Share of delta in [0, 1] by which the claim is weaker than the bracket, so that a proof has room: epsilon is that of a delta that is
            ``1 + slack`` times smaller, or delta is so much larger; for `lower` the other way. Steps of DP-SGD need none, a few steps or
            discrete noise up to 1e-3.

        Returns
        -------
        str
            The text of a file, for ``hockeystick check FILE`` (docs/core/certificates.md). It names claim, mechanisms, counts and adjacency; numbers
            are those of the accountant, to the last bit.

        Raises
        ------
        ValueError
            If the program has no rule for a mechanism, a number or the lower end, which is named; if not exactly one of `epsilon` and `delta` is given,
            or it is outside its domain.
        TypeError
            If an argument is of the wrong type.

        Examples
        --------
        >>> import json
        >>> import hockeystick as hs
        >>> training = hs.Accountant().compose(hs.Gaussian(2.0), 4)
        >>> json.loads(training.certificate(epsilon=0.5))["claim"]["delta_is"]
        'at most'
        """
        lower = boolean_scalar("lower", lower)
        return certified(self._composition(), _question(epsilon, delta), lower=lower, slack=slack)

    @property
    def premises(self) -> Premises:
        """What the numbers rest on: adjacency, what is attained, failure probability, assumptions."""
        return self._composition().premises()

    @overload
    def trade_off(self, fpr: float) -> float: ...
    @overload
    def trade_off(self, fpr: ArrayLike) -> Doubles: ...
    def trade_off(self, fpr: ArrayLike) -> Result:
        """Return a certified lower bound on the false-negative rate of every membership test.

        Parameters
        ----------
        fpr : array_like
            False-positive rate in [0, 1].

        Returns
        -------
        ndarray or float
            No test with this false-positive rate has a smaller false-negative rate.

        Raises
        ------
        ValueError
            If fpr is outside its domain, or a forced engine has no answer.

        Notes
        -----
        Dong, Roth and Su 2022: the supremum over eps >= 0 of max(0, 1 - delta - e^eps fpr,
        e^-eps (1 - delta - fpr)). Any set of eps gives a lower bound; this one is refined around the maximum.
        """
        rates = STRICT.probability("fpr", fpr)
        return false_negative_rates(self._composition().curve(), rates)[()]

    def advantage(self) -> float:
        """Return a certified upper bound on the membership advantage, true-positive minus false-positive rate.

        Returns
        -------
        float
            delta(0), the total variation distance.
        """
        return self._composition().upper_delta(0.0)

    @overload
    def rdp(self, order: float) -> float: ...
    @overload
    def rdp(self, order: ArrayLike) -> Doubles: ...
    def rdp(self, order: ArrayLike) -> Result:
        """Return a certified upper bound of the Renyi divergence.

        Parameters
        ----------
        order : array_like
            Renyi order, in [1, 1e5]; 1 is the Kullback-Leibler divergence.

        Returns
        -------
        ndarray or float
            Sum over the steps of the larger of both directions, in nats. Exact up to rounding for Gaussian, Laplace
            and discrete mechanisms, and for Poisson samples of noise, a record added or removed, at integer orders; between them the chord of
            the convex (order - 1) D, an upper bound. Discrete Gaussian noise has the bound of the Gaussian one, which where a record of
            its samples is replaced is that of the noise without sampling; the exponential
            mechanism the supremum over its intervals; mechanisms known by a Renyi divergence have that one. All others (samples
            where a record is replaced, batches of fixed size, truncated samples, mixtures, random allocation, profiles) have the integral of
            their curve, within 1e-5 of the pair's divergence. At orders so large that it needs probabilities below 1e-280 it is that of the
            noise without sampling. Infinity where a loss is infinite.

        Raises
        ------
        ValueError
            If order is outside its domain, or the ledger holds estimates.

        Notes
        -----
        Mironov 2017; Mironov, Talwar and Zhang 2019 for Poisson sampling; docs/core/loss.md for the integral. `epsilon` and `delta` convert these
        divergences wherever their engines have no sharper bound, and `explain` names the order.

        Examples
        --------
        >>> import hockeystick as hs
        >>> rounds = hs.Accountant("replace").compose(hs.FixedSizeSampled(hs.Gaussian(2.0), 1000, 20, replacement=False), 100)
        >>> print(hs.format_upper(rounds.rdp(4.0), ".4f"))
        0.2255
        """
        domain = interval(f"[1, {LARGEST_ORDER:.0f}]")
        ledger = self._counts()
        return _each("order", order, domain, lambda x: renyi.of_ledger(ledger, self._adjacency, x))

    def statement(
        self,
        delta: float,
        *,
        format: Format = "text",
        released: str | None = None,
        unit: str | None = None,
        certificate: str | os.PathLike[str] | None = None,
    ) -> str:
        """Return a privacy statement: text to paste into a model card, a paper or a registry.

        Parameters
        ----------
        delta : float
            In [0, 1).
        format : {"text", "markdown", "latex", "json"}
            How it is written; "json" is an entry of a registry of deployments.
        released : str, optional
            What is released and to whom, in your words. The numbers hold for all outputs.
        unit : str, optional
            What is added, removed or replaced in adjacent data sets, in your words: "one patient", "one user". The noise must have been
            scaled to what one of these can change. By default what the steps say (`premises`), else one record.
        certificate : path, optional
            Where to write the `certificate` of this epsilon, which the statement then names.

        Returns
        -------
        str
            What is promised, to whom, under which assumptions, what is not covered, and the code that gives it again. Upper ends of
            epsilon are rounded up, lower ends down.

        Raises
        ------
        ValueError
            If an argument is outside its domain, a number is only an estimate, or there is no certificate of it.
        TypeError
            If an argument is of the wrong type.

        Examples
        --------
        >>> import hockeystick as hs
        >>> rounds = hs.Accountant("replace").compose(hs.Gaussian(10.0), 20)
        >>> print(rounds.statement(1e-6, unit="one patient").splitlines()[3])
        What is released is (ε, δ)-differentially private with ε = 4.306 at δ = 1e-06, with
        """
        delta = scalar("delta", delta, *DELTA)
        composed = self._composition()
        _warn_of_large(delta, composed)
        known = guaranteed(composed, delta)
        if certificate is None:
            return stated(known, delta, format, released, unit)
        file, claim = certificate_path(certificate), certified(composed, Question(True, delta), lower=False)
        text = stated(known._replace(certificate=file.name), delta, format, released, unit)
        write(file, claim)
        return text

    def epsilon_curve(self, delta: float) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return epsilon after every step, in the order of composition.

        Parameters
        ----------
        delta : float
            In [0, 1).

        Returns
        -------
        ndarray
            As many certified upper ends as there are steps; they never fall.

        Raises
        ------
        ValueError
            If delta is outside its domain, or there are more than 10^6 steps.
        """
        delta = scalar("delta", delta, *DELTA)
        _warn_of_large(delta, self._composition())
        curve = self._epsilons_by_step(self._state, delta)
        return np.minimum.accumulate(curve[::-1])[::-1]  # what holds after more steps holds after fewer

    def would_exceed(self, mechanism: Mechanism, count: int = 1, *, epsilon: float, delta: float) -> bool:
        """Say whether composing these steps would leave the budget; nothing is composed.

        Parameters
        ----------
        mechanism : Mechanism
            What each step would release.
        count : int
            How many equal steps, in [0, 2^53].
        epsilon : float
            Budget, non-negative; infinity is legal.
        delta : float
            Budget, in [0, 1).

        Returns
        -------
        bool
            True if the certified epsilon at `delta` would be larger than `epsilon`.

        Raises
        ------
        ValueError
            If an argument is outside its domain, or the mechanism does not support this adjacency.
        """
        count = self._checked(mechanism, count)
        epsilon = scalar("epsilon", epsilon, *NON_NEGATIVE_OR_INFINITE)
        delta = scalar("delta", delta, *DELTA)
        return self._composition().plus(mechanism, count).upper_epsilon(delta) > epsilon

    def remaining(self, mechanism: Mechanism, *, epsilon: float, delta: float) -> int:
        """Return how many steps of a mechanism still fit into the budget.

        Parameters
        ----------
        mechanism : Mechanism
            What each step would release.
        epsilon : float
            Budget, non-negative; infinity is legal.
        delta : float
            Budget, in [0, 1).

        Returns
        -------
        int
            The largest count after which the certified epsilon at `delta` is at most `epsilon`; 0 if not even one step
            fits, or the budget is spent already. Where there is no limit (a mechanism that leaks nothing, such as one at
            sampling rate 0), the largest count that `compose` takes, 2^53 less the steps composed.

        Raises
        ------
        ValueError
            If an argument is outside its domain, or the mechanism does not support this adjacency.
        """
        self._checked(mechanism, 1)
        epsilon = scalar("epsilon", epsilon, *NON_NEGATIVE_OR_INFINITE)
        delta = scalar("delta", delta, *DELTA)
        composed = self._composition()
        most = LARGEST_COUNT - composed.ledger.get(mechanism, 0)
        if epsilon == math.inf or renyi.leaks_nothing(mechanism, self._adjacency):
            return most if composed.upper_epsilon(delta) <= epsilon else 0
        return last_whole(lambda count: composed.plus(mechanism, int(count)).upper_epsilon(delta) - epsilon, most)

    def _epsilons_by_step(self, record: Record, delta: float) -> Array:
        """Return the certified upper end after every step, each by itself."""
        ledger, steps = record.totals(), record.num_steps
        if steps > LONGEST_CURVE:
            raise ValueError(
                f"epsilon_curve gives one number for each of {steps} steps; at most {LONGEST_CURVE} will do: ask epsilon instead"
            )
        runs = list(record.runs())
        if len(runs) == 1 and self._engine == "auto" and self._adjacency == "add_or_remove":
            only = runs[0][0]
            step = PoissonSampled(only, 1.0) if isinstance(only, Gaussian) else only
            if isinstance(step, PoissonSampled) and isinstance(step.mechanism, Gaussian):  # one call, on all cores
                setting = step.mechanism.noise_multiplier, step.sampling_rate, np.arange(1.0, steps + 1.0), delta
                return core.dpsgd_epsilon(broadcast(*map(np.asarray, setting)), thread_count(None))
        composed = Composition(dict.fromkeys(ledger, 1), self._adjacency)
        composed.require_certified()
        return (self._curve_growing if composed.core_alone else self._curve_anew)(runs, delta)

    def _curve_growing(self, runs: Sequence[tuple[Mechanism, int]], delta: float) -> Array:
        """Return the curve of a ledger that grows by one step at a time, and keeps what it computed of the steps before."""
        growing = core.Accountant()
        curve = []
        for mechanism, count in runs:
            pairs = [(pair, times) for pair, times in mechanism._pairs(self._adjacency, upper=True) if times > 0.0]
            for _ in range(count):
                for pair, times in pairs:
                    growing.compose(pair, times, True)
                curve.append(growing.answers(True, delta, self._engine, True)[0].upper)
        return np.array(curve)

    def _curve_anew(self, runs: Sequence[tuple[Mechanism, int]], delta: float) -> Array:
        """Return the curve where the core does not know all: each ledger is asked anew."""
        composed = Composition({}, self._adjacency, self._engine)
        curve = []
        for mechanism, count in runs:
            for _ in range(count):
                composed = composed.plus(mechanism, 1)
                curve.append(composed.upper_epsilon(delta))
        return np.array(curve)


def _question(epsilon: float | None, delta: float | None) -> Question:
    """Return what is asked: delta at an epsilon, or epsilon at a delta."""
    if (epsilon is None) == (delta is None):
        raise ValueError(f"exactly one of epsilon and delta must be given, not epsilon={epsilon}, delta={delta}")
    if epsilon is not None:
        return Question(False, scalar("epsilon", epsilon, *NON_NEGATIVE_OR_INFINITE))
    return Question(True, scalar("delta", cast(float, delta), *DELTA))


def require_accountant(name: str, value: object) -> None:
    """Refuse what is no accountant."""
    if not isinstance(value, Accountant):
        raise TypeError(f"{name} must be an Accountant, not {shown(value)}")


def _warn_of_large(delta: ArrayLike, composed: Composition) -> None:
    if composed.num_records is not None:
        setting_warnings.warn(setting_warnings.large_delta(delta, composed.num_records), skip=1)


def _each(name: str, value: ArrayLike, domain: Domain, function: Callable[[float], float]) -> Result:
    """Check every number and answer for each; a scalar for a scalar."""
    if type(value) is float and domain[0](value):  # most are
        return function(value)
    numbers = STRICT.within(name, value, domain)
    if numbers.ndim == 0:
        return function(float(numbers))
    return np.array([function(x) for x in numbers.ravel().tolist()], dtype=np.float64).reshape(numbers.shape)
