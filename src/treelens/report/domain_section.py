"""Where the model may be believed: how many of the graphs given are there, and which are not."""

from __future__ import annotations

from typing import Any

import numpy as np

from treelens.gp.model import FittedGP
from treelens.report.held import Held
from treelens.report.said import SaidOfGraphs

_MOST_FURTHEST = 6


def domain_section(
    model: FittedGP, given: SaidOfGraphs | None, held: Held
) -> dict[str, Any] | None:
    """Share inside, limits, the furthest graphs with the training graphs nearest to them."""
    if given is None or given.domain is None:
        return None
    place = given.domain
    furthest = np.argsort(place.around.similarity, kind="stable")[:_MOST_FURTHEST]
    return {
        "n_graphs": len(given),
        "n_inside": int(place.inside.sum()),
        "largest_error": place.domain.largest_error,
        "least_similarity": place.domain.least_similarity,
        "quality": _quality(given),
        "furthest": [_far(model, given, held, i) for i in furthest.tolist()],
    }


def _far(model: FittedGP, given: SaidOfGraphs, held: Held, index: int) -> dict[str, Any]:
    assert given.domain is not None
    assert model.training is not None
    nearest = int(given.domain.around.nearest[index])
    target = model.training.targets[nearest]
    return given.facts(index) | {
        "tanimoto": given.domain.around.similarity[index],
        "expected_error": given.domain.expected[index],
        "nearest": {
            "index": nearest,
            "name": held.training_name(nearest),
            "value": target if model.classes is None else None,
            "class": None if model.classes is None else str(model.classes[target]),
        },
    }


def _quality(given: SaidOfGraphs) -> dict[str, Any] | None:
    """RMSE or accuracy inside and outside, of graphs that training did not hold."""
    if given.truth is None or given.domain is None:
        return None
    new, inside = ~given.same_as_training, given.domain.inside
    parts = {"inside": new & inside, "outside": new & ~inside}
    return {
        name: {"n_graphs": int(here.sum()), "value": _score(given, here) if here.any() else None}
        for name, here in parts.items()
    }


def _score(given: SaidOfGraphs, here: np.ndarray) -> float:
    assert given.truth is not None
    truth, said = given.truth[here], given.predicted[here]
    if given.classes is None:
        return float(np.sqrt(np.mean((said - truth) ** 2)))
    return float(np.mean(said == truth))
