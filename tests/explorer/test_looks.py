"""The explorer on paper and with colours that the reader's system forces."""

from pathlib import Path
from typing import Any

import pytest

import explorer_page

pytestmark = pytest.mark.slow

THEME = ":root { --color-foreground-primary: #000; --color-background-primary: #fff; --color-brand-primary: #00f; }"


def test_the_statement_is_printed_whole(page: Any) -> None:
    """On paper nothing scrolls, so nothing may be cut off."""
    page.emulate_media(media="print")
    assert page.evaluate(
        "[...document.querySelectorAll('.hs-code pre')].every(pre => pre.scrollHeight <= pre.clientHeight)"
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_drawings_have_forced_colours(folder: Path, chromium: Any, scheme: str) -> None:
    """Cells, marks and curves have the system's colours, whatever a theme's are: no black on black."""
    page = explorer_page.opened(chromium, folder, forced_colors="active", color_scheme=scheme)
    page.add_style_tag(content=THEME)
    found, forced = page.evaluate(
        """() => {
            const of = (selector, name) => getComputedStyle(document.querySelector(selector))[name];
            const system = (name) => {
                const element = document.body.appendChild(document.createElement('p'));
                element.style.cssText = `forced-color-adjust: none; color: ${name}`;
                return getComputedStyle(element).color;
            };
            return [
                [of('.hs-cell', 'fill'), of('.hs-mark', 'stroke'), of('.hs-mark', 'fill'), of('.hs-halo', 'stroke'), of('.hs-main', 'stroke')],
                ['CanvasText', 'CanvasText', 'Canvas', 'Canvas', 'LinkText'].map(system),
            ];
        }"""
    )
    assert found == forced


def test_words_for_those_who_do_not_see(page: Any) -> None:
    """Buttons of one name are told apart; the map of the last iterate says that more records lower epsilon, as they do."""
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    buttons = [node for node in tree if not node["ignored"] and node["role"]["value"] == "button"]
    said = [(node["name"]["value"], node.get("description", {}).get("value")) for node in buttons]
    assert len(said) == len(set(said)) == 4, said
    explorer_page.choose(page, {"mechanism": "last_iterate"}, "done")
    text = page.locator("figure svg").nth(3).get_attribute("aria-label")
    assert text.startswith("Map of ε over records, one a step, and noise: ")
    assert text.endswith("; more noise and more records after the one in question lower ε.")
    few, many = (page.locator(".hs-cell title", has_text=f" at {n} records").last.text_content() for n in (40, 316))
    least = [float(title.split()[3].replace("∞", "inf")) for title in (few, many)]
    assert least[1] < least[0]
