"""What is right: the functions of the papers' rows against the formulas, written out once more and evaluated to 60 digits."""

import pytest

import paper_formulas
from hockeystick.published import statements

FORMULAS = [
    pytest.param(formula, id=f"{formula.paper} {formula.row} {formula.call[:40]}")
    for formula in paper_formulas.formulas()
]
ROWS = {(paper, row.name): row for paper in statements.PAPERS for row in statements.rows(paper)}
RIGHT = [row for row in ROWS.values() if not row.false and row.functions and row.verdict != "definition"]


@pytest.mark.share(3)
@pytest.mark.parametrize("formula", FORMULAS)
def test_function_has_the_formulas_value(formula: paper_formulas.Formula) -> None:
    """At settings drawn afresh no value is farther from its formula than rounding explains, and what is certified is not below it by more."""
    found = [deviation for deviation, _ in paper_formulas.tried(formula, 5, seed=1)]
    assert len(found) == 5
    largest = max(deviation.size for deviation in found)
    assert largest <= paper_formulas.LARGEST
    # a deviation of three digits more than was tried would be news
    assert largest <= max(1e3 * ROWS[formula.paper, formula.row].tried["deviation"], 1e-13)


@pytest.mark.parametrize(("paper", "name"), [key for key, row in ROWS.items() if row.tried])
def test_rows_say_where(paper: str, name: str) -> None:
    """The deviation at the row's settings is what the row says, but for what another processor rounds otherwise."""
    tried = ROWS[paper, name].tried
    asked = [
        one
        for one in paper_formulas.formulas()
        if (one.paper, one.row) == (paper, name) and tried["function"] in one.call
    ]
    sizes = [found.size for one in asked if (found := paper_formulas.deviation(one, paper_formulas.at(tried["at"])))]
    assert max(sizes) <= 1.1 * tried["deviation"] + 1e-15
    assert max(sizes) >= 0.5 * tried["deviation"] - 1e-15


def test_rows_hold_what_was_tried() -> None:
    """Every formula's row has the field, of one of its functions, and no other row; what is right without a formula says why there is none."""
    named = {(formula.paper, formula.row) for formula in paper_formulas.formulas()}
    assert {key for key, row in ROWS.items() if row.tried} == named
    for key in named:
        tried = ROWS[key].tried
        assert tried["function"] in ROWS[key].functions, key
        assert 0 <= tried["deviation"] <= paper_formulas.LARGEST, key
        assert tried["settings"] >= 100
        assert tried["at"]
    assert [row.name for row in RIGHT if not (row.tried or row.reason)] == []
