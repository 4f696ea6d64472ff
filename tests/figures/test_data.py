"""The data of the computed figures against the printed theorems term by term, at the captions' parameters; no exact value lies above a certified bound."""

import mpmath as mp
import numpy as np
import pytest

import drawn_figures
import effort
import theorems
from federations import AGGREGATOR
from hockeystick import figures, utility
from hockeystick.figures import hidden_states, trusted_aggregator

POINTS = 5  # of each curve


@pytest.fixture(autouse=True)
def digits():
    """Compute with forty digits."""
    with mp.workdps(40):
        yield


def some(rows: figures.Table) -> list[tuple[float, ...]]:
    """Return a few rows of a curve, its ends among them."""
    chosen = np.unique(np.linspace(0, len(rows["epsilon"]) - 1, POINTS).round().astype(int))
    return [(float(rows["epsilon"][i]), float(rows["delta"][i])) for i in chosen]


@pytest.mark.slow
def test_trusted_aggregator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figure 2 of 000: Theorem 2 with whole rounds; the exact chain is nowhere above it, and close to it at its first points."""
    monkeypatch.setattr(trusted_aggregator, "EPS", trusted_aggregator.EPS[:: effort.at_night(1, by_day=8)])
    whole = figures.find("000/2").table()
    for batch in (10, 20, 30):
        table = whole.where(batch_size=batch)
        for eps, delta in some(table.where(curve="Theorem 2")):
            expected = theorems.trusted_aggregator(eps, **AGGREGATOR | {"batch_size": batch})
            assert delta == pytest.approx(float(expected), rel=1e-12)
        bound, chain = table.where(curve="Theorem 2")["delta"], table.where(curve="exact chain")["delta"]
        known = np.isfinite(chain)
        assert known.mean() > 0.25
        assert np.all(chain[known] <= bound[known])
        assert chain[0] > bound[0] / 10
    drawn_figures.check("000/2", whole)


@pytest.mark.parametrize(
    ("number", "records", "caption"),
    [
        (2, (1, 20, 39), {"learning_rate": 0.5, "noise_std": 2.0, "strong_convexity": 0.0}),
        (3, (20, 30, 39), {"learning_rate": 0.7, "noise_std": 1.0, "strong_convexity": 0.2}),
    ],
)
def test_projected_sgd(number: int, records: tuple[int, ...], caption: dict[str, float]) -> None:
    """Figures 2 and 3 of 002: Theorem 4 and, above kappa, Proposition 1 as printed; below it the trivial 1."""
    table = figures.find(f"002/{number}").table()
    for record in records:
        process = caption | {"index": record, "num_records": 40, "lipschitz": 1.0, "smoothness": 0.5}
        for eps, delta in some(table.where(curve="Theorem 4", record=record)):
            expected = theorems.pnsgd_gaussian(eps, **process, diameter=1.0)
            assert delta == pytest.approx(float(expected), rel=1e-11)
        for eps, delta in some(table.where(curve="Proposition 1 (Rényi)", record=record)):
            assert delta == pytest.approx(float(theorems.pnsgd_rdp(eps, **process)), rel=1e-10)
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
                expected = one_round * mp.sqrt(int(rounds)) if bound == "certified" else levelled(rho, int(rounds))
                assert mu == pytest.approx(float(expected), rel=1e-9)


def levelled(rho: float, rounds: int) -> mp.mpf:
    """Return the printed parameter over rounds in units of one round's."""
    return mp.sqrt((rho + 1) / (rho - 1) * (mp.mpf(rho) ** rounds - 1) / (mp.mpf(rho) ** rounds + 1))


ROWS = {  # of Table 1: what the printed form needs, and the certified parameter of a single round
    "C: Theorem 12(a)": ({"schedule": "constant"}, 1.0),
    "CD: Theorem 12(b)": ({"schedule": "cyclic", "c": 1.3}, 0.01 * float(mp.harmonic(100))),
    "SD: Theorem 12(c)": ({"schedule": "stagewise"}, 1.0),
    "ID: Theorem 12(d)": ({"schedule": "continuous", "z": 1.5}, 0.01 * float(mp.harmonic(100))),
    "FedProx: Theorem 15": ({"prox": 0.5}, 0.02),
}


@pytest.mark.parametrize("theorem", ROWS)
def test_table_1(theorem: str) -> None:
    """Every row as printed; certified, constant and cyclic steps add as much in every round, and others less."""
    rows = figures.find("004/table-1").table().where(theorem=theorem)
    own, once = ROWS[theorem]
    printed = theorems.printed_fedprox if "prox" in own else theorems.printed_fedavg
    caption = {"local_steps": 100, "num_clients": 4, "clip_norm": 0.01, "noise_std": 1.0, "smoothness": 0.01}
    for rounds, mu in zip(rows["rounds"].tolist(), rows["mu_printed"], strict=True):
        assert mu == pytest.approx(float(printed(rounds=rounds, **caption, learning_rate=1.0, **own)), rel=1e-9)
    most = once * np.sqrt(rows["rounds"])
    assert np.all(rows["mu_certified"] <= most * (1 + 1e-9))
    exact = slice(1) if own.get("schedule") in ("stagewise", "continuous") else slice(None)
    assert rows["mu_certified"][exact] == pytest.approx(most[exact], rel=1e-9)


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
    """Figure 3 of 003 is drawn for the caption's problem; utility/test_risk_rates has the formulas."""
    table = figures.find("003/3").table()
    problem = {
        "num_silos": 25,
        "num_records": 10_000,
        "dimension": 10,
        "lipschitz": 1.0,
        "diameter": 2.0,
        "smoothness": 1.0,
    }
    for losses, curvature in (("convex", 0.0), ("strongly convex", 0.1)):
        for eps, rows in table.where(losses=losses).groups("epsilon"):
            found = utility.risk_rates(**problem, epsilon=eps, delta=1e-5, strong_convexity=curvature).pairs
            assert [(pair.algorithm, pair.upper, pair.lower) for pair in found] == list(
                zip(rows["algorithm"], rows["upper"], rows["lower"], strict=True)
            )


def test_table_3() -> None:
    """Table 3 of 004: products and sums of the steps one by one, and the printed entries."""
    table = figures.find("004/table-3").table()
    caption = {
        "rounds": 20,
        "local_steps": 5,
        "num_clients": 4,
        "clip_norm": 1.0,
        "smoothness": 1.0,
        "learning_rate": 0.1,
    }
    for row, rows in table.groups("row"):
        if row == "FedProx":
            rho, gamma = theorems.fedprox_rounds(**caption, prox=4.0)
        else:
            rho, gamma = theorems.fedavg_rounds(**caption, schedule=row)
        assert rows["rho"] == pytest.approx([float(x) for x in rho], rel=1e-12), row
        assert rows["gamma"] == pytest.approx([float(x) for x in gamma], rel=1e-12), row
    t = np.arange(20)
    printed = {
        "constant": (1.1**5, 0.25),
        "cyclic": (6**0.12, 0.6 * np.log(6)),
        "stagewise": ((1 + 0.1 / (t + 1)) ** 5, 0.25 / (t + 1)),
        "continuous": (((t + 2) / (t + 1)) ** 0.15, 0.75 * np.log((t + 2) / (t + 1))),
        "FedProx": (4 / 3, 0.125),
    }
    for row, rows in table.groups("row"):
        np.testing.assert_allclose(rows["rho_printed"], np.full(20, printed[row][0]), rtol=1e-12)
        np.testing.assert_allclose(rows["gamma_printed"], np.full(20, printed[row][1]), rtol=1e-12)
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


def test_trade_off() -> None:
    """001: leakages by their definition at beliefs that move, within C_1 -+ C_2 TV; the loss 3 TV; Lemma 5.5 and Theorem 5.1 are crossed."""
    table = figures.find("001/trade-off").table()
    curves = {name: rows["value"] for name, rows in table.groups("curve") if name not in ("upper bound", "exact")}
    moved = np.unique(table["total_variation"])

    def leakage(belief: mp.mpf) -> mp.mpf:
        middle = (belief + mp.mpf(1) / 2) / 2
        pairs = [(belief, middle), (1 - belief, 1 - middle), (mp.mpf(1) / 2, middle), (mp.mpf(1) / 2, 1 - middle)]
        return mp.sqrt(sum(p * mp.log(p / q) for p, q in pairs) / 2)

    before, slope = leakage(mp.mpf("0.55")), (mp.mpf("1.25") ** 2 - 1) / 2  # xi is ln(.5/.4)
    assert moved[-1] == pytest.approx(float(before / slope), rel=1e-12)
    for place in (0, 20, 60):
        tv = mp.mpf(moved[place])
        for world, end in (("[0.6, 0.4]", "0.6"), ("[0.4, 0.6]", "0.4")):
            exact = leakage((1 - tv) * mp.mpf("0.55") + tv * mp.mpf(end))
            assert curves[f"exact, towards {world}"][place] == pytest.approx(float(exact), rel=1e-9)
            assert curves["lower bound"][place] <= float(exact) * (1 + 1e-12)
        assert curves["printed, Lemma 5.5"][place] == pytest.approx(float(2 * before - slope * tv), rel=1e-9)
        assert curves["printed, Theorem 5.1"][place] == pytest.approx(float(8 * tv - 1 - 3 * tv), rel=1e-9)
    losses = table.where(quantity="utility loss")
    assert losses.where(curve="exact")["value"] == pytest.approx(3 * moved, rel=1e-12)
    assert losses.where(curve="upper bound")["value"] == pytest.approx(4 * moved, rel=1e-12)
    assert curves["exact, towards [0.6, 0.4]"][-1] > curves["printed, Lemma 5.5"][-1]


def test_trust() -> None:
    """003, Figures 1 and 2: from local to central privacy ever more parties are trusted; user-level privacy trusts server and silos, inter-silo neither."""
    table = figures.find("003/2").table()
    trusted = {name: sum("trusted" in text for text in rows["between"]) for name, rows in table.groups("notion")}
    assert list(trusted.values()) == [0, 1, 2, 4, 4]
    first = figures.find("003/1").table()
    assert first.where(notion="user-level", party="server")["between"] == ["trusted"]
    assert first.where(notion="inter-silo record-level", party="server")["between"] == ["noise"]


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("name", "panel", "curves"),
    [
        ("002/once", "noise_std", ("Theorem 4, published", "nonlinear", "shifted", "hybrid")),
        ("002/every-round", "epsilon", ("composition", "shifted", "joint")),
    ],
)
def test_bounds_are_above_the_truth(name: str, panel: str, curves: tuple[str, ...]) -> None:
    """Every bound is at least the lower end of the exact delta."""
    for _, rows in figures.find(name).table().groups(panel):
        exact = rows.where(curve="exact chain")["delta"]
        assert len(exact) > 20
        for curve in curves:
            assert np.all(rows.where(curve=curve)["delta"] >= exact * (1 - 1e-12))


def test_regions() -> None:
    """Each cell has one of the bounds, delta falls as epsilon grows, and one round has only what it leaks itself."""
    table = figures.find("002/once-regions").table()
    for _, rows in table.groups("diameter"):
        delta = rows["delta"].reshape(300, 61)
        assert np.all(np.diff(delta, axis=0) <= 0)
        assert set(rows["bound"]) <= {"contraction", "nonlinear", "shifted", "hybrid", "plain"}
        assert len(set(delta[:, 0] / table.where(diameter=3.0)["delta"].reshape(300, 61)[:, 0])) == 1


@pytest.mark.slow
def test_regions_of_every_round() -> None:
    """The same of a record used in every round: composition is the smallest bound for few rounds, the joint one for many."""
    points = effort.at_night(24, by_day=4)
    table = hidden_states.compute_every_round_regions(points)
    for _, rows in table.groups("diameter"):
        assert np.all(np.diff(rows["delta"].reshape(points, -1), axis=0) <= 0)
        bound = rows["bound"].reshape(points, -1)
        assert set(bound[:, 0]) == {"plain"}
        assert set(bound[:, -1]) == {"joint"}
    drawn_figures.check("002/every-round-regions", table)
