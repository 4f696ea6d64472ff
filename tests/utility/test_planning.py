"""The planner and its command: plans are certified, repeatable, and refused where nothing is feasible."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import isrl, simulate, utility
from hockeystick.cli import main
from hockeystick.sweep.plan import load
from hockeystick.utility.settings import Problem as Inputs

COMMON = {
    "num_silos": 12, "num_records": 500, "dimension": 5, "lipschitz": 1.0, "diameter": 2.0, "smoothness": 1.0,
    "strong_convexity": 0.1, "epsilon": 2.0, "delta": 1e-5, "max_rounds": 8,
}  # fmt: skip


@pytest.mark.parametrize(("trust", "most"), [("inter-silo", 3), pytest.param("central", 3, marks=pytest.mark.slow)])
def test_plan_of_batches(trust: str, most: int) -> None:
    """Every epsilon is the accountant's and within the budget, every risk the bound; the best is first; what is printed is certified."""
    found = utility.plan(trust=trust, **COMMON, num_settings=most)
    pooled, silos = (6000, 1) if trust == "central" else (500, 12)
    for setting in found.settings:
        noise = {"noise_std": setting.noise_std, "lipschitz": 1.0, "num_records": pooled, "rounds": setting.rounds}
        silo = isrl.noisy_mb_sgd_accountant(**noise, batch_size=setting.batch_size)
        assert setting.epsilon == silo.epsilon(1e-5)
        assert 1.9 < setting.epsilon <= 2.0
        losses = {"diameter": 2.0, "dimension": 5, "smoothness": 1.0, "strong_convexity": 0.1}
        risk = isrl.mb_sgd_risk_bound(**noise, **losses, num_silos=silos, silos_per_round=silos)
        assert setting.risk_bound == pytest.approx(min(float(risk), 2.0), rel=1e-12)
        assert setting.silos_per_round == 12
    risks = [setting.risk_bound for setting in found.settings]
    assert risks == sorted(risks)
    assert found.best == found.settings[0]
    assert 3 <= len(found.settings) <= most
    lines = str(found).splitlines()
    assert lines[0] == f"{trust}: epsilon <= 2 at delta = 1e-05"
    for line, setting in zip(lines[4:], found.settings, strict=True):
        cells = line.split()
        assert float(cells[0]) == setting.noise_std
        assert setting.epsilon <= float(cells[5]) <= 2.0


def test_plan_of_the_last_iterate() -> None:
    """Every setting meets delta at the target epsilon by the certified bound, and each silo takes part once."""
    found = utility.plan(trust="last-iterate", **COMMON | {"num_silos": 400, "max_rounds": 100})
    for setting in found.settings:
        assert setting.rounds == 400 // setting.silos_per_round <= 100
        batch = {"num_users": 400, "batch_size": setting.silos_per_round, "noise_std": setting.noise_std}
        delta = utility.trusted_aggregator_delta(
            2.0, **batch, lipschitz=1.0, radius=1.0, smoothness=1.0, strong_convexity=0.1
        )
        assert 0.9e-5 < delta <= 1e-5


@pytest.mark.filterwarnings("ignore::hockeystick.ImplausibleSettingWarning")
def test_plan_of_the_shuffler() -> None:
    """The noise is that of the shuffler's calculator, rounded up."""
    found = utility.plan(trust="shuffle", **COMMON | {"num_silos": 20_000, "silos_per_round": 5000})
    for setting in found.settings:
        silos = {"num_records": 500, "num_silos": 20_000, "silos_per_round": 5000, "rounds": setting.rounds}
        noise = isrl.shuffled_mb_sgd_sigma(**silos, lipschitz=1.0, epsilon=2.0, delta=1e-5).noise_std
        assert noise <= setting.noise_std <= noise * 1.001
        assert setting.batch_size == 1
    with pytest.raises(ValueError, match="no array function"):
        found.sweep()


def small_plan(trust="inter-silo", noise=(0.01, 0.02)):
    """Return a plan of four silos with 200 records, as the search would, with full batches and this noise."""
    inputs = Inputs(4, 200, 5, 1.0, 4.0, 0.25, 0.1 if trust == "last-iterate" else 0.0, 4.0, 1e-5, 20, 4, 200)
    batch = 800 if trust == "central" else 200
    return utility.Plan(trust, inputs, tuple(utility.Setting(x, 20, batch, 4, 2.0, 4.0, 1.0) for x in noise))


@pytest.mark.parametrize("trust", ["inter-silo", "central", "last-iterate"])
def test_sweep_around_a_plan(trust: str, tmp_path: Path) -> None:
    """The sweep plan loads, has the plan's own values on its axes, and its functions know all arguments."""
    found = small_plan(trust)
    (tmp_path / "plan.toml").write_text(found.sweep_toml())
    plan = load(tmp_path / "plan.toml")
    assert load(found.sweep()).num_cells == plan.num_cells
    axes = plan.columns
    assert all(min(axes["noise_std"]) < setting.noise_std < max(axes["noise_std"]) for setting in found.settings)
    cell = {name: float(values[-1]) for name, values in axes.items()}
    for output in plan.outputs:
        given = {**plan.fixed, **cell, **output.arguments}
        value = output.function.call(**{name: given[name] for name in output.function.parameters if name in given})
        assert 0 <= value < math.inf


OPTIONS = [
    *("plan", "--trust", "inter-silo", "--num-silos", "12", "--num-records", "500"),
    *("--dimension", "5", "--lipschitz", "1"),
    *("--diameter", "2", "--smoothness", "1", "--strong-convexity", "0.1", "--epsilon", "2", "--delta", "1e-5"),
    *("--rounds", "1", "--batch-size", "500", "--top", "2"),
]


@pytest.mark.slow
def test_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The command prints the table of Python's plan and writes its sweep plan; JSON has the numbers in full, the inputs and the version."""
    expected = utility.plan(trust="inter-silo", **COMMON | {"max_rounds": 1}, num_settings=2)
    assert main([*OPTIONS, "--sweep", str(tmp_path / "around.toml")]) == 0
    assert capsys.readouterr().out.startswith(f"{expected}\n")
    assert (tmp_path / "around.toml").read_text() == expected.sweep_toml()
    assert main([*OPTIONS, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer == json.loads(json.dumps(expected.to_dict() | {"version": hs.__version__}))
    assert answer["inputs"]["max_batch_size"] == 500


@pytest.mark.parametrize("trust", ["central", "inter-silo"])
def test_noise_costs_simulated_loss(trust):
    """Little noise beats the model that knows nothing; much noise does not."""
    losses = small_plan(trust, noise=(1e-3, 3.0)).simulated_loss(num_runs=20)
    assert losses.shape == (2, 20)
    assert losses[0].mean() < math.log(2) - 0.01 < losses[1].mean()


def test_simulated_losses_are_for_data_that_fit():
    """Data of other silos, and trust models without a simulation, are refused."""
    other = simulate.synthetic("logistic", sizes=[200] * 3, num_features=5, seed=0)
    with pytest.raises(ValueError, match="data must have num_silos"):
        small_plan().simulated_loss(other)
    with pytest.raises(ValueError, match="trust must be 'central' or 'inter-silo'"):
        small_plan("shuffle").simulated_loss()
    with pytest.raises(ValueError, match="num_runs must be"):
        small_plan().simulated_loss(num_runs=0)


def test_the_table_has_a_column_for_simulated_losses():
    """`table` appends their means; without them it is what is printed."""
    found = small_plan()
    assert found.table() == str(found)
    lines = found.table(np.array([[0.5, 0.7]] * len(found.settings))).splitlines()
    assert all(line.endswith("0.6") for line in lines[-len(found.settings) :])
