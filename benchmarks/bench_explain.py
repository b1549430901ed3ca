"""How long an explanation and its drawing take, on a model of 4,000 training graphs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import treelens as tl
from benchmarks.measure import NEEDS_DATA, Row, best_times, load
from treelens.explain.draw import Style, draw_graph

N_TRAINING = 4000
N_EXPLAINED = 20
MOST_MILLISECONDS = 50.0
MOST_BYTES = 4500


def rows() -> Iterator[Row]:
    claims = (
        f"explain one graph, {N_TRAINING} training graphs (NCI1, depth 5)",
        "draw one NCI1 graph as SVG, mean size",
    )
    targets = f"at most {MOST_MILLISECONDS:.0f} ms", f"at most {MOST_BYTES} bytes"
    data = load("NCI1")
    if data is None:
        for claim, target in zip(claims, targets, strict=True):
            yield Row(claim, NEEDS_DATA, target, None)
        return
    graphs, y = data
    order = np.random.default_rng(0).permutation(len(y))
    train, new = order[:N_TRAINING], graphs[order[N_TRAINING : N_TRAINING + N_EXPLAINED]]
    milliseconds, model = _explaining_time(graphs[train], y[train], new)
    yield Row(
        claims[0], f"{milliseconds:.1f} ms ({len(model.support_vectors_)} carry it)", targets[0],
        milliseconds <= MOST_MILLISECONDS,
    )  # fmt: skip
    size = _drawing_size(model, new)
    yield Row(claims[1], f"{size:.0f} bytes", targets[1], size <= MOST_BYTES)


def _explaining_time(
    graphs: tl.GraphCollection, y: np.ndarray, new: tl.GraphCollection
) -> tuple[float, tl.GraphSVC]:
    model = tl.GraphSVC("wwl", depth=5, weight_radius=0, gamma=3.0, C=10.0, cv=2)
    model.fit(graphs, y)
    seconds = best_times(lambda: [model.explain(new[i]) for i in range(len(new))], repeats=3)[0]
    return 1000 * seconds / len(new), model


def _drawing_size(model: tl.GraphSVC, new: tl.GraphCollection) -> float:
    style = Style(legend=False)
    found = [model.explain(new[i]) for i in range(len(new))]
    return float(
        np.mean([len(draw_graph(x.graph, x.node_contributions, style=style)) for x in found])
    )
