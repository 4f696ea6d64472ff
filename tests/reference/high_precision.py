"""The Gaussian tail and the hockey-stick divergence from their definitions, to any number of digits.

Nothing here is shared with the compiled code: Q comes from its power series or Laplace's continued fraction, theta from
Q(a) - e^eps Q(b) as it stands, with the working precision raised until forty digits no longer change.
"""

from collections.abc import Callable

import mpmath as mp

DIGITS = 40  # what every function below returns, whatever cancels on the way


def _tail(x: mp.mpf) -> mp.mpf:
    """Q(x) at the working precision (a relative statement for x > 0)."""
    if x < -8:
        return 1 - _tail(-x)
    if x <= 8:
        with mp.extradps(30):  # Q(8) = 6e-16 is a difference of two halves
            term = total = +x
            k = 1
            while abs(term) > mp.eps * abs(total):
                k += 2
                term = term * x * x / k
                total += term
            return mp.mpf(1) / 2 - mp.npdf(x) * total
    terms = int((mp.mp.dps * mp.log(10) / (2 * x)) ** 2 / 2) + 20  # the error falls as exp(-2 x sqrt(2 terms))
    fraction = +x
    for k in range(terms, 0, -1):
        fraction = x + k / fraction
    return mp.npdf(x) / fraction


def _stable(formula: Callable[[], mp.mpf]) -> mp.mpf:
    """Evaluate `formula` at rising precision until DIGITS digits have settled."""
    digits, before = 70, None
    while digits < 20_000:
        with mp.workdps(digits):
            now = formula()
            if before is not None and abs(now - before) <= abs(now) * mp.mpf(10) ** -DIGITS:
                return now
        digits, before = digits * 2, now
    raise ArithmeticError("the reference value does not settle")


def q(x: float) -> mp.mpf:
    """P(N(0,1) > x)."""
    return _stable(lambda: _tail(mp.mpf(x)))


def _log_of(value: Callable[[], mp.mpf], complement: Callable[[], mp.mpf]) -> mp.mpf:
    """Log v from v, or from 1 - v where v is close to one."""
    y = _stable(complement)
    if y > mp.mpf(1) / 2:
        return _stable(lambda: mp.log(value()))
    if y < mp.mpf(10) ** -60:
        return mp.fneg(y, exact=True)  # -y alone would round to the caller's precision
    return _stable(lambda: mp.log1p(-complement()))


def log_q(x: float) -> mp.mpf:
    """Log of q(x)."""
    return _log_of(lambda: _tail(mp.mpf(x)), lambda: _tail(-mp.mpf(x)))


def q_inv(p: float) -> mp.mpf:
    """Return the x with q(x) = p, 0 < p < 1, by Newton's iteration on log q."""
    if p == 0.5:
        return mp.mpf(0)
    with mp.workdps(70):
        p = mp.mpf(p)
        tail = min(p, 1 - p)  # exact
        target = mp.log(tail)
        x = mp.sqrt(-2 * target) if tail < 0.1 else (mp.mpf(1) / 2 - tail) * mp.sqrt(2 * mp.pi)
        for _ in range(200):
            tail_x = _tail(x)
            step = (mp.log(tail_x) - target) * tail_x / mp.npdf(x)
            x += step
            if abs(step) < abs(x) * mp.mpf(10) ** -(DIGITS // 2 + 5):  # the next step would be below 1e-50
                tail_x = _tail(x)
                x += (mp.log(tail_x) - target) * tail_x / mp.npdf(x)
                return x if p < 0.5 else -x
    raise ArithmeticError("the quantile does not settle")


def _arguments(eps: float, r: float) -> tuple[mp.mpf, mp.mpf, mp.mpf]:
    e, shift = mp.mpf(eps), mp.mpf(r)
    return e, e / shift - shift / 2, e / shift + shift / 2


def _theta(eps: float, r: float) -> mp.mpf:
    e, a, b = _arguments(eps, r)
    return _tail(a) - mp.exp(e) * _tail(b)


def _complement(eps: float, r: float) -> mp.mpf:
    e, a, b = _arguments(eps, r)
    return _tail(-a) + mp.exp(e) * _tail(b)


def theta(eps: float, r: float) -> mp.mpf:
    """E_{e^eps}(N(r,1) || N(0,1)) for finite eps and 0 < r < inf."""
    return _stable(lambda: _theta(eps, r))


def theta_complement(eps: float, r: float) -> mp.mpf:
    """1 - theta(eps, r), a sum of two positive terms."""
    return _stable(lambda: _complement(eps, r))


def log_theta(eps: float, r: float) -> mp.mpf:
    """Log of theta(eps, r)."""
    return _log_of(lambda: _theta(eps, r), lambda: _complement(eps, r))


def theta_inverse(eps: float, delta: float, start: float) -> mp.mpf:
    """Return the r with theta(eps, r) = delta by Newton's iteration from a near-by start; d theta/d r is phi(a)."""
    with mp.workdps(80):
        r, target = mp.mpf(start), mp.mpf(delta)
        for _ in range(100):
            _, a, _ = _arguments(eps, r)
            if target < mp.mpf(1) / 2:
                value = theta(eps, r)
                step = mp.log(target / value) * value / mp.npdf(a)
            else:
                value = theta_complement(eps, r)
                step = mp.log(value / (1 - target)) * value / mp.npdf(a)
            r += step
            if abs(step) < r * mp.mpf(10) ** -(DIGITS - 5):
                return r
    raise ArithmeticError("the inverse does not settle")


def laplace_theta(eps: float, r: float) -> mp.mpf:
    """E_{e^eps} of two unit-scale Laplace distributions at distance r, by integrating its definition over three pieces.

    The log ratio (|x| - |x - r|) is -r left of 0, 2x - r between, r right of r; the positive part of P - e^eps Q
    starts where it exceeds eps.
    """

    def value() -> mp.mpf:
        e, shift = mp.mpf(eps), mp.mpf(r)
        if e >= shift:
            return mp.mpf(0)
        if e <= -shift:
            return -mp.expm1(e)
        x = (e + shift) / 2  # the threshold, in (0, r): P(X > x) - e^eps Q(X > x)
        return 1 - mp.exp(x - shift) / 2 - mp.exp(e - x) / 2

    return _stable(value)
