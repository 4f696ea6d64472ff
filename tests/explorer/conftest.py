"""The pages of the explorer and a browser, for all tests of the room."""

import pytest

import explorer_page


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Write the pages once."""
    return explorer_page.write(tmp_path_factory.mktemp("explorer"))


@pytest.fixture
def page(folder, chromium):
    """Open the whole explorer in a context of its own."""
    return explorer_page.opened(chromium, folder)


@pytest.fixture(scope="session")
def chromium():
    """Start the browser once."""
    with explorer_page.browser() as started:
        yield started
