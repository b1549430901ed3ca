"""Fragments as SMARTS whose matches are the atoms of their occurrences.

:mod:`treelens.explain.smarts` writes a pattern as one atom with nested conditions: exact, and hard
to read. A fragment is better written out, ``[#8;D1]~[#7;D3](~[#8])~[#6]``: the centre first, then
every atom within the pattern's reach, those whose neighbours the pattern knows with their number
(``D3``). Where the atoms around the centre form no ring this says exactly what the pattern says.
Rings can be closed in several ways that look the same to a pattern, so each SMARTS is matched
against the molecules at hand, and where it does not find the very atoms that carry the pattern, a
stricter form is tried: the same atoms with the nested conditions at the centre.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from treelens.explain.decode import Occurrence, occurrence_at
from treelens.explain.fragment_search import Fragment
from treelens.explain.fragment_seen import ExplainedGraphs
from treelens.explain.smarts import atom_conditions, forest_smarts
from treelens.graphs.collection import GraphCollection
from treelens.graphs.molecules import molecule_of
from treelens.patterns.forest import TREES, labelled_for

_MOST_MATCHES = 100_000
_MOST_COMPARED = 40  # occurrences whose surroundings are compared
_MOST_CHECKED = 600  # molecules that a SMARTS is matched against


class FragmentWriter:
    """Writes the fragments of some molecules as SMARTS.

    Parameters
    ----------
    seen : ExplainedGraphs
        Of molecules.
    atom_label : str
        What their own node labels say; see :func:`treelens.explain.smarts.pattern_smarts`.
    """

    def __init__(self, seen: ExplainedGraphs, atom_label: str) -> None:
        self.seen = seen
        self.atom_label = atom_label
        self._molecules: dict[int, Any] = {}
        self._labelled: dict[str, GraphCollection] = {}

    def molecule(self, graph: int) -> Any:
        if graph not in self._molecules:
            self._molecules[graph] = molecule_of(self.seen.graphs[graph])
        return self._molecules[graph]

    def smarts(self, fragment: Fragment) -> str | None:
        """The first form that finds the fragment's atoms and no others; None if there is none."""
        graphs = self._checked_graphs(fragment)
        return next((x for x in self._forms(fragment) if self.is_exact(x, fragment, graphs)), None)

    def is_exact(self, smarts: str, fragment: Fragment, graphs: Iterable[int]) -> bool:
        """Whether the first atoms of all matches are the nodes that carry the fragment."""
        from rdkit import Chem

        query, offsets = Chem.MolFromSmarts(smarts), self.seen.graphs.node_offsets
        if query is None:
            return False
        for graph in graphs:
            found = self.molecule(graph).GetSubstructMatches(
                query, uniquify=False, maxMatches=_MOST_MATCHES
            )
            begin, end = np.searchsorted(fragment.roots, offsets[graph : graph + 2])
            if {match[0] for match in found} != set(
                (fragment.roots[begin:end] - offsets[graph]).tolist()
            ):
                return False
        return True

    def _checked_graphs(self, fragment: Fragment) -> list[int]:
        """Graphs that hold the fragment, and as many that do not, evenly from the collection."""
        holding = np.unique(self.seen.graph_of_node[fragment.roots])
        others = np.setdiff1d(np.arange(len(self.seen.graphs)), holding, assume_unique=True)
        return [*_spread(holding, _MOST_CHECKED // 2), *_spread(others, _MOST_CHECKED // 2)]

    def _forms(self, fragment: Fragment) -> Iterator[str]:
        """Forms to be tried, the most readable first."""
        place, reach = self._usual_place(fragment), fragment.depth
        tree = self.seen.forest.levels[self.seen.level_of(fragment.patterns[0])][0]
        if len(fragment.patterns) == 1:
            yield from self._written_out(place, reach, tree, None)
        conditions = [
            forest_smarts(self.seen.forest, p, self.atom_label) for p in fragment.patterns
        ]
        if all(conditions):
            nested = ",".join(_condition(str(condition)) for condition in conditions)
            coarse = self._coarsest(tree)
            yield from self._written_out(place, reach, coarse, nested)
            star = occurrence_at(
                self.seen.graphs, place.graph_index,
                place.root + int(self.seen.graphs.node_offsets[place.graph_index]),
                place.pattern, 1,
            )  # fmt: skip
            yield from self._written_out(star, 1, coarse, nested)
            yield f"[{nested}]"

    def _coarsest(self, tree: int) -> int:
        """The tree of the graphs' own labels, where there is one: its atoms fit all members."""
        trees = self.seen.forest.trees
        return trees.index("labels") if "labels" in trees else tree

    def _usual_place(self, fragment: Fragment) -> Occurrence:
        """An occurrence whose surroundings are those of most, in a graph as small as can be."""
        graphs, seen = self.seen.graphs, self.seen
        owner = seen.graph_of_node[fragment.roots]
        order = np.lexsort((fragment.roots, graphs.sizes[owner]))[:_MOST_COMPARED]
        places = [
            occurrence_at(graphs, int(owner[k]), int(fragment.roots[k]), fragment.patterns[0],
                          fragment.depth)
            for k in order
        ]  # fmt: skip
        shapes = [(len(place.nodes), len(place.edges)) for place in places]
        return places[shapes.index(Counter(shapes).most_common(1)[0][0])]

    def _written_out(
        self, place: Occurrence, depth: int, tree: int, root_condition: str | None
    ) -> Iterator[str]:
        """All atoms of an occurrence with the labels of a tree; nothing if a label has none."""
        name = self.seen.forest.trees[tree]
        if name not in self._labelled:
            self._labelled[name] = labelled_for(self.seen.graphs, name)
        graph = self._labelled[name][place.graph_index]
        kind = TREES[name][0]
        kind = self.atom_label if kind == "labels" else kind
        labels = {node: atom_conditions(graph.node_labels[node], kind) for node in place.nodes}
        if any(label is None for label in labels.values()):
            return
        bonds = None
        if TREES[name][1] and graph.edge_labels is not None and root_condition is None:
            bonds = dict(zip(graph.edges, graph.edge_labels, strict=True))
        degrees = Counter(node for edge in graph.edges for node in edge)
        near = _distances(place)
        atoms = {}
        for node in place.nodes:
            inner = near[node] < depth and root_condition is None
            atoms[node] = f"[{labels[node]}{f';D{degrees[node]}' if inner else ''}]"
        if root_condition is not None:
            atoms[place.root] = f"[{root_condition}]"
        yield _linear(place, atoms, bonds)


def _condition(atom: str) -> str:
    """A bracketed atom as one condition among several: ``[$(...)]`` needs no further brackets."""
    inner, level = atom[1:-1], 0
    for sign in inner:
        level += {"(": 1, ")": -1}.get(sign, 0)
        if level == 0 and sign in ";,&":
            return f"$({atom})"
    return inner


def _spread(values: np.ndarray, most: int) -> list[int]:
    """At most so many, evenly from the whole."""
    step = max(1, -(-len(values) // most))
    return values[::step].tolist()


def _distances(place: Occurrence) -> dict[int, int]:
    """Steps from the root to every node of an occurrence."""
    near, frontier = {place.root: 0}, [place.root]
    around = _neighbors(place)
    while frontier:
        frontier = [n for node in frontier for n in _step(around, near, node)]
    return near


def _step(around: dict[int, list[int]], near: dict[int, int], node: int) -> list[int]:
    new = [other for other in around[node] if other not in near]
    near.update(dict.fromkeys(new, near[node] + 1))
    return new


def _neighbors(place: Occurrence) -> dict[int, list[int]]:
    around: dict[int, list[int]] = {node: [] for node in place.nodes}
    for u, v in place.edges:
        around[u].append(v)
        if u != v:
            around[v].append(u)
    return around


def _linear(
    place: Occurrence, atoms: dict[int, str], bonds: dict[tuple[int, int], Any] | None
) -> str:
    """The atoms in one line from the root on, branches in brackets, rings closed by numbers."""
    around, closures = _neighbors(place), _ring_bonds(place)
    numbers: dict[tuple[int, int], int] = {edge: k + 1 for k, edge in enumerate(closures)}

    def sign(u: int, v: int) -> str:
        return "~" if bonds is None else str(bonds[min(u, v), max(u, v)])

    def write(node: int, before: int) -> str:
        rings = "".join(
            f"{sign(*edge)}{number if number < 10 else f'%{number}'}"
            for edge, number in numbers.items()
            if node in edge
        )
        onward = [
            other
            for other in around[node]
            if other != before and (min(node, other), max(node, other)) not in numbers
        ]
        parts = sorted((sign(node, other) + write(other, node) for other in onward), key=len)
        inner = "".join(f"({part})" for part in parts[:-1])
        return atoms[node] + rings + inner + (parts[-1] if parts else "")

    return write(place.root, -1)


def _ring_bonds(place: Occurrence) -> Sequence[tuple[int, int]]:
    """Edges that close a ring: those outside a spanning tree from the root."""
    around, reached = _neighbors(place), {place.root}
    tree: set[tuple[int, int]] = set()
    frontier = [place.root]
    while frontier:
        following = []
        for node in frontier:
            for other in around[node]:
                if other not in reached:
                    reached.add(other)
                    following.append(other)
                    tree.add((min(node, other), max(node, other)))
        frontier = following
    return [edge for edge in place.edges if edge not in tree]
