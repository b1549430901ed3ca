"""Model files of :class:`~treelens.estimators.streaming.StreamingGraphClassifier`.

They hold patterns, weights and the linear model: what deciding and explaining need. Nothing of the
training graphs is kept, however many there were.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import treelens
from treelens.estimators.streaming import StreamingGraphClassifier
from treelens.kernels.approximate import RandomFeatures
from treelens.models.feature_machine import FeatureMachine
from treelens.patterns.features import PatternExtractor
from treelens.storage.archive import Contents, write_archive
from treelens.storage.stored import Stored
from treelens.storage.stored_patterns import (
    get_recipe,
    get_vocabulary,
    plain_parameters,
    plain_value,
    put_recipe,
    put_vocabulary,
)
from treelens.storage.stored_records import (
    checked_class_labels,
    checked_estimator,
    checked_feature_numbers,
)

_MOST_GRAPHS = 2**62


def save_streaming(model: StreamingGraphClassifier, path: str | Path) -> None:
    """Write a fitted model to a file, whole or not at all."""
    check_is_fitted(model)
    feature_map = model._machine.feature_map
    assert isinstance(feature_map, RandomFeatures)
    parameters, not_kept = plain_parameters(model)
    data: dict[str, Any] = {
        "model": "streaming",
        "parameters": {**parameters, "learner": None},
        "parameters_not_kept": not_kept,
        "classes": plain_value(model.classes_, "a class"),
        "alpha": float(model.alpha_),
        "n_graphs": int(model.n_graphs_),
        "feature_map": {
            "seed": feature_map.seed,
            "n_components": feature_map.n_components,
            "form": feature_map.form,
            "gamma": float(feature_map.gamma),
            "offset": float(feature_map.offset),
            "weighted": feature_map.weights is not None,
        },
    }
    arrays = {
        "support": model.support_.astype(np.int64, copy=False),
        "weights": model.weights_,
        "coefficients": model._machine.coefficients,
        "intercepts": model._machine.intercepts,
    }
    data["first_depth"] = int(model._extractor.first_depth)
    put_recipe(model.recipe_, data)
    put_vocabulary(model.vocabulary_, data, arrays)
    write_archive(path, Contents(data, arrays), treelens.__version__)


def get_streaming(stored: Stored) -> StreamingGraphClassifier:
    """The model of a file; its learner is not kept, its learned weights are."""
    model: StreamingGraphClassifier = checked_estimator(
        stored, "parameters", StreamingGraphClassifier
    )
    vocabulary = get_vocabulary(stored)
    first_depth = stored.value("first_depth", int)
    if not 0 <= first_depth <= vocabulary.depth:
        raise stored.error(f"'first_depth' should be 0 to {vocabulary.depth}, not {first_depth}")
    model.vocabulary_, model.learner_ = vocabulary, None
    model.recipe_ = get_recipe(stored)
    model._extractor = PatternExtractor(vocabulary, first_depth, "wasserstein")
    model.classes_ = checked_class_labels(stored)
    model.alpha_ = stored.number(stored.value("alpha", float), "'alpha'", 0.0)
    model.n_graphs_ = stored.whole(stored.value("n_graphs", int), "'n_graphs'", 1, _MOST_GRAPHS)
    n_patterns = vocabulary.n_patterns
    model.support_ = stored.integers("support", np.int64, (n_patterns,), 0, model.n_graphs_ + 1)
    in_use = n_patterns - int(vocabulary.level_offsets[first_depth])
    model.weights_ = stored.floats("weights", (in_use,), 0.0)
    n_outputs = 1 if len(model.classes_) == 2 else len(model.classes_)
    feature_map = _get_feature_map(stored, model.weights_)
    model._machine = FeatureMachine(
        feature_map,
        stored.floats("coefficients", (n_outputs, feature_map.n_components)),
        stored.floats("intercepts", (n_outputs,)),
    )
    return model


def _get_feature_map(stored: Stored, weights: np.ndarray) -> RandomFeatures:
    record = stored.value("feature_map", dict)
    if type(record.get("weighted")) is not bool:
        raise stored.error("'weighted' in 'feature_map' should be true or false")
    n_components, seed = checked_feature_numbers(stored, record)
    gamma = stored.number(record.get("gamma"), "'gamma' in 'feature_map'", 0.0, above=True)
    offset = stored.number(record.get("offset"), "'offset' in 'feature_map'", 0.0)
    try:
        return RandomFeatures(
            n_components, seed, str(record.get("form")), gamma, offset,
            weights if record["weighted"] else None,
        )  # fmt: skip
    except ValueError as error:
        raise stored.error(f"'feature_map' cannot be used ({error})") from error
