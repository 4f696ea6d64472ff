"""The explorer for those who use a keyboard, a screen reader, a phone, paper, forced colours, or a link; and how soon it answers."""

from urllib.parse import urlencode

import pytest

import explorer_page
import processes

pytestmark = pytest.mark.slow

SLIDER = "Noise multiplier \N{GREEK SMALL LETTER SIGMA}, slider"
CONTROLS = {"button", "textbox", "slider", "combobox", "link", "image", "checkbox"}


@pytest.mark.parametrize("name", ["full.html", "small.html"])
def test_everything_has_a_name(folder, chromium, name):
    """In Chromium's accessibility tree every control and picture has a name, and the number is a status that is read out."""
    page = explorer_page.opened(chromium, folder, name)
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    nodes = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in tree if not node["ignored"]]
    assert {"textbox", "slider", "image", "status"} <= {role for role, _ in nodes}
    assert not [role for role, text in nodes if role in CONTROLS and not text.strip()]
    page.wait_for_function("() => document.querySelector('[role=status]').textContent.includes('ε ≤')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(folder, chromium, scheme):
    """The checks of axe-core find no violation, beside a number or a refusal."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = explorer_page.opened(chromium, folder, "full.html", color_scheme=scheme)
    for rate, state in (("1/100", "done"), ("3/2", "error")):
        explorer_page.choose(page, {"mechanism": "poisson", "sampling_rate": rate}, state)
        results = axe.run(page)
        assert results.violations_count == 0, results.generate_report()


def test_the_keyboard_moves_a_slider(page):
    """Tab reaches every control in the order of the page, an arrow moves a slider, and the number and the link follow."""
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


def test_a_link_holds_the_settings(page, chromium):
    """The address of a page, opened elsewhere, shows the same settings and the same number."""
    page.get_by_label("Mechanism").select_option("laplace")
    page.get_by_label("Steps", exact=True).fill("77")
    explorer_page.wait(page, "done")
    other = chromium.new_page()
    other.goto(page.url)
    explorer_page.wait(other, "done")
    assert other.get_by_label("Steps", exact=True).input_value() == "77"
    assert other.locator(".hs-number").text_content() == page.locator(".hs-number").text_content()


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_is_wider_than_the_screen(folder, chromium, width):
    """The page does not scroll sideways, with any mechanism."""
    page = explorer_page.opened(chromium, folder, "full.html", viewport={"width": width, "height": 800})
    for kind in ("poisson", "fixed", "last_iterate"):
        explorer_page.choose(page, {"mechanism": kind})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), kind


def test_the_newest_request_wins(page):
    """Many changes at once end at the number of the last, which no older one replaces."""
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


def test_a_part_without_an_answer_says_so(page):
    """Gaussian noise at delta 0 has no finite epsilon, a budget of 0 no noise; the page says both, and does not keep older numbers."""
    explorer_page.choose(page, {"mechanism": "gaussian", "delta": 0, "budget": 0}, "done")
    assert page.locator(".hs-number").text_content() == "no finite ε at δ = 0"
    assert page.locator(".hs-noise").text_content() == "budget must be positive, not 0"
    assert "has no differential privacy" in page.locator("pre[aria-label='Privacy statement']").text_content()


TYPE = """([id, ...texts]) => {
    const field = document.querySelector(`#hs0-${id}`);
    for (const text of texts) {
        field.value = text;
        field.dispatchEvent(new Event('input', {bubbles: true}));
    }
}"""


WATCHED = """() => {
    const places = () => [...document.querySelectorAll('.hs-number, .hs-ends, .hs-doubts, .hs-picture, .hs-noise, .hs-code pre')];
    const busy = (place) => place.getAttribute('aria-busy') === 'true';
    const number = document.querySelector('.hs-number');
    window.keys = [];
    window.wrong = [];
    document.addEventListener('input', (event) => keys.push({
        typed: event.target.value,
        fresh: places().filter(place => !busy(place)).map(place => place.className || place.getAttribute('aria-label')),
        opacity: Number(getComputedStyle(number).opacity),
    }));
    const field = document.querySelector('#hs0-delta');
    new MutationObserver(() => {
        const of = field && number.textContent.split('δ = ')[1];
        if (of && !busy(number) && of !== field.value) wrong.push([number.textContent, field.value]);
    }).observe(number, {attributes: true, childList: true, characterData: true, subtree: true});
}"""


@pytest.mark.parametrize(
    ("name", "label"), [("full.html", "Noise multiplier"), ("small.html", "Noise multiplier"), ("full.html", "δ")]
)
def test_an_old_number_is_marked_from_the_key_on(folder, chromium, name, label):
    """Whatever is typed, from this very event on all that was true of older settings is grey and busy, until it is true of the new ones."""
    page = explorer_page.opened(chromium, folder, name)
    assert not page.locator("[aria-busy]").count()
    page.evaluate(WATCHED)
    field = page.locator("#hs0-noise_multiplier" if label.startswith("Noise") else "#hs0-delta")
    field.fill("")
    field.press_sequentially("0.01" if label.startswith("Noise") else "1e-12", delay=30)
    keys = page.evaluate("keys")
    assert len(keys) >= 4
    for key in keys:
        assert not key["fresh"], key
        assert key["opacity"] < 0.5, key
    field.fill("2" if label.startswith("Noise") else "1e-6")  # the figures of so little noise take a minute
    explorer_page.wait(page, "done")
    assert not page.locator("[aria-busy]").count()
    assert page.evaluate("wrong") == []


def test_a_refusal_leaves_nothing_of_older_settings(page):
    """Beside an error there are no lines, no statement, no certificate and no noise that were true of other settings and could be copied."""
    page.evaluate(TYPE, ["noise_multiplier", "-1"])
    explorer_page.wait(page, "error")
    assert page.locator(".hs-code pre").all_text_contents() == ["", "", ""]
    assert page.get_by_text("Download the certificate").is_hidden()
    assert page.locator(".hs-noise").text_content() == ""
    page.evaluate(TYPE, ["noise_multiplier", "1"])
    explorer_page.wait(page, "done")
    assert all(page.locator(".hs-code pre").all_text_contents())
    assert not page.locator("[aria-busy]").count()


def test_a_slow_statement_does_not_freeze_the_number(page):
    """While the statement of a setting whose deltas take long is computed, a newer setting has its number within seconds."""
    slow = {"mechanism": "poisson", "batches": "records", "adjacency": "replace", "length": "steps", "delta": 1e-6}
    page.evaluate(
        """() => {
            const post = Worker.prototype.postMessage;
            Worker.prototype.postMessage = function (data) { // the statement alone comes after the number
                post.call(this, {...data, parts: data.parts.filter(part => part === 'statement')});
            };
        }"""
    )
    link = urlencode(slow | {"num_records": 60000, "batch_size": 7, "steps": 128580})
    page.evaluate("link => { location.hash = link }", link)
    explorer_page.wait(page, "number")
    page.wait_for_timeout(300)  # for the statement to begin
    began = page.evaluate("performance.now()")
    page.evaluate("() => { location.hash = 'mechanism=gaussian&noise_multiplier=3&steps=1' }")
    page.wait_for_function("() => document.querySelector('.hs-number').textContent.startsWith('ε ≤ 1.27')")
    assert page.evaluate("performance.now()") - began < 1000 * processes.seconds(3)


def test_dragging_for_long_keeps_the_link(page):
    """Safari refuses to write an address more than a hundred times in half a minute: all changes are answered, and the last is in the address."""
    page.evaluate(
        """async () => {
            const write = history.replaceState;
            let times = 0;
            history.replaceState = function (...given) {
                if (++times > 100) throw new DOMException('more than 100 times per 30 seconds', 'SecurityError');
                return write.apply(this, given);
            };
            const field = document.querySelector('#hs0-steps');
            for (let steps = 1; steps <= 600; steps++) {
                field.value = steps;
                field.dispatchEvent(new Event('input', {bubbles: true}));
                if (steps % 10 === 0) await new Promise(done => setTimeout(done, 5));
            }
        }"""
    )
    page.wait_for_function("() => location.hash.includes('steps=600&')", timeout=1000 * processes.seconds(5))
    explorer_page.wait(page, "done")
    last = page.locator(".hs-number").text_content()
    page.evaluate(TYPE, ["steps", "601", "600"])
    explorer_page.wait(page, "done")
    assert page.locator(".hs-number").text_content() == last


def test_no_drawing_has_an_endless_coordinate(page):
    """At delta 0, at epsilons near the largest double and at the largest number of steps, Chromium finds no fault with the drawings, and every figure has one."""
    said = []
    page.on("console", lambda message: said.append(message.text))
    most = 2**53
    for link in (
        {"mechanism": "laplace", "noise_multiplier": 0.05, "steps": most, "delta": 0},
        {"mechanism": "laplace", "noise_multiplier": 1e-300, "steps": 10**6, "delta": 1e-300},
        {"mechanism": "gaussian", "noise_multiplier": 1e-3, "steps": 100, "delta": 0},
        {"mechanism": "gaussian", "noise_multiplier": 1e6, "steps": most, "delta": 1e-5},
    ):
        explorer_page.choose(page, link, "done")
        assert not page.locator(".hs-figures .hs-error").all_text_contents(), link
    assert not said


def test_the_search_for_noise_says_how_far_it_went(page):
    """Where a million times the noise is too little, the page does not say that no noise is enough: 1e5 would be here."""
    explorer_page.choose(page, {"mechanism": "gaussian", "noise_multiplier": 1e-4, "steps": 10**6, "budget": 1}, "done")
    text = page.locator(".hs-noise").text_content()
    assert text == "Which noise for ε = 1? Not even 104.85, a million times yours, is enough."


THEME = ":root { --color-foreground-primary: #000; --color-background-primary: #fff; --color-brand-primary: #00f; }"


def test_the_statement_is_printed_whole(page):
    """On paper nothing scrolls, so nothing may be cut off."""
    page.emulate_media(media="print")
    assert page.evaluate(
        "[...document.querySelectorAll('.hs-code pre')].every(pre => pre.scrollHeight <= pre.clientHeight)"
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_drawings_have_forced_colours(folder, chromium, scheme):
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


def test_words_for_those_who_do_not_see(page):
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
