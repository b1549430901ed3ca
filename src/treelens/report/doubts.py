"""What to distrust: short sentences about the model and the graphs, each with how bad it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from treelens.explain.expansion import expansion_of
from treelens.gp.model import FittedGP
from treelens.kernels.nearest import nearest_graphs
from treelens.patterns.features import select_features
from treelens.report.plain import percent
from treelens.report.said import PlaceInDomain, SaidOfGraphs

_MOST_COMPARED = 400
_USUAL = 0.05  # what is rarer than this among training graphs is unusual
_NOMINAL, _MARGIN = 0.9, 0.02


def doubts_about(
    model: FittedGP,
    given: SaidOfGraphs | None,
    left_out: dict[str, Any],
    scores: dict[str, Any] | None,
) -> list[dict[str, Any]]:
    """Sentences with a ``level``: "fine", "notice" or "alarm"; and ``n_graphs`` they are about."""
    found = [_convergence(model), *_sampled(model)]
    if left_out.get("names_one_class"):
        found.append(
            _item(
                "alarm",
                "Left out, every training graph is put into the same class: the model tells "
                "nothing apart, and its accuracy is the share of that class.",
            )
        )
    if given is not None:
        far = _far_away(model, given) if given.domain is None else _outside(given.domain)
        found += [far, _memory(given), _unseen(model, given)]
        found += [_wide(model, given)] if given.classes is None else []
    if "coverage" in left_out:
        found += [_coverage(left_out, "leave-one-out predictions")]
        found += [_coverage(scores, "the test set")] if scores is not None else []
    order = {"alarm": 0, "notice": 1, "fine": 2}
    return sorted(found, key=lambda item: order[item["level"]])  # the sort is stable


def _item(level: str, text: str, n_graphs: int | None = None) -> dict[str, Any]:
    return {"level": level, "text": text, "n_graphs": n_graphs}


def _convergence(model: FittedGP) -> dict[str, Any]:
    assert model.record is not None
    if model.record.converged:
        return _item("fine", "The search for the weights converged.")
    return _item(
        "alarm",
        "The search for the weights stopped before it converged: more max_steps may change "
        "weights and predictions.",
    )


def _sampled(model: FittedGP) -> list[dict[str, Any]]:
    """What a model fitted in blocks says of training graphs, it says of a sample."""
    assert model.training is not None
    n_in_all = model.training.n_in_all
    if n_in_all is None:
        return []
    return [
        _item(
            "notice",
            f"The model was fitted to {n_in_all:,} graphs in blocks. Training graphs here are a "
            f"sample of {len(model.training.targets):,} of them, which leave-one-out scores and "
            "neighbours come from; a graph that was among the others passes for a new one.",
        )
    ]


def _memory(given: SaidOfGraphs) -> dict[str, Any]:
    n = int(given.same_as_training.sum())
    if not n:
        return _item("fine", "None of the graphs given has the pattern counts of a training graph.")
    level = "alarm" if n > 0.1 * len(given) else "notice"
    return _item(
        level,
        f"{_share(n, len(given))} have exactly the pattern counts of a training graph: on them "
        "the model may remember rather than predict, so they are left out of the test scores.",
        n,
    )


def _unseen(model: FittedGP, given: SaidOfGraphs) -> dict[str, Any]:
    limit = expansion_of(model).usual_out_of_vocabulary
    n = int((given.said.out_of_vocabulary > limit).sum())
    text = f"{_share(n, len(given))} have more patterns that training never saw than the usual "
    return _item(_level(n, len(given)), f"{text}{percent(limit, 0)} of their patterns.", n)


def _outside(place: PlaceInDomain) -> dict[str, Any]:
    n = int((~place.inside).sum())
    return _item(
        _level(n, len(place.inside)),
        f"{_share(n, len(place.inside))} are outside the domain of applicability: less like any "
        "training graph, or harder to predict, than nearly all training graphs are.",
        n,
    )


def _far_away(model: FittedGP, given: SaidOfGraphs) -> dict[str, Any]:
    limit = usual_similarity(model)
    n = int((given.similarity < limit).sum())
    return _item(
        _level(n, len(given)),
        f"{_share(n, len(given))} are less like any training graph than 95 % of training graphs "
        f"are like another one (similarity below {limit:.2f}).",
        n,
    )


def usual_similarity(model: FittedGP) -> float:
    """What training graphs rarely stay below in similarity to the training graph nearest to them.

    The fifth percentile over a sample of them.
    """
    chosen = np.random.default_rng(0).permutation(model.basis.n_graphs)[:_MOST_COMPARED]
    some = select_features(model.basis_graphs, chosen)
    near = nearest_graphs(some, model.basis_graphs, model.weights, 1, chosen)
    return float(np.quantile(near.similarity[:, 0], _USUAL))


def _wide(model: FittedGP, given: SaidOfGraphs) -> dict[str, Any]:
    assert model.record is not None
    limit = float(np.quantile(model.record.left_out.std, 1.0 - _USUAL))
    n = int((given.std > limit).sum())
    return _item(
        _level(n, len(given)),
        f"{_share(n, len(given))} have wider intervals than 95 % of the training graphs had when "
        "left out.",
        n,
    )


def _coverage(scores: dict[str, Any], what: str) -> dict[str, Any]:
    """Whether the 90 % intervals hold nine tenths or nearly, as far as so many graphs can tell."""
    low, high = scores["coverage_interval"]
    observed = f"{percent(scores['coverage'], 0)} of the measurements of {what}"
    if high < _NOMINAL - _MARGIN:
        return _item("alarm", f"The 90 % intervals are too narrow: they hold {observed}.")
    if low > _NOMINAL + _MARGIN:
        return _item("notice", f"The 90 % intervals are wider than need be: they hold {observed}.")
    return _item("fine", f"The 90 % intervals hold {observed}.")


def _share(n: int, n_all: int) -> str:
    share = "under 1 %" if 0 < n < 0.005 * n_all else percent(n / n_all, 0)
    return f"{n:,} of the {n_all:,} graphs given ({share})"


def _level(n: int, n_all: int) -> str:
    """Some unusual graphs are usual: twice as many as in training is worth a notice."""
    return "alarm" if n > 0.3 * n_all else "notice" if n > 2 * _USUAL * n_all else "fine"
