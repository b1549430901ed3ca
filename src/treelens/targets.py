"""All that is known of the targets: values or classes, limits, noise, weights, and their scale."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from treelens.array_checks import LARGEST, is_frame
from treelens.errors import GraphDataError
from treelens.maps import Logarithm, Logit, SmoothScores, TargetMap

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, DTypeLike

_SIGNS: dict[Any, int] = {"<": -1, "=": 0, ">": 1, -1: -1, 0: 0, 1: 1}
_WIDE_RANGE_OF_WEIGHTS = 1e6
_LARGEST_EXACT = 2.0**53  # from here on, some whole numbers are no floats
# Of values at an end of the range that are likely limits; see likely_limits.
_FEWEST_DISTINCT, _FEWEST_AT_END, _SHARE_AT_END, _TIMES_USUAL = 20, 5, 0.03, 3
_NEARLY_ALL = 90.0  # percent: the largest value of percentages is most often above


# Names of maps that users give; without one, or with "auto", it is chosen in fit.
TRANSFORMS = ("auto", "none", "log10", "ln", "logit", "normal_scores")


def transform_named(name: object) -> str | None:
    """Return the name of a transform, None for ``"auto"``; an error names those that there are."""
    if name is None or (isinstance(name, str) and name == "auto"):
        return None
    if not isinstance(name, str) or name not in TRANSFORMS:
        raise ValueError(f"transform must be one of {', '.join(TRANSFORMS)}; got {name!r:.80}.")
    return name


def map_named(name: str | None, values: np.ndarray) -> TargetMap | None:
    """Return the map of a transform for some values; None where numbers are learned as they are.

    Logarithms are known by their names. Bounds of logits are 0 and 1 where all values are between
    these, else 0 and 100; normal scores are learned from the values.
    """
    if name is None or name == "none":
        return None
    if name in Logarithm.BASES:
        return Logarithm(name)
    known = values[np.isfinite(values)]
    if name == "logit":
        return Logit(0.0, 1.0 if len(known) and known.max() <= 1.0 else 100.0)
    scores = SmoothScores.fit(known, *natural_bounds(known))
    if scores is None:
        raise GraphDataError("transform='normal_scores' needs values that differ: leave it out.")
    return scores


def natural_bounds(values: np.ndarray) -> tuple[float, float]:
    """Return 0 where no value is below it, and 100 where values look like percentages."""
    low = 0.0 if len(values) and values.min() >= 0.0 else -LARGEST
    percentages = low == 0.0 and _NEARLY_ALL < values.max() <= 100.0
    return low, 100.0 if percentages else LARGEST


@dataclass(frozen=True)
class TargetRecord:
    """What a model keeps of its targets besides their values."""

    name: str | None = None  # the column
    unit: str | None = None  # as the column has it
    # The scale that numbers are learned on: applied to y in fit, inverted in predict. None where it
    # is that of the values.
    scale: TargetMap | None = None
    chosen: bool = False  # whether the scale, or to have none, was chosen in fit

    @property
    def transform(self) -> str | None:
        """The name of the scale."""
        return None if self.scale is None else self.scale.name

    @property
    def reported(self) -> Logarithm | None:
        """The scale that scores are reported on: logarithms that the user asked for, else none."""
        return self.scale if isinstance(self.scale, Logarithm) and not self.chosen else None

    @property
    def hidden(self) -> TargetMap | None:
        """The scale, where results go back from it to the units of the values."""
        return self.scale if self.reported is None else None

    def to_plain(self) -> dict[str, Any]:
        """Return the record as plain data."""
        return {
            "name": self.name,
            "unit": self.unit,
            "transform": self.transform,
            "scale": None if self.scale is None else self.scale.in_words,
            "reported": None if self.reported is None else self.reported.name,
            "chosen": self.chosen,
        }

    @property
    def in_words(self) -> str | None:
        """The name with its unit and transform; None where there is no name."""
        if self.name is None:
            return None
        in_name = self.unit is None or self.unit in self.name
        words = f"{self.name!r}" + ("" if in_name else f" ({self.unit})")
        return words if self.reported is None else f"{self.transform} of {words}"


class Endpoint(NamedTuple):
    """One column among several targets."""

    name: str
    has_classes: bool
    unit: str | None = None
    transform: str | None = None  # as of Targets; of numbers


class Targets:
    """Values or classes to learn from, with all that is known of them.

    Indexing by integers, slices and masks selects values together with their limits, noise and
    weights, so scikit-learn's splitters, ``cross_val_score`` and ``permutation_test_score`` take
    them. ``numpy.asarray`` gives the values alone.

    Parameters
    ----------
    y : array-like, shape (n_graphs,) or (n_graphs, n_endpoints)
        Numbers, in their units, or classes of any kind. With several columns, one for each
        endpoint, NaN or None where it was not measured. A column of texts, booleans or of pandas'
        categories holds classes.
    limits : array-like of the shape of y, or "auto", optional
        ``">"`` (or 1) where the value is known only to lie above ``y``, ``"<"`` (or -1) where it
        lies below, ``"="`` (or 0) where ``y`` is the value. ``"auto"``: the smallest or the largest
        value, where 3 % of the graphs or more share it as they share no other, as at the end of an
        assay's range.
    noise : array-like of the shape of y, optional
        Standard deviations of the measurements, in the units of ``y``; NaN stands for the median
        of those that are trained on. Of several endpoints, a column of NaN is one of which no
        noise is known.
    sample_weight : array-like of the shape of y, optional
        The noise variance of a value is divided by its weight. Not with ``noise``.
    transform : {"auto", "none", "log10", "ln", "logit", "normal_scores"}, default="auto"
        The scale that numbers are learned on; predictions are in the units of ``y``. ``"logit"`` is
        for shares from 0 to 1 or percentages, ``"normal_scores"`` for any numbers, which count by
        rank. ``"auto"``: in ``fit``, the one under which training graphs that are left out have the
        largest density, where the gain is clear; else none.
    name, unit : str, optional
        What is measured, and in which unit; for reports.

    Attributes
    ----------
    values : ndarray, shape (n_graphs,) or (n_graphs, n_endpoints)
    endpoints : tuple of str, or None
        Names of the columns; None where there is one endpoint.
    columns : tuple of Endpoint, or None
        Of each column its name and unit, and whether it holds classes.
    limits : ndarray of int, of the shape of values, or None
        1 for lower limits, -1 for upper ones, 0 for exact values; None if all are exact.
    noise, sample_weight : ndarray of float, of the shape of values, or None
    transform : str or None
        As given; None where it is chosen in ``fit``.
    record : TargetRecord
        Name, unit and scale.

    Examples
    --------
    >>> import treelens as tl
    >>> y = tl.Targets([5.1, 6.0, 7.2], limits=["=", ">", "="], name="pIC50")
    >>> y
    Targets(3 values of 'pIC50', 1 limit)
    >>> y[1:].limits.tolist(), y[[0, 2]].limits is None
    ([1, 0], True)
    """

    __slots__ = (
        "_scale",
        "columns",
        "limits",
        "name",
        "noise",
        "sample_weight",
        "transform",
        "unit",
        "values",
    )

    columns: tuple[Endpoint, ...] | None

    def __init__(
        self,
        y: object,
        *,
        limits: object = None,
        noise: object = None,
        sample_weight: object = None,
        transform: str | None = None,
        name: str | None = None,
        unit: str | None = None,
    ) -> None:
        if isinstance(y, Targets):
            raise TypeError("y holds Targets already: index them, or make new ones of y.values.")
        if noise is not None and sample_weight is not None:
            raise ValueError("Give noise or sample_weight, not both: both say how sure a value is.")
        self.values, self.columns = _columns(y)
        if isinstance(limits, str) and limits == "auto":
            limits = self._likely_limits()
        self.limits = self._beside("limits", limits, limit_signs)
        self.noise = self._beside("noise", noise, standard_deviations)
        self.sample_weight = self._beside("sample_weight", sample_weight, _positive_weights)
        self._check_classes()
        if self.columns:
            self.columns = _with_transforms(self.columns, transform)
            transform = None
        self.transform, self.unit = transform_named(transform), unit
        self.name = _name_in(y) if name is None else name
        self._scale: TargetMap | None = None

    def _likely_limits(self) -> np.ndarray | None:
        """Return likely limits of each endpoint of numbers."""
        if self.columns is None:
            return likely_limits(self.numbers())
        signs = np.zeros(self.values.shape, dtype=np.int64)
        for k, each in enumerate(self.columns):
            has = self.measured[:, k]
            if not each.has_classes:
                found = likely_limits(self.values[has, k].astype(float))
                signs[has, k] = 0 if found is None else found
        return signs

    def _beside(
        self, name: str, given: object, read: Callable[[Any, int], np.ndarray | None]
    ) -> np.ndarray | None:
        """Return what is known of the values besides, read column by column."""
        n = len(self.values)
        if given is None or self.columns is None:
            return None if given is None else read(given, n)
        shape = len(self.values), len(self.columns)
        table = given.to_numpy(dtype=object) if hasattr(given, "to_numpy") else np.asarray(given)
        if table.shape != shape:
            raise ValueError(
                f"{name} has the shape {table.shape}, expected {shape}: one for each cell of y."
            )
        gap = {"limits": 0, "noise": np.nan, "sample_weight": 1.0}[name]
        cells = [objects([gap if is_nothing(x) else x for x in own]) for own in table.T.tolist()]
        columns = [read(own, n) for own in cells]
        known = [np.full(n, gap) if own is None else own for own in columns]
        return None if all(own is None for own in columns) else np.stack(known, axis=1)

    def _check_classes(self) -> None:
        """Raise where limits or noise are given of an endpoint of classes."""
        for k, each in enumerate(self.columns or ()):
            limited = self.limits is not None and bool(self.limits[:, k].any())
            noisy = self.noise is not None and not bool(np.isnan(self.noise[:, k]).all())
            if each.has_classes and (limited or noisy):
                raise GraphDataError(
                    f"limits and noise are of numbers, and {each.name!r} holds classes."
                )

    def endpoint(self, column: int) -> Targets:
        """Return what is known of one endpoint, of the graphs that it was measured of."""
        assert self.columns is not None
        has, each = self.measured[:, column], self.columns[column]
        values = self.values[has, column]
        if not each.has_classes:
            values = np.array([as_number(x) for x in values.tolist()])
        parts = {
            name: None if (part := getattr(self, name)) is None else part[has, column]
            for name in ("limits", "noise", "sample_weight")
        }
        if parts["noise"] is not None and np.isnan(parts["noise"]).all():
            parts["noise"] = None
        return Targets(values, **parts, transform=each.transform, name=each.name, unit=each.unit)

    @classmethod
    def of(cls, y: object, n_graphs: int, *, several: bool = False, **known: Any) -> Targets:
        """Return what ``fit(graphs, y, **known)`` was given as targets, one for each graph.

        ``known`` are ``limits``, ``noise`` and ``sample_weight`` of an array; targets have their
        own, so that giving them twice is an error. ``several``: there may be several endpoints.
        """
        if y is None:
            raise GraphDataError("There is nothing to learn: call fit(graphs, y).")
        given = [name for name, value in known.items() if value is not None]
        if isinstance(y, Targets) and given:
            raise TypeError(
                f"{given[0]} belongs to the targets: give it to Targets(y, {given[0]}=...), or "
                "pass y.values to fit to use none of what the targets hold."
            )
        targets = y if isinstance(y, Targets) else cls(y, **known)
        if len(targets) != n_graphs:
            raise GraphDataError(
                f"There are {n_graphs} graphs but {len(targets)} values in y: give one each."
            )
        if targets.endpoints is not None and not several:
            raise GraphDataError(
                f"y has {len(targets.endpoints)} columns ({', '.join(targets.endpoints)}): "
                "give one, or learn them together with GraphRegressor, GraphClassifier or "
                "GraphPanel."
            )
        return targets

    @property
    def record(self) -> TargetRecord:
        """Name and unit, and the scale, which some transforms learn from the values."""
        if self._scale is not None:
            return TargetRecord(self.name, self.unit, self._scale, chosen=True)
        learned = self.transform in ("logit", "normal_scores")
        values = self.numbers() if learned else np.empty(0)
        return TargetRecord(self.name, self.unit, map_named(self.transform, values))

    def on_scale(self, scale: TargetMap) -> Targets:
        """Return these targets on a scale that was chosen for them."""
        found = self[:]
        found._scale = scale
        return found

    @classmethod
    def of_endpoints(
        cls,
        columns: Sequence[Endpoint],
        cells: Sequence[tuple[np.ndarray, Targets]],
        n_graphs: int,
    ) -> Targets:
        """Return the targets of endpoints, each with the positions of its graphs."""
        classes = any(each.has_classes for each in columns)
        shape = n_graphs, len(columns)
        found = cls._of_columns(
            np.full(shape, np.nan, dtype=object if classes else float), tuple(columns)
        )
        gaps = {"limits": 0, "noise": np.nan, "sample_weight": 1.0}
        for k, (graphs, own) in enumerate(cells):
            found.values[graphs, k] = own.values
            for name, gap in gaps.items():
                if (part := getattr(own, name)) is not None:
                    if getattr(found, name) is None:
                        setattr(found, name, np.full(shape, gap))
                    getattr(found, name)[graphs, k] = part
        return found

    # --- as scikit-learn and numpy see them ----------------------------------------------------

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    @overload
    def __getitem__(self, key: int | np.integer) -> Any: ...
    @overload
    def __getitem__(self, key: slice | Sequence[Any] | np.ndarray | pd.Series) -> Targets: ...
    def __getitem__(
        self, key: int | np.integer | slice | Sequence[Any] | np.ndarray | pd.Series
    ) -> Any:
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
            key = key[0]  # as scikit-learn selects rows
        values = self.values[key]
        if np.ndim(values) < self.values.ndim:
            return values
        parts = {
            name: None if (part := getattr(self, name)) is None else part[key]
            for name in ("limits", "noise", "sample_weight")
        }
        if self.columns is not None:
            found = Targets._of_columns(values, self.columns)
            for name, part in parts.items():
                setattr(found, name, part)
            return found
        found = Targets(values, **parts, transform=self.transform, name=self.name, unit=self.unit)
        found._scale = self._scale
        return found

    @classmethod
    def _of_columns(cls, values: np.ndarray, columns: tuple[Endpoint, ...]) -> Targets:
        """Return targets of several endpoints."""
        targets = cls(np.zeros(len(values)))
        targets.values, targets.columns = values, columns
        return targets

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype) if copy else np.asarray(self.values, dtype=dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def ndim(self) -> int:
        return self.values.ndim

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    def tolist(self) -> list[Any]:
        """Return the values as a list."""
        listed: list[Any] = self.values.tolist()
        return listed

    def __repr__(self) -> str:
        n = len(self)
        if self.endpoints is not None:
            n_cells = int(self.measured.sum())
            words = f"{n_cells} values of {len(self.endpoints)} endpoints of {n} graphs"
            return f"Targets({', '.join([words, *self._parts])})"
        of = "" if self.record.in_words is None else f" of {self.record.in_words}"
        words = f"{n} value{'' if n == 1 else 's'}{of}"
        return f"Targets({', '.join([words, *self._parts])})"

    @property
    def _parts(self) -> list[str]:
        """What is known besides values, in words."""
        parts = [name for name in ("noise", "sample_weight") if getattr(self, name) is not None]
        if self.limits is None:
            return parts
        n_limits = int((self.limits != 0).sum())
        return [f"{n_limits} limit{'' if n_limits == 1 else 's'}", *parts]

    # --- as models learn from them -------------------------------------------------------------

    @property
    def endpoints(self) -> tuple[str, ...] | None:
        """Names of the columns; None where there is one endpoint."""
        return None if self.columns is None else tuple(each.name for each in self.columns)

    @property
    def measured(self) -> np.ndarray:
        """A mask of the cells that have a value, of the shape of the values."""
        if self.values.dtype.kind != "O":
            known: np.ndarray = self.values == self.values  # not NaN
            return known
        has = [not is_nothing(value) for value in self.values.ravel().tolist()]
        return np.array(has, dtype=bool).reshape(self.values.shape)

    @property
    def exact(self) -> np.ndarray:
        """A mask of the values that were measured, not limits."""
        every = np.ones(self.values.shape, dtype=bool)
        return every if self.limits is None else self.limits == 0

    def numbers(self) -> np.ndarray:
        """Return the values as floats; an error names the first that is no finite number."""
        wrong = first_no_number(self.values)
        if wrong is not None:
            raise GraphDataError(
                f"{wrong[1]}, at position {wrong[0]}: correct it, or drop the graph."
            )
        numbers = self.values.astype(np.float64)
        whole = self.values.dtype.kind in "iu" and bool((np.abs(numbers) >= _LARGEST_EXACT).any())
        if whole and len(np.unique(numbers)) < len(np.unique(self.values)):
            warnings.warn(
                "y holds whole numbers from 2**53 on that differ, and are rounded to the same "
                "numbers: subtract what they have in common.",
                UserWarning,
                stacklevel=3,
            )
        return numbers

    def learned(self) -> np.ndarray:
        """Return numbers on the scale that is learned, which is theirs without a transform."""
        return self.numbers_on(self.record.scale)

    def numbers_on(self, scale: TargetMap | None) -> np.ndarray:
        """Return numbers on a scale, such as that of a model; None is their own."""
        numbers = self.numbers()
        if scale is not None:
            numbers = scale.checked(numbers, lambda k: f"the value of graph {k}")
        large = np.flatnonzero(np.abs(numbers) > LARGEST)
        if len(large):
            raise GraphDataError(
                f"y holds {numbers[large[0]]:g}, at position {large[0]}, and numbers up to "
                f"{LARGEST:g} can be learned: correct it, or give y in a larger unit."
            )
        return numbers

    def learned_noise(self) -> np.ndarray | None:
        """Return standard deviations on the scale that is learned; of unknown ones the median.

        They go to the scale by its slope, which says nothing of noise as wide as the values: of a
        logarithm the slope has no bound near 0. A value that is known less well than all of them
        are spread says little, so that none has more noise than that.
        """
        if self.noise is None:
            return None
        if np.isnan(self.noise).all():
            raise GraphDataError("noise: no standard deviation is known. Leave noise out.")
        std, scale = self.noise, self.record.scale
        if scale is not None:
            spread = float(np.std(self.learned()))  # raises where a value is not on the scale
            std = np.minimum(scale.forward_std(self.numbers(), std), spread or np.inf)
        return np.where(np.isnan(std), np.nanmedian(std), std)

    def weights(self) -> np.ndarray:
        """Return sample weights with a mean of one; all are one where none were given."""
        if self.sample_weight is None or not len(self):
            return np.ones(len(self))
        weights = self.sample_weight
        if weights.max() / weights.min() > _WIDE_RANGE_OF_WEIGHTS:
            message = "sample_weight spans more than six powers of ten."
            warnings.warn(message, UserWarning, stacklevel=4)
        scaled: np.ndarray = weights / weights.mean()
        return scaled

    def values_alone(self, learner: str) -> np.ndarray:
        """Return the values for a learner that knows neither limits nor noise nor transforms."""
        parts = {
            "limits": self.limits is not None,
            "noise": self.noise is not None,
            "sample_weight": self.sample_weight is not None,
            "a transform": self.transform not in (None, "none"),
        }
        if has := [part for part, there in parts.items() if there]:
            raise GraphDataError(
                f"{learner} learns from values alone, and these targets have {' and '.join(has)}. "
                "Give it y.learned(): the values, limits among them, on the learned scale."
            )
        return self.values

    def classes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the distinct classes in ascending order, and the code of each graph."""
        plain = self.transform in (None, "none")
        if not (self.limits is None and self.noise is None and plain):
            raise GraphDataError("limits, noise and transforms are of numbers, not of classes.")
        check_class_labels(self.values)
        classes, codes = np.unique(self.values, return_inverse=True)
        _warn_of_similar_names(classes)
        if len(classes) < 2:
            only = classes.tolist()[0]
            raise GraphDataError(f"y holds one class only ({only!r}): two are needed.")
        return classes, codes

    def codes_among(self, classes: np.ndarray) -> np.ndarray:
        """Return positions in ``classes`` of a model; the text "1" stands for the class 1."""
        position: dict[Any, int] = {str(x): code for code, x in enumerate(classes.tolist())}
        position |= {label: code for code, label in enumerate(classes.tolist())}
        labels = self.values.tolist()
        codes = [position.get(label, position.get(str(label), -1)) for label in labels]
        if -1 in codes:
            place = codes.index(-1)
            raise GraphDataError(
                f"y[{place}] is {labels[place]!r}, which is none of the classes of the model, "
                f"{classes.tolist()}. Leave out such graphs, or leave out y."
            )
        return np.array(codes, dtype=np.int64)


# --- checks of what is given ---------------------------------------------------------------------


def _columns(y: object) -> tuple[np.ndarray, tuple[Endpoint, ...] | None]:
    """Return targets as an array and, where there are several columns, what is known of each."""
    parts: Sequence[Any] = ()
    called: list[str] = []
    if is_frame(y):
        called = [str(name) for name in y.columns]
        parts = [y.iloc[:, k] for k in range(len(called))]
    elif isinstance(y, np.ndarray) and y.ndim == 2:
        called = [f"endpoint {k + 1}" for k in range(y.shape[1])]
        parts = list(y.T)
    if len(called) < 2:
        return _one_dimensional(y), None
    if len(set(called)) < len(called):
        raise GraphDataError(f"y has two columns of one name ({', '.join(called)}): rename one.")
    read: list[np.ndarray] = []
    endpoints: list[Endpoint] = []
    for name, column in zip(called, parts, strict=True):
        kind = getattr(column.dtype, "kind", "O")
        cells = [np.nan if is_nothing(x) else x for x in column.tolist()]
        classes = kind == "b" or hasattr(column.dtype, "categories") or _all_words(cells)
        read.append(objects(cells) if classes else _measured(cells, name))
        endpoints.append(Endpoint(name, classes))
    return np.stack(read, axis=1), tuple(endpoints)


def _with_transforms(
    columns: tuple[Endpoint, ...], transform: str | dict[str, str | None] | None
) -> tuple[Endpoint, ...]:
    """Return columns of numbers with the transform that is asked for, of all or by name."""
    by_name = (
        transform
        if isinstance(transform, dict)
        else dict.fromkeys((each.name for each in columns if not each.has_classes), transform)
    )
    numbers = [each.name for each in columns if not each.has_classes]
    if unknown := [name for name in by_name if name not in numbers]:
        raise GraphDataError(
            f"transform names {unknown[0]!r}, which is no column of numbers of y: these are "
            f"{', '.join(numbers) or 'none'}."
        )
    return tuple(
        each
        if each.has_classes
        else each._replace(transform=transform_named(by_name.get(each.name)))
        for each in columns
    )


def _all_words(cells: list[Any]) -> bool:
    """Whether the cells that hold anything hold texts or booleans, none of which is a number."""
    given = [cell for cell in cells if cell == cell]
    words = all(
        isinstance(cell, (bool, np.bool_))
        or (isinstance(cell, str) and math.isnan(as_number(cell)))
        for cell in given
    )
    return bool(given) and words


def _measured(given: list[Any], name: str) -> np.ndarray:
    """Return numbers (n_graphs,), NaN where nothing was measured."""
    numbers = np.array([as_number(cell) for cell in given], dtype=float)
    wrong = [k for k, cell in enumerate(given) if cell == cell and not np.isfinite(numbers[k])]
    if wrong:
        raise GraphDataError(
            f"y holds {given[wrong[0]]!r:.40} in the column {name!r}, at position {wrong[0]}, "
            "which is no number: correct it, or leave it empty."
        )
    return numbers


def _one_dimensional(y: object) -> np.ndarray:
    """Return targets as a one-dimensional array; text stays apart from numbers."""
    if np.ma.isMaskedArray(y) and np.ma.getmaskarray(y).any():
        raise GraphDataError(
            f"y is masked for {np.ma.getmaskarray(y).sum()} graphs: leave them out."
        )
    if is_frame(y):
        if not len(y.columns):
            raise GraphDataError("y has no column: give one.")
        y = y.iloc[:, 0]
    if isinstance(y, (set, frozenset, dict, str, bytes)):
        raise GraphDataError(f"y is a {type(y).__name__}: expected a list or an array of values.")
    try:
        array = np.array(y)
    except ValueError as error:
        raise GraphDataError(
            "y holds values of several parts, not all of one length: give one class or number for "
            "each graph."
        ) from error
    if array.dtype.kind in "US" and isinstance(y, (list, tuple)):
        # numpy has made text of numbers, of NaN and of bytes in a list with text
        alike = any(all(isinstance(value, kind) for value in y) for kind in (str, bytes))
        array = array if alike else objects(y)
    if array.dtype.kind in "cMm":  # numpy would convert these in silence
        what = "complex numbers" if array.dtype.kind == "c" else "dates or time spans"
        raise GraphDataError(f"y holds {what}: expected real numbers or classes.")
    if array.ndim != 1:
        raise GraphDataError(
            f"There are {array.size} values in y, of shape {array.shape}: give one for each "
            "graph, one-dimensional."
        )
    return array


def objects(values: Iterable[Any]) -> np.ndarray:
    """Return an array of the values as they are."""
    listed = list(values)
    return np.fromiter(listed, dtype=object, count=len(listed))


def _name_in(y: object) -> str | None:
    """Return the name of a Series or of the only column of a DataFrame."""
    name = y.columns[0] if is_frame(y) else getattr(y, "name", None)
    return name if isinstance(name, str) else None


def limit_signs(limits: object, n_graphs: int) -> np.ndarray | None:
    """Return 1 for lower limits, -1 for upper ones, 0 for exact values; None if all are exact."""
    if limits is None:
        return None
    given = np.asarray(limits)
    if given.shape != (n_graphs,):
        got = f"{limits!r:.40}" if given.ndim == 0 else f"an array of shape {given.shape}"
        raise ValueError(
            f"limits: give a list of '<', '=' or '>' for each of the {n_graphs} graphs; got {got}."
        )
    signs = [_SIGNS.get(x) if isinstance(x, (str, int, float)) else None for x in given.tolist()]
    if None in signs:
        wrong = signs.index(None)
        raise ValueError(
            "limits must be '<' (-1), '=' (0) or '>' (1) for each graph; got "
            f"{given.tolist()[wrong]!r:.80} at position {wrong}."
        )
    return np.array(signs, dtype=np.int64) if any(signs) else None


def likely_limits(values: np.ndarray) -> np.ndarray | None:
    """Return 1 and -1 at values that are likely the ends of an assay's range, (n_graphs,).

    None where no end is shared by more values than chance and rounding explain: 3 % of them, five
    or more, and three times as many as share any value between the ends.
    """
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) < _FEWEST_DISTINCT:
        return None
    least = max(_FEWEST_AT_END, _SHARE_AT_END * len(values), _TIMES_USUAL * counts[1:-1].max())
    signs = np.zeros(len(values), dtype=np.int64)
    signs[values == distinct[0]] = -int(counts[0] >= least)
    signs[values == distinct[-1]] = int(counts[-1] >= least)
    return signs if signs.any() else None


def likely_limits_in_words(values: np.ndarray, signs: np.ndarray) -> str:
    """Say how many values are at which end of the range, of what :func:`likely_limits` found."""
    ends = [
        f"{np.mean(signs == sign):.0%} of the values are {values[signs == sign][0]:g}, the {which}"
        for sign, which in ((-1, "smallest"), (1, "largest"))
        if (signs == sign).any()
    ]
    return " and ".join(ends)


def standard_deviations(
    noise: object, n_graphs: int, place: Callable[[int], str] = "graph {}".format
) -> np.ndarray:
    """Return standard deviations (n_graphs,) as floats; NaN where one is not known."""
    if isinstance(noise, str) or not np.iterable(noise):
        raise GraphDataError(f"noise: give {n_graphs} standard deviations; got {noise!r:.40}.")
    given = list(noise)
    values = np.array([np.nan if is_nothing(x) else as_number(x) for x in given])
    for position, value in enumerate(given):
        unknown = is_nothing(value) or (isinstance(value, str) and value == "")
        if not unknown and not 0.0 <= values[position] <= LARGEST:
            raise GraphDataError(
                f"noise: a standard deviation is a number from 0 to {LARGEST:g}, but "
                f"{place(position)} has {value!r:.40}. Correct it, or leave it empty."
            )
    if len(values) != n_graphs:
        raise GraphDataError(f"noise: give {n_graphs} standard deviations; got {len(values)}.")
    return values.astype(np.float64)


def _positive_weights(sample_weight: ArrayLike, n_graphs: int) -> np.ndarray:
    """Return sample weights (n_graphs,) as floats above 0."""
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"sample_weight must be {n_graphs} numbers, one for each graph; got "
            f"{sample_weight!r:.80}."
        ) from error
    if weights.ndim == 0:
        weights = np.full(n_graphs, float(weights))
    if weights.shape != (n_graphs,):
        raise ValueError(
            f"sample_weight has the shape {weights.shape}, expected ({n_graphs},): one per graph."
        )
    wrong = np.flatnonzero(~((weights > 0) & (weights <= LARGEST)))
    if len(wrong):
        raise ValueError(
            f"sample_weight must be above 0 and at most {LARGEST:g} everywhere, but graph "
            f"{wrong[0]} has {weights[wrong[0]]:g} ({len(wrong)} such weights): drop graphs of no "
            "weight."
        )
    return weights


def as_number(value: Any) -> float:
    """Return a value as a float; NaN where it is no number."""
    if isinstance(value, str) and "_" in value:  # which float takes for a separator
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def is_nothing(value: object) -> bool:
    """Return whether a value stands for none: None, NaN, NaT or pandas' NA."""
    if value is None or isinstance(value, (bool, np.bool_)):
        return value is None
    differs = value != value
    if np.ndim(differs):  # an array stands for something
        return False
    return differs is value or bool(differs)  # NA compared with anything is NA


def first_no_number(y: np.ndarray) -> tuple[int, str] | None:
    """Return the position of the first value that is no finite number, and words about it."""
    if y.dtype.kind in "iub":
        return None
    values = y.tolist()
    numbers = y if y.dtype.kind == "f" else np.array([as_number(value) for value in values])
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if not len(wrong):
        return None
    if len(wrong) == len(y) and any(isinstance(v, str) and v.strip() for v in values):
        raise GraphDataError("The values of y are not numbers: for classes, use GraphClassifier.")
    return int(wrong[0]), f"y holds {values[wrong[0]]!r:.80}, which is no number"


def first_without_class(y: np.ndarray) -> tuple[int, str] | None:
    """Return the position of the first graph without a class, and words about it."""
    missing = _without_class(y)
    return (missing[0], f"y holds no class ({y[missing[0]]})") if missing else None


def _without_class(y: np.ndarray) -> list[int]:
    """Return the positions of graphs without a class."""
    if y.dtype.kind in "iubU":  # which have no word for nothing
        return []
    return [k for k, value in enumerate(y.tolist()) if is_nothing(value)]


def check_class_labels(y: np.ndarray) -> None:
    """Raise unless every graph has a class, and all classes are of one kind."""
    values = y.tolist()
    if missing := _without_class(y):
        raise GraphDataError(
            f"y holds no class ({y[missing[0]]}) for {len(missing)} graphs, the first at position "
            f"{missing[0]}: give them one, or leave them out."
        )
    if y.dtype.kind == "f" and (y != np.round(y)).any():
        raise GraphDataError("y holds numbers, no classes: use GraphRegressor.")
    first: dict[type | None, Any] = {}  # of text, bytes and all else
    for value in values:
        kind = next((kind for kind in (str, bytes) if isinstance(value, kind)), None)
        first.setdefault(kind, value)
    if len(first) > 1:
        one, other, *_ = first.values()
        raise GraphDataError(
            f"y holds classes of different kinds ({one!r}, {other!r}): convert all classes to one "
            "kind."
        )
    try:
        np.unique(y)
    except (TypeError, ValueError) as error:
        raise GraphDataError(f"The classes in y cannot be sorted: {error}.") from error


def _warn_of_similar_names(classes: np.ndarray) -> None:
    by_name: dict[str, str] = {}
    for name in map(str, classes.tolist()):
        other = by_name.setdefault(name.strip().casefold(), name)
        if other != name:
            message = f"The classes {other!r} and {name!r} differ in capitals or blanks only."
            warnings.warn(message, UserWarning, stacklevel=4)


def positive_code(classes: np.ndarray | None) -> int | None:
    """Return which of two classes effects, scores and suggestions are about.

    The second, as in scikit-learn, unless its name negates that of the first. None for numbers and
    for other counts of classes.

    Examples
    --------
    >>> positive_code(np.array(["no", "yes"])), positive_code(np.array(["active", "inactive"]))
    (1, 0)
    """
    if classes is None or len(classes) != 2:
        return None
    if classes.tolist() == ["+", "-"]:
        return 0
    first, second = (re.sub(r"[\W_]", "", str(name)).casefold() for name in classes.tolist())
    negations = {f"{prefix}{first}" for prefix in ("in", "no", "non", "not", "un")}
    return 0 if first and second in negations else 1
