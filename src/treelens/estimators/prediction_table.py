"""Predictions as a table: values or classes, their uncertainty, and the domain of applicability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_regressor

from treelens.evaluation.metrics import NINETY, class_scores, number_scores
from treelens.evaluation.validation import codes_among
from treelens.gp.domain import expected_error
from treelens.gp.model import FittedGP
from treelens.graphs.chem import reasons
from treelens.graphs.collection import GraphCollection
from treelens.graphs.molecule_table import MoleculeTable
from treelens.graphs.molecules import made_smiles
from treelens.graphs.recipe import Transform, learned_transform
from treelens.models.predictions import Predictions
from treelens.storage.files import harmless

INTERVALS = ("posterior", "scaffold")
DOMAIN_COLUMNS = ("in_domain", "expected_error", "similarity", "nearest", "out_of_vocabulary")


def prediction_table(
    model: Any, graphs: GraphCollection, intervals: str | None = None
) -> pd.DataFrame:
    """Return the predictions of a fitted model, whose columns :func:`table_columns` names.

    The index holds the names of the graphs, where they have any. ``intervals=None``: those that
    were set for the model.
    """
    intervals = intervals or getattr(model, "_intervals", "posterior")
    if intervals != "posterior" and not is_regressor(model):
        raise ValueError("Intervals are those of numbers: a classifier has probabilities.")
    factor = 1.0 if intervals == "posterior" else model._widening(intervals)
    has_domain = isinstance(model.model_, FittedGP)
    found = model._decide(graphs, **({"variance": True} if has_domain else {}))
    scale = learned_transform(model.recipe_) if is_regressor(model) else None
    classes = hasattr(model, "classes_")
    columns = _classes(model, found) if classes else _numbers(found, scale, factor)
    if found.from_covariates is not None and found.from_covariates.shape[1] == 1:
        columns["from_covariates" + _suffix(scale)] = found.from_covariates[:, 0]
    columns["out_of_vocabulary"] = found.out_of_vocabulary
    if found.variance is not None:
        around = model.domain_.around(found.graphs.features, model._n_jobs())
        expected = expected_error(np.sqrt(found.variance), around)
        columns |= {
            "in_domain": model.domain_.holds(expected, around),
            "expected_error" + _suffix(scale): expected,
            "similarity": around.similarity,
            "nearest": around.nearest,
        }
    index = None if graphs.names is None else pd.Index(list(graphs.names), name="name")
    return pd.DataFrame(columns, index=index)[table_columns(model)]


def table_columns(model: Any) -> list[str]:
    """Return the columns of :func:`prediction_table` for a fitted model, in order."""
    scale = learned_transform(model.recipe_) if is_regressor(model) else None
    if hasattr(model, "classes_"):
        columns = ["class", "probability", "decision"]
        columns += [f"probability {c}" for c in model.classes_.tolist()]
    else:
        columns = ["prediction", "std" + _suffix(scale), "lower_90", "upper_90"]
    if getattr(model, "covariates_", []) and len(getattr(model, "classes_", [])) < 3:
        columns.append("from_covariates" + _suffix(scale))
    if not isinstance(model.model_, FittedGP):
        return [*columns, "out_of_vocabulary"]
    error = "expected_error" + _suffix(scale)
    return [*columns, "in_domain", error, "similarity", "nearest", "out_of_vocabulary"]


def file_columns(model: Any) -> list[str]:
    """Return the columns that files of predictions have, in order.

    Instead of the position of the nearest training graph its name (else SMILES) and its value or
    class, where the model keeps them.
    """
    columns, training = table_columns(model), model.model_.training
    if "nearest" not in columns:
        return columns
    place, kept = (
        columns.index("nearest"),
        training.names is not None or training.smiles is not None,
    )
    value = "nearest_class" if hasattr(model, "classes_") else "nearest_value"
    return [*columns[:place], *(["nearest_name", value] if kept else []), *columns[place + 1 :]]


def measured_values(model: Any, positions: np.ndarray) -> np.ndarray:
    """Return values of training graphs in the units of the table, or their classes."""
    targets = model.training.targets[positions]
    if model.classes is not None:
        return model.classes[targets]
    scale = learned_transform(model.recipe)
    return targets if scale is None else scale.inverse(targets)


def _suffix(scale: Transform | None) -> str:
    return "" if scale is None else f"_{scale.name}"


def _numbers(found: Predictions, scale: Transform | None, factor: float) -> dict[str, Any]:
    assert found.variance is not None
    mean, std = found.mean[:, 0], factor * np.sqrt(found.variance)
    inverse = (lambda x: x) if scale is None else scale.inverse
    return {
        "prediction": inverse(mean),
        "std" + _suffix(scale): std,
        "lower_90": inverse(mean - NINETY * std),
        "upper_90": inverse(mean + NINETY * std),
    }


def _classes(model: Any, found: Predictions) -> dict[str, Any]:
    chances, codes = found.probabilities, found.predicted_codes
    assert chances is not None
    everyone = np.arange(len(codes))
    one = found.decisions.shape[1] == 1
    return {
        "class": model.classes_[codes],
        "probability": chances[everyone, codes],
        "decision": found.decisions[:, 0] if one else found.decisions[everyone, codes],
        **{f"probability {c}": chances[:, k] for k, c in enumerate(model.classes_.tolist())},
    }


# --- all rows of a table --------------------------------------------------------------------------


def predict_rows(
    models: Sequence[Any], tables: Sequence[MoleculeTable], prefixes: Sequence[str]
) -> pd.DataFrame:
    """Return predictions of all rows of a table, empty with a ``problem`` where unreadable.

    ``tables`` has the same rows as each model reads them; ``prefixes`` stand before the names of
    each model's columns.
    """
    first = tables[0]
    same_recipe = len({table.graphs.recipe for table in tables}) == 1
    blocks = [_by_row(made_smiles(first.graphs), first)] if same_recipe else []
    for model, table, prefix in zip(models, tables, prefixes, strict=True):
        own = [] if same_recipe else [_by_row(made_smiles(table.graphs), table)]
        own.append(_by_row(_columns_in_files(model, table.graphs), table))
        blocks.append(pd.concat(own, axis=1).add_prefix(prefix))
    body = pd.concat(blocks, axis=1)
    start = 1 if first.table is None else 1 + first.table.first_row
    left: dict[str, Any] = {"row": np.arange(start, start + first.n_rows)}
    taken = {"row", "smiles", "problem", *body.columns}  # a table may use these names itself
    left |= {f"{n} (given)" if n in taken else n: values for n, values in first.ids.items()}
    if first.texts is not None:
        left["smiles"] = first.texts
    problem = pd.Series("", index=range(first.n_rows), dtype="object")
    unreadable = sorted({row for table in tables for row in table.unreadable.tolist()})
    for row, why in reasons(first.texts, unreadable).items():
        problem[row] = why
    return pd.concat([pd.DataFrame(left), body], axis=1).assign(problem=problem)


def _columns_in_files(model: Any, graphs: GraphCollection) -> dict[str, Any]:
    columns = file_columns(model)
    if not len(graphs):
        return {name: np.empty(0) for name in columns}
    table = prediction_table(model, graphs).reset_index(drop=True)
    if "nearest_name" in columns:
        nearest = table["nearest"].to_numpy()
        table["nearest_name"] = [model.model_.training.called(k) for k in nearest.tolist()]
        value = "nearest_class" if "nearest_class" in columns else "nearest_value"
        table[value] = measured_values(model.model_, nearest)
    for name in {"class", "nearest_class"} & set(table):
        table[name] = table[name].astype(str).astype(object)
    return {name: table[name].to_numpy() for name in columns}


def _by_row(columns: dict[str, Any], table: MoleculeTable) -> pd.DataFrame:
    """Columns about graphs, with an empty line for each row that could not be read."""
    return pd.DataFrame(columns, index=table.rows, dtype=object if not len(table.rows) else None
                        ).reindex(np.arange(table.n_rows))  # fmt: skip


def summarize_rows(model: Any, rows: pd.DataFrame, truth: Any = None) -> dict[str, Any]:
    """Return what was predicted, and scores where the truth is known, as plain data.

    ``rows`` are the columns of the model for all rows; ``truth`` has positions and values. Numbers
    are scored on the learned scale; of two classes, recall, precision and PR AUC are those of the
    second.
    """
    readable = rows["out_of_vocabulary"].notna().to_numpy()
    found = rows[readable].copy()
    unseen = found["out_of_vocabulary"].astype(float)
    summary: dict[str, Any] = {"mean_out_of_vocabulary": float(unseen.mean() if len(found) else 0)}
    if "in_domain" in found:
        summary["n_outside"] = int((found["in_domain"].astype(str) != "True").sum())
    scored = None
    if truth is not None:
        kept = readable[truth[0]]
        scored = rows.iloc[truth[0][kept]], np.asarray(truth[1])[kept]
    of = _class_summary if hasattr(model, "classes_") else _number_summary
    return summary | of(model, found, scored if scored is not None and len(scored[1]) else None)


def _class_summary(model: Any, found: pd.DataFrame, truth: Any) -> dict[str, Any]:
    plain = {harmless(str(c)): str(c) for c in model.classes_.tolist()}  # as files have them

    def named(classes: pd.Series) -> np.ndarray:
        return np.array([plain.get(str(c), str(c)) for c in classes], dtype=object)

    classes, counts = np.unique(named(found["class"]), return_counts=True)
    sizes = dict(zip(classes.tolist(), counts.tolist(), strict=True))
    if truth is None:
        return {"predicted": sizes, "accuracy": None}
    rows, y = truth
    chances = rows[[f"probability {c}" for c in model.classes_.tolist()]].to_numpy(dtype=float)
    positive = 1 if len(model.classes_) == 2 else None
    codes = codes_among(y, model.classes_)
    predicted = codes_among(named(rows["class"]), model.classes_)
    return {
        "predicted": sizes,
        **class_scores(codes, predicted, chances, positive),
        "positive": None if positive is None else str(model.classes_[positive]),
        "n_scored": len(y),
        "n_known_classes": int((codes >= 0).sum()),
    }


def _number_summary(model: Any, found: pd.DataFrame, truth: Any) -> dict[str, Any]:
    values = found["prediction"].astype(float)
    ends = [float(values.min()), float(values.max())] if len(values) else [None, None]
    summary: dict[str, Any] = {"predicted": {"smallest": ends[0], "largest": ends[1]}}
    if truth is None:
        return summary
    rows, y = truth
    scale = learned_transform(model.recipe_)
    mean = rows["prediction"].to_numpy(dtype=float)
    std = rows["std" + _suffix(scale)].to_numpy(dtype=float)
    if scale is not None:
        y = scale.checked(y, lambda k: f"the value of row {int(rows.index[k]) + 1}")
        mean, summary["scale"] = scale.forward(mean), scale.name
    return {**summary, **number_scores(y, mean, std), "n_scored": len(y)}
