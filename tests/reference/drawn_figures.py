"""What every picture of a paper's figure must show."""

import re

import numpy as np

from hockeystick import figures
from hockeystick.figures import style

DOTS_PER_INCH = 50  # a third of what is published


def check(name: str, table: figures.Table) -> None:
    """Check that a picture has ink that is neither all there is nor a speck, and names the data that stand in for the paper's."""
    entry = figures.find(name)
    assert len({len(column) for column in table.columns.values()}) == 1
    with style.look():
        figure = entry.draw(table)
        figure.set_dpi(DOTS_PER_INCH)
        figure.set_layout_engine("none")  # takes most of the time
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - an extra

        canvas = FigureCanvasAgg(figure)
        canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3] / 255.0
    assert min(pixels.shape[:2]) >= 500 * DOTS_PER_INCH / 150
    coloured = pixels.max(axis=2) - pixels.min(axis=2) > 0.2  # curves, not axes or letters
    assert 0.001 < coloured.mean() < 0.2
    if entry.data:
        titles = " ".join([figure.get_suptitle(), *(axes.get_title() for axes in figure.axes)])
        stand_in = re.search(r"digits|diabetes", entry.data)
        assert stand_in
        assert stand_in.group() in titles
