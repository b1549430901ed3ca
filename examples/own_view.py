"""A view of your own: cycles of each length, next to the usual patterns.

Weisfeiler-Lehman patterns cannot tell one ring of six nodes from two rings of three. The view below
counts the cycles of a minimal basis; the model learns how much they say, explains predictions by
them, and keeps them in its file.

    python examples/own_view.py
"""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import networkx as nx
import numpy as np

import treelens as tl


@dataclass(frozen=True)
class Cycles(tl.PatternView):
    """Cycles of up to ``longest`` nodes."""

    longest: int = 8

    name = "cycles"

    def occurrences(self, graph) -> Iterator[tuple[str, str, list[int]]]:
        for cycle in nx.minimum_cycle_basis(graph.to_networkx()):
            if len(cycle) <= self.longest:
                yield "all", f"cycle of {len(cycle)}", cycle


def main() -> None:
    rng = np.random.default_rng(0)
    graphs, values = [], []
    for _ in range(80):
        sizes = rng.integers(3, 7, size=rng.integers(2, 5))
        graph = nx.disjoint_union_all([nx.cycle_graph(n) for n in sizes])
        nx.set_node_attributes(graph, dict(enumerate(rng.choice(["a", "b"], len(graph)))), "label")
        graphs.append(graph)
        values.append(np.count_nonzero(sizes == 3) + 0.1 * rng.normal())
    plain = tl.GraphRegressor(views=[tl.WLPatterns()]).fit(graphs, values)
    model = tl.GraphRegressor(views=[tl.WLPatterns(), Cycles()]).fit(graphs, values)
    print(f"R2 left out: {plain.loo_.r2:.2f} without cycles, {model.loo_.r2:.2f} with them")
    print(model.shares_.round(2).to_string())
    table = model.explain(graphs[0]).pattern_contributions
    print(table[table["tree"] == "cycles"][["pattern", "count", "contribution"]].round(2))
    path = Path(tempfile.mkdtemp(), "cycles.treelens")
    model.save(path)
    loaded = tl.load(path, classes=[Cycles])
    print("from its file:", np.allclose(loaded.predict(graphs[:5]), model.predict(graphs[:5])))


if __name__ == "__main__":
    main()
