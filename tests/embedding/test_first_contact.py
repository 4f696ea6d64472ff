"""What a newcomer sees at a prompt: names that can be used, errors in peers' words, and numbers that stay bounds."""

import importlib
import inspect
from decimal import Decimal

import numpy as np
import pytest

import hockeystick as hs
import processes
import refused_calls
from hockeystick import last_iterate

TRAINING = {"noise_multiplier": 1.0}
LAST = {"num_records": 22, "learning_rate": 0.5, "noise_std": 2.0, "lipschitz": 1.0, "smoothness": 0.5, "diameter": 2.0}


NAMES = {"hs": hs, "accountant": hs.Accountant(), "training": TRAINING}
MEANT = r"""
hs.dpsgd_epsilon(sigma=1.0) -> TypeError: ^dpsgd_epsilon\(\) has no argument 'sigma'; did you mean 'noise_multiplier'\?$
hs.dpsgd_epsilon(**training, sample_rate=1.0) -> TypeError: ^dpsgd_epsilon\(\) has no argument 'sample_rate'; did you mean 'sampling_rate'\?$
hs.dpsgd_epsilon(**training, step=1.0) -> TypeError: ^dpsgd_epsilon\(\) has no argument 'step'; did you mean 'steps'\?$
hs.Accountant(neighboring_relation="x") -> TypeError: ^Accountant\(\) has no argument 'neighboring_relation'; did you mean 'adj
hs.Laplace(scale=1.0) -> TypeError: ^Laplace\(\) has no argument 'scale'; did you mean 'noise_multiplier'
accountant.epsilon(target_delta=1e-5) -> TypeError: ^Accountant.epsilon\(\) has no argument 'target_delta'; did you mean 'delta'
hs.training.user_level_parameters(users=3) -> TypeError: ^user_level_parameters\(\) has no argument 'users'; did you mean 'num_users'\?$
hs.simulate.NoisyFedAvg(lr=0.1) -> TypeError: ^NoisyFedAvg\(\) has no argument 'lr'; did you mean 'learning_rate'\?$
hs.getepsilon -> AttributeError: 'getepsilon'; did you mean 'dpsgd_epsilon'
hs.RDPAccountant -> AttributeError: 'RDPAccountant'; did you mean 'Accountant'
hs.poissonsampled -> AttributeError: 'poissonsampled'; did you mean 'PoissonSampled'
accountant.get_epsilon -> AttributeError: 'get_epsilon'; did you mean 'epsilon'
accountant.epsilom -> AttributeError: 'epsilom'; did you mean 'epsilon'
hs.sigma -> AttributeError: ^module 'hockeystick' has no attribute 'sigma'; did you mean 'dpsgd_noise_multiplier'\?$
hs.rdp -> AttributeError: ^module 'hockeystick' has no attribute 'rdp'; did you mean 'Accountant.rdp'\?$
hs.simulate.NoisyFedAVG -> AttributeError: ^module 'hockeystick.simulate' has no attribute 'NoisyFedAVG'; did you mean 'NoisyFedAvg'\?$
hs.federated.fedavg_epsilom -> AttributeError: did you mean 'fedavg_epsilon'\?$
hs.sweep.runn -> AttributeError: did you mean 'run'\?$
hs.risk.bayes_risks -> AttributeError: did you mean 'bayes_risk'\?$
hs.utility.plann -> AttributeError: did you mean 'plan'\?$
hs.audit.cannary -> AttributeError: ^module 'hockeystick.audit' has no attribute 'cannary'
"""


@pytest.mark.parametrize(("call", "told"), refused_calls.rows(MEANT))
def test_what_was_meant(call, told):
    """A peer's word or a misspelling, of an argument, a method, the package or a room, is refused with ours; no private class is named."""
    refused_calls.check(call, told, NAMES)


@pytest.mark.parametrize("module", ["", ".sweep", ".federated", ".last_iterate", ".published", ".isrl", ".distortion"])
def test_only_public_names_are_listed(module):
    """`dir` lists what can be used: no import of ours, no typing."""
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


def test_the_top_lists_few_names():
    """Some 45 names are listed at the top; what a room lists is found there too, and no name of a room is another thing."""
    assert len(hs.__all__) <= 48
    assert set(dir(hs)) - set(hs.__all__) <= {"cli", "figures", "interop", "plot", "report", "simulate", "sweep"}
    rooms = {name: getattr(hs, name) for name in hs.__all__ if inspect.ismodule(getattr(hs, name))}
    for name, room in rooms.items():
        listed = {*room.__all__} if name in hs._ROOMS else {*room.__all__} & {*hs.__all__}
        assert all(getattr(room, word) is getattr(hs, word) for word in listed), name


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
