"""The figures and tables of the papers as data and as pictures.

`catalogue` lists them; `find` returns one by its name, such as "002/2" for Figure 2 of the paper 002; `write` puts its data (CSV) and its picture
(PNG and SVG) into a folder. Data need no Matplotlib. The command ``hockeystick figures`` does the same.
"""

from __future__ import annotations

from hockeystick._checks.doors import open_room
from hockeystick.figures.catalogue import Entry, catalogue, find, write
from hockeystick.figures.table import Table

__all__ = ["Entry", "Table", "catalogue", "find", "write"]

open_room(__name__)
