"""TensorFlow Privacy: its statements with our accountant, by the recipe of docs/project/switching.md."""

import importlib.metadata
import importlib.util
import re

import pytest

import hockeystick as hs

pytest.importorskip("dp_accounting")

from hockeystick.interop.dp_accounting import HockeyStickAccountant

RECORDS, BATCH, EPOCHS, NOISE, DELTA = 60_000, 256, 15, 1.1, 1e-5


@pytest.fixture
def library():
    """Load the file of the statements alone: the package around it wants TensorFlow, the file does not."""
    try:
        files = importlib.metadata.files("tensorflow-privacy") or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("tensorflow-privacy is not installed: pip install --no-deps tensorflow-privacy absl-py")
    pytest.importorskip("absl")
    (path,) = [file.locate() for file in files if file.name == "compute_dp_sgd_privacy_lib.py"]
    spec = importlib.util.spec_from_file_location("compute_dp_sgd_privacy_lib", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_statements(library):
    """With the line of the recipe, records and users have certified numbers; group privacy is that of a user's two records."""
    library.AccountantType.get_accountant = lambda _: HockeyStickAccountant()
    said = library.compute_dp_sgd_privacy_statement(
        RECORDS, BATCH, EPOCHS, NOISE, DELTA, used_microbatching=False, max_examples_per_user=2
    )
    every_epoch, sampled, user_every_epoch, user_sampled = map(float, re.findall(r" +(\d+\.\d+)\n", said))
    steps = int(EPOCHS * RECORDS / BATCH)
    exact = hs.Accountant().compose(hs.Gaussian(NOISE), EPOCHS).epsilon(DELTA)
    assert every_epoch == pytest.approx(exact, abs=5e-4)
    assert sampled == pytest.approx(float(hs.dpsgd_epsilon(NOISE, BATCH / RECORDS, steps + 1, DELTA)), abs=1e-3)
    pair = hs.Accountant().compose(hs.Gaussian(NOISE / 2), EPOCHS).epsilon(DELTA)
    assert pair - 5e-4 <= user_every_epoch  # its release 0.9 has group privacy, its head half the noise
    together = hs.Accountant().compose(hs.MixtureOfGaussians.of_group(NOISE, 2, BATCH / RECORDS), steps)
    assert together.epsilon(DELTA) <= user_sampled <= 1.05 * together.epsilon(DELTA)
