"""The explorer for those who use a keyboard, a screen reader, a phone, or a link; and how soon it answers."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import explorer_page
import processes

pytestmark = pytest.mark.slow

SLIDER = "Noise multiplier \N{GREEK SMALL LETTER SIGMA}, slider"
CONTROLS = {"button", "textbox", "slider", "combobox", "link", "image", "checkbox"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the pages once."""
    return explorer_page.write(tmp_path_factory.mktemp("explorer"))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Start the browser once."""
    with explorer_page.browser() as started:
        yield started


def opened(chromium: Any, folder: Path, name: str, **context: Any) -> Any:
    """Open a page in a context of its own, and wait until all is drawn."""
    page = chromium.new_context(**context).new_page()
    page.goto((folder / name).as_uri())
    explorer_page.wait(page, "done")
    return page


@pytest.mark.parametrize("name", ["full.html", "small.html"])
def test_everything_has_a_name(folder: Path, chromium: Any, name: str) -> None:
    """In Chromium's accessibility tree every control and picture has a name, and the number is a status that is read out."""
    page = opened(chromium, folder, name)
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    nodes = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in tree if not node["ignored"]]
    assert {"textbox", "slider", "image", "status"} <= {role for role, _ in nodes}
    assert not [role for role, text in nodes if role in CONTROLS and not text.strip()]
    page.wait_for_function("() => document.querySelector('[role=status]').textContent.includes('ε ≤')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(folder: Path, chromium: Any, scheme: str) -> None:
    """The checks of axe-core find no violation."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = opened(chromium, folder, "full.html", color_scheme=scheme)
    results = axe.run(page)
    assert results.violations_count == 0, results.generate_report()


def test_the_keyboard_moves_a_slider(folder: Path, chromium: Any) -> None:
    """Tab reaches every control in the order of the page, an arrow moves a slider, and the number and the link follow."""
    page = opened(chromium, folder, "full.html")
    before = page.locator(".hs-number").text_content()
    reached = []
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate(
                "document.activeElement.getAttribute('aria-label') || document.activeElement.labels?.[0]?.textContent"
            )
        )
        if reached[-1] == SLIDER:
            break
    assert reached[0] == "Mechanism"
    assert reached[-1] == SLIDER
    page.keyboard.press("ArrowRight")
    explorer_page.wait(page, "done")
    assert page.locator(".hs-number").text_content() != before
    assert "noise_multiplier=1.0" in page.url


def test_a_link_holds_the_settings(folder: Path, chromium: Any) -> None:
    """The address of a page, opened elsewhere, shows the same settings and the same number."""
    page = opened(chromium, folder, "full.html")
    page.get_by_label("Mechanism").select_option("laplace")
    page.get_by_label("Steps", exact=True).fill("77")
    explorer_page.wait(page, "done")
    other = chromium.new_page()
    other.goto(page.url)
    explorer_page.wait(other, "done")
    assert other.get_by_label("Steps", exact=True).input_value() == "77"
    assert other.locator(".hs-number").text_content() == page.locator(".hs-number").text_content()


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_is_wider_than_the_screen(folder: Path, chromium: Any, width: int) -> None:
    """The page does not scroll sideways, with any mechanism."""
    page = opened(chromium, folder, "full.html", viewport={"width": width, "height": 800})
    for kind in ("poisson", "fixed", "last_iterate"):
        explorer_page.choose(page, {"mechanism": kind})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), kind


def test_a_number_and_a_curve_within_their_time(folder: Path, chromium: Any) -> None:
    """While a slider is dragged, the number comes within a frame and the curve within a tenth of a second, on a quiet machine."""
    page = opened(chromium, folder, "small.html")
    times = page.evaluate(
        """async () => {
            const slider = document.querySelector('input[type=range]');
            const root = document.querySelector('.hs-explorer');
            const reached = (states) => new Promise(done => {
                const look = () => { if (!states.includes(root.dataset.state)) return false; observer.disconnect(); done(performance.now()); return true; };
                const observer = new MutationObserver(look);
                observer.observe(root, {attributes: true});
                look();
            });
            const found = [];
            for (let place = 100; place < 300; place += 4) {
                slider.value = place;
                const began = performance.now();
                slider.dispatchEvent(new Event('input', {bubbles: true}));
                const number = await reached(['number', 'done']);
                const done = await reached(['done']);
                found.push([number - began, done - began]);
            }
            return found;
        }"""
    )
    number, curve = (statistics.median(column) for column in zip(*times, strict=True))
    print(f"number {number:.1f} ms, curve {curve:.1f} ms, medians of {len(times)}")  # noqa: T201, to be read with -s
    assert number < 1000 * processes.seconds(0.016)
    assert curve < 1000 * processes.seconds(0.1)


def test_the_newest_request_wins(folder: Path, chromium: Any) -> None:
    """Many changes at once end at the number of the last, which no older one replaces."""
    page = opened(chromium, folder, "full.html")
    field = page.get_by_label("Steps", exact=True)
    page.evaluate(
        """() => {
            const field = document.querySelector('#hs0-steps');
            for (let steps = 1; steps <= 60; steps++) {
                field.value = 50 * steps;
                field.dispatchEvent(new Event('input', {bubbles: true}));
            }
        }"""
    )
    explorer_page.wait(page, "done")
    last = page.locator(".hs-number").text_content()
    field.fill("3001")
    explorer_page.wait(page, "done")
    field.fill("3000")
    explorer_page.wait(page, "done")
    assert page.locator(".hs-number").text_content() == last
