"""How long an explanation and its drawing take, on a model of 4,000 training graphs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import treelens as tl
from benchmarks.measure import Claim, Row, best_times, load, measured
from treelens.explain.draw import Style, draw_graph

Fitted = tuple[tl.GraphSVC, list[tl.Graph]]
N_TRAINING = 4000
N_EXPLAINED = 20
MOST_MILLISECONDS = 50.0
MOST_BYTES = 4500


def rows() -> Iterator[Row]:
    data = load("NCI1")
    return measured(CLAIMS, None if data is None else _model_and_graphs(*data))


def _model_and_graphs(graphs: tl.GraphCollection, y: np.ndarray) -> Fitted:
    order = np.random.default_rng(0).permutation(len(y))
    train, new = order[:N_TRAINING], order[N_TRAINING : N_TRAINING + N_EXPLAINED]
    model = tl.GraphSVC("wwl", depth=5, weight_radius=0, gamma=3.0, C=10.0, cv=2)
    return model.fit(graphs[train], y[train]), [graphs[k] for k in new.tolist()]


def _explaining_time(fitted: Fitted) -> tuple[str, bool]:
    model, new = fitted
    seconds = best_times(lambda: [model.explain(graph) for graph in new], repeats=3)[0]
    milliseconds = 1000 * seconds / len(new)
    words = f"{milliseconds:.1f} ms ({len(model.support_vectors_)} carry it)"
    return words, milliseconds <= MOST_MILLISECONDS


def _drawing_size(fitted: Fitted) -> tuple[str, bool]:
    model, new = fitted
    found, style = [model.explain(graph) for graph in new], Style(legend=False)
    sizes = [len(draw_graph(x.graph, x.node_contributions, style=style)) for x in found]
    return f"{np.mean(sizes):.0f} bytes", bool(np.mean(sizes) <= MOST_BYTES)


CLAIMS = [
    Claim(
        f"explain one graph, {N_TRAINING} training graphs (NCI1, depth 5)",
        f"at most {MOST_MILLISECONDS:.0f} ms",
        _explaining_time,
    ),
    Claim("draw one NCI1 graph as SVG, mean size", f"at most {MOST_BYTES} bytes", _drawing_size),
]
