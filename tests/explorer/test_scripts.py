"""What the explorer computes without the module: its scripts are joined, and numbers are written and counted as in Python."""

import math
import random
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import explorer_page
import hockeystick as hs
import processes
from compositions import composed
from hockeystick._checks import setting_warnings
from hockeystick._statements import SENTENCES
from hockeystick.training.dpsgd_setup import Batches, steps_of

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explorer"
TEXTS = {"SENTENCES": SENTENCES, "DOUBTS": setting_warnings.TEXTS}
CELLS = 300


def node(folder, module, expression, given):
    """Return the value of an expression in `m`, the exports of a module that may have the page's texts, and `given`."""
    texts = explorer_page.extension("bundle").constants(**TEXTS)
    return explorer_page.in_node(folder, module, expression, given, {"./texts.js": texts})


def numbers():
    """Return doubles of all sizes, and those where Python changes its notation."""
    rng = random.Random(1)
    edges = [0.1, 1.0, 100.0, 1e-4, 9.999e-5, 1e-5, 1e15, 1e16, 123456789012345680.0, 5e-324, 0.1 + 0.2]
    edges.append(sys.float_info.max)
    return edges + [math.ldexp(rng.random(), rng.randint(-60, 60)) for _ in range(CELLS)]


def test_numbers_are_written_as_in_python(tmp_path):
    """The page's lines have Python's repr of every double, and its doubts have what "g" writes."""
    given = numbers()
    assert node(tmp_path, "numbers.js", "given.map(m.pythonFloat)", given) == [repr(x) for x in given]
    assert node(tmp_path, "doubts.js", "given.map(m.general)", given) == [f"{x:g}" for x in given]
    infinite = node(tmp_path, "numbers.js", "m.pythonFloat(Infinity)", None)
    assert eval(infinite) == math.inf


def test_fractions_are_numbers(tmp_path):
    """A fraction is the quotient of two doubles, as in a command; what is no quotient is no number."""
    known = {"1/3": 1 / 3, " 256 / 60000 ": 256 / 60000, "1e-3/2": 5e-4, "0.25": 0.25}
    wrong = ["1/", "/3", "1/3/2", "1/0", "a/3", "/", ""]
    found = node(tmp_path, "numbers.js", "given.map(m.parse)", [*known, *wrong])
    assert found == [*known.values(), *[None] * len(wrong)]


def test_steps_are_counted_as_in_python(tmp_path):
    """Epochs give the steps, and the passes over the data, that Python counts."""
    rng = random.Random(2)
    given = []
    for _ in range(CELLS):
        records = rng.randint(1, 10**6)
        given.append([round(rng.uniform(0.01, 50), rng.randint(0, 3)) or 1.0, records, rng.randint(1, records)])
    counted = node(tmp_path, "training.js", "given.map((cell) => m.stepsOf(...cell))", given)
    assert counted == [steps_of(*cell) for cell in given]
    settings = [
        {"steps": steps, "num_records": n, "batch_size": b} for steps, (_, n, b) in zip(counted, given, strict=True)
    ]
    passes = node(tmp_path, "training.js", "given.map((cell) => m.passesOf(m.trainingOf(cell)))", settings)
    assert passes == [Batches(cell["num_records"], cell["batch_size"], cell["steps"], 1.0).passes for cell in settings]


def test_doubts_are_those_of_python(tmp_path):
    """Settings that nearly nobody means have Python's warnings, word by word; others have none."""
    cells = [(0.1, 0.5, 100.0, 3.0), (1.0, 0.001, 7.0, 0.1), (0.4, 0.9, 2e6, 250.0), (1.0, 0.01, 1000.0, 1.8)]
    values = [
        {"noise_multiplier": s, "delta": 1e-5, "training": {"samplingRate": q, "steps": t}, "eps": e}
        for s, q, t, e in cells
    ]
    found = node(tmp_path, "doubts.js", "given.map((cell) => m.doubtsOf(cell, cell.training, cell.eps))", values)
    warned = (setting_warnings.swapped, setting_warnings.few_steps, setting_warnings.no_privacy)
    asked = [((s, q), (q, t), (e,)) for s, q, t, e in cells]
    expected = [
        [text for warning, given in zip(warned, each, strict=True) if (text := warning(*given))] for each in asked
    ]
    assert found == expected
    assert [len(texts) for texts in expected] == [1, 1, 1, 0]
    many = {"noise_multiplier": 1.0, "delta": 0.01, "training": {"samplingRate": 0.1, "steps": 10, "records": 1000}}
    found = node(tmp_path, "doubts.js", "m.doubtsOf(given, given.training, 1)", many)
    assert found == [setting_warnings.large_delta(0.01, 1000)]


def test_certificates_are_those_of_python(tmp_path):
    """Byte by byte, of what the checker covers; of other settings there is none."""
    rng, given, wanted = random.Random(3), [], []
    for kind in ("poisson", "clients", "fixed", "gaussian", "laplace") * 25:
        noise, steps = rng.choice([0.01, 0.75, 1.1, 8.0, 1e6, 1.1e6]), rng.choice([1, 1000, 10**9, 10**9 + 1])
        batch, adjacency, delta = (
            rng.choice([1, 250]),
            rng.choice(["add_or_remove", "replace"]),
            rng.choice([2**-17, 1e-5]),
        )
        mechanism, training = hs.Laplace(noise) if kind == "laplace" else hs.Gaussian(noise), None
        if kind in ("poisson", "clients", "fixed"):
            training = {"samplingRate": batch / 1000, "steps": steps, "records": 1000, "batchSize": batch}
            fixed = hs.FixedSizeSampled(mechanism, 1000, batch, replacement=False)
            mechanism = fixed if kind == "fixed" else hs.PoissonSampled(mechanism, batch / 1000)
        accountant = composed((mechanism, steps), adjacency=adjacency)
        values = {"mechanism": kind, "noise_multiplier": noise, "steps": steps, "delta": delta, "adjacency": adjacency}
        given.append([values, training, accountant.epsilon(delta), hs.__version__])
        try:
            wanted.append(accountant.certificate(delta=delta))
        except ValueError:
            wanted.append("")
    texts = node(tmp_path, "certificate.js", "given.map((one) => m.certificate(...one))", given)
    assert texts == wanted
    assert 50 <= sum(map(bool, wanted)) <= 100


def test_links_hold_settings(tmp_path):
    """What a link holds is what was set, and a link to a heading sets nothing."""
    given = {"mechanism": "shuffled", "noise_multiplier": "0.7", "epochs": "2.5", "length": "epochs", "delta": "1e-7"}
    expression = "(({ startingSettings, toHash, fromHash }) => fromHash('#' + toHash(startingSettings(given))))(m)"
    found = node(tmp_path, "state.js", expression, given)
    assert given.items() <= found.items()
    older = node(tmp_path, "state.js", "m.fromHash('#mechanism=fixed&records=500&batch_size=20')", None)
    assert older == {"mechanism": "fixed", "num_records": "500", "batch_size": "20"}
    assert node(tmp_path, "state.js", "m.fromHash('#what-the-numbers-mean')", None) == {}
    assert node(tmp_path, "state.js", "m.fromHash('#mechanism=constructor&__proto__=1')", None) == {}


def test_epsilons_by_bisection_are_upper_ends(tmp_path):
    """Where only delta is known, the epsilon found has a delta that is small enough, and a slightly smaller one has not."""
    deltas = [10.0**-k for k in range(1, 13)]
    expression = "given.map((delta) => m.leastEpsilon((epsilon) => Math.exp(-3 * epsilon) / 2, delta))"
    found = node(tmp_path, "engine.js", expression, deltas)
    for delta, epsilon in zip(deltas, found, strict=True):
        exact = math.log(0.5 / delta) / 3
        assert exact * (1 - 1e-12) <= epsilon <= exact * (1 + 1e-9)
    large = node(tmp_path, "engine.js", "m.leastEpsilon((epsilon) => Math.exp(-1e-9 * epsilon) / 2, 1e-5)", None)
    assert large == pytest.approx(math.log(0.5e5) * 1e9, rel=1e-9)
    assert node(tmp_path, "engine.js", "m.leastEpsilon(() => 0.5, 0.1) === Infinity", None)
    assert node(tmp_path, "engine.js", "m.leastEpsilon(() => 0.05, 0.1)", None) == 0


def test_modules_are_joined(tmp_path):
    """A module runs once, before those that import it, under the names that they give; a circle is refused."""
    bundle = explorer_page.extension("bundle")
    (tmp_path / "one.js").write_text("export const one = 1;\nexport function* count() { yield one; }\n")
    (tmp_path / "two.js").write_text(
        'import { one as first } from "./one.js";\nconst two = first + 1;\nexport { two };\n'
    )
    entry = tmp_path / "three.js"
    entry.write_text('import { one } from "./one.js";\nimport { two } from "./two.js";\nconsole.log(one + two);\n')
    script = bundle.bundle(entry, {})
    assert script.count("const one = 1;") == 1
    assert "import {" not in script
    assert str(tmp_path) not in script
    if shutil.which("node"):
        (tmp_path / "script.js").write_text(script)
        assert processes.run(["node", tmp_path / "script.js"]).stdout == "3\n"
    (tmp_path / "one.js").write_text('import { two } from "./two.js";\nexport const one = 1;\n')
    with pytest.raises(ValueError, match="in a circle"):
        bundle.bundle(entry, {})


@pytest.mark.parametrize("script", sorted(PAGE.glob("*.js")), ids=lambda path: path.name)
def test_scripts_ask_for_nothing(script):
    """No script names an address or a function that would leave the page."""
    text = script.read_text(encoding="utf-8")
    addresses = {
        word for word in ("http:", "https:", "fetch(", "XMLHttpRequest", "sendBeacon", "WebSocket") if word in text
    }
    assert addresses <= ({"http:"} if "www.w3.org/2000/svg" in text else set())


def test_a_site_without_explorer_is_asked_for(monkeypatch):
    """Where em++ is absent the build fails and names what it needs; a site that shall have none says so in the explorer's place."""
    explorer = explorer_page.extension("explorer")
    monkeypatch.delenv("HOCKEYSTICK_WASM", raising=False)
    monkeypatch.setattr(explorer.shutil, "which", lambda tool: None if tool == "em++" else tool)
    with pytest.raises(explorer.ExtensionError, match=r"needs em\+\+.*with_explorer=0"):
        explorer.build(SimpleNamespace(config=SimpleNamespace(with_explorer=True)))
    for wanted in (False, True):
        text, app = [(PAGE / "index.md").read_text(encoding="utf-8")], SimpleNamespace()
        app.config = SimpleNamespace(with_explorer=wanted)
        explorer.place(app, "explorer/index", text)
        assert ("built without the explorer" in text[0]) is not wanted
        assert ('data-form="full"' in text[0]) is wanted


def laplace_trade_off(rate, mu):
    """Return the least false negatives of Laplace noise of scale 1 at distance mu, which the tests of Neyman and Pearson have."""
    if rate < math.exp(-mu) / 2:
        return 1 - math.exp(mu) * rate
    return math.exp(-mu) / (4 * rate) if rate <= 0.5 else math.exp(-mu) * (1 - rate)


def test_attacks_are_bounded(tmp_path):
    """With the exact deltas of Laplace noise no curve lies above the exact trade-off, and the best line is close to it."""
    rng = random.Random(3)
    rates = [10 ** rng.uniform(-6, 0) for _ in range(100)] + [rng.random() for _ in range(100)]
    deltas = "(epsilon) => (epsilon < given.mu ? -Math.expm1((epsilon - given.mu) / 2) : 0)"
    for mu in (0.1, 1.0, 5.0):
        given = {"mu": mu, "rates": rates, "epsilons": [mu * k / 20 for k in range(25)]}
        last = "(steps) => { for (;;) { const { done, value } = steps.next(); if (done) return value; } }"
        expression = f"given.rates.map((rate) => ({last})(m.mostFound({{ upperDelta: {deltas} }}, rate)))"
        for rate, most in zip(rates, node(tmp_path, "answers.js", expression, given), strict=True):
            exact = 1 - laplace_trade_off(rate, mu)
            assert exact * (1 - 1e-12) <= most <= exact * (1 + 1e-6)
        expression = f"m.tradeOffBelow(given.epsilons.map((epsilon) => [epsilon, ({deltas})(epsilon)]))"
        for rate, missed in node(tmp_path, "answers.js", expression, given):
            exact = laplace_trade_off(rate, mu)
            assert exact - 0.02 <= missed <= exact + 1e-12
