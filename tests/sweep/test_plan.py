"""What a plan may say, and what is refused before anything is written."""

import importlib.util
import itertools
import re
import shutil

import numpy as np
import pytest

from hockeystick import federated, kernels, last_iterate
from hockeystick.accounting import dpsgd, gaussian_dp
from hockeystick.cli import main
from hockeystick.sweep import OutputError, PlanError, functions, run
from hockeystick.sweep.evaluate import evaluate
from hockeystick.sweep.functions import (
    MEANING,
    REGISTERED,
    TRAININGS,
    arguments,
    example,
    lookup,
    registered,
    returns,
    summary,
    unit_of_argument,
    with_unit,
)
from hockeystick.sweep.plan import load, parse
from sweep_plans import changed

pytest.importorskip("pyarrow")

FEDERATION = dict.fromkeys(("rounds", "local_steps", "num_clients", "clip_norm", "smoothness", "learning_rate"), 1)
OUTPUTS = {"delta": "theta"}
AXES = {"epsilon": [0.0, 1.0], "r": [1.0, 2.0]}
BAD_PLANS = [
    ({"outputs": {"delta": "os.system"}}, r"outputs.delta must name a registered function, not 'os.system'"),
    ({"outputs": {"delta": "thetta"}}, r"did you mean theta"),  # misspelt
    ({"outputs": {"delta": "sweep.run"}}, r"registered function"),  # public, but no function of numbers
    ({"outputs": {"delta": 3}}, r"outputs.delta must be a function's name or a table with function, not 3"),
    ({"outputs": {"delta": {"function": "theta", "shell": "x"}}}, r"outputs.delta.shell is unknown"),
    ({"outputs": {"../delta": "theta"}}, r"outputs.../delta must be named with letters"),  # it names a file
    ({"outputs": {"error": "theta"}}, r"not cell or error"),
    ({"outputs": None}, r"outputs must have at least one entry"),
    ({"outputs": {"r": "theta"}}, r"r must be used once"),  # an output named like an axis
    ({"axes": None}, r"axes must have at least one entry"),
    ({"axes": {"epsilon": [0.0]}}, r"outputs.delta = theta needs r;"),  # a required argument is missing
    ({"axes": {"x": [0.0]}}, r"outputs.delta = theta needs epsilon, r; in axes, zip, fixed or its own arguments"),
    ({"axes": {**AXES, "sigma": [1.0]}}, r"axes.sigma is not an argument of any output; they take epsilon, r"),
    ({"fixed": {"sigma": 1.0}}, r"fixed.sigma is not an argument of any output"),
    ({"fixed": {"r": 1.0}}, r"r must be used once"),
    ({"outputs": {"delta": {"function": "theta", "arguments": {"r": 1.0}}}}, r"arguments.r must be given once"),
    (
        {"outputs": {"delta": {"function": "theta", "arguments": {"x": 1.0}}}},
        r"arguments.x is not an argument of theta",
    ),
    ({"axes": {**AXES, "r": []}}, r"axes.r must have at least one value"),  # an empty axis
    ({"axes": {**AXES, "r": 1.0}}, r"axes.r must be a list, or a table"),
    ({"axes": {**AXES, "r": [1.0, float("nan")]}}, r"axes.r\[1\] must be finite, not nan"),
    ({"axes": {**AXES, "r": [True]}}, r"axes.r\[0\] must be a number or a string, not True"),
    ({"axes": {**AXES, "r": [1.0, "two"]}}, r"axes.r must hold numbers only or strings only"),
    ({"axes": {**AXES, "r": ["one"]}}, r"axes.r must be a number, not 'one'"),  # not an argument that is a word
    ({"axes": {**AXES, "r": [2**63]}}, r"must fit into 64 bits"),
    ({"axes": {**AXES, "r": [1.0, 2.0, 1.0]}}, r"axes.r must have distinct values"),
    ({"axes": {**AXES, "r": {}}}, r"must have one of linspace, logspace and range"),
    ({"axes": {**AXES, "r": {"linspace": [0, 1], "logspace": [1, 2], "num": 2}}}, r"must have one of"),
    ({"axes": {**AXES, "r": {"linspace": [0, 1], "num": 2, "step": 1}}}, r"axes.r.step is unknown"),
    ({"axes": {**AXES, "r": {"linspace": [0], "num": 2}}}, r"must be \[first, last\]"),
    ({"axes": {**AXES, "r": {"linspace": [0, float("inf")], "num": 2}}}, r"linspace\[1\] must be finite"),
    ({"axes": {**AXES, "r": {"linspace": [0, 1], "num": 0}}}, r"axes.r.num must be an integer between 2 and"),
    ({"axes": {**AXES, "r": {"linspace": [0, 1], "num": 2.5}}}, r"num must be an integer .* not 2.5"),
    ({"axes": {**AXES, "r": {"linspace": [0, 1], "num": 10**12}}}, r"between 2 and 10000000"),  # would fill the memory
    ({"axes": {**AXES, "r": {"logspace": [-3, 0], "num": 4}}}, r"two positive ends \(values, not exponents\)"),
    ({"axes": {**AXES, "r": {"range": [1, 2.5]}}}, r"range\[1\] must be an integer, not 2.5"),
    ({"axes": {**AXES, "r": {"range": [1, 4], "step": 0.5}}}, r"step must be an integer, not 0.5"),
    ({"axes": {**AXES, "r": {"range": [1, 4], "step": 2}}}, r"divide 3, so that both ends are included, not 2"),
    ({"axes": {**AXES, "r": {"range": [1, 4], "step": 0}}}, r"step must be positive"),
    ({"axes": {**AXES, "r": {"range": [4, 1]}}}, r"range must not decrease"),
    ({"axes": {**AXES, "r": {"range": [1, 10**12]}}}, r"range must have at most 10000000 values"),
    ({"zip": {"r": [1.0]}}, r"zip must be an array of tables"),  # [zip] where [[zip]] is meant
    ({"zip": [{}]}, r"zip\[0\] must be a table of equally long lists"),
    ({"axes": {"epsilon": [0]}, "zip": [{"r": [1.0, 2.0], "x": [1.0]}]}, r"lists of one length, not r of 2, x of 1"),
    ({"axes": {"epsilon": [0]}, "zip": [{"r": {"linspace": [0, 1], "num": 2}}]}, r"zip\[0\].r must be a list"),
    ({"axes": {"epsilon": [0]}, "zip": [{"r": [1.0], "x": [1.0]}]}, r"zip\[0\].x is not an argument"),
    ({"fixed": 3}, r"fixed must be a table, not 3"),
    ({"fixed": {"r": [1.0]}}, r"fixed.r must be a number or a string"),
    ({"title": 3}, r"title must be a string, not 3"),
    ({"axis": {}}, r"axis is unknown; a plan has title, shard_rows"),  # a misspelt section
    ({"shard_rows": 0}, r"shard_rows must be an integer between 1 and"),
]


# A fraction where an argument counts something.
STEPS = {"outputs": {"epsilon": "dpsgd_epsilon"}, "fixed": {"delta": 1e-5, "sampling_rate": 0.01}}
ONE, OWN = {"noise_multiplier": [1.0]}, {"function": "dpsgd_epsilon", "arguments": {"steps": 0.5}}
BAD_PLANS += [
    (
        {**STEPS, "axes": {**ONE, "steps": {"logspace": [1, 1e5], "num": 20}}},
        r"axes\.steps must be an integer, not 1\.83",
    ),
    ({**STEPS, "axes": {**ONE, "steps": [1, 2.5]}}, r"axes\.steps must be an integer, not 2\.5"),
    ({**STEPS, "axes": ONE, "fixed": {**STEPS["fixed"], "steps": 2.5}}, r"fixed\.steps must be an integer, not 2\.5"),
    ({**STEPS, "axes": ONE, "zip": [{"steps": [1.5]}]}, r"zip\[0\]\.steps must be an integer, not 1\.5"),
    (
        {**STEPS, "axes": ONE, "outputs": {"epsilon": OWN}},
        r"outputs\.epsilon\.arguments\.steps must be an integer, not 0\.5",
    ),
]


# A word that is none, on an axis or fixed; sizes that no disk holds, or that make too many files; and instruction sets.
FEDAVG = {"outputs": {"mu": "federated.fedavg_gdp"}, "fixed": FEDERATION, "axes": {"noise_std": [1.0]}}
LONG, MILLION = {"range": [1, 2 * 10**6]}, {"range": [1, 10**6]}
NO_WORD = r"schedule must be one of constant, .*, not 'constnat'"
BAD_PLANS += [
    ({**FEDAVG, "axes": {"noise_std": [1.0], "schedule": ["constant", "constnat"]}}, NO_WORD),
    ({**FEDAVG, "fixed": {**FEDERATION, "schedule": "constnat"}}, NO_WORD),
    ({**FEDAVG, "fixed": {**FEDERATION, "schedule": 1}}, r"fixed.schedule must be one of"),
    ({"axes": {"epsilon": LONG, "r": LONG}}, r"at most 10{12} cells together, not 2000000 x 2000000 = 4000000000000$"),
    (
        {"shard_rows": 3, "axes": {"epsilon": [1], "r": MILLION}},
        r"shard_rows must be at least 4 for 1000000 cells, not 3",
    ),
    *(
        ({"instruction_set": given}, r"instruction_set must be one of portable, v3, v4, not ")
        for given in ("avx2", "v2", "", 3, ["v3"])
    ),
]


@pytest.mark.parametrize(("sections", "message"), BAD_PLANS)
def test_bad_plan(tmp_path, sections, message):
    """A wrong plan is refused before anything is written, naming key, value and domain."""
    with pytest.raises(PlanError, match=message):
        run(changed({"outputs": OUTPUTS, "axes": AXES}, **sections), tmp_path / "out")
    assert not (tmp_path / "out").exists()


DEEP = r"^(plan must be a TOML file.*plan.toml: it is nested too deeply|a is unknown;.*)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("axes = [", r"plan must be a TOML file, not .*plan.toml"),
        ("\xff", r"plan must be a TOML file, not .*plan.toml"),
        ("a = 1\na = 2\n", r"plan must be a TOML file, not .*plan.toml"),
        (None, "No such file"),
        ("title = " + "[" * 20_000, DEEP),  # deeper than Python follows
        ("a = " + "{a=" * 5000, DEEP),
        ("a = " + "[" * 400 + "]" * 400, DEEP),
    ],
)
def test_files_that_are_no_plan(tmp_path, text, message):
    """A file that is absent, not TOML, or nested too deeply is a wrong plan, too."""
    if text is not None:
        (tmp_path / "plan.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(PlanError, match=message):
        load(tmp_path / "plan.toml")


def test_whole_values_of_any_type():
    """Values without a fraction pass, whatever their type."""
    assert parse({**STEPS, "axes": {**ONE, "steps": {"linspace": [1, 5], "num": 3}}}).num_cells == 3


# What these are, take or return is no column: types, brackets, limits, a batch size for each round, matrices, the steps of a round, texts. The last digits
# of iteration_rdp depend on NumPy's instructions, and a plan's bytes must not.
NO_COLUMNS = {"Best", "chain_delta", "dpsgd_certificate", "iteration_rdp", "trusted_aggregator_batches"}
NO_COLUMNS |= {"ShiftedInterpolation", "contraction_coefficient", "nonlinear_contraction", "shifted_interpolation"}
NO_COLUMNS |= {
    "GdpLimit",
    "accumulated_step_size",
    "data_sensitivity",
    "fedavg_gdp_limit",
    "model_sensitivity",
    "step_sizes",
}


def test_table_has_the_functions_of_its_rooms():
    """The table names the public functions of these modules, but for those that are no column, and what it says of them is known."""
    expected = {*kernels.__all__}
    expected |= {*dpsgd.__all__, *gaussian_dp.__all__} - NO_COLUMNS
    expected |= {f"last_iterate.{name}" for name in {*last_iterate.__all__} - NO_COLUMNS - {"contraction_sum"}}
    expected |= {f"federated.{name}" for name in {*federated.__all__} - NO_COLUMNS}
    others = {name for name in functions.REGISTERED if name.startswith(("isrl.", "utility.", "published."))}
    assert functions.REGISTERED.keys() == expected | others | {"contraction_sum"}
    for row in (functions.REGISTERED | functions.TRAININGS).values():
        assert row.worth in functions.MEANING
        assert (row.cost in {"cheap", "costly", "training"}, row.rounded in {"up", "down", "nearest"}) == (True, True)


def test_full_disk(tmp_path, monkeypatch):
    """A table that does not fit on the disk is refused with its size, before anything is written."""
    usage = shutil.disk_usage(tmp_path)._replace(free=10)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)
    with pytest.raises(OutputError, match=r"fits on the disk, not 4 cells: about .* GB are needed, 1e-08 GB are free"):
        run({"outputs": OUTPUTS, "axes": AXES}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_rows_of_a_shard():
    """Without a word from the plan, shards are small where cells are dear, and grow where there would be too many files."""
    dear = {"outputs": {"epsilon": "dpsgd_epsilon"}, "fixed": {"delta": 1e-5, "noise_multiplier": 1.0}}
    cases = [
        ({"outputs": OUTPUTS, "axes": AXES}, 65536),
        ({"outputs": OUTPUTS, "axes": AXES, "shard_rows": 3}, 3),
        (
            {"outputs": OUTPUTS, "axes": {"epsilon": {"range": [1, 10**5]}, "r": MILLION}},
            2**19,  # 10^11 cells, 190735 files
        ),
        ({**dear, "axes": {"sampling_rate": [0.1], "steps": MILLION}}, 2048),
        ({**dear, "axes": {"sampling_rate": {"linspace": [0.1, 0.2], "num": 1000}, "steps": MILLION}}, 4096),
    ]
    for source, rows in cases:
        assert parse(source).shard_rows == rows


SMALL = {"outputs": {"delta": "theta"}, "axes": {"epsilon": [0.0, 1.0], "r": [0.5]}}
INT64 = np.iinfo(np.int64)


def nested(depth):
    """Return lists in lists."""
    inner = []
    for _ in range(depth):
        inner = [inner]
    return inner


@pytest.mark.parametrize("key", ["title", "outputs", "fixed", "axes", "zip", "shard_rows"])
def test_deep_mappings(key):
    """A mapping that is nested so deeply is refused, wherever the nest is."""
    for deep in (
        nested(10_000),
        {"epsilon": nested(10_000)},
        [nested(10_000)],
        {"epsilon": {"linspace": nested(10_000)}},
    ):
        with pytest.raises(PlanError):
            parse({**SMALL, key: deep})


def test_deep_manifests(tmp_path, capsys):
    """A manifest of a hundred thousand brackets, or a deep plan in one, is no plan; the command says so in one line."""
    (tmp_path / "plan.toml").write_text('outputs = { delta = "theta" }\naxes = { epsilon = [0.0], r = [1.0] }\n')
    for text in ("[" * 100_000, '{"format": 3, "plan": ' + '{"a":' * 50_000 + "0" + "}" * 50_001):
        (tmp_path / "_manifest.json").write_text(text)
        run = ["run", str(tmp_path / "plan.toml"), "-o", str(tmp_path)]
        for name, rest in (("out", ["report", str(tmp_path)]), ("argument --out:", run)):
            assert main(["sweep", *rest]) == 2
            told = f"{name} must be the directory of a sweep, not {tmp_path}: _manifest.json holds no plan"
            assert capsys.readouterr().err == f"hockeystick sweep: {told}\n"


def test_widest_range():
    """A range over all integers of 64 bits has its two ends, and one of a third of them its four values."""
    for step, expected in (
        (2**64 - 1, [INT64.min, INT64.max]),
        ((2**64 - 1) // 3, [INT64.min + k * ((2**64 - 1) // 3) for k in range(4)]),
        ((2**64 - 1) // 255, [INT64.min + k * ((2**64 - 1) // 255) for k in range(256)]),
    ):
        axis = {"range": [INT64.min, INT64.max], "step": step}
        parsed = parse({"outputs": {"delta": "theta"}, "fixed": {"r": 1.0}, "axes": {"epsilon": axis}})
        assert parsed.columns["epsilon"].tolist() == expected
    parsed = parse({**SMALL, "axes": {"epsilon": {"range": [3, 3], "step": 10**30}}, "fixed": {"r": 1.0}})
    assert parsed.columns["epsilon"].tolist() == [3]


@pytest.mark.parametrize("ends", [[-1e308, 1e308], [1.7e308, -1.7e308]])
def test_ends_too_far_apart(ends):
    """Values between ends whose distance is no double are refused with their key, and NumPy warns of nothing."""
    given = {**SMALL, "axes": {"epsilon": {"linspace": ends, "num": 3}}, "fixed": {"r": 1.0}}
    with (
        np.errstate(all="raise"),
        pytest.raises(PlanError, match=r"^axes\.epsilon\.linspace must have finite values between its ends, not \["),
    ):
        parse(given)


# Plans to begin with, and descriptions: for every registered function, from its documentation.


unsound = pytest.mark.filterwarnings("ignore::hockeystick.published.UnsoundBoundWarning")
numba = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs numba")
EVERY = [*sorted(REGISTERED), *(pytest.param(name, marks=numba) for name in sorted(TRAININGS))]


@pytest.mark.parametrize("name", EVERY)
def test_every_function_is_described(name):
    """Each argument has a domain, the values have a sentence, and both come from the documentation."""
    described = arguments(name)
    assert [argument.name for argument in described] == list(lookup(name).parameters)
    assert [argument.name for argument in described if not argument.domain.endswith((".", ".)"))] == []
    assert returns(name).endswith(".")
    assert summary(name).endswith(".")
    assert registered(name).cost in (("training",) if name in TRAININGS else ("cheap", "costly"))
    assert registered(name).worth in MEANING


@pytest.mark.parametrize("name", sorted(REGISTERED))
def test_every_function_has_a_label(name):
    """Somebody has looked at what the values of each registered function are worth; those called certified say so."""
    assert registered(name).worth != "unlabelled"
    documentation = (lookup(name).call.__doc__ or "").lower()
    if registered(name).worth == "certified":
        assert re.search(r"certified|upper bound|feasible|budget", documentation)
    if registered(name).worth == "unsound":
        assert "no upper bound" in documentation


def test_units():
    """Probabilities and privacy losses have their units at the axes; what has the user's units has none."""
    assert with_unit("epsilon", unit_of_argument("epsilon")) == "epsilon (nats)"
    assert with_unit("clip_norm", unit_of_argument("clip_norm")) == "clip_norm"
    assert {registered(name).unit for name in REGISTERED if name.endswith("_delta")} == {"probability"}
    assert {registered(name).unit for name in REGISTERED if name.endswith("_epsilon")} == {"nats"}
    assert {registered(name).unit for name in REGISTERED if name.endswith("_gdp")} == {"μ, Gaussian DP"}


@pytest.mark.parametrize("name", EVERY)
def test_every_example_runs(tmp_path, name):
    """The plan for a function runs as it is, every cell of it is good, and every value has a comment."""
    text = example([name])
    (tmp_path / "plan.toml").write_text(text, encoding="utf-8")
    plan = load(tmp_path / "plan.toml")
    shard = evaluate(plan, range(plan.num_cells))
    assert not shard.errors.texts
    lines = text.splitlines()
    values = [at for at, line in enumerate(lines) if " = " in line and not line.startswith(("#", "[", "title"))]
    assert all(lines[at - 1].startswith("# ") for at in values)


def test_examples_of_two_functions(tmp_path):
    """Two functions make a plan that is accepted, with columns of their own."""
    for names in itertools.islice(itertools.combinations(sorted(REGISTERED), 2), 0, None, 5):
        (tmp_path / "plan.toml").write_text(example(names), encoding="utf-8")
        assert [output.function.name for output in load(tmp_path / "plan.toml").outputs] == list(names)
