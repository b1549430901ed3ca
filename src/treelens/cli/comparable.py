"""What two models have in common: the task, the scale, the target, the classes, the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from treelens.cli.console import InputError, counted

if TYPE_CHECKING:
    from treelens.cli.data import GraphData
    from treelens.estimators.files import AnyModel

Pair = tuple["GraphData", "GraphData"]
_CLASSES_IN_A_MESSAGE = 8
# They ask about all classes of a model, and so about others where those differ.
SCORES_OF_OWN_CLASSES = ("roc_auc", "pr_auc", "recall", "precision", "log_loss")


def checked_task(models: list[AnyModel], drawn: bool) -> str | None:
    """What both models predict, ``"regression"`` or None for classes, or an error.

    ``drawn``: whether a page of it is wanted.
    """
    from sklearn.base import is_regressor

    of_numbers = [is_regressor(model) for model in models]
    if of_numbers[0] != of_numbers[1]:
        numbers, classes = ("A", "B") if of_numbers[0] else ("B", "A")
        raise InputError(
            f"{numbers} predicts numbers and {classes} classes, so they cannot be compared: take "
            "two models of the same target."
        )
    if of_numbers[0]:
        return "regression"
    _check_classes(models, drawn)
    return None


def common_scale(models: list[AnyModel], task: str | None) -> str | None:
    """The scale that both models of numbers learned on, by name."""
    from treelens.cli.predict import learned_scale

    if task != "regression":
        return None
    names = [None if (s := learned_scale(model)) is None else s.name for model in models]
    if names[0] != names[1]:
        raise InputError(
            f"A learned on the scale {names[0] or 'of the table'}, B on {names[1] or 'the plain'} "
            "one: their errors cannot be compared. Fit both with the same --transform."
        )
    return names[0]


def common_target(
    models: list[AnyModel], data: str, note: Callable[[str], None]
) -> str | None:  # fmt: skip
    """The column that the models were fitted to; None where neither says, or data has none."""
    from treelens.cli.sources import kind_of

    recorded = [None if (r := m.recipe_) is None or r.table is None else r.table.target
                for m in models]  # fmt: skip
    names = list(dict.fromkeys(name for name in recorded if name is not None))
    if not names or kind_of(data) not in ("table", "sdf"):
        return None
    if len(names) > 1:
        raise InputError(
            f"A was fitted to the column {recorded[0]!r} and B to {recorded[1]!r}: say with "
            f"--target COLUMN which one of {data} holds the truth for both."
        )
    if names[0].casefold() != "label":
        note(f"the target is {names[0]!r}, as the models were fitted; --target names another.")
    return names[0]


def same_classes(models: list[Any]) -> bool:
    """Whether two classifiers know the same classes."""
    return set(known_classes(models[0])) == set(known_classes(models[1]))


def known_classes(model: Any) -> list[str]:
    """The classes of a model as texts: a file may hold them as another kind."""
    return [str(name) for name in model.classes_.tolist()]


def _check_classes(models: list[AnyModel], drawn: bool) -> None:
    """Something must be common; effects and probabilities on a page speak for the same classes."""
    of_a, of_b = (known_classes(model) for model in models)
    known = f"A knows the classes {listed(of_a)} and B {listed(of_b)}"
    if not set(of_a) & set(of_b):
        raise InputError(
            f"{known}, none of them common: nothing can be compared. Take two models of the same "
            "target."
        )
    if drawn and not same_classes(models):
        raise InputError(
            f"--out: {known}, so what their fragments and probabilities speak for cannot be "
            "compared. Leave --out away to compare how often each is right about the classes in "
            "common."
        )


def rows_in_both(a: GraphData, b: GraphData) -> Pair:
    """The rows that both readings have a molecule for."""
    import numpy as np

    _, in_a, in_b = np.intersect1d(a.rows, b.rows, return_indices=True)
    return a.pick(in_a), b.pick(in_b)


def rows_of_common_classes(
    models: list[AnyModel], rows: Pair, note: Callable[[str], None]
) -> Pair:  # fmt: skip
    """The rows that both models could be right about, and in words what becomes of the others."""
    import numpy as np

    truth = rows[0].y
    assert truth is not None
    of_a, of_b = (known_classes(model) for model in models)
    common = [name for name in of_a if name in of_b]
    shared = np.isin(truth.astype(str), common)
    if not shared.any():
        raise InputError(
            f"{rows[0].target_name!r} holds {listed(sorted(set(truth.astype(str).tolist())))}, "
            f"and the classes that both models know are {listed(common)}: nothing can be compared. "
            "Name another column with --target."
        )
    n_others = int((~shared).sum())
    if not same_classes(models):
        note(_words_on_classes(of_a, of_b, common, n_others))
        chosen = np.flatnonzero(shared)
        return rows[0].pick(chosen), rows[1].pick(chosen)
    if n_others:
        note(
            f"{counted(n_others, 'graph')} of a class that the models do not know: both count as "
            "wrong there."
        )
    return rows


def _words_on_classes(of_a: list[str], of_b: list[str], common: list[str], n_others: int) -> str:
    alone = [
        f"only {name} knows {listed(left)}"
        for name, left in (
            ("A", [c for c in of_a if c not in common]), ("B", [c for c in of_b if c not in common])
        )
        if left
    ]  # fmt: skip
    return (
        f"the models know different classes: {', '.join(alone)}. They are compared on graphs of "
        f"the classes {listed(common)}; {counted(n_others, 'graph')} of others left out. ROC AUC, "
        "PR AUC and log loss are not given: they would be about different classes."
    )


def listed(names: list[str]) -> str:
    """The first of some classes in words."""
    shown = ", ".join(map(repr, names[:_CLASSES_IN_A_MESSAGE]))
    more = len(names) - _CLASSES_IN_A_MESSAGE
    return f"{shown} and {more} more" if more > 0 else shown
