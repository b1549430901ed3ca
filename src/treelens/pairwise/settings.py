"""All choices of a learner in one place, and their checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from treelens.pairwise.constraints import CONSTRAINT_SETS

SOLVERS = ("quasi-newton", "batch", "stochastic")
PAIRS = ("all", "local")


@dataclass(frozen=True)
class LearnerSettings:
    """What to minimise, where, and how.

    Attributes
    ----------
    radius : float or sequence of float, one per depth
        Of the ball around 1 (``constraint="ball"``), or half the width of the box around 1
        (``"box"``; 1 is the box [0, 2]). Weights never fall below 0. With radius 0 they stay 1.
    solver : {"quasi-newton", "batch", "stochastic"}
    constraint : {"ball", "box"}
    margins : "quantile" or (alpha1, alpha2)
        ``"quantile"`` takes them from the training distances under uniform weights.
    sigma : "auto" or float
        ``"auto"`` takes half the interquartile range of those distances.
    b : float
        The distance is ``b - <W, Z>``.
    balance : bool
        Give pairs with the same and with different labels the total weight 1/2 each.
    pairs : {"all", "local"}
        All ordered pairs, or every graph with its ``n_neighbors`` nearest of its own and of other
        classes.
    n_neighbors : int
    min_support : int
        Patterns that fewer training graphs hold keep the weight 1.
    max_iter : int
    tol : float
        Relative gap at which the solver stops.
    n_steps, n_epochs, step_size, halvings, average, n_checks
        Of the stochastic solver; see :class:`~treelens.pairwise.stochastic.Schedule`. Without a
        ``step_size`` the first one is chosen from the radius. ``step_size`` also makes the step of
        the batch solver constant.
    n_jobs : int
        Threads; the result is the same for every number of them.
    random_state : int, Generator or None
    """

    radius: float | Sequence[float] = 1.0
    solver: str = "quasi-newton"
    constraint: str = "ball"
    margins: str | tuple[float, float] = "quantile"
    sigma: str | float = "auto"
    b: float = 1.0
    balance: bool = True
    pairs: str = "all"
    n_neighbors: int = 10
    min_support: int = 1
    max_iter: int = 200
    tol: float = 1e-4
    n_steps: int = 1_000_000
    n_epochs: int | None = None
    step_size: float | None = None
    halvings: int = 8
    average: bool = True
    n_checks: int = 10
    n_jobs: int = 1
    random_state: Any = None

    def radii(self, n_depths: int) -> np.ndarray:
        """One radius per depth, checked."""
        radii = np.atleast_1d(np.asarray(self.radius, dtype=np.float64))
        if radii.ndim != 1 or len(radii) not in (1, n_depths):
            raise ValueError(
                f"radius must be one number or one per depth ({n_depths}), got {self.radius!r}."
            )
        if not np.isfinite(radii).all() or (radii < 0).any():
            raise ValueError(f"radius must be finite and not negative, got {self.radius!r}.")
        return np.broadcast_to(radii, (n_depths,)).copy()

    def check(self) -> None:
        """Raise a ValueError that names the parameter if a choice makes no sense."""
        _check_choice("solver", self.solver, SOLVERS)
        _check_choice("constraint", self.constraint, tuple(CONSTRAINT_SETS))
        _check_choice("pairs", self.pairs, PAIRS)
        self._check_margins()
        for name in ("n_neighbors", "min_support", "max_iter", "n_steps", "n_epochs", "n_jobs"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value!r}.")
        if self.n_epochs is not None and self.pairs == "local":
            raise ValueError("n_epochs pairs all graphs off: use pairs='all', or n_steps.")
        if self.step_size is not None and not self.step_size > 0:
            raise ValueError(f"step_size must be positive, got {self.step_size!r}.")
        for name in ("halvings", "n_checks", "tol"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)!r}.")

    def _check_margins(self) -> None:
        if isinstance(self.margins, str):
            _check_choice("margins", self.margins, ("quantile",), "or a pair (alpha1, alpha2)")
        else:
            if len(self.margins) != 2 or not self.margins[0] >= self.margins[1]:
                raise ValueError(
                    "margins must be (alpha1, alpha2) with alpha1 >= alpha2, got "
                    f"{self.margins!r}: different classes should be at least alpha1 apart, equal "
                    "ones at most alpha2."
                )
        if isinstance(self.sigma, str):
            _check_choice("sigma", self.sigma, ("auto",), "or a positive number")
        elif not self.sigma > 0:
            raise ValueError(f"sigma must be positive, got {self.sigma!r}.")


def _check_choice(name: str, value: Any, choices: tuple[str, ...], also: str = "") -> None:
    if value not in choices:
        names = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {names} {also}".rstrip() + f", got {value!r}.")
