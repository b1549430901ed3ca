"""The fragments that move predictions, with all that a page shows of each."""

from __future__ import annotations

from typing import Any

from treelens.explain.decode import Occurrence, pattern_texts
from treelens.explain.expansion import expansion_of
from treelens.explain.fragments import FragmentTable, fragment_table
from treelens.explain.names import LabelNames, with_label_names
from treelens.gp.model import FittedGP
from treelens.graphs.collection import Graph, GraphCollection
from treelens.patterns.forest import PatternForest
from treelens.report.details import drawable, molecule_data
from treelens.report.held import Held
from treelens.report.patterns import LARGEST_DRAWN
from treelens.report.said import SaidOfGraphs

MOST_FRAGMENTS = 24
# Naming one takes as long as drawing ten, and a report should not keep anybody waiting.
_MOST_OF_GIVEN = 12
# What few graphs hold is named by chance: rarer fragments are for model.fragments(graphs).
_RAREST_SHARE, _FEWEST = 0.01, 3


def fragment_section(
    model: FittedGP,
    forest: PatternForest,
    given: SaidOfGraphs | None,
    held: Held,
    names: str | LabelNames | None = None,
    n_jobs: int = 1,
) -> dict[str, Any] | None:
    """Fragments of the graphs given, or else of the training graphs.

    ``forest`` carries the labels that people are to see. None where there is nothing to look at: a
    model out of a file, and no graphs or too few.
    """
    if given is not None and len(given) >= _FEWEST:
        table = _of_given(model, given, n_jobs)
        if len(table):
            return _section(model, forest, table, given.shown, True, names)
    if held.fragments is None or held.train_graphs is None:
        return None
    shown = held.train_graphs
    shown = shown if names is None else with_label_names(shown, names)
    return _section(model, forest, held.fragments(), shown, False, names)


def _of_given(model: FittedGP, given: SaidOfGraphs, n_jobs: int) -> FragmentTable:
    least = max(_FEWEST, round(_RAREST_SHARE * len(given)))
    return fragment_table(
        expansion_of(model), given.graphs, given.truth,
        n_fragments=_MOST_OF_GIVEN, min_support=least, n_jobs=n_jobs,
        seen=given.said.graphs,
    )  # fmt: skip


def _section(
    model: FittedGP,
    forest: PatternForest,
    table: FragmentTable,
    shown: GraphCollection,
    of_given: bool,
    names: str | LabelNames | None,
) -> dict[str, Any]:
    rows = []
    for rank in table.index[:MOST_FRAGMENTS].tolist():
        assert table.pictures is not None
        _, place = table.pictures[rank]
        row = _row(table, rank, shown[place.graph_index], place, model.classes)
        if names is not None:  # the table knows the codes of labels only
            row["pattern"] = pattern_texts(forest, [place.pattern])[0]
            row["title"] = row["name"] or row["pattern"]
        rows.append(row)
    size = table.attrs["size"]
    return {
        "of_given": of_given,
        "left_out": table.attrs["left_out"],
        "n_graphs": len(shown),
        "toward": table.attrs["toward"],
        "size": size if "per_node" in size else None,  # of many classes one for each
        "rows": rows,
        "strongest": [
            row for rank in table.attrs["strongest"][:3] for row in rows if row["rank"] == rank
        ],
    }


def _row(
    table: FragmentTable, rank: int, graph: Graph, place: Occurrence, classes: Any
) -> dict[str, Any]:
    found = table.loc[rank].to_dict()
    by_class = None
    if classes is not None and f"support {classes[0]}" in found:
        by_class = [[str(label), found[f"support {label}"]] for label in classes.tolist()]
    return {
        "rank": rank,
        "name": found["name"],
        "title": table.title(rank),
        "smarts": found.get("smarts"),
        "pattern": found["pattern"],
        "depth": found["depth"],
        "effect": found["effect"],
        "error": found["error"],
        "class_label": str(found["class_label"]) if "class_label" in found else None,
        "support": found["support"],
        "by_class": by_class,
        "mean_value": found.get("mean_value"),
        "examples": [str(example) for example in found["examples"]],
        "picture": _picture(graph, place),
    }


def _picture(graph: Graph, place: Occurrence) -> dict[str, Any] | None:
    """A graph and where in it the fragment is; None if it is too large to be drawn."""
    if graph.n_nodes > LARGEST_DRAWN:
        return None
    return {
        **drawable(graph),
        "graph": str(place.graph_index if graph.name is None else graph.name),
        "molecule": molecule_data(graph),
        "root": place.root,
        "nodes": place.nodes,
        "tree_edges": place.edges,
    }
