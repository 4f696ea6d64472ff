"""What a reader of a report chooses: which slice is seen, and which budget is kept."""

from __future__ import annotations

import numpy as np
from bokeh.models import CategoricalSlider, Select

from hockeystick._numeric.printing import format_upper
from hockeystick.plot.scales import Array
from hockeystick.sweep.plan import units
from hockeystick.sweep.view.sample import Choice

MOST_LISTED = 12  # values in a drop-down list; more are on a slider
SELECT_STYLE = """
select.bk-input { appearance: auto; background: var(--paper); color: var(--ink); border-color: var(--faint); }
.bk-input-group, .bk-slider-title, label { color: var(--ink); }
"""


def budget(name: str, values: Array) -> CategoricalSlider:
    """Return a slider of what an output may be at most: "any", or a value that leaves one more hundredth of the cells."""
    finite = values[np.isfinite(values)]
    steps = np.quantile(finite, np.linspace(0.0, 1.0, 101)) if finite.size else np.zeros(0)
    texts = list(dict.fromkeys(format_upper(value, ".3g") for value in steps.tolist()))
    return CategoricalSlider(
        title=f"budget: {name} at most",
        categories=[*texts, "any"],
        value="any",
        name=f"budget {name}",
        stylesheets=[SELECT_STYLE],
    )


def select(choice: Choice, axis: int) -> Select | CategoricalSlider:
    """Return a list of the values of an axis, or a slider if they are many."""
    names, values = choice.plan.axes[axis].names, choice.plan.axes[axis].values
    options = [
        (str(number), ", ".join(str(column[at]) for column in values)) for number, at in enumerate(choice.slices[axis])
    ]
    title = ", ".join(units.labelled(name, units.of_argument(name)) for name in names)
    name = f"select {names[0]}"
    texts = [text for _, text in options]
    if len(set(texts)) == len(texts) > MOST_LISTED:
        return CategoricalSlider(title=title, categories=texts, value=texts[0], name=name, stylesheets=[SELECT_STYLE])
    return Select(title=title, options=options, value="0", name=name, stylesheets=[SELECT_STYLE])
