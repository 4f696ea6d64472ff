"""What a newcomer sees at a prompt: names that can be used, errors in peers' words, and numbers that stay bounds."""

from __future__ import annotations

import inspect
import pickle
from decimal import Decimal

import numpy as np
import pytest

import hockeystick as hs
import processes
from hockeystick import last_iterate

TRAINING = {"noise_multiplier": 1.0, "sampling_rate": 0.01, "steps": 10, "delta": 1e-5}
LAST = {"num_records": 22, "learning_rate": 0.5, "noise_std": 2.0, "lipschitz": 1.0, "smoothness": 0.5, "diameter": 2.0}


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("noise_multiplier", "sigma"),
        ("sampling_rate", "sample_rate"),
        ("steps", "num_steps"),
        ("delta", "target_delta"),
        ("steps", "step"),  # a misspelling
    ],
)
def test_peers_words_of_arguments(ours, theirs):
    """An argument by a peer's word is refused with ours."""
    given = {theirs if name == ours else name: value for name, value in TRAINING.items()}
    with pytest.raises(TypeError, match=rf"^dpsgd_epsilon\(\) has no argument '{theirs}'; did you mean '{ours}'\?$"):
        hs.dpsgd_epsilon(**given)


def test_peers_words_of_classes():
    """No private class is named."""
    with pytest.raises(TypeError, match=r"^Accountant\(\) has no argument 'neighboring_relation'; did you mean 'adj"):
        hs.Accountant(neighboring_relation="add_or_remove_one")
    with pytest.raises(TypeError, match=r"^Laplace\(\) has no argument 'scale'; did you mean 'noise_multiplier'"):
        hs.Laplace(scale=1.0)
    with pytest.raises(
        TypeError, match=r"^Accountant.epsilon\(\) has no argument 'target_delta'; did you mean 'delta'"
    ):
        hs.Accountant().epsilon(target_delta=1e-5)


@pytest.mark.parametrize(
    ("owner", "theirs", "ours"),
    [
        (hs, "getepsilon", "dpsgd_epsilon"),
        (hs, "RDPAccountant", "Accountant"),
        (hs, "dpsgd_epsilom", "dpsgd_epsilon"),
        (hs, "poissonsampled", "PoissonSampled"),
        (hs.Accountant(), "get_epsilon", "epsilon"),
        (hs.Accountant(), "epsilom", "epsilon"),
    ],
)
def test_peers_names(owner, theirs, ours):
    """A name of a peer's, or one that is misspelt, is refused with ours."""
    with pytest.raises(AttributeError, match=f"'{theirs}'; did you mean '{ours}'"):
        getattr(owner, theirs)


def test_an_error_from_within_is_untouched():
    """What a right call raises keeps its own words."""
    with pytest.raises(TypeError, match=r"echanism"):
        hs.Accountant().compose(3)


def test_translated_functions_are_themselves():
    """Signature, name and pickle are as without translation."""
    assert list(inspect.signature(hs.dpsgd_epsilon).parameters)[:2] == ["noise_multiplier", "sampling_rate"]
    assert pickle.loads(pickle.dumps(hs.dpsgd_epsilon)) is hs.dpsgd_epsilon
    assert pickle.loads(pickle.dumps(hs.Gaussian(1.0))) == hs.Gaussian(1.0)


@pytest.mark.parametrize("module", ["", ".sweep", ".federated", ".last_iterate", ".published", ".isrl", ".distortion"])
def test_only_public_names_are_listed(module):
    """`dir` lists what can be used: no import of ours, no typing."""
    import importlib  # noqa: PLC0415

    found = importlib.import_module(f"hockeystick{module}")
    assert set(found.__all__) <= set(dir(found))
    assert not {"Any", "annotations", "np", "importlib", "TYPE_CHECKING", "ArrayLike"} & set(dir(found))


def test_short_texts_are_bounds():
    """Each number that a repr or a notebook shows lies outside of the bracket that it is of."""
    training = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.0), 0.01), 100)
    explained = training.explain(delta=1e-5)
    words = repr(explained).replace(",", "").split()
    low, high = Decimal(words[2]), Decimal(words[4])
    assert low <= Decimal(explained.bracket.lower)
    assert Decimal(explained.bracket.upper) <= high
    assert len(repr(explained)) < 120
    assert hs.format_upper(explained.bracket.upper) in explained.bracket._repr_html_()
    assert "<b>" not in explained._repr_html_()
    assert "assumes" in explained._repr_html_()
    assert "100 x" in training._repr_html_()
    assert "PoissonSampled" in training._repr_html_()
    best = last_iterate.best(1.0, index=20, **LAST)
    assert Decimal(repr(best).split("at most ")[1].split(",")[0]) >= Decimal(best.delta)
    assert tuple(best) == (best.delta, best.method, best.bounds)
    assert "shape (2,)" in repr(last_iterate.best(np.array([1.0, 2.0]), index=20, **LAST))


@pytest.mark.parametrize(
    ("module", "wrong", "meant"),
    [
        ("", "sigma", "dpsgd_noise_multiplier"),
        ("", "rdp", "Accountant.rdp"),
        ("", "Acountant", "Accountant"),
        (".simulate", "NoisyFedAVG", "NoisyFedAvg"),
        (".simulate", "nosiy_fed_avg", "NoisyFedAvg"),
        (".federated", "fedavg_epsilom", "fedavg_epsilon"),
        (".sweep", "runn", "run"),
        (".audit", "cannary", None),
        (".risk", "bayes_risks", "bayes_risk"),
        (".utility", "plann", "plan"),
    ],
)
def test_a_missing_name_says_what_was_meant(module, wrong, meant):
    """The package and its rooms name the one that was probably meant, and none where nothing is near."""
    import importlib  # noqa: PLC0415

    found = importlib.import_module(f"hockeystick{module}")
    with pytest.raises(AttributeError) as refused:
        getattr(found, wrong)
    hint = f"; did you mean {meant!r}?" if meant else ""
    if meant:
        assert str(refused.value) == f"module 'hockeystick{module}' has no attribute {wrong!r}{hint}"
        owner, _, method = meant.partition(".")
        assert hasattr(getattr(found, owner), method or "__doc__")
    else:
        assert str(refused.value).startswith(f"module 'hockeystick{module}' has no attribute {wrong!r}")


def test_every_room_is_there_when_asked_for():
    """Whatever module of the package has a public name is an attribute of it, in a process that imported nothing else."""
    code = """
import pkgutil
import hockeystick as hs
rooms = [name for _, name, _ in pkgutil.iter_modules(hs.__path__) if not name.startswith("_")]
missing = [name for name in rooms if not hasattr(hs, name)]
print(len(rooms) > 15, missing)
"""
    assert processes.python(code).stdout == "True []\n"
