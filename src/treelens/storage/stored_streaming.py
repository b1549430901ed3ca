"""A classifier that was fitted to blocks of graphs in a model file, and back.

Patterns, weights and the linear model: what deciding and explaining need. Nothing of the training
graphs is kept, however many there were.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treelens.kernels.approximate import RandomFourierFeatures
from treelens.kernels.weighted import WeightedKernel
from treelens.models.classifier import FittedClassifier
from treelens.models.linear_on_features import LinearOnFeatures
from treelens.patterns.features import PatternExtractor
from treelens.storage.stored import Stored
from treelens.storage.stored_patterns import (
    get_recipe,
    get_vocabulary,
    plain_value,
    put_recipe,
    put_vocabulary,
)
from treelens.storage.stored_records import checked_class_labels, checked_feature_numbers


def put_streaming(
    model: FittedClassifier, data: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    """Everything about a model on random Fourier features."""
    decision = model.decision
    assert isinstance(decision, LinearOnFeatures)
    feature_map, kernel = decision.feature_map, decision.kernel
    assert isinstance(feature_map, RandomFourierFeatures)
    data["classes"] = plain_value(model.classes, "a class")
    data["feature_map"] = {
        "seed": feature_map.seed,
        "n_components": feature_map.n_components,
        "kernel": kernel.name,
        "gamma": float(feature_map.gamma),
        "offset": float(kernel.offset),
        "weighted": kernel.weights is not None,
    }
    arrays["weights"] = model.weights
    arrays["coefficients"], arrays["intercepts"] = decision.coefficients, decision.intercepts
    data["first_depth"] = int(model.patterns.first_depth)
    put_recipe(model.recipe, data)
    put_vocabulary(model.patterns.vocabulary, data, arrays)


def get_streaming(stored: Stored) -> FittedClassifier:
    """The model of a file."""
    vocabulary = get_vocabulary(stored)
    first_depth = stored.value("first_depth", int)
    if not 0 <= first_depth <= vocabulary.depth:
        raise stored.error(f"'first_depth' should be 0 to {vocabulary.depth}, not {first_depth}")
    patterns = PatternExtractor(vocabulary, first_depth, "wasserstein")
    classes = checked_class_labels(stored)
    in_use = vocabulary.n_patterns - int(vocabulary.level_offsets[first_depth])
    feature_map = _get_feature_map(stored, stored.floats("weights", (in_use,), 0.0))
    n_outputs = 1 if len(classes) == 2 else len(classes)
    kernel = WeightedKernel(
        feature_map.kernel, feature_map.weights, feature_map.gamma, feature_map.offset
    )
    decision = LinearOnFeatures(
        feature_map,
        stored.floats("coefficients", (n_outputs, feature_map.n_components)),
        stored.floats("intercepts", (n_outputs,)),
        kernel,
    )
    return FittedClassifier(classes, patterns, decision, get_recipe(stored))


def _get_feature_map(stored: Stored, weights: np.ndarray) -> RandomFourierFeatures:
    record = stored.value("feature_map", dict)
    if type(record.get("weighted")) is not bool:
        raise stored.error("'weighted' in 'feature_map' should be true or false")
    n_components, seed = checked_feature_numbers(stored, record)
    gamma = stored.number(record.get("gamma"), "'gamma' in 'feature_map'", 0.0, above=True)
    offset = stored.number(record.get("offset"), "'offset' in 'feature_map'", 0.0)
    try:
        return RandomFourierFeatures(
            n_components, seed, str(record.get("kernel")), gamma, offset,
            weights if record["weighted"] else None,
        )  # fmt: skip
    except ValueError as error:
        raise stored.error(f"'feature_map' cannot be used ({error})") from error
