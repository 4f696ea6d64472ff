"""The data of the computed figures against the printed formulas in high precision, which share no code with the library."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from hockeystick import figures

POINTS = 5  # of each curve


def theta(eps: float, r: mp.mpf) -> mp.mpf:
    """Return the hockey-stick divergence of two Gaussians at distance r."""
    return mp.ncdf(r / 2 - eps / r) - mp.exp(eps) * mp.ncdf(-r / 2 - eps / r)


@pytest.fixture(autouse=True)
def digits():
    """Compute with forty digits."""
    with mp.workdps(40):
        yield


def some(rows: figures.Table) -> list[tuple[float, ...]]:
    """Return a few rows of a curve, its ends among them."""
    chosen = np.unique(np.linspace(0, len(rows["eps"]) - 1, POINTS).round().astype(int))
    return [(float(rows["eps"][i]), float(rows["delta"][i])) for i in chosen]


@pytest.fixture(scope="module")
def aggregator() -> figures.Table:
    """Return the data of Figure 2 of 000, which take some seconds."""
    return figures.find("000/2").table()


@pytest.mark.slow
@pytest.mark.parametrize("batch", [10, 20, 30])
def test_trusted_aggregator(batch: int, aggregator: figures.Table) -> None:
    """Figure 2 of 000: Theorem 2 with whole rounds; the exact chain is nowhere above it, and close to it at its first points."""
    table = aggregator.where(batch_size=batch)
    for eps, delta in some(table.where(curve="Theorem 2")):
        rounds = 100 // batch
        own = theta(eps, 2 / (mp.sqrt(batch) * mp.mpf("1.5")))
        later = theta(eps, 2 * mp.sqrt(batch) / (mp.mpf("0.5") * mp.mpf("1.5")))
        expected = mp.mpf(batch) / 100 * own * mp.fsum(later**k for k in range(rounds))
        assert delta == pytest.approx(float(expected), rel=1e-12)
    bound, chain = table.where(curve="Theorem 2")["delta"], table.where(curve="exact chain")["delta"]
    known = np.isfinite(chain)
    assert known.sum() > 100
    assert np.all(chain[known] <= bound[known])
    assert chain[0] > bound[0] / 10


@pytest.mark.parametrize(
    ("number", "lr", "sigma", "rho", "records"),
    [(2, "0.5", "2", "0", (1, 20, 39)), (3, "0.7", "1", "0.2", (20, 30, 39))],
)
def test_projected_sgd(number: int, lr: str, sigma: str, rho: str, records: tuple[int, ...]) -> None:
    """Figures 2 and 3 of 002: Theorem 4 and, above kappa, Proposition 1 as printed; below it the trivial 1."""
    table = figures.find(f"002/{number}").table()
    lr, sigma, rho, beta = mp.mpf(lr), mp.mpf(sigma), mp.mpf(rho), mp.mpf("0.5")
    contraction = mp.sqrt(1 - 2 * lr * beta * rho / (beta + rho))
    for record in records:
        later = 40 - record
        for eps, delta in some(table.where(curve="Theorem 4", record=record)):
            expected = theta(eps, 2 / sigma) * theta(eps, contraction / (lr * sigma)) ** later
            assert delta == pytest.approx(float(expected), rel=1e-11)
        kappa = 2 * contraction ** (later + 1) / (later * sigma**2)
        for eps, delta in some(table.where(curve="Proposition 1 (Rényi)", record=record)):
            expected = mp.exp(-((eps - kappa) ** 2) / (4 * kappa)) if eps > kappa else mp.mpf(1)
            assert delta == pytest.approx(float(expected), rel=1e-10)
        chain = table.where(curve="exact chain", record=record)["delta"]
        bound = table.where(curve="Theorem 4", record=record)["delta"]
        assert not np.any(chain > bound)


def test_theorems_of_fedavg() -> None:
    """12(a) and 15 as printed, and the certified parameter, which is the square root of T times that of one round."""
    table = figures.find("004/theorems").table()
    for theorem, one_round in (("12(a)", mp.mpf(1)), ("15", 1 - mp.mpf("0.8") ** 5)):
        for bound in ("printed", "certified"):
            rows = table.where(theorem=theorem, bound=bound)
            for rho, rounds, mu in list(zip(rows["rho"], rows["rounds"], rows["mu"], strict=True))[::17]:
                if bound == "certified":
                    expected = one_round * mp.sqrt(int(rounds))
                else:
                    expected = mp.sqrt(
                        (rho + 1) / (rho - 1) * (mp.mpf(rho) ** int(rounds) - 1) / (mp.mpf(rho) ** int(rounds) + 1)
                    )
                assert mu == pytest.approx(float(expected), rel=1e-9)


def test_table_1() -> None:
    """The closed forms of rows C, CD, SD and FedProx as printed; certified values by the least shifts of the recursion for one round."""
    table = figures.find("004/table-1").table()
    lr, steps, smooth, prox, g = 1, 100, mp.mpf("0.01"), mp.mpf("0.5"), mp.mpf(1)  # g = 2 lr V K/(sqrt(m) sigma)
    rho = (1 + lr * smooth) ** steps
    harmonic = mp.harmonic(steps)

    def levelled(ratio, rounds):
        return mp.sqrt((ratio + 1) / (ratio - 1) * (ratio**rounds - 1) / (ratio**rounds + 1))

    grown = mp.mpf(1 + steps) ** (mp.mpf("1.3") * smooth)
    ratio = prox / (prox - smooth)
    printed = {
        "C: Theorem 12(a)": lambda rounds: g * levelled(rho, rounds),
        "CD: Theorem 12(b)": lambda rounds: (
            mp.mpf("0.01") * mp.mpf("1.3") * mp.log(steps + 1) * levelled(grown, rounds)
        ),
        "SD: Theorem 12(c)": lambda rounds: g * mp.sqrt(2 - mp.mpf(1) / rounds),
        "FedProx: Theorem 15": lambda rounds: mp.mpf("0.01") / prox * levelled(ratio, rounds),
    }
    certified = {
        "C: Theorem 12(a)": g,
        "CD: Theorem 12(b)": mp.mpf("0.01") * harmonic,
        "FedProx: Theorem 15": mp.mpf("0.01") / prox * (1 - (1 - prox) ** steps),
    }
    for theorem, formula in printed.items():
        rows = table.where(theorem=theorem)
        for rounds, mu in zip(rows["rounds"].tolist(), rows["mu_printed"], strict=True):
            assert mu == pytest.approx(float(formula(rounds)), rel=1e-9), theorem
    for theorem, one in certified.items():  # constant steps and cyclic ones: every round adds as much
        rows = table.where(theorem=theorem)
        assert rows["mu_certified"] == pytest.approx(
            [float(one * mp.sqrt(t)) for t in rows["rounds"].tolist()], rel=1e-9
        )
    first = table.where(rounds=1)
    assert dict(zip(first["row"].tolist(), first["mu_certified"].tolist(), strict=True)) == pytest.approx(
        {
            "constant": 1.0,
            "cyclic": 0.01 * float(harmonic),
            "stagewise": 1.0,
            "continuous": 0.01 * float(harmonic),
            "FedProx": 0.02,
        },
        rel=1e-9,
    )


def test_schedules() -> None:
    """Figure 3 of 004: step k of round t by its definition, and the simulator's sums over a round, which are its own."""
    simulate = pytest.importorskip("hockeystick.simulate")
    table = figures.find("004/3").table()
    assert len(table["step_size"]) == 4 * 50
    for name, rows in table.groups("schedule"):
        sums = [float(np.sum(steps["step_size"])) for _, steps in rows.groups("round")]
        algorithm = simulate.NoisyFedAvg(learning_rate=1.0, clip_norm=0.5, noise_std=1.0, local_steps=10, schedule=name)
        assert sums == pytest.approx(algorithm.data_sensitivity(5, 1).tolist(), rel=1e-12)
    fifth = table.where(round=2, local_step=4)  # third round, fifth step
    assert fifth["step_size"].tolist() == [1.0, 1 / 5, 1 / 3, 1 / 25]


def test_rates() -> None:
    """Figure 3 of 003: the terms of the theorems, written out, at every epsilon."""
    table = figures.find("003/3").table()
    n, silos, d, diameter, mu, log = 10_000, 25, 10, 2.0, 0.1, np.log(1e5)
    eps = np.unique(table["eps"])
    statistical, curved = diameter / np.sqrt(n * silos), 1 / (mu * n * silos)
    private = np.sqrt(d * log) / (eps * n * np.sqrt(silos))
    rounds = (eps * n * np.sqrt(silos) / np.sqrt(d * log)) ** 0.4 * diameter**0.4  # n/K with beta = L = 1

    def lower(noise, c=1.0):
        return diameter * np.minimum(1.0, np.sqrt(d) / (eps * n * noise * c))

    def lower_curved(noise, c=1.0):
        return diameter * np.minimum(1.0, d / (eps * n * noise * c) ** 2)

    convex = {
        "MB-SGD": (statistical + diameter * private, statistical + lower(5.0)),
        "one-pass AC-SA": (statistical + (diameter**1.5 * private) ** 0.8, statistical + lower(5.0, rounds)),
        "accelerated MB-SGD": (diameter * private, lower(5.0)),
        "shuffled MB-SGD": (statistical + diameter * private / 5.0, statistical + lower(25.0)),
    }
    strong = {
        "MB-SGD": ((1 / (n * silos) + private**2) / mu, curved + lower_curved(5.0)),
        "one-pass AC-SA": (curved + np.sqrt(10.0) * private**2 / mu, None),
        "accelerated MB-SGD": (private**2 / mu, lower_curved(5.0)),
        "shuffled MB-SGD": ((1 / (n * silos) + private**2 / 25) / mu, curved + lower_curved(25.0)),
    }
    for losses, expected in (("convex", convex), ("strongly convex", strong)):
        for algorithm, (above, below) in expected.items():
            rows = table.where(losses=losses, algorithm=algorithm)
            assert rows["upper"] == pytest.approx(above, rel=1e-9), algorithm
            assert below is None or rows["lower"] == pytest.approx(below, rel=1e-9), algorithm
    assert table.where(losses="convex", algorithm="one-pass AC-SA")["rounds"] == pytest.approx(rounds, rel=1e-9)
    assert set(table["algorithm"]) > set(convex)


def test_table_3() -> None:
    """Table 3 of 004: products and sums of the steps one by one, and the printed entries in their letters."""
    table = figures.find("004/table-3").table()
    open_constant, second = mp.mpf("1.2"), mp.mpf("1.5")
    for row, rows in table.groups("row"):
        for t in (0, 1, 19):
            found = {name: float(column[t]) for name, column in rows.columns.items() if name != "row"}
            steps = {
                "constant": [mp.mpf("0.1")] * 5,
                "cyclic": [mp.mpf("0.1") / (k + 1) for k in range(5)],
                "stagewise": [mp.mpf("0.1") / (t + 1)] * 5,
                "continuous": [mp.mpf("0.1") / (5 * t + k + 1) for k in range(5)],
                "FedProx": [mp.mpf("0.1")] * 5,
            }[row]
            printed = {
                "constant": (mp.mpf("1.1") ** 5, mp.mpf("0.25")),
                "cyclic": (mp.mpf(6) ** (open_constant / 10), open_constant / 2 * mp.log(6)),
                "stagewise": ((1 + mp.mpf("0.1") / (t + 1)) ** 5, mp.mpf("0.25") / (t + 1)),
                "continuous": (
                    (mp.mpf(t + 2) / (t + 1)) ** (second / 10),
                    second / 2 * mp.log(mp.mpf(t + 2) / (t + 1)),
                ),
                "FedProx": (mp.mpf(4) / 3, mp.mpf("0.125")),
            }[row]
            prox = 4 if row == "FedProx" else 0
            spread, drift = mp.mpf(1), mp.mpf(0)
            for step in steps:  # two models approach by the pull of the prox, and part by smoothness and by gradients
                if prox:
                    spread = (1 - step * prox) * spread + step * spread + step * prox
                else:
                    spread *= 1 + step
                drift = (1 - step * prox) * drift + step / 2
            assert found["rho"] == pytest.approx(float(spread), rel=1e-12), (row, t)
            assert found["gamma"] == pytest.approx(float(drift), rel=1e-12), (row, t)
            assert (found["rho_printed"], found["gamma_printed"]) == pytest.approx(
                tuple(map(float, printed)), rel=1e-12
            ), (row, t)
    first = table.where(row="cyclic", round=0)
    assert first["rho_printed"] < first["rho"]  # the printed entry is too small here


def test_table_4() -> None:
    """Table 4 of 004: three rows in their letters; only the paper's own does not grow, and linear losses do, as the root of T."""
    table = figures.find("004/table-4").table()
    noise = table.where(quantity="noise")
    rounds = np.unique(noise["rounds"])
    assert len(set(noise["work"])) == 9
    log = np.log(1e5)
    assert noise.where(work="noble2022")["order"] == pytest.approx(
        np.sqrt(rounds * 50 * np.log(2 * rounds / 1e-5) / 50), rel=1e-12
    )
    assert noise.where(work="cheng2022")["order"] == pytest.approx(np.sqrt(rounds * log), rel=1e-12)
    with mp.workdps(30):
        quantile = float(mp.sqrt(2) * mp.erfinv(1 - 2 * mp.mpf("1e-5")))
    own = noise.where(work="sun2024")["order"]
    assert own == pytest.approx(np.sqrt((quantile**2 + 4) * (2 - 1 / rounds) / 50), rel=1e-9)
    assert own[-1] / own[0] < 1.03
    true = noise.where(work="linear losses (slope)")["order"]
    assert true[-1] / true[0] == pytest.approx(np.sqrt(1000.0), rel=1e-12)
    divergences = table.where(quantity="Renyi divergence")
    assert divergences.where(work="zhang2022")["order"] == pytest.approx(2.0 * rounds * 50, rel=1e-12)
