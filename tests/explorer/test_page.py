"""The explorer in a headless Chromium: its numbers are Python's, its lines give them again, and nothing leaves the page."""

import asyncio
import json
import math
import random
import re
import shlex
import shutil
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from urllib.parse import unquote, urlencode

import pytest

import effort
import explorer_page
import hockeystick as hs
import processes

pytestmark = pytest.mark.slow

WIDTH = 1e-6  # of the brackets of both, relative; those of fixed batches under replacement are wider
CELLS = effort.at_night(35, by_day=6)  # of each mechanism: at night 280 comparisons in all
NUMBER = r"[\d.]+(?:e[+-]\d+)?|inf"
KINDS = ("poisson", "fixed", "shuffled", "gaussian", "laplace", "clients", "fedavg", "last_iterate")


@pytest.fixture(scope="module")
def full(folder, chromium):
    """Open the whole explorer."""
    return explorer_page.opened(chromium, folder)


def between(rng, low, high):
    """Return a number to three digits, its logarithm uniform."""
    return float(f"{math.exp(rng.uniform(math.log(low), math.log(high))):.3g}")


def settings(kind, rng):
    """Return settings of a mechanism at random, in reach of the sliders and where every part of the page has an answer."""
    chosen = {"mechanism": kind, "delta": between(rng, 1e-12, 1e-3)}
    if kind == "fedavg":
        counts = {"rounds": rng.randint(1, 300), "local_steps": rng.randint(1, 20), "num_clients": rng.randint(2, 100)}
        noise = {"noise_std": between(rng, 0.05, 5), "clip_norm": between(rng, 0.3, 3)}
        return chosen | counts | noise | {"learning_rate": between(rng, 1e-3, 0.1), "smoothness": between(rng, 0.1, 2)}
    if kind == "clients":
        drawn = {"num_clients": rng.randint(1000, 100_000), "clients_per_round": rng.randint(1, 200)}
        return chosen | drawn | {"rounds": rng.randint(1, 1000), "noise_multiplier": between(rng, 0.5, 6)}
    if kind == "last_iterate":
        records = rng.randint(2, 60)
        steps = {"num_records": records, "index": rng.randint(1, records), "learning_rate": between(rng, 0.05, 0.9)}
        loss = {"lipschitz": between(rng, 0.3, 2), "smoothness": between(rng, 0.2, 1), "strong_convexity": 0.1}
        return chosen | steps | loss | {"noise_std": between(rng, 1e-4, 10), "diameter": between(rng, 0.5, 5)}
    chosen |= {"noise_multiplier": between(rng, 0.5, 6), "adjacency": rng.choice(("add_or_remove", "replace"))}
    chosen["steps"] = round(between(rng, 1, 3000))
    if kind in ("fixed", "shuffled"):
        batches = rng.choice((10, 40, 100))
        chosen |= {
            "num_records": 100 * batches,
            "batch_size": rng.choice((100, 99)),
            "epochs": round(between(rng, 1, 20), 1),
        }
        chosen["length"] = rng.choice(("steps", "epochs"))
    elif kind == "poisson":
        chosen |= {"sampling_rate": between(rng, 1e-4, 0.2), "batches": "rate"}
    return chosen


def shown(page):
    """Return both ends as they are printed; None where the page says that it knows no lower end."""
    text = page.locator(".hs-ends").text_content()
    found = re.search(rf"between ({NUMBER}) and ({NUMBER})", text)
    if found:
        return Decimal(found[1]), Decimal(found[2])
    upper = re.search(rf"at most ({NUMBER})", text)
    assert upper, text
    return None, Decimal(upper[1])


def again(page):
    """Return the value of the line of Python that the page shows; what Python warns of, the page doubts."""
    code = page.locator("pre[aria-label='The same in Python']").text_content()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = eval(code.removeprefix("import hockeystick as hs\n"), {"hs": hs})
    assert {str(warning.message) for warning in caught} <= set(page.locator(".hs-doubts li").all_text_contents())
    return value


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_are_those_of_python(kind, full):
    """The printed ends hold Python's bracket between them but for the widths of both; the line that the page shows computes Python's."""
    rng = random.Random(kind)
    for _ in range(CELLS):
        chosen = settings(kind, rng)
        explorer_page.choose(full, chosen)
        assert full.locator(".hs-error").is_hidden(), (chosen, full.locator(".hs-error").text_content())
        low, high = shown(full)
        found = again(full)
        if (
            kind == "last_iterate"
        ):  # Python knows delta at an epsilon alone: at the page's, it is at most the delta asked for
            assert found <= chosen["delta"] * (1 + 1e-12), chosen
            continue
        lower, upper = (found, found) if kind == "fedavg" else found[:2]
        assert high >= Decimal(float(lower)), (chosen, found)
        assert high <= Decimal(float(upper)) * Decimal(1 + WIDTH), (chosen, found)
        assert low is None or low <= Decimal(float(upper)), (chosen, found)
        if low is not None and kind != "shuffled":
            assert low >= Decimal(float(lower)) * Decimal(1 - WIDTH), (chosen, found)


@pytest.mark.parametrize(
    ("wrong", "label", "call"),
    [
        ({"noise_multiplier": "-1"}, "Noise multiplier \N{GREEK SMALL LETTER SIGMA}", lambda: hs.Gaussian(-1.0)),
        (
            {"sampling_rate": "1.5"},
            "Sampling rate q",
            lambda: hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.0), 1.5)),
        ),
        ({"steps": "-1"}, "Steps", lambda: hs.Accountant().compose(hs.Gaussian(1.0), -1)),
        ({"delta": "2"}, "δ", lambda: hs.Accountant().compose(hs.Gaussian(1.0), 1).epsilon(2.0)),
    ],
    ids=["noise", "rate", "steps", "delta"],
)
def test_refusals_are_those_of_python(wrong, label, call, full):
    """A setting outside its domain shows the core's message, with the label of the page for the argument, and no number."""
    with pytest.raises(ValueError, match="must") as refused:
        call()
    explorer_page.choose(full, {"mechanism": "poisson", **wrong}, "error")
    message = full.locator(".hs-error").text_content()
    said, expected = (re.split(r",? not ", text)[0] for text in (message, str(refused.value)))
    assert said.replace("2^53", str(2**53)) == re.sub(r"^\w+", label, expected)
    assert full.locator(".hs-number").text_content() == "no ε"


def assert_states(page, expected, *more):
    """Compare the statement of the page, but for who made it, and the group of records that the page leaves to Python."""
    found = page.locator("pre[aria-label='Privacy statement']").text_content()
    left_out = ("**Made by:**", "**A person who has several records:**", *more)
    shown, python = (re.split(r"\n\n(?=\*\*|##)", text) for text in (found, expected))
    assert [part for part in shown if not part.startswith(left_out)] == [
        part for part in python if not part.startswith(left_out)
    ]


@pytest.mark.parametrize("sampling", ["poisson", "fixed", "shuffled"])
@pytest.mark.parametrize("batch_size", [256, 250])
def test_statements_are_those_of_python(sampling, batch_size, full):
    """The Markdown is the same, byte by byte."""
    known = {"batch_size": batch_size, "noise_multiplier": 1.1, "delta": 1e-5}
    adjacency = "replace" if sampling == "fixed" else "add_or_remove"
    link = known | {
        "num_records": 60000,
        "mechanism": sampling,
        "epochs": 15,
        "length": "epochs",
        "batches": "records",
        "adjacency": adjacency,
    }
    explorer_page.choose(full, link, "done")
    steps = 15 * math.ceil(60000 / batch_size)
    assert_states(
        full, hs.privacy_statement(**known, num_records=60000, steps=steps, sampling=sampling, format="markdown")
    )


def test_statements_of_accountants_are_those_of_python(full):
    """The same for what is no training."""
    for kind, mechanism in (
        ("gaussian", hs.Gaussian(2.0)),
        ("laplace", hs.Laplace(2.0)),
        ("poisson", hs.PoissonSampled(hs.Gaussian(2.0), 0.01)),
    ):
        link = {"mechanism": kind, "noise_multiplier": 2.0, "steps": 20, "adjacency": "replace", "delta": 1e-6}
        explorer_page.choose(full, link, "done")
        accountant = hs.Accountant("replace").compose(mechanism, 20)
        assert_states(full, accountant.statement(1e-6, format="markdown"))
        file = unquote(full.get_by_text("Download the certificate").get_attribute("href")).partition(",")[2]
        assert json.loads(file)["ledger"] == json.loads(accountant.certificate(delta=1e-6))["ledger"]


def test_statements_of_clients_are_those_of_python(full):
    """The same for whole clients that are drawn, but for the line that makes it again, which is shorter here."""
    drawn = {"num_clients": 10_000, "clients_per_round": 100, "rounds": 50}
    explorer_page.choose(full, {"mechanism": "clients", "noise_multiplier": 1.0, "delta": 1e-6, **drawn}, "done")
    training = hs.training.federated_parameters(
        **drawn, clip_norm=1.0, noise_std=1.0, noise_on="sum", sampling="poisson"
    )
    assert_states(full, training.accountant().statement(1e-6, format="markdown"), "**Again:**")
    again = full.locator("pre[aria-label='Privacy statement']").text_content().split("```\n")[1].splitlines()
    assert eval(again[1].removeprefix("print(")[:-1], {"hs": hs}) == training.accountant().statement(1e-6)


def test_the_shell_gives_the_number_again(full):
    """The command that the page shows prints an upper end that rounds to the page's."""
    for kind in ("poisson", "shuffled", "gaussian", "clients", "fedavg"):
        explorer_page.choose(full, {"mechanism": kind, "noise_multiplier": 1.3, "steps": 500, "noise_std": 0.7})
        _, high = shown(full)
        words = shlex.split(full.locator("pre[aria-label='The same in a shell']").text_content())
        ours = words[0] == "hockeystick"
        command = [sys.executable, "-m", *words, "--json"] if ours else [sys.executable, *words[1:]]
        answer = json.loads(processes.run(command).stdout)
        printed = Decimal(answer["epsilon"] if ours else answer)
        assert abs(printed - high) <= high * Decimal(WIDTH), (kind, printed, high)


def test_the_least_noise_keeps_the_budget(full):
    """Python's certified epsilon of the noise that the page names, rounded up, is within the budget, and of a little less it is not."""
    for budget, rate, steps in ((2, 0.01, 5000), (0.7, 0.003, 20000), (6, 0.05, 800)):
        explorer_page.choose(
            full, {"mechanism": "poisson", "budget": budget, "sampling_rate": rate, "steps": steps}, "done"
        )
        noise = float(re.search(rf"({NUMBER}), rounded up", full.locator(".hs-noise").text_content())[1])
        assert hs.dpsgd_epsilon(noise, rate, steps, 1e-5) <= budget
        assert hs.dpsgd_epsilon(noise * 0.999, rate, steps, 1e-5) > budget


def test_no_request_leaves_the_page(folder, chromium):
    """All that is loaded are the files of the page and the worker made of them."""
    page = chromium.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((folder / "full.html").as_uri())
    explorer_page.wait(page, "done")
    for kind in KINDS:
        explorer_page.choose(page, {"mechanism": kind})
    files = {(folder / name).as_uri() for name in ("full.html", "explorer.css", "explorer.js", "explorer-worker.js")}
    assert {url for url in asked if not url.startswith("blob:")} == files
    page.close()


# The explorer in Firefox, driven by its own WebDriver BiDi over a socket: playwright needs a Firefox of its own.


FIREFOX = next(filter(None, map(shutil.which, ("firefox-esr", "firefox"))), None)
STATE = "document.querySelector('.hs-explorer').dataset.state"
SHOWN = "document.querySelector('.hs-number').textContent + document.querySelector('.hs-error').textContent"


async def answers(page, hashes, profile):
    """Return the number, or the refusal, of each link of a page."""
    websocket = pytest.importorskip("tornado.websocket")
    command = [FIREFOX, "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0"]
    firefox = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    try:
        while not (address := re.search(rb"WebDriver BiDi listening on (\S+)", await firefox.stderr.readline())):
            pass
        socket = await websocket.websocket_connect(f"{address[1].decode()}/session")

        async def call(method, **params):
            await socket.write_message(json.dumps({"id": 1, "method": method, "params": params}))
            while (reply := json.loads(await socket.read_message())).get("id") != 1:
                pass
            return reply["result"]

        async def value(expression):
            found = await call("script.evaluate", expression=expression, target={"context": tab}, awaitPromise=True)
            return found["result"].get("value")

        await call("session.new", capabilities={})
        tab = (await call("browsingContext.getTree"))["contexts"][0]["context"]
        await call("browsingContext.navigate", context=tab, url=page, wait="complete")
        found = []
        for link in hashes:
            await value(f"{STATE} = 'asked'; location.hash = '{link}'")
            while await value(STATE) not in {"done", "error"}:
                await asyncio.sleep(0.1)
            found.append(await value(SHOWN))
        socket.close()
        await socket.read_message()  # none: it is closed
        return found
    finally:
        firefox.kill()
        await firefox.wait()


@pytest.mark.skipif(FIREFOX is None, reason="firefox is not installed: apt-get install firefox-esr")
def test_firefox_has_the_numbers_of_chromium(folder, page, tmp_path):
    """Every mechanism of the page has the same number in both browsers, and a wrong setting the same refusal."""
    kinds = page.get_by_label("Mechanism").locator("option").evaluate_all("all => all.map(one => one.value)")
    links = [f"mechanism={kind}&delta=1e-6" for kind in kinds] + ["mechanism=poisson&sampling_rate=3/2"]
    run = answers((folder / "full.html").as_uri(), links, tmp_path)
    with ThreadPoolExecutor() as pool:  # playwright's own loop runs in this thread
        found = pool.submit(asyncio.run, asyncio.wait_for(run, processes.seconds(120))).result()
    for link, text in zip(links, found, strict=True):
        explorer_page.choose(page, dict(pair.split("=") for pair in link.split("&")))
        assert text == page.evaluate(SHOWN)
    assert len(set(found)) == len(links) > 8


# The explorer for those who use a keyboard, a screen reader, a phone, paper, forced colours, or a link; and how soon it answers.


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
