"""The words that functions of federated training share: kinds of losses, and how steps decay."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

Loss: TypeAlias = Literal["convex", "nonconvex"]
LOSSES: tuple[Loss, ...] = get_args(Loss)
Schedule: TypeAlias = Literal["constant", "cyclic", "stagewise", "continuous"]
SCHEDULES: tuple[Schedule, ...] = get_args(Schedule)
