"""The explorer in Firefox, driven by its own WebDriver BiDi over a socket: playwright needs a Firefox of its own."""

import asyncio
import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import explorer_page
import processes

pytestmark = pytest.mark.slow

FIREFOX = next(filter(None, map(shutil.which, ("firefox-esr", "firefox"))), None)
STATE = "document.querySelector('.hs-explorer').dataset.state"
SHOWN = "document.querySelector('.hs-number').textContent + document.querySelector('.hs-error').textContent"


async def answers(page: str, hashes: list[str], profile: Path) -> list[str]:
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

        async def call(method: str, **params: Any) -> Any:
            await socket.write_message(json.dumps({"id": 1, "method": method, "params": params}))
            while (reply := json.loads(await socket.read_message())).get("id") != 1:
                pass
            return reply["result"]

        async def value(expression: str) -> Any:
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
def test_firefox_has_the_numbers_of_chromium(folder: Path, page: Any, tmp_path: Path) -> None:
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
