"""Patterns and fragments of molecules as SMARTS, and names of well-known functional groups.

A pattern is the label of an atom, and for *all* its neighbours the bond to them and their pattern
of one depth less. In SMARTS:

- ``[#7;D3]`` fixes an atom's element and the number of its neighbours;
- ``[#7;D3](-[...])(-[...])=[...]`` gives each neighbour a branch of its own. Branches match
  different atoms, and there are as many as neighbours: so it matches where the neighbours'
  patterns are these, each as often as here;
- ``[$(...)]`` requires a neighbour's own pattern without using up atoms, for the way back to the
  first atom is part of that pattern.

The whole is one such atom (:func:`pattern_smarts`), so the matches in a molecule are the pattern's
occurrences, each once.

A fragment is better written out (:class:`MoleculeFragmentWriter`), as in
``[#8;D1]~[#7;D3](~[#8])~[#6]``: the centre first, then every atom within the pattern's depth. Where
the atoms around the centre form no ring this is exactly the pattern. Patterns do not distinguish
how rings close, so each SMARTS is matched against the molecules, and where its matches are not the
atoms that carry the pattern, a stricter form is tried: the same atoms with the nested conditions at
the centre.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from treelens.chem.groups import GroupNames
from treelens.chem.molecules import molecule_of
from treelens.explain.fragment_search import (
    ExplainedGraphs,
    Fragment,
    Occurrence,
    occurrence_at,
    some_of,
)
from treelens.graphs.kinds import FragmentWriter
from treelens.patterns.forest import TREES, PatternForest, labelled_for
from treelens.patterns.vocabulary import PatternVocabulary

LONGEST_SMARTS = 4000
_MOST_MATCHES = 100_000
_MOST_COMPARED = 40  # occurrences whose surroundings are compared
_MOST_TESTED = 600  # molecules that a SMARTS is matched against

# Bond labels that are SMARTS bonds as well, up to quadruple bonds.
_BONDS = ("-", "=", "#", ":", "$")
_NOT_METALS = frozenset(
    {0, 1, 2, *range(5, 11), *range(14, 19), *range(33, 37), *range(52, 55), 85, 86}
)


def pattern_smarts(
    vocabulary: PatternVocabulary,
    pattern: int,
    atom_label: str = "element",
    max_length: int = LONGEST_SMARTS,
) -> str | None:
    """A SMARTS that matches exactly the atoms that carry a pattern.

    It is one atom with conditions, so every match is one occurrence. Match it against the
    molecule as it was read: with the hydrogens added (``Chem.AddHs``) where the graphs were read
    with ``hydrogens=True``. Graphs count a dative bond as a single one, so bonds of metals are
    written as all that are not multiple or aromatic; others (``[NH3]->B``) do not match.

    Parameters
    ----------
    vocabulary : PatternVocabulary
        Learned from molecules, for instance ``model.vocabulary_``.
    pattern : int
        Its id in the vocabulary, the index of ``model.patterns_``.
    atom_label : str, default="element"
        The kind of the node labels, as chosen in :func:`treelens.read_smiles`; or ``"fine"``.
    max_length : int, default=4000
        SMARTS of deep patterns are long.

    Returns
    -------
    str or None
        None if longer than ``max_length``, or if no SMARTS is equivalent: degrees as node labels,
        labels that are not of this kind, bonds of an unusual order.

    Examples
    --------
    >>> from treelens import as_graph_collection
    >>> graphs = as_graph_collection(["CCN", "CNC"])
    >>> vocabulary, _ = PatternVocabulary.fit(graphs, depth=1, edge_labels=True)
    >>> amine = vocabulary.texts(range(vocabulary.n_patterns)).index("N(-C)")
    >>> pattern_smarts(vocabulary, amine)  # D1 excludes the nitrogen of the second molecule
    '[$([#7;D1]-[#6])]'
    """
    depth = vocabulary.depth_of(pattern)
    if vocabulary.degree_labels or atom_label not in _KINDS:
        return None

    @cache
    def atom(depth: int, color: int) -> str | None:
        """One bracketed atom that matches the root of a pattern; None if there is none."""
        root = _read(atom_label, vocabulary.root_label(depth, color))
        if root is None or depth == 0:
            return root and f"[{root.conditions}]"
        branches = []
        for bond, child in vocabulary.children(depth, color)[1]:
            label = _read(atom_label, vocabulary.root_label(depth - 1, child))
            neighbor, sign = atom(depth - 1, child), label and _bond(bond, root, label)
            if neighbor is None or sign is None:
                return None
            branches.append(f"{sign}{neighbor}")
        text = f"[{root.conditions};D{len(branches)}]"
        if branches:
            *inner, last = sorted(branches, key=lambda branch: (len(branch), branch))
            text = f"[$({text}{''.join(f'({branch})' for branch in inner)}{last})]"
        return text if len(text) <= max_length else None

    return atom(depth, pattern - int(vocabulary.level_offsets[depth]))


def forest_smarts(
    forest: PatternForest,
    pattern: int,
    atom_label: str = "element",
    max_length: int = LONGEST_SMARTS,
) -> str | None:
    """A SMARTS of a pattern of a forest, by its id there; see :func:`pattern_smarts`."""
    tree, inner = forest.place(pattern)
    if tree == len(forest.trees):  # a cell of attributes
        return None
    kind = TREES[forest.trees[tree]][0]
    kind = atom_label if kind == "labels" else kind
    return pattern_smarts(forest.vocabularies[tree], inner, kind, max_length)


# --- atoms and bonds --------------------------------------------------------------------------


# What node labels of each kind say beside the element, in the order of their conditions.
_KINDS = {
    "element": (),
    "element+charge": ("charge",),
    "element+aromatic": ("aromatic",),
    # Further labels of the trees of a forest.
    "fine": ("aromatic", "h", "charge", "ring"),
    "none": (),
}
_LABEL = re.compile(
    r"(?P<symbol>\*|[A-Z][a-z]?|(?P<aromatic>[a-z]{1,2}))"
    r"(?P<h>H\d*)?(?P<charge>[+-][1-9]\d*)?(?P<ring>@)?"
)


class _Atom(NamedTuple):
    """The element of an atom label (None: any), and the conditions that the label stands for."""

    number: int | None
    conditions: str


@cache
def _atomic_numbers() -> Mapping[str, int]:
    from rdkit import Chem

    table = Chem.GetPeriodicTable()
    return {table.GetElementSymbol(number): number for number in range(119)}


def _read(kind: str, label: object) -> _Atom | None:
    """The conditions of a label such as ``"C"``, ``"N+1"`` or ``"CH2@"``; None for other labels."""
    # Hydrogens are counted by `h`: those that are no atoms of their own.
    if kind == "none":
        return _Atom(None, "*")
    parts, known = _LABEL.fullmatch(str(label)), _KINDS[kind]
    number = parts and _atomic_numbers().get(parts["symbol"].capitalize())
    if parts is None or number is None or any(parts[x] for x in _KINDS["fine"] if x not in known):
        return None
    aromatic, ring = "a" if parts["aromatic"] else "A", "R" if parts["ring"] else "R0"
    if number == 0:  # aromatic dummies have the same label as others, that of one in no ring
        aromatic, ring = "", "A;R" if parts["ring"] else "a,R0"
    hydrogens = "h" + ((parts["h"] or "H0")[1:] or "1")
    said = {"aromatic": aromatic, "h": hydrogens, "charge": parts["charge"] or "+0"}
    said["ring"] = "" if aromatic == "a" else ring
    return _Atom(number, ";".join(filter(None, [f"#{number}", *(said[x] for x in known)])))


def _bond(bond: object, one: _Atom, other: _Atom) -> str | None:
    """The SMARTS bond that a bond label stands for; None if there is none."""
    if bond is None:
        return "~"
    if bond == "-" and not _NOT_METALS.issuperset((one.number, other.number)):
        return "~;!=;!#;!:;!$"  # single or dative
    return bond if bond in _BONDS else None


# --- fragments --------------------------------------------------------------------------------


class MoleculeFragmentWriter(FragmentWriter):
    """Names the fragments of some molecules, and writes them as SMARTS."""

    column = "smarts"

    def __init__(self, explained: ExplainedGraphs) -> None:
        super().__init__(explained)
        self.atom_label = getattr(explained.graphs.recipe, "atom_label", "element")
        self.molecule = cache(lambda graph: molecule_of(explained.graphs[graph]))
        self._groups = GroupNames(explained, self.molecule)
        self._labelled = cache(lambda tree: labelled_for(explained.graphs, tree))

    def name(self, fragment: Fragment) -> str:
        return self._groups.name(fragment)

    def text(self, fragment: Fragment) -> str | None:
        """The most readable form that matches the fragment's atoms and no others, or None."""
        having = np.unique(self.explained.graph_of_node[fragment.roots])
        others = np.setdiff1d(np.arange(len(self.explained.graphs)), having, assume_unique=True)
        graphs = [k for part in (having, others) for k in some_of(part, _MOST_TESTED // 2).tolist()]
        forms = filter(None, self._forms(fragment))
        return next((x for x in forms if self.is_exact(x, fragment, graphs)), None)

    def is_exact(self, smarts: str, fragment: Fragment, graphs: Iterable[int]) -> bool:
        """Whether the first atoms of all matches are the nodes that carry the fragment."""
        from rdkit import Chem

        query, offsets = Chem.MolFromSmarts(smarts), self.explained.graphs.node_offsets
        if query is None:
            return False
        for graph in graphs:
            matches = self.molecule(graph).GetSubstructMatches(
                query, uniquify=False, maxMatches=_MOST_MATCHES
            )
            begin, end = np.searchsorted(fragment.roots, offsets[graph : graph + 2])
            roots = (fragment.roots[begin:end] - offsets[graph]).tolist()
            if {match[0] for match in matches} != set(roots):
                return False
        return True

    def _forms(self, fragment: Fragment) -> Iterator[str | None]:
        """Forms to be tried, the most readable first; None where a label has no SMARTS."""
        forest, graphs = self.explained.forest, self.explained.graphs
        owner, pattern = self.explained.graph_of_node[fragment.roots], fragment.patterns[0]
        # An occurrence with the most common numbers of nodes and edges, in a small graph.
        places = [
            occurrence_at(graphs, int(owner[k]), int(fragment.roots[k]), pattern, fragment.depth)
            for k in np.lexsort((fragment.roots, graphs.sizes[owner]))[:_MOST_COMPARED]
        ]
        shapes = [(len(place.nodes), len(place.edges)) for place in places]
        place = places[shapes.index(Counter(shapes).most_common(1)[0][0])]
        row = place.root + int(graphs.node_offsets[place.graph_index])
        tree = forest.trees[forest.levels[self.explained.level_of(pattern)][0]]
        if len(fragment.patterns) == 1:
            inner = occurrence_at(graphs, place.graph_index, row, pattern, fragment.depth - 1)
            yield self._written_out(place, tree, inner.nodes)
        conditions = [forest_smarts(forest, p, self.atom_label) for p in fragment.patterns]
        if all(conditions):
            # ``[$(...)]`` needs no further brackets.
            nested = ",".join(
                x[1:-1] if x.startswith("[$(") else f"$({x})" for x in map(str, conditions)
            )
            # Atoms with coarse labels fit all members.
            coarse = "labels" if "labels" in forest.trees else tree
            star = occurrence_at(graphs, place.graph_index, row, pattern, 1)
            yield from (self._written_out(x, coarse, (), nested) for x in (place, star))
            yield f"[{nested}]"

    def _written_out(
        self, place: Occurrence, tree: str, inner: tuple[int, ...], condition: str | None = None
    ) -> str | None:
        """The atoms of an occurrence in one line from the root on, with the labels of a tree."""
        # `inner` atoms have all their neighbours. With a `condition` of the root, any bond fits.
        from rdkit import Chem

        graph, (kind, uses_bonds) = self._labelled(tree)[place.graph_index], TREES[tree]
        molecule = self.molecule(place.graph_index)
        kind = self.atom_label if kind == "labels" else kind
        degrees = Counter(chain.from_iterable(graph.edges))
        atoms, bonds = ["*"] * graph.n_nodes, ["~"] * molecule.GetNumBonds()
        for node in place.nodes:
            label = _read(kind, graph.node_labels[node]) if kind in _KINDS else None
            if label is None:
                return None
            more = f";D{degrees[node]}" if node in inner else ""
            atoms[node] = f"[{label.conditions}{more}]"
        if condition is not None:
            atoms[place.root] = f"[{condition}]"
        if not place.edges:  # RDKit writes no single atom of a molecule of several parts
            return atoms[place.root]
        number = {edge: molecule.GetBondBetweenAtoms(*edge).GetIdx() for edge in graph.edges}
        if condition is None and uses_bonds and graph.edge_labels is not None:
            for edge, bond in zip(graph.edges, graph.edge_labels, strict=True):
                bonds[number[edge]] = str(bond)
        return str(
            Chem.MolFragmentToSmiles(
                molecule,
                place.nodes,
                [number[edge] for edge in place.edges],
                atoms,
                bonds,
                rootedAtAtom=place.root,
            )
        )
