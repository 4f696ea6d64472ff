"""Reports: one page that a browser shows without a network, with every number's label and nothing left unsaid."""

import html
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import hockeystick as hs
import processes
from hockeystick.report import report_sweep
from hockeystick.sweep import run
from hockeystick.sweep.functions import MEANING
from hockeystick.sweep.plan import parse

pytest.importorskip("pyarrow")
pytest.importorskip("bokeh")

from drawn_plans import FEDERATION, THETA
from hockeystick.report import bokeh_page
from hockeystick.sweep.store import stored_sweep
from hockeystick.sweep.view import MAX_NUMBERS, choose_cells, read_sample

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
BROWSER = next((path for path in map(shutil.which, BROWSERS) if path), None)
needs_browser = pytest.mark.skipif(BROWSER is None, reason=f"needs one of {', '.join(BROWSERS)}")
DARK, LIGHT = 0, 1  # as the browser numbers them

DPSGD = {
    "title": "DP-SGD",
    "shard_rows": 200,
    "outputs": {"epsilon": "dpsgd_epsilon"},
    "fixed": {"delta": 1e-5},
    "axes": {
        "sampling_rate": [0.01, 0.1, 2.0],
        "noise_multiplier": {"logspace": [0.5, 8.0], "num": 24},
        "steps": {"range": [100, 1000], "step": 100},
    },
}


def text(page):
    """Return the words of a page: no scripts, no styles, no tags."""
    bare = re.sub(r"<(script|style)\b.*?</\1>", " ", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", bare).split())


def browse(page, *options):
    """Open a page in a browser without a network, wait for it, and return what the browser prints."""
    command = [str(BROWSER), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += [f"--user-data-dir={page.parent / 'profile'}", "--host-resolver-rules=MAP * ~NOTFOUND"]
    command += ["--virtual-time-budget=8000", *options, page.resolve().as_uri()]
    return processes.run(command).stdout


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory):
    """Return the report of a sweep of DP-SGD with refused cells, of which the second part of four is lost."""
    out = tmp_path_factory.mktemp("sweep")
    run(DPSGD, out)
    (out / "cells/part-000001.parquet").unlink()
    return report_sweep(out)


@pytest.mark.filterwarnings("ignore::hockeystick.ImplausibleSettingWarning")
def test_sample_is_the_table(tmp_path):
    """The numbers of the page are those of the direct call, in the order of slices, y and x."""
    plan = parse({**DPSGD, "outputs": {"epsilon": "dpsgd_epsilon", "again": "dpsgd_epsilon"}})
    run(plan.source, tmp_path)
    choice = choose_cells(plan, "steps", "noise_multiplier", None)
    sample = read_sample(stored_sweep(tmp_path), choice)
    rate, noise, steps = plan.columns.values()
    expected = hs.dpsgd_epsilon(noise[:, None], rate[:, None, None], steps, 1e-5, on_error="nan")
    np.testing.assert_array_equal(sample.outputs["again"], expected.ravel())
    assert sample.present.all()
    assert sample.errors == {
        "epsilon: sampling_rate must lie in [0, 1], not 2.0; again: sampling_rate must lie in [0, 1], not 2.0": 480
    }


@pytest.mark.parametrize(
    ("lengths", "shown"),
    [
        ((1000, 1000), (64, 64)),
        ((30, 500, 400, 20), (8, 64, 64, 8)),  # 8 * 8 * 64 * 64 numbers are the most below 300,000
        ((10**6,), (1000,)),
        ((2, 3), (2, 3)),
    ],
)
def test_long_tables_are_reduced(lengths, shown):
    """A page takes whole slices of at most 300,000 numbers, with both ends of every axis."""
    names = ("noise_multiplier", "sampling_rate", "steps", "delta")
    ends = {name: [0.1, 1.0] for name in names} | {"steps": [1, 400]}
    axes = {name: {"linspace": ends[name], "num": length} for name, length in zip(names, lengths, strict=False)}
    fixed = {name: ends[name][1] for name in names[len(lengths) :]}
    choice = choose_cells(
        parse({"outputs": {"epsilon": "dpsgd_epsilon"}, "fixed": fixed, "axes": axes}), None, None, None
    )
    points = [choice.points(axis) for axis in range(len(lengths))]
    assert tuple(map(len, points)) == shown
    assert len(choice.cells()) <= MAX_NUMBERS
    assert [(at[0], at[-1]) for at in points] == [(0, length - 1) for length in lengths]


def test_page_says_what_it_leaves_out(tmp_path):
    """A page of a part of the table says how many cells it has, and of each axis how many values; least and greatest are of all cells."""
    axes = {"epsilon": {"linspace": [0.0, 4.0], "num": 300}, "r": {"logspace": [0.1, 10.0], "num": 100}}
    run({**THETA, "shard_rows": 4096, "axes": axes}, tmp_path)  # the least value is in the last part
    words = text(report_sweep(tmp_path))
    assert "The pictures have 4,096 of the 30,000 cells. Of long axes they have evenly chosen values" in words
    assert "epsilon linspace 0.0 4.0 300 64" in words
    assert "All 30,000 cells of the plan are there." in words
    everything = hs.theta(np.linspace(0, 4, 300)[:, None], np.geomspace(0.1, 10, 100))
    least, greatest = hs.format_lower(everything.min(), ".4g"), hs.format_upper(everything.max(), ".4g")
    assert f"{least} {greatest} 0" in words


def test_labels_and_origin(tmp_path):
    """Each output has its label and the label its meaning; a formula that is no bound is called so; versions and plan are there."""
    run(FEDERATION, tmp_path / "out")
    page = report_sweep(tmp_path / "out", tmp_path / "new" / "page.html", slices={"schedule": "cyclic"})
    words = text(page)
    assert page == tmp_path / "new" / "page.html"
    assert "certified federated.fedavg_gdp certified" in words
    assert "printed published.fedavg_gdp unsound" in words
    assert MEANING["unsound"] in words
    assert "Warning: printed: " in words
    assert "Held: schedule = cyclic." in words
    assert f"computed by hockeystick {hs.__version__}" in words
    assert "&#34;noise_std&#34;" in words  # the plan


def test_incomplete_run_says_what_is_missing(unfinished):
    """A lost part is told with its cells, and refused cells with their reason."""
    words = text(unfinished)
    assert "Incomplete: 200 of 720 cells are missing. Not computed yet, or not whole: cells 200 to 399." in words
    assert "240 cells have no value in some column" in words
    assert "480 epsilon: sampling_rate must lie in [0, 1], not 2.0" in words


def test_nothing_is_there_yet(tmp_path):
    """A run that was killed before its first part has a page all the same."""
    run(THETA, tmp_path)
    for part in (tmp_path / "cells").iterdir():
        part.unlink()
    assert "Incomplete: 120 of 120 cells are missing." in text(report_sweep(tmp_path))


def test_page_loads_nothing_and_runs_nothing(theta):
    """No tag of the page refers to a file or a site, and texts of the plan are texts."""
    page = report_sweep(theta).read_text(encoding="utf-8")
    tags = re.sub(r"(<script\b[^>]*>).*?</script>", r"\1", page, flags=re.DOTALL)
    tags = re.sub(r"(<style\b[^>]*>).*?</style>", r"\1", tags, flags=re.DOTALL)
    assert not re.search(r"<link\b|<img\b|\bsrc=|\bhref=", tags)
    assert "<b>noise" not in page
    assert "Loss &amp; &lt;/script&gt;&lt;b&gt;noise" in tags
    assert len(page) < 2_500_000


@needs_browser
@pytest.mark.share(2)
@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
def test_screenshot(unfinished, scheme):
    """A browser without a network draws the page, in the colours of its scheme."""
    image = pytest.importorskip("matplotlib.image")
    shot = unfinished.parent / f"{scheme}.png"
    browse(
        unfinished, "--window-size=1300,1000", f"--blink-settings=preferredColorScheme={scheme}", f"--screenshot={shot}"
    )
    pixels = image.imread(shot)[..., :3]
    assert pixels.shape[:2] == (1000, 1300)
    assert len(np.unique((pixels * 255).round().astype(np.uint8).reshape(-1, 3), axis=0)) > 100
    assert (np.median(pixels) > 0.5) == (scheme == LIGHT)
    colourful = np.ptp(pixels, axis=2) > 0.1  # the heat map and its bar
    assert colourful.mean() > 0.03


@pytest.fixture(scope="module")
def probed(unfinished):
    """Return what a reader sees who chooses every slice in turn, and then points at the first cell."""
    page = unfinished.with_name("probed.html")
    start, _, end = unfinished.read_text(encoding="utf-8").rpartition("</body>")
    probe = Path(__file__).with_name("probe.js").read_text(encoding="utf-8")
    page.write_text(f"{start}<script>{probe}</script></body>{end}", encoding="utf-8")
    found = re.search(r'<pre id="probe">(.*?)</pre>', browse(page, "--dump-dom"), re.DOTALL)
    return json.loads(html.unescape(found.group(1)))


@needs_browser
def test_choice_of_a_slice(probed):
    """Choosing a value of the argument that is not drawn puts its cells into the picture, with all their digits."""
    noise, steps = np.geomspace(0.5, 8.0, 24), np.arange(100, 1001, 100)
    expected = hs.dpsgd_epsilon(noise, np.array([0.01, 0.1])[:, None, None], steps[:, None], 1e-5)
    for shown, values in zip(probed["slices"], expected, strict=False):
        for word, value in zip(shown, values.ravel(), strict=True):
            assert word == "not computed yet" or float(word) == value
    assert sum(word == "not computed yet" for shown in probed["slices"] for word in shown) == 200
    assert probed["slices"][2] == ["refused"] * 240


@needs_browser
def test_hover(probed):
    """Pointing at a cell shows its arguments and its value, with all their digits."""
    value = float(hs.dpsgd_epsilon(0.5, 0.01, 100, 1e-5))
    assert (
        re.sub(r"\s", "", probed["tooltip"])
        == f"noise_multiplier:0.5steps:100sampling_rate:0.01delta:1e-05epsilon:{value!r}"
    )


def test_command(theta, written, refused):
    """The command writes the page and prints its path; a wrong axis is one line and exit code 2."""
    assert written(f"sweep report {theta} --x r") == f"{theta / '_views/report.html'}\n"
    refused(f"sweep report {theta} --x sigma", "hockeystick sweep: argument --x: must be a numeric axis")
    assert run(THETA, theta).computed_rows == 0  # the page does not disturb the sweep


def test_table_at_a_url(tmp_path):
    """A table on another file system is read there; the page is written here, and a place for it must be given."""
    pytest.importorskip("fsspec")
    url = f"memory://{tmp_path.name}"
    run(THETA, url)
    with pytest.raises(ValueError, match="destination must be given for a table at a URL"):
        report_sweep(url)
    assert "All 120 cells of the plan are there." in text(report_sweep(url, tmp_path / "page.html"))


def test_controls(tmp_path):
    """A budget is on a slider, rounded up; a long axis too; captions do not say a word twice; a phone is told its width."""
    axes = {"noise_multiplier": [1.0, 2.0], "sampling_rate": [0.01, 0.02], "steps": list(range(100, 2100, 100))}
    plan = {"outputs": {"certified": "dpsgd_epsilon"}, "axes": axes, "fixed": {"delta": 1e-5}}
    run(plan, tmp_path)
    page = report_sweep(tmp_path, x="noise_multiplier", y="sampling_rate").read_text(encoding="utf-8")
    assert '<meta name="viewport"' in page
    assert "<figcaption>certified.</figcaption>" in page
    sample = read_sample(stored_sweep(tmp_path), choose_cells(parse(plan), "noise_multiplier", "sampling_rate", None))
    budget = bokeh_page._budget_slider("certified", sample.outputs["certified"])
    assert budget.categories[-1] == budget.value == "any"
    assert float(budget.categories[-2]) >= sample.outputs["certified"].max()
    chosen = bokeh_page._slice_chooser(sample.choice, 2)
    assert chosen.categories == [str(steps) for steps in axes["steps"]]
