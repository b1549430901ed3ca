"""What is wanted of new graphs, endpoint by endpoint, and how probable it is that they have it."""

from __future__ import annotations

import difflib
import importlib
import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy  # scipy.special is imported when it is used: predictions need not wait for it

from treelens.array_checks import LARGEST, Columns
from treelens.errors import GraphDataError, check_number, first_few
from treelens.maps import TargetMap

if TYPE_CHECKING:
    from treelens.gp.panel_model import FittedPanel, PanelPredictions
    from treelens.models.fitted import FittedModel
    from treelens.models.predictions import Predictions

IN_PROFILE = "probability_of_profile"
SHARE = "profile_share"
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_BOUND = re.compile(rf"(<=|>=|<|>|≤|≥)\s*({_NUMBER})")
_RANGE = re.compile(rf"({_NUMBER})\s+to\s+({_NUMBER})")
_HOW = 'write it like "< 30", ">= 50" or "1 to 3", or name a class'
_FAR = 300.0  # on scales that are learned: what no prediction reaches
_ROUNDING = 1e-9  # relative difference of a measured value and a limit that are the same
_FARTHEST = 38.0  # deviations, beyond which normal probabilities are 0
_N_POINTS = 2000  # of the lattice
_BLOCK = 250  # graphs whose lattice is computed at a time


class Condition(NamedTuple):
    """What is wanted of one endpoint: a range of numbers, or a class."""

    text: str
    low: float = -math.inf
    high: float = math.inf
    includes: bool = True  # whether the limits themselves are wanted
    is_range: bool = False
    weight: float = 1.0

    @classmethod
    def of(cls, given: object, where: str) -> Condition:
        """Return the condition of a text, a class or a dict with a weight; ``where`` it is from."""
        weight: float = 1.0
        if isinstance(given, Mapping):
            if not {"condition"} <= set(given) <= {"condition", "weight"}:
                raise GraphDataError(
                    f"{where}: a table has condition and weight, as in "
                    f'{{ condition = "> 50", weight = 2 }}; got {", ".join(map(str, given))}.'
                )
            weight, given = given.get("weight", 1.0), given["condition"]
            check_number(f"{where}: weight", weight, np.finfo(float).tiny, LARGEST)
        if not isinstance(given, (str, bool, int)) or not (text := str(given).strip()):
            raise GraphDataError(f"{where}: {given!r:.80} is no condition: {_HOW}.")
        if found := _BOUND.fullmatch(text):
            sign, end = found[1].replace("≤", "<=").replace("≥", ">="), float(found[2])
            low, high = (-math.inf, end) if sign[0] == "<" else (end, math.inf)
            return cls(text, low, high, sign[1:] == "=", True, float(weight))
        if found := _RANGE.fullmatch(text):
            low, high = float(found[1]), float(found[2])
            if not low < high:
                raise GraphDataError(f"{where}: {text!r} is empty: give the smaller limit first.")
            return cls(text, low, high, True, True, float(weight))
        if text[0] in "<>≤≥":
            raise GraphDataError(f"{where}: {text!r:.80} is no condition: {_HOW}.")
        return cls(text, weight=float(weight))

    def direction(self, value: float) -> float:
        """Return 1 where more than a value is better, -1 where less is; of a range, its middle."""
        if math.isinf(self.low):
            return -1.0
        return 1.0 if math.isinf(self.high) or value < 0.5 * (self.low + self.high) else -1.0

    def check(self, name: str, classes: np.ndarray | None) -> None:
        """Raise ``GraphDataError`` where it does not suit an endpoint; None: one of numbers."""
        if classes is None and not self.is_range:
            raise GraphDataError(
                f"The profile wants {name!r} to be {self.text!r}, and it is an endpoint of "
                'numbers: write the condition like "< 30", ">= 50" or "1 to 3".'
            )
        if classes is not None and self.text not in (known := list(map(str, classes.tolist()))):
            raise GraphDataError(
                f"The profile wants {name!r} to be {self.text!r}, which is none of its classes, "
                f"{first_few(known)}: name one of them."
            )


class Profile:
    """What is wanted of new graphs: a condition for each of some endpoints.

    Parameters
    ----------
    conditions : dict
        By names of endpoints. Of numbers, in the units of the values that were learned: ``"< 30"``,
        ``"<= 30"``, ``"> 50"``, ``">= 50"`` or ``"1 to 3"``; of classes the one that is wanted.
        ``{"condition": "> 50", "weight": 2}`` has a weight, which counts in ``profile_share`` only.

    Examples
    --------
    >>> import treelens as tl
    >>> tl.Profile({"LogD": "1 to 3", "HLM CLint": "< 30", "active": "yes"})
    Profile(LogD 1 to 3, HLM CLint < 30, active yes)
    """

    conditions: dict[str, Condition]

    def __init__(self, conditions: Mapping[str, Any], source: str = "The profile") -> None:
        if not isinstance(conditions, Mapping) or not conditions:
            raise GraphDataError(
                f'{source} has no conditions: give some, such as {{"LogD": "1 to 3"}}.'
            )
        self.conditions = {
            str(name): Condition.of(given, f"{source}, {str(name)!r}")
            for name, given in conditions.items()
        }

    @classmethod
    def read(cls, path: str | Path) -> Profile:
        """Return the profile in a file, TOML or (with the ending ``.json``) JSON.

        The file has a line for each endpoint: ``LogD = "1 to 3"``; names with blanks in quotes.
        """
        path = Path(path).expanduser()
        try:
            text = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise GraphDataError(f"{path} is no text in UTF-8: {error}.") from None
        try:
            parse = json.loads if path.suffix.lower() == ".json" else _toml().loads
            found = parse(text)
        except ValueError as error:
            raise GraphDataError(
                f"{path} cannot be read: {error}. Write a line for each endpoint, such as "
                '"HLM CLint" = "< 30"; names with blanks and conditions stand in quotes.'
            ) from None
        return cls(found, str(path))

    @classmethod
    def of(cls, given: Profile | Mapping[str, Any]) -> Profile:
        """Return a profile, from one or from its conditions."""
        return given if isinstance(given, Profile) else cls(given)

    def __repr__(self) -> str:
        return f"Profile({', '.join(f'{k} {x.text}' for k, x in self.conditions.items())})"

    def names(self) -> list[str]:
        """Return the columns of :meth:`columns`, in order."""
        return [IN_PROFILE, SHARE, *(f"{name}_in_profile" for name in self.conditions)]

    def columns(self, outlooks: Sequence[Outlook], correlation: np.ndarray) -> Columns:
        """Return the probability of all conditions together and of each, and the expected share.

        ``correlation`` (n_graphs, n_endpoints, n_endpoints) is that of the outlooks.
        """
        chosen = self._positions([(own.name, own.classes) for own in outlooks])
        limits = [
            outlooks[k].limits(each)
            for k, each in zip(chosen, self.conditions.values(), strict=True)
        ]
        low, high = (np.stack(ends, axis=1) for ends in zip(*limits, strict=True))
        each = between(low, high)
        weights = np.array([own.weight for own in self.conditions.values()])
        among = correlation[:, chosen][:, :, chosen]
        whole = [box_probability(low, high, among), each @ weights / weights.sum()]
        return Columns(zip(self.names(), [*whole, *each.T], strict=True))

    def check(self, model: FittedModel) -> None:
        """Raise ``GraphDataError`` where the conditions do not suit a fitted model."""
        if not model.has_variance:
            raise GraphDataError("A profile needs a Gaussian process: its model is another one.")
        names = model.endpoint_names
        ends = [(name, model.endpoint(name).classes) for name in names]
        self._positions(ends or [(_name_of(model), model.classes)])

    def _positions(self, ends: Sequence[tuple[str, np.ndarray | None]]) -> list[int]:
        """Return where the endpoints of the conditions are among those of a model."""
        names = [name for name, _ in ends]
        for name, each in self.conditions.items():
            if name not in names:
                folded = {known.casefold(): known for known in names}
                close = difflib.get_close_matches(name.casefold(), folded, n=1)
                hint = f" Did you mean {folded[close[0]]!r}?" if close else ""
                raise GraphDataError(
                    f"The profile names {name!r}, and the model has no such endpoint.{hint} Its "
                    f"endpoints are: {first_few(list(map(repr, names)), 50)}."
                )
            each.check(name, ends[names.index(name)][1])
        return [names.index(name) for name in self.conditions]


def _toml() -> Any:
    try:
        return importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    except ImportError:
        raise ImportError(
            "Reading TOML needs Python 3.11 or the package tomli (pip install tomli); or write the "
            "profile as JSON, in a file that ends in .json."
        ) from None


class Outlook(NamedTuple):
    """What is predicted of measurements of one endpoint of new graphs."""

    name: str
    scale: TargetMap | None
    classes: np.ndarray | None
    mean: np.ndarray  # (n_graphs,) on the scale that is learned
    std: np.ndarray  # (n_graphs,)
    chances: np.ndarray | None  # (n_graphs, n_classes)
    known: np.ndarray  # (n_graphs,) measured values, of classes -1 and 1, NaN where none is

    def limits(self, wanted: Condition) -> tuple[np.ndarray, np.ndarray]:
        """Return the limits that standardised measurements must lie between, (n_graphs,) each.

        Where the value is known, they are those that all or none lie between.
        """
        if self.classes is None:
            low, high, holds = self._range(wanted)
        else:
            low, high, holds = self._class(wanted)
        there = ~np.isnan(self.known)
        low = np.where(there, np.where(holds, -math.inf, 0.0), low)
        return low, np.where(there, np.where(holds, math.inf, 0.0), high)

    def _range(self, wanted: Condition) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        low = _place(wanted.low, self.scale, before=wanted.includes)
        high = _place(wanted.high, self.scale, before=not wanted.includes)
        own = _ROUNDING if wanted.includes else -_ROUNDING
        near = [own * max(1.0, abs(x)) if math.isfinite(x) else 0.0 for x in (low, high)]
        holds = (low - near[0] < self.known) & (self.known < high + near[1])
        return (low - self.mean) / self.std, (high - self.mean) / self.std, holds

    def _class(self, wanted: Condition) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Limits of the decision value that have the calibrated probability of the class."""
        assert self.classes is not None
        assert self.chances is not None
        code = list(map(str, self.classes.tolist())).index(wanted.text)
        end, free = scipy.special.ndtri(self.chances[:, code]), np.full(len(self.mean), math.inf)
        holds = (self.known > 0) == (code > 0)
        return (-free, end, holds) if code == 0 else (-end, free, holds)


def _place(end: float, scale: TargetMap | None, before: bool) -> float:
    """Return where the values up to a limit end on the scale, ``before`` the limit or after it."""
    if scale is None or math.isinf(end):
        return end
    least, most = scale.inverse(np.array([-_FAR, _FAR])).tolist()
    if end < least or (end == least and before):
        return -math.inf
    if end > most or (end == most and not before):
        return math.inf
    return float(scale.forward(np.array([end]))[0])


def panel_outlooks(
    model: FittedPanel, found: PanelPredictions, known: np.ndarray | None
) -> tuple[list[Outlook], np.ndarray]:
    """Return outlooks of all endpoints and their correlations, with the noise of measurements.

    ``known`` (n_graphs, n_endpoints) are measured cells on the scales that are learned.
    """
    assert found.variance is not None
    assert found.covariance is not None
    std = np.sqrt(found.variance)
    outlooks = []
    for k, end in enumerate(model.endpoints):
        chances = None if end.classes is None else end.probabilities(found.mean[:, k])
        own = np.full(len(std), math.nan) if known is None else known[:, k]
        scale = end.record.scale
        outlooks.append(
            Outlook(end.name, scale, end.classes, found.mean[:, k], std[:, k], chances, own)
        )
    correlation = found.covariance / (std[:, :, None] * std[:, None])
    own_places = np.arange(std.shape[1])
    correlation[:, own_places, own_places] = 1.0
    return outlooks, correlation


def single_outlook(model: FittedModel, found: Predictions) -> tuple[list[Outlook], np.ndarray]:
    """Return the outlook of the endpoint of a model of one, and its correlation with itself."""
    record, n = model.training.record, len(found.mean)
    std = np.ones(n) if found.variance is None else np.sqrt(found.variance)
    chances = None if model.classes is None else found.probabilities
    own = Outlook(
        _name_of(model),
        record.scale,
        model.classes,
        found.mean[:, 0],
        std,
        chances,
        np.full(n, math.nan),
    )
    return [own], np.ones((n, 1, 1))


def _name_of(model: FittedModel) -> str:
    """Return the name of the endpoint of a model of one."""
    name = model.training.record.name
    return "target" if name is None else name


# --- normal variables between limits --------------------------------------------------------------


def between(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the probability that standard normal variables lie between limits."""
    flipped = low > 0  # differences of small numbers keep their digits
    shares: np.ndarray = np.where(
        flipped,
        scipy.special.ndtr(-low) - scipy.special.ndtr(-high),
        scipy.special.ndtr(high) - scipy.special.ndtr(low),
    )
    return shares


def box_probability(low: np.ndarray, high: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """Return the probability that normal variables lie between limits, all at once.

    Of one and two variables it is exact; of more it is a sum over a lattice of points, the same in
    every call, with an error of some 1e-4.

    Parameters
    ----------
    low, high : ndarray, shape (n, n_variables)
        Of standardised variables.
    correlation : ndarray, shape (n, n_variables, n_variables)

    Returns
    -------
    ndarray, shape (n,)
    """
    size = low.shape[1]
    if size == 1:
        return between(low[:, 0], high[:, 0])
    if size == 2:
        x, y, own = (low[:, 0], high[:, 0]), (low[:, 1], high[:, 1]), correlation[:, 0, 1]
        corners = _both_below(x[1], y[1], own) - _both_below(x[0], y[1], own)
        corners -= _both_below(x[1], y[0], own) - _both_below(x[0], y[0], own)
        within: np.ndarray = np.clip(corners, 0.0, between(low, high).min(axis=1))
        return within
    parts = [slice(start, start + _BLOCK) for start in range(0, len(low), _BLOCK)]
    return np.concatenate(
        [np.empty(0), *(_over_lattice(low[p], high[p], correlation[p]) for p in parts)]
    )


def _both_below(x: np.ndarray, y: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """Return P(X < x, Y < y), by Owen's function (Owen 1956, eq. 2.1)."""
    x, y = (np.clip(z, -_FARTHEST, _FARTHEST) for z in (x, y))
    x, y = (np.where(np.abs(z) < 1e-100, 1e-100, z) for z in (x, y))
    aside = np.sqrt(np.maximum(1.0 - correlation**2, 1e-16))
    apart = np.where(x * y > 0, 0.0, 0.5)
    first = scipy.special.owens_t(x, (y / x - correlation) / aside)
    other = scipy.special.owens_t(y, (x / y - correlation) / aside)
    middle = 0.5 * (scipy.special.ndtr(x) + scipy.special.ndtr(y))
    found: np.ndarray = middle - first - other - apart
    return found


def _over_lattice(low: np.ndarray, high: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """Return probabilities by conditioning one variable after the other (Genz 1992).

    The variables with the least room come first, as errors are smaller then.
    """
    n, size = low.shape
    order = np.argsort(between(low, high), axis=1, kind="stable")
    low, high = (np.take_along_axis(ends, order, axis=1) for ends in (low, high))
    rows = np.arange(n)[:, None, None]
    among = correlation[rows, order[:, :, None], order[:, None]]
    factor = np.linalg.cholesky(among + 1e-9 * np.eye(size))
    points = _lattice(size - 1)
    found = np.ones((n, _N_POINTS))
    drawn: list[np.ndarray] = []
    for k in range(size):
        shift = sum((factor[:, k, j, None] * own for j, own in enumerate(drawn)), np.zeros((n, 1)))
        ends = [
            scipy.special.ndtr((x[:, k, None] - shift) / factor[:, k, k, None]) for x in (low, high)
        ]
        room = ends[1] - ends[0]
        found *= room
        if k < size - 1:
            at = np.clip(ends[0] + points[k] * room, 1e-300, 1.0 - 1e-16)
            drawn.append(scipy.special.ndtri(at))
    shares: np.ndarray = found.mean(axis=1)
    return shares


def _lattice(size: int) -> np.ndarray:
    """Return evenly spread points of the unit cube, (size, n_points).

    Steps are powers of the root of ``x ** (size + 1) = x + 1``, which extends the golden ratio.
    """
    root = 1.5
    for _ in range(60):  # to convergence
        root = (1.0 + root) ** (1.0 / (size + 1))
    steps = root ** -np.arange(1.0, size + 1.0)
    return np.abs(2.0 * (np.outer(steps, np.arange(1, _N_POINTS + 1)) % 1.0) - 1.0)
