"""Pictures of tables, trainings, accountants and analyses: what they show, rounded outward, and that there is something on them."""

import dataclasses
import itertools
import math
import re
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pytest

import drawn_plans
import hockeystick as hs
import refused_calls
from hockeystick import plot, simulate, utility
from hockeystick.plot import heat_map, line_plot, plot_sweep
from hockeystick.sweep import run
from hockeystick.sweep.plan import parse

image = pytest.importorskip("matplotlib.image")
pytest.importorskip("pyarrow")


from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline

from drawn_plans import EPS, THETA, R
from hockeystick.plot.matplotlib_figures import _joined as joined
from hockeystick.plot.matplotlib_figures import _sides as sides
from hockeystick.plot.matplotlib_figures import iso_levels, side_within
from hockeystick.plot.scales import is_geometric, is_wide
from hockeystick.plot.sweep_figures import figures_of
from hockeystick.sweep.store import stored_sweep
from hockeystick.sweep.view import choose


def check_picture(path):
    """Check that a PNG has a picture's size, and is neither blank nor a single patch."""
    pixels = image.imread(path)[..., :3]
    assert min(pixels.shape[:2]) > 400
    assert pixels.std() > 0.1
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 50


def drawn(plan, folder, x, y, budget=None):
    """Run a plan, and return its figures by their outputs."""
    run(plan, folder)
    return figures_of(choose(parse(plan), x, y), stored_sweep(folder), list(plan["outputs"]), budget)


@pytest.mark.slow
def test_a_picture_for_each_output(theta):
    """By default every output gets a heat map, in `_views`."""
    pictures = plot_sweep(theta)
    assert [path.relative_to(theta).as_posix() for path in pictures] == ["_views/delta.png", "_views/log_delta.png"]
    for path in pictures:
        check_picture(path)
    assert run(THETA, theta).computed_rows == 0  # pictures do not disturb the sweep


def test_one_output_as_svg(theta, tmp_path):
    """One output can be asked for, as SVG, in another directory, with the names and units of the arguments on it."""
    (picture,) = plot_sweep(theta, value="delta", format="svg", destination=tmp_path / "new" / "pictures")
    assert picture == tmp_path / "new" / "pictures" / "delta.svg"
    text = picture.read_text()
    assert text.startswith("<?xml")
    assert all(f"<!-- {label} -->" in text for label in ("epsilon (nats)", "r (standard deviations)", "delta = theta"))


def test_lines_for_one_axis(theta):
    """With one numeric axis left, all outputs are lines of one picture."""
    (picture,) = plot_sweep(theta, slices={"epsilon": "4"})
    assert picture.name == "outputs.png"
    check_picture(picture)
    view = choose(parse(THETA), slices={"epsilon": "4"})
    assert (view.x.name, view.y, view.held) == ("r", None, "epsilon = 4")
    assert view.values(stored_sweep(theta), "delta")[0, 0].tolist() == hs.theta(4.0, np.geomspace(0.1, 10, 10)).tolist()
    whole = choose(parse(THETA), x="r", y="epsilon")  # of all parts
    expected = hs.theta(np.linspace(0, 4, 12)[:, None], np.geomspace(0.1, 10, 10))
    assert whole.values(stored_sweep(theta), "delta")[0].tolist() == expected.tolist()


FEDERATION = {**drawn_plans.FEDERATION, "outputs": {"mu": "federated.fedavg_gdp"}}


@pytest.mark.slow
def test_panels(tmp_path):
    """Short axes become panels; a zipped axis is drawn by its first argument without repeats, in rising order."""
    view = choose(parse(FEDERATION))
    assert (view.x.name, view.y.name) == ("local_steps", "noise_std")
    assert view.x.values.tolist() == [20, 50, 100, 200]
    assert view.titles == [
        f"num_clients = {clients}, schedule = {schedule}"
        for clients in (50, 100)
        for schedule in ("constant", "cyclic")
    ]
    run(FEDERATION, tmp_path / "out")
    (picture,) = plot_sweep(tmp_path / "out")
    check_picture(picture)
    (figure,) = figures_of(view, stored_sweep(tmp_path / "out"), ["mu"], None).values()
    assert {label.get_rotation() for panel in figure.axes for label in panel.get_xticklabels()} == {0.0}


def test_words_below_a_panel_do_not_meet(tmp_path):
    """Where several arguments move together, the long words at neighbouring ticks are turned so far that they miss each other."""
    moving = {
        "local_steps": [5, 100, 500, 2000, 10000],
        "num_clients": [1000, 50, 1000, 50, 1000],
        "rounds": [100000, 100000, 1000, 5000, 50],
    }
    fixed = {name: value for name, value in FEDERATION["fixed"].items() if name not in moving}
    plan = {**FEDERATION, "fixed": fixed | {"schedule": "constant"}, "axes": {"noise_std": [0.1, 1.0]}, "zip": [moving]}
    (figure,) = drawn(plan, tmp_path, "local_steps", "noise_std").values()
    figure.draw_without_rendering()
    labels = figure.axes[0].get_xticklabels()
    assert labels[1].get_text() == "100/50/100000"
    places = [label.get_transform().transform(label.get_position())[0] for label in labels]
    turned = math.sin(math.radians(labels[0].get_rotation()))
    height = labels[0].get_fontsize() / 72 * figure.dpi
    assert min(np.diff(places)) * turned > height


def test_too_many_panels():
    """Of an axis that does not fit into six panels some values are drawn, both ends among them; the title tells that."""
    axes = {"num_clients": [50, 100, 200, 400], "noise_std": [1.0, 0.1, 0.01, 0.5], "schedule": ["constant", "cyclic"]}
    view = choose(parse({**FEDERATION, "axes": axes}), x="noise_std", y="local_steps")
    expected = [f"num_clients = {m}, schedule = {s}" for m in (50, 200, 400) for s in ("constant", "cyclic")]
    assert view.titles == expected
    assert (view.held, view.chosen) == ("", "panels for 3 of the 4 values of num_clients")


def test_slices():
    """A held argument may be any of a zipped axis, or a word; a logspace value need not be typed in full."""
    view = choose(parse(FEDERATION), slices={"rounds": "20", "schedule": "cyclic", "num_clients": "100"})
    assert view.held == "num_clients = 100, schedule = cyclic, local_steps = 20, rounds = 20"
    assert choose(parse(THETA), slices={"r": "0.278"}).held == "r = 0.278256"


def test_long_axes_are_thinned():
    """A picture takes no more points along an axis than it has pixels, both ends among them."""
    view = choose(parse({**THETA, "axes": {"epsilon": {"linspace": [0.0, 1.0], "num": 5000}, "r": R}}))
    assert (len(view.x.points), view.x.values[0], view.x.values[-1]) == (1000, 0.0, 1.0)


def test_unfinished_and_bad_cells(tmp_path):
    """Missing parts, NaN and columns of one value are drawn as far as they go."""
    plan = {**THETA, "shard_rows": 10, "axes": {"epsilon": EPS, "r": [-1.0, *np.geomspace(0.1, 10, 9).tolist()]}}
    run(plan, tmp_path / "out")
    (tmp_path / "out/cells/part-000003.parquet").unlink()
    (picture,) = plot_sweep(tmp_path / "out", value="delta")
    check_picture(picture)
    for part in (tmp_path / "out/cells").iterdir():
        part.unlink()
    plot_sweep(tmp_path / "out", value="delta")  # hatched all over


def test_no_sweep(tmp_path):
    """A directory without a manifest is refused; sweep/test_parquet_part has a broken part."""
    with pytest.raises(ValueError, match=r"out must be the directory of a sweep, not "):
        plot_sweep(tmp_path)


def test_axes_of_arrays():
    """A heat map has logarithmic axes where values are spaced by ratios; a single line names its axis."""
    eps, r = np.linspace(0, 4, 9), np.geomspace(0.1, 2, 10)
    figure = heat_map(eps, r, hs.theta(eps, r[:, None]), x_label="epsilon", y_label="r", label="delta", title="t")
    assert (figure.axes[0].get_xscale(), figure.axes[0].get_yscale()) == ("linear", "log")
    assert line_plot([1.0, 2.0], {"one": [1.0, 2.0]}, x_label="x").axes[0].get_ylabel() == "one"


ROUNDS = np.array([1, 10, 100])
ONE, EMPTY = [1.0, 2.0, 3.0], [np.nan] * 3
MANY = {f"line{k}": [k + 1.0, k + 2.0, k + 3.0] for k in range(10)}


def analyses(**curves):
    """Return analyses with these values; those whose name begins with "printed" are printed."""
    return utility.Analyses(
        SimpleNamespace(delta=1e-6),  # all that a picture tells of the training
        ROUNDS,
        tuple(
            utility.Analysis(name, "", "record", "", "", name.startswith("printed"), np.array(values), "a reason")
            for name, values in curves.items()
        ),
    )


def test_lines_and_their_dashes():
    """Each analysis has its line and its name; a printed one is dashed, others are not."""
    figure = plot.analyses(analyses(one=[1.0, 2.0, 3.0], printed=[2.0, 3.0, np.nan]))
    lines = figure.axes[0].lines
    assert [line.get_linestyle() for line in lines] == ["-", "--"]
    assert [line.get_label() for line in lines] == ["one (record)", "printed (record)"]
    assert list(lines[0].get_ydata()) == [1.0, 2.0, 3.0]
    assert list(lines[0].get_xdata()) == [1, 10, 100]


def test_equal_lines_are_one():
    """Lines within a percent are drawn once with both names, unless one is certified and the other printed."""
    figure = plot.analyses(
        analyses(one=[1.0, 2.0, 3.0], two=[1.005, 2.0, 3.0], printed=[1.0, 2.0, 3.0], other=[1.0, 2.1, 3.0])
    )
    labels = [line.get_label() for line in figure.axes[0].lines]
    assert labels == ["one (record) = two (record)", "printed (record)", "other (record)"]


def test_at_most_eight_lines_with_their_own_markers():
    """What has no place is named in the title; eight lines have eight markers."""
    figure = plot.analyses(analyses(**MANY))
    lines = figure.axes[0].lines
    assert len({line.get_marker() for line in lines}) == len(lines) == 8
    assert "line8 (record), line9 (record)" in " ".join(figure.get_suptitle().split())


TRAINING = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.0), 0.01), 50)
NAMES = {
    "plot": plot,
    "hs": hs,
    "training": TRAINING,
    "zeros": np.zeros,
    "analyses": analyses,
    "ONE": ONE,
    "EMPTY": EMPTY,
    "MANY": MANY,
    "words": {"x_label": "x", "y_label": "y", "label": "z"},
}
REFUSED = r"""
plot.heat_map([1, 2, 3], [1, 2], zeros((3, 2)), **words) -> values must have shape .* = \(2, 3\), not \(3, 2\)
plot.heat_map([3, 2, 1], [1, 2], zeros((2, 3)), **words) -> x must be at least two increasing finite values
plot.heat_map([1, 2, 3], [1.0], zeros((1, 3)), **words) -> y must be at least two increasing
plot.line_plot([1, 2], {"one": [1.0]}, x_label="x") -> series must hold arrays of shape \(len\(x\),\) = \(2,\), not \{'one': \(1,\)\}
plot.line_plot([1, 2], {}, x_label="x") -> series must hold
plot.plot_sweep(theta, x="sigma")
    -> x must be a numeric axis with distinct values that is not held, of epsilon, r, not sigma
plot.plot_sweep(theta, x="r", y="r") -> x and y must be on different axes, not r and r
plot.plot_sweep(theta, x="r", slices={"r": "0.1"}) -> x must be a numeric axis .* not r
plot.plot_sweep(theta, slices={"sigma": "1"}) -> slice must name an axis, of epsilon, r, not sigma
plot.plot_sweep(theta, slices={"r": "7"})
    -> slice r must be a value of its axis \(nearest are 3.59381, 5.99484, 10\), not 7
plot.plot_sweep(theta, slices={"r": "one"}) -> slice r must be a value .* not one
plot.plot_sweep(theta, slices={"r": "0.1", "epsilon": "0"}) -> axes must have a numeric axis
plot.plot_sweep(theta, value="epsilon") -> value must be one of 'delta', 'log_delta', not 'epsilon'
plot.plot_sweep(theta, format="pdf") -> format must be one of 'png', 'svg', not 'pdf'
plot.analyses(analyses(one=ONE, empty=EMPTY), names=["nobody"]) -> names must be among one, empty, not 'nobody'
plot.analyses(analyses(one=ONE, empty=EMPTY), names=["empty"]) -> 'empty' does not: a reason
plot.analyses(analyses(empty=EMPTY)) -> found must have an analysis
plot.analyses(analyses(**MANY), names=list(MANY)) -> names must give at most 8 lines, not 10
plot.trade_off({}) -> accountants must hold one
plot.trade_off(hs.Accountant()) -> the number of steps of accountants\['training'\]
plot.epsilon_over_steps(training, delta=2.0) -> delta must
plot.privacy_profile(training, largest=-1.0) -> largest must be positive and finite
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(REFUSED))
def test_refused(call, reason, theta):
    """Bad input is named, with its value and its domain."""
    refused_calls.check(call, reason, NAMES | {"theta": theta})


def test_scales():
    """An axis is logarithmic where its values were spaced by ratios. Only values without a sign and with a wide range get a log colour; an underflow to zero does not prevent it."""
    assert is_wide(np.array([1e-300, 1.0]))
    assert is_wide(np.array([0.0, 1e-3, 1.0, np.nan, np.inf]))
    assert not is_wide(np.array([-1.0, 1e-3, 1.0]))
    assert not is_wide(np.array([0.0, 0.0]))
    assert is_geometric(np.array([50.0, 100.0, 200.0]))
    assert is_geometric(np.array([1.0, 3.0, 10.0, 30.0, 100.0]))
    assert not is_geometric(np.array([10.0, 20.0, 30.0]))
    assert not is_geometric(np.arange(1.0, 1000.0))
    assert not is_geometric(np.array([0.0, 1.0, 2.0]))


def test_pictures_take_the_readers_colours(tmp_path):
    """On a dark style the paper is dark, letters and axes are light, and iso-lines stay legible."""
    style = pytest.importorskip("matplotlib.style")
    eps = np.linspace(0, 4, 9)
    with style.context("dark_background"):
        line_plot(eps, {"r = 1": hs.theta(eps, 1.0)}, x_label="epsilon").savefig(tmp_path / "dark.png")
    pixels = image.imread(tmp_path / "dark.png")[..., :3].mean(axis=2)
    assert pixels[0, 0] < 0.1
    assert (pixels > 0.9).mean() > 0.005


def test_what_a_budget_allows_is_rounded_down(tmp_path):
    """In the cells of a sweep's picture, read as exact decimals, steps and rates, of which a budget allows at most so many, go down, and epsilons up."""
    axes = {"noise_multiplier": [0.9, 1.3], "sampling_rate": [0.01, 0.02]}
    outputs = {
        "steps": {"function": "dpsgd_steps", "arguments": {"epsilon": 2.0, "delta": 1e-5}},
        "epsilon": {"function": "dpsgd_epsilon", "arguments": {"steps": 1000, "delta": 1e-5}},
    }
    plan = {"outputs": outputs, "axes": axes}
    figures = drawn(plan, tmp_path, "sampling_rate", "noise_multiplier")
    summary = run(plan, tmp_path)
    noise, rates = np.array(axes["noise_multiplier"])[:, None], np.array(axes["sampling_rate"])
    for name, figure in figures.items():
        steps = hs.dpsgd_steps(noise, rates, 2.0, 1e-5)
        values = steps if name == "steps" else hs.dpsgd_epsilon(noise, rates, 1000, 1e-5)
        texts = sorted(Decimal(text.get_text()) for text in figure.axes[0].texts)
        assert len(texts) == 4
        for text, value in zip(texts, sorted(values.ravel().tolist()), strict=True):
            assert text <= value if name == "steps" else text >= value
            assert float(text) == pytest.approx(value, rel=1e-2)
        least, greatest = re.search(rf"^{name}: (\S+) to (\S+)", str(summary), re.MULTILINE).groups()
        ends = [(Decimal(least), values.min()), (Decimal(greatest), values.max())]
        assert all(text <= value if name == "steps" else text >= value for text, value in ends)


def test_iso_lines_show_their_level_whole():
    """Levels are round; between 0.5 and 0.5015 the lines are 0.5002, 0.5004, ..., and are not labelled 0.5 and 0.501."""
    for ends, levels in (((0.3, 30.0, True), [0.5, 1, 2, 5, 10, 20]), ((0.0, 1.0, False), [0.2, 0.4, 0.6, 0.8])):
        np.testing.assert_allclose(iso_levels(*ends), levels, rtol=1e-12)
    x = np.linspace(0.0, 1.0, 20)
    figure = heat_map(x, x, 0.5 + 0.0015 * np.add.outer(x, x) / 2, x_label="x", y_label="y", label="epsilon")
    shown = [text.get_text() for text in figure.axes[0].texts]
    assert shown
    assert len(set(shown)) >= 3
    assert all(float(text) == round(float(text), 4) for text in shown)


def test_training():
    """A training has a panel for each thing that is asked for, the band of several runs, and a title with all that was set."""
    pytest.importorskip("numba")
    algorithm = simulate.NoisyFedAvg(learning_rate=0.1, local_steps=2, clip_norm=0.5, noise_std=0.3)
    problem = simulate.synthetic("logistic", sizes=[20, 30], num_features=3, seed=1)
    result = simulate.run(algorithm, problem, rounds=6, seed=3, num_runs=4, record_every=2)
    other = problem.replace_record(0, [0.0, 0.0, 0.1], 1.0)
    gap = simulate.sensitivity(algorithm, problem, other, rounds=6, seed=3, record_every=3)
    figure = plot.training(result, delta=1e-6, sensitivity=gap)
    labels = [panel.get_ylabel() for panel in figure.axes]
    assert labels == [
        "mean loss of the training records",
        "accuracy of the training records",
        "certified ε at δ = 1e-06",
        "distance of adjacent trainings",
    ]
    loss, _, epsilon, distance = figure.axes
    assert np.array_equal(loss.lines[0].get_ydata(), result.loss().mean(axis=1))
    assert np.array_equal(epsilon.lines[0].get_ydata(), result.epsilon(1e-6))
    assert (len(loss.collections), len(epsilon.collections), len(distance.lines)) == (1, 0, 3)
    text = figure.get_suptitle()
    for part in ("NoisyFedAvg", "local_steps = 2", "clip_norm = 0.5", "noise_std = 0.3", "seed 3", "4 runs"):
        assert part in text.replace("\n", " "), part
    figure.canvas.draw()
    quiet = simulate.run(dataclasses.replace(algorithm, noise_std=0.6), problem, rounds=6, seed=3, record_every=2)
    figure = plot.training({"0.3": result, "0.6": quiet}, delta=1e-6, over="epsilon")
    assert [panel.get_xlabel() for panel in figure.axes] == ["certified ε at δ = 1e-06"] * 2
    for line, one in zip(figure.axes[1].lines, (result, quiet), strict=True):
        assert np.array_equal(line.get_xdata(), one.epsilon(1e-6))
        assert np.array_equal(line.get_ydata(), one.accuracy().mean(axis=1))
    added = simulate.Poisson(0.5, expected_batch_size=10)
    sgd = simulate.NoisyMinibatchSGD(learning_rate=0.1, clip_norm=1.0, noise_std=1.0, records=added)
    pair = {"one": result, "two": simulate.run(sgd, problem, rounds=2, seed=3, record_every=1)}
    legend = plot.training(pair, delta=1e-6, over="epsilon").axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["one, replace", "two, add_or_remove"]
    with pytest.raises(ValueError, match="delta must be given for over='epsilon'"):
        plot.training(result, over="epsilon")


def test_training_with_a_learnt_clip_norm():
    """A clip norm that is learnt has a panel: its mean over the runs after each recorded round, and their band."""
    pytest.importorskip("numba")
    algorithm = simulate.AdaptiveClippingSGD(
        learning_rate=0.1, clip_norm=0.5, quantile=0.5, clip_rate=0.2, noise_multiplier=1.0, count_noise=2.0
    )
    problem = simulate.synthetic("least_squares", sizes=[30], num_features=3, seed=1)
    result = simulate.run(algorithm, problem, rounds=6, seed=3, num_runs=4, record_every=2)
    figure = plot.training(result)
    panel = figure.axes[1]
    assert panel.get_ylabel() == "clip norm left by the round"
    assert np.array_equal(panel.lines[0].get_xdata(), [2, 4, 6])
    assert np.allclose(panel.lines[0].get_ydata(), result.clip_norm[:, [1, 3, 5]].mean(axis=0), rtol=1e-14)
    assert len(panel.collections) == 1
    figure.canvas.draw()


def test_budget_runs_along_cells(tmp_path):
    """The line of a budget runs along the borders of the cells that keep it, and the title says what it is."""
    plan = {
        "outputs": {"epsilon": "dpsgd_epsilon"},
        "axes": {"noise_multiplier": [0.9, 1.3], "steps": [100, 400]},
        "fixed": {"sampling_rate": 0.02, "delta": 1e-5},
    }
    values = hs.dpsgd_epsilon([0.9, 1.3], 0.02, [[100], [400]], 1e-5)
    budget = float(values[1, 1]) + 1e-9
    (figure,) = drawn(plan, tmp_path, "noise_multiplier", "steps", budget).values()
    (border,) = (patch for patch in figure.axes[0].patches if isinstance(patch, PathPatch))
    assert values[1, 0] > budget < values[0, 0]  # less noise
    assert values[0, 1] < budget
    assert border.get_path().codes.tolist() == [
        Outline.MOVETO,
        Outline.LINETO,
        Outline.LINETO,
    ]  # one path, upwards, past both rows
    assert f"at most {budget:.12g} to its right" in figure.get_suptitle().replace("\n", " ")


def test_borders_go_along_every_side_once():
    """Of any cells that keep a budget, the lines go once along each side to a cell that does not; a border without ends is closed."""
    rng = np.random.default_rng(3)
    for share in (0.05, 0.3, 0.5, 0.9):
        kept = rng.random((7, 9)) < share
        gone = [{one, two} for line in joined(*sides(kept)) for one, two in itertools.pairwise(line)]
        cells = [*np.ndindex(kept.shape)]
        upright = {frozenset({(i, j), (i + 1, j)}) for i, j in cells if j and kept[i, j] != kept[i, j - 1]}
        level = {frozenset({(i, j), (i, j + 1)}) for i, j in cells if i and kept[i, j] != kept[i - 1, j]}
        assert set(map(frozenset, gone)) == upright | level
        assert len(gone) == len(upright | level)
    kept = np.zeros((3, 3), dtype=bool)
    kept[1, 1] = True
    (line,) = joined(*sides(kept))
    assert line[0] == line[-1]
    assert len(line) == 5


def test_the_side_of_a_budget_is_named():
    """The title says where less lies: above and to the right where both arguments lower the value."""
    falling = 10.0 - np.add.outer(np.arange(4), np.arange(5))[None]
    assert side_within(falling, 7.0) == "above it and to its right"
    assert side_within(falling[:, ::-1], 7.0) == "below it and to its right"
    assert side_within(falling[:, :, ::-1], 7.0) == "above it and to its left"
    assert side_within(falling, 0.5) == ""
    assert side_within(np.concatenate([falling, falling[:, ::-1]]), 7.0) == "where the colour is that of less"


def legend(figure):
    """Return the legend's texts."""
    shown = figure.axes[0].get_legend() or figure.legends[0]
    return [text.get_text() for text in shown.get_texts()]


def test_epsilon_over_steps():
    """The line is the epsilon curve, and its last epsilon is rounded up."""
    figure = plot.epsilon_over_steps({"a": TRAINING}, delta=1e-5, budget=2.0, title="mine")
    line = figure.axes[0].lines[0]
    assert np.array_equal(line.get_ydata(), TRAINING.epsilon_curve(1e-5))
    shown = re.search(r"a: ([\d.]+) after 50 steps", legend(figure)[0])[1]
    assert Decimal(shown) >= Decimal(TRAINING.epsilon(1e-5))
    assert figure.get_suptitle() == "mine\ncertified ε at δ = 1e-05"


def test_privacy_profile():
    """The line is delta over epsilon, to where delta is the least that is asked for."""
    line = plot.privacy_profile(TRAINING, delta=1e-6).axes[0].lines[0]
    epsilons = line.get_xdata()
    assert epsilons[-1] == TRAINING.epsilon(1e-6)
    assert np.array_equal(line.get_ydata(), TRAINING.delta(epsilons))


def test_trade_off():
    """The line is the trade-off function, and what an attack finds is rounded up."""
    figure = plot.trade_off({"a": TRAINING})
    line = figure.axes[0].lines[0]
    assert np.array_equal(line.get_ydata(), TRAINING.trade_off(line.get_xdata()))
    found, advantage = re.search(
        r"at most ([\d.]+)% at 1% false alarms; advantage at most ([\d.]+)%", legend(figure)[0]
    ).groups()
    assert Decimal(found) / 100 >= 1 - Decimal(TRAINING.trade_off(0.01))
    assert Decimal(advantage) / 100 >= Decimal(TRAINING.advantage())


WORDS = "--num-records 1000 --batch-size 10 --epochs 2 --noise-multiplier 1"


@pytest.mark.share(3)
@pytest.mark.parametrize("kind", ["epsilon", "profile", "trade-off"])
def test_command_of_accountants(kind, written, tmp_path):
    """The command writes the picture and its name."""
    picture = tmp_path / "p.svg"
    assert written(f"plot {kind} {WORDS} -o {picture}") == f"{picture}\n"
    assert picture.stat().st_size > 1000
