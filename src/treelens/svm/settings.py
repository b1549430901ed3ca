"""What a ``GraphSVC`` is asked for: the grid behind "auto", values and splits, checked."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import RepeatedStratifiedKFold

from treelens._sklearn_compat import check_sample_weight
from treelens.graphs.targets import check_kind
from treelens.kernels.table import KERNELS, check_kernel
from treelens.models.thresholds import has_rare_class
from treelens.patterns.histograms import PatternHistograms
from treelens.svm.search import Split, repetitions_for

# What "auto" stands for. Wide enough that the choice is rarely at an edge.
AUTO_KERNELS = ("wwl", "tanimoto-rbf")
AUTO_DEPTHS = (1, 2, 3, 4, 5, 6)
AUTO_GAMMAS = (0.1, 1.0, 3.0, 10.0)
AUTO_CS = (0.1, 1.0, 3.0, 10.0, 100.0)

_NOT_NUMBERS = (
    "y holds values that are not numbers: a regressor needs one number per graph. For classes "
    "there are GraphClassifier and StreamingGraphClassifier."
)


def inner_splits(cv: Any, codes: np.ndarray, classes: np.ndarray, seed: int) -> list[Split]:
    """Splits of the training graphs: the user's, or stratified folds, repeated for small sets."""
    if not isinstance(cv, Integral):
        return _checked_splits(cv.split(codes, codes), codes)
    smallest = int(np.bincount(codes).min())
    rare = classes.tolist()[int(np.bincount(codes).argmin())]
    if smallest < 2:
        raise ValueError(
            f"Class {rare!r} has one member: cross-validation needs at least 2 of every class. "
            "Drop the class, merge it with another or collect more of it."
        )
    n_folds = min(int(cv), smallest)
    if n_folds < int(cv):
        warnings.warn(
            f"Class {rare!r} has {smallest} members, fewer than cv={cv} folds: "
            f"cross-validating with {n_folds} folds, so that each holds one of them.",
            UserWarning,
            stacklevel=3,
        )
    splitter = RepeatedStratifiedKFold(
        n_splits=n_folds, n_repeats=repetitions_for(len(codes)), random_state=seed
    )
    return list(splitter.split(codes, codes))


def check_numbers(y: Any, n_graphs: int) -> np.ndarray:
    """The targets of a regression as floats, or an error that says what is wrong with them."""
    if y is None:
        raise ValueError("A regressor needs values: call fit(graphs, y).")
    check_kind(y)
    try:
        values = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(_NOT_NUMBERS) from None
    if values.ndim != 1:
        raise ValueError(
            f"y must be one value per graph, one-dimensional; got shape {values.shape}."
        )
    if len(values) != n_graphs:
        raise ValueError(
            f"There are {n_graphs} graphs but {len(values)} values in y: give one each."
        )
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        raise ValueError(
            f"y holds NaN or infinity for {len(wrong)} graphs, the first at position {wrong[0]}: "
            "drop those graphs or give them a value."
        )
    largest, spread = float(np.abs(values).max(initial=0.0)), float(np.ptp(values))
    if largest > 1e100 or 0.0 < spread < 1e-100:
        raise ValueError(
            f"The values of y reach {largest:.3g} and differ by {spread:.3g}: rescale them, their "
            "squares cannot be computed with."
        )
    return values


def first_no_number(y: np.ndarray) -> tuple[int, str] | None:
    """The first value that is no finite number: its position, and words about it.

    Examples
    --------
    >>> first_no_number(np.array([1.0, np.nan]))
    (1, 'y holds nan, which is no number')
    >>> first_no_number(np.array(["1.5", "< 2"]))
    (1, "y holds '< 2', which is no number")
    """
    if y.dtype.kind in "iubf":
        suspects = np.flatnonzero(~np.isfinite(y)).tolist()
    else:
        suspects = list(range(len(y)))
    for position in suspects:
        value = y[position].item() if isinstance(y[position], np.generic) else y[position]
        if not _is_finite(value):
            return position, f"y holds {value!r}, which is no number"
    return None


def refuse_classes(y: np.ndarray) -> None:
    """Raise where texts are the targets and none is a number: dropping some would not help."""
    if y.dtype.kind in "iubf":
        return
    values = y.tolist()
    if any(isinstance(v, str) and v.strip() for v in values) and not any(map(_is_finite, values)):
        raise ValueError(_NOT_NUMBERS)


def _is_finite(value: Any) -> bool:
    try:
        return bool(np.isfinite(float(value)))
    except (TypeError, ValueError):
        return False


def check_weights(sample_weight: Any, n_graphs: int) -> np.ndarray:
    """Weights of graphs, one on average, or an error that says what is wrong with them."""
    if n_graphs < 2:
        raise ValueError("There is 1 graph: a Gaussian process needs at least 2 to learn from.")
    weights = check_sample_weight(sample_weight, np.empty((n_graphs, 1)), dtype=np.float64)
    if not (weights > 0).all():
        raise ValueError("sample_weight must be above 0 everywhere: drop graphs of no weight.")
    if weights.max() / weights.min() > 1e6:
        warnings.warn("sample_weight spans more than six powers of ten.", UserWarning, stacklevel=3)
    return weights / weights.mean()


def _checked_splits(splits: Iterable[Any], codes: np.ndarray) -> list[Split]:
    """What a splitter of the user's gave, or an error where a machine could not be fitted."""
    checked = [(np.asarray(train), np.asarray(validation)) for train, validation in splits]
    for number, (train, validation) in enumerate(checked):
        if len(np.unique(codes[train])) < 2 or not len(validation):
            raise ValueError(
                f"Split {number} of cv has {len(np.unique(codes[train]))} classes among its "
                f"{len(train)} training graphs and {len(validation)} validation graphs: at least "
                "2 and 1 are needed. StratifiedKFold keeps every class in every part."
            )
    if not checked:
        raise ValueError("cv gave no split at all: at least one is needed.")
    held_out = np.concatenate([validation for _, validation in checked])
    if len(np.unique(codes[held_out])) < len(np.unique(codes)):
        raise ValueError(
            "The splits of cv never hold out a graph of some class, so its probability cannot be "
            "estimated. StratifiedKFold keeps every class in every part."
        )
    return checked


def resolved_scoring(scoring: str, codes: np.ndarray) -> str:
    """What "auto" stands for: accuracy, unless a class is so rare that nobody need name it.

    Examples
    --------
    >>> resolved_scoring("auto", np.array([0, 0, 1])), resolved_scoring("auto", np.arange(9) // 8)
    ('accuracy', 'roc_auc')
    """
    if scoring != "auto":
        return scoring
    if not has_rare_class(codes):
        return "accuracy"
    return "roc_auc" if codes.max() == 1 else "balanced_accuracy"


def resolved_class_weight(class_weight: Any, scoring: str, codes: np.ndarray) -> Any:
    """What "auto" stands for: "balanced" with a rare class, but not for a score that ignores it."""
    if not (isinstance(class_weight, str) and class_weight == "auto"):
        return class_weight
    balanced = scoring in ("auto", "balanced_accuracy") and has_rare_class(codes)
    return "balanced" if balanced else None


def rarest_class(classes: np.ndarray, codes: np.ndarray) -> dict[str, Any] | None:
    """The class that made "auto" balance, and its share, as plain data; None where none is rare."""
    if not has_rare_class(codes):
        return None
    counts = np.bincount(codes)
    rarest = int(counts.argmin())
    return {"class": classes.tolist()[rarest], "share": float(counts[rarest] / len(codes))}


def warn_if_one_class_is_all(held_out: np.ndarray, classes: np.ndarray) -> None:
    """``held_out``: class codes that were predicted for graphs held out in the search."""
    if len(np.unique(held_out)) == 1:
        warnings.warn(
            f"The model puts every graph that was held out into the class "
            f"{classes.tolist()[held_out[0]]!r}: it tells nothing apart, and its accuracy is the "
            "share of that class. Its decision values may still rank graphs (see the ROC AUC); "
            "class_weight='balanced' makes it name rare classes.",
            UserWarning,
            stacklevel=4,
        )


def warn_if_nothing_shared(histograms: PatternHistograms) -> None:
    if not (histograms.support >= 2).any():
        warnings.warn(
            "Nothing to learn: no two training graphs share a pattern. The weights are uniform and "
            "predictions hardly more than a guess. Do the node labels name single nodes instead of "
            "their kinds?",
            UserWarning,
            stacklevel=4,
        )


def listed_kernels(kernel: str | Sequence[str]) -> list[str]:
    if isinstance(kernel, str):
        return list(AUTO_KERNELS) if kernel == "auto" else [kernel]
    if not len(kernel):
        raise ValueError(f"kernel must be 'auto' or among {', '.join(KERNELS)}; got {kernel!r}.")
    for name in kernel:
        check_kernel(name)
    return list(kernel)


def listed(
    value: Any, auto: Sequence[Any], name: str, kind: Any, least: int, positive: bool = False
) -> list[Any]:
    """A parameter that may be "auto", one number or several, as a list of numbers."""
    if isinstance(value, str):
        return list(auto)
    values = [value] if isinstance(value, kind) else list(value)
    if not values or not all(
        isinstance(v, kind) and least <= v < np.inf and (v > 0 or not positive) for v in values
    ):
        numbers = "whole numbers" if kind is Integral else "numbers"
        bound = f"above {least}" if positive else f"of at least {least}"
        raise ValueError(f"{name} must be 'auto' or finite {numbers} {bound}, got {value!r}.")
    return values
