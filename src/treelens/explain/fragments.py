"""The fragments that move a model's predictions, as a short table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from treelens.explain.classifier import ClassifierExplainer
from treelens.explain.decode import Occurrence, occurrence_at
from treelens.explain.explained import explained_by
from treelens.explain.fragment_names import group_name
from treelens.explain.fragment_search import Fragment, search_fragments
from treelens.explain.fragment_seen import ExplainedGraphs, mean_over_graphs
from treelens.explain.fragment_smarts import FragmentWriter
from treelens.explain.gaussian import GaussianDecision
from treelens.explain.layout import is_molecule
from treelens.explain.smarts import atom_label_of
from treelens.graphs.collection import GraphCollection
from treelens.patterns.features import SeenGraphs
from treelens.patterns.forest import TREES

if TYPE_CHECKING:
    from treelens.explain.fragment_table import FragmentTable

Decision = GaussianDecision | ClassifierExplainer
N_FRAGMENTS = 40
_RAREST_SHARE, _FEWEST = 0.004, 3  # of the graphs must hold a fragment
_N_EXAMPLES = 3
_BESIDE = 4  # nodes that an example to be drawn should have beside the fragment


@dataclass(frozen=True, eq=False)
class FoundFragments:
    """Fragments of one output of a model on some graphs.

    Attributes
    ----------
    seen : ExplainedGraphs
    fragments : list of Fragment
    left_out : bool
        Whether each graph was explained by the other training graphs alone.
    """

    seen: ExplainedGraphs
    fragments: list[Fragment]
    left_out: bool


def find_fragments(
    decision: Decision,
    graphs: GraphCollection,
    output: int = 0,
    *,
    n_fragments: int = N_FRAGMENTS,
    min_support: int | None = None,
    n_jobs: int = 1,
    looked_at: SeenGraphs | None = None,
) -> FoundFragments:
    """Explain all graphs and search for the fragments behind it.

    Parameters
    ----------
    decision : GaussianDecision or ClassifierExplainer
    graphs : GraphCollection
    output : int
        Of more than two classes, the code of the one to explain.
    n_fragments : int
        At most so many.
    min_support : int, optional
        A fragment must be held by so many graphs: by default 0.4 %, at least 3.
    n_jobs : int
    looked_at : SeenGraphs, optional
        The graphs as the model sees them, where they were refined before.
    """
    explained = explained_by(decision, graphs, output, n_jobs, looked_at)
    found = fragments_in(explained.seen, n_fragments, min_support)
    return FoundFragments(explained.seen, found, explained.left_out)


def fragments_in(
    seen: ExplainedGraphs, n_fragments: int = N_FRAGMENTS, min_support: int | None = None
) -> list[Fragment]:
    """The fragments behind what nodes add; see :func:`find_fragments`."""
    if min_support is None:
        min_support = max(_FEWEST, round(_RAREST_SHARE * len(seen.graphs)))
    return search_fragments(seen, n_fragments, min_support, seen.forest.depth)


def fragment_table(
    decision: Decision,
    graphs: GraphCollection,
    targets: np.ndarray | None = None,
    class_label: Any = None,
    *,
    n_fragments: int = N_FRAGMENTS,
    min_support: int | None = None,
    n_jobs: int = 1,
    looked_at: SeenGraphs | None = None,
    smarts: bool = True,
) -> FragmentTable:
    """The fragments that move predictions, the most important first.

    Parameters
    ----------
    decision : GaussianDecision or ClassifierExplainer
    graphs : GraphCollection
        Of training graphs, each is explained by the others alone.
    targets : ndarray, shape (n_graphs,), optional
        Class codes or values.
    class_label : object, optional
        The class that positive effects speak for. By default, with two classes the second; with
        more, the table holds fragments of all of them and names each one's class.
    n_fragments, min_support, n_jobs, looked_at :
        See :func:`find_fragments`.
    smarts : bool, default=True
        Whether fragments of molecules are written as SMARTS, each checked against hundreds of them.
    """
    import pandas as pd

    from treelens.explain.fragment_table import FragmentTable

    parts, pictures, size, left_out = [], [], {}, True
    for output, sign, label in outputs_of(decision, class_label):
        found = find_fragments(
            decision, graphs, output,
            n_fragments=n_fragments, min_support=min_support, n_jobs=n_jobs, looked_at=looked_at,
        )  # fmt: skip
        part = _rows(found, decision, targets, sign, smarts)
        if label is not None:
            part.insert(0, "class_label", label)
        parts.append(part)
        pictures += [pictured(found.seen, fragment) for fragment in found.fragments]
        size[label] = size_effect(found.seen, sign)
        left_out = found.left_out
    table = FragmentTable(pd.concat(parts))
    order = np.argsort(-table.pop("_order").to_numpy(), kind="stable")[:n_fragments]
    table = table.iloc[order]
    table.index = pd.RangeIndex(1, len(table) + 1, name="rank")
    table.pictures = {rank: pictures[k] for rank, k in enumerate(order.tolist(), start=1)}
    table.attrs["size"] = size if len(size) > 1 else next(iter(size.values()))
    table.attrs["left_out"] = left_out
    table.attrs["toward"] = toward_of(decision, class_label)
    return table


def outputs_of(decision: Decision, class_label: Any) -> list[tuple[int, float, Any]]:
    """Columns to explain: their numbers, the signs they count with, the classes to name."""
    classes = decision.classes
    if classes is None:
        if class_label is not None:
            raise ValueError(
                f"class_label={class_label!r}, but this model predicts numbers: leave it out."
            )
        return [(0, 1.0, None)]
    codes = list(range(len(classes)))
    if class_label is not None:
        codes = np.flatnonzero(classes == class_label).tolist()
        if len(codes) != 1:
            raise ValueError(
                f"class_label must be one of the classes {classes.tolist()}, got {class_label!r}."
            )
    if len(classes) == 2:
        return [(0, -1.0 if class_label is not None and codes[0] == 0 else 1.0, None)]
    return [(code, 1.0, classes[code]) for code in codes]


def toward_of(decision: Decision, class_label: Any) -> str | None:
    """What positive effects speak for, in words; None: larger numbers, or each row's class."""
    classes = decision.classes
    if classes is None or (class_label is None and len(classes) != 2):
        return None
    return str(classes[1] if class_label is None else class_label)


def size_effect(seen: ExplainedGraphs, sign: float = 1.0) -> dict[str, float]:
    """What a node adds whatever it is, and so what the size of a graph does.

    ``per_node`` is the mean of all nodes' contributions, graph by graph, ``error`` its standard
    error; ``effect`` what a graph of ``mean_nodes`` nodes owes to its size.
    """
    mean = mean_over_graphs(seen.phi, seen.graph_of_node)
    nodes = float(seen.graphs.sizes.mean())
    return {
        "per_node": sign * mean.mean,
        "error": mean.error,
        "mean_nodes": nodes,
        "effect": sign * mean.mean * nodes,
    }


# --- rows -------------------------------------------------------------------------------------


def _rows(
    found: FoundFragments,
    decision: Decision,
    targets: np.ndarray | None,
    sign: float,
    smarts: bool,
) -> Any:
    import pandas as pd

    seen, fragments = found.seen, found.fragments
    forest = seen.forest
    columns: dict[str, Any] = chemistry_of(seen, fragments, smarts)
    columns["pattern"] = [" | ".join(forest.texts(f.patterns)) for f in fragments]
    columns["depth"] = [f.depth for f in fragments]
    columns["effect"] = [sign * f.effect.mean for f in fragments]
    columns["error"] = [f.effect.error for f in fragments]
    columns["conditional_effect"] = [sign * f.beyond.mean for f in fragments]
    columns["conditional_error"] = [f.beyond.error for f in fragments]
    columns["total"] = [sign * f.total for f in fragments]
    holders = [np.unique(seen.graph_of_node[f.roots]) for f in fragments]
    columns["support"] = [len(graphs) for graphs in holders]
    if targets is not None:
        columns |= _targets_of(holders, targets, decision.classes)
    columns["examples"] = [_examples(seen.graphs, graphs) for graphs in holders]
    # Fragments of several classes are merged by score, those of one keep the order of the search.
    scores = np.abs([f.score for f in fragments]).astype(float)
    columns["_order"] = np.minimum.accumulate(scores) if len(scores) else scores
    return pd.DataFrame(columns)


def _targets_of(
    holders: list[np.ndarray], targets: np.ndarray, classes: np.ndarray | None
) -> dict[str, Any]:
    """How many graphs of each class hold a fragment; of numbers, their mean there."""
    if classes is None:
        return {"mean_value": [float(targets[graphs].mean()) for graphs in holders]}
    return {
        f"support {label}": [int((targets[graphs] == code).sum()) for graphs in holders]
        for code, label in enumerate(classes.tolist())
    }


def _examples(graphs: GraphCollection, holders: np.ndarray) -> list[Any]:
    """Some of the graphs, small ones first: their names, or else their positions."""
    order = holders[np.argsort(graphs.sizes[holders], kind="stable")][:_N_EXAMPLES]
    return [int(k) if graphs.names is None else graphs[int(k)].name for k in order]


def chemistry_of(
    seen: ExplainedGraphs, fragments: list[Fragment], smarts: bool = True
) -> dict[str, Any]:
    """Names and, unless they are not wanted, SMARTS of molecules; other graphs have neither."""
    graphs = seen.graphs
    if not len(graphs) or not is_molecule(graphs[0]):
        return {"name": [""] * len(fragments)}
    writer = FragmentWriter(seen, _atom_label(seen) if smarts else "unknown")
    names = {"name": [group_name(seen, fragment, writer.molecule) for fragment in fragments]}
    if not smarts:
        return names
    return names | {"smarts": [writer.smarts(fragment) for fragment in fragments]}


def _atom_label(seen: ExplainedGraphs) -> str:
    """What the node labels say that molecules came with."""
    forest = seen.forest
    own = [v for v, t in zip(forest.vocabularies, forest.trees, strict=True)
           if TREES[t][0] == "labels"]  # fmt: skip
    return (atom_label_of(seen.graphs, own[0]) if own else "element") or "unknown"


def pictured(seen: ExplainedGraphs, fragment: Fragment) -> tuple[Any, Occurrence]:
    """A small graph that holds a fragment, its first pattern, and where.

    The very smallest are rarely typical, so one with a few nodes beside the fragment comes first.
    """
    roots = seen.carriers(fragment.patterns[0])
    sizes = seen.graphs.sizes[seen.graph_of_node[roots]]
    held = np.diff(seen.balls(roots, fragment.depth).indptr)
    k = int(np.lexsort((roots, sizes, sizes < held + _BESIDE))[0])
    place = occurrence_at(
        seen.graphs, int(seen.graph_of_node[roots[k]]), int(roots[k]), fragment.patterns[0],
        fragment.depth,
    )  # fmt: skip
    return seen.graphs[place.graph_index], place
