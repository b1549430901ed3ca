"""Patterns of molecules as SMARTS that match exactly the atoms that carry them.

A pattern says which label an atom has, and of *all* its neighbours which bond leads to them and
which pattern, one depth shallower, they carry. SMARTS can say the same:

- ``[#7;D3]`` fixes an atom's element and the number of its neighbours;
- ``[#7;D3](-[...])(-[...])=[...]`` gives each neighbour a branch of its own. Branches are matched
  to different atoms, there are as many as neighbours, and atoms of different patterns cannot stand
  in for each other: so it matches where the neighbours' patterns are these, each as often as here;
- ``[$(...)]`` asks for a neighbour's own pattern without using up atoms, which it must not, for the
  way back to the first atom is part of that pattern.

The whole is one such atom, so the matches in a molecule are the pattern's occurrences, each once.
Where a bond can be of two sorts, the neighbours behind it stand in conditions of their own, each
of which asks for enough of them; the number of all neighbours leaves no room for more.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain, combinations_with_replacement
from typing import Any, NamedTuple

from treelens.explain.decode import root_label
from treelens.explain.layout import is_molecule
from treelens.graphs.collection import Graph, GraphCollection
from treelens.graphs.molecules import ATOM_LABELS, molecule_of, molecules_to_collection
from treelens.patterns.forest import TREES, PatternForest
from treelens.patterns.vocabulary import PatternVocabulary

LONGEST_SMARTS = 4000
_N_COMPARED = 50  # molecules whose labels are read again to see what they are

# Bond labels that a SMARTS bond says as well. Quadruple bonds are the last: higher ones have none.
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
    with ``hydrogens=True``, without them otherwise.

    Parameters
    ----------
    vocabulary : PatternVocabulary
        Learned from molecules, for instance ``model.vocabulary_``.
    pattern : int
        Its id in the vocabulary, the index of ``model.patterns_``.
    atom_label : str, default="element"
        What the node labels say, as it was chosen in :func:`treelens.read_smiles`.
        :func:`atom_label_of` finds it out. ``"fine"``: the fine labels that all molecules have.
    max_length : int, default=4000
        Deep patterns grow long.

    Returns
    -------
    str or None
        None where it would be longer than ``max_length``, or where no SMARTS says the same:
        degrees as node labels, labels that are not of this kind, bonds of an unusual order.

    Notes
    -----
    Graphs count a dative bond as a single one. The SMARTS allow for that where it points at a
    metal, as RDKit makes them by itself; one that was written elsewhere (``[NH3]->B``) is missed.

    Examples
    --------
    >>> from treelens import as_graph_collection
    >>> graphs = as_graph_collection(["CCN", "CNC"])
    >>> vocabulary, _ = PatternVocabulary.fit(graphs, depth=1, edge_labels=True)
    >>> amine = vocabulary.texts(range(vocabulary.n_patterns)).index("N(-C)")
    >>> pattern_smarts(vocabulary, amine)
    '[$([#7;D1]-[#6])]'

    The ``D1`` is what keeps it from the second molecule:

    >>> from rdkit import Chem
    >>> query = Chem.MolFromSmarts('[$([#7;D1]-[#6])]')
    >>> [Chem.MolFromSmiles(x).GetSubstructMatches(query) for x in ("CCN", "CNC")]
    [((2,),), ()]
    """
    depth = vocabulary.depth_of(pattern)
    if vocabulary.degree_labels or atom_label not in _READERS:
        return None
    writer = _Writer(vocabulary, _READERS[atom_label], max_length)
    return writer.atom(depth, pattern - int(vocabulary.level_offsets[depth]))


def forest_smarts(
    forest: PatternForest,
    pattern: int,
    atom_label: str = "element",
    max_length: int = LONGEST_SMARTS,
) -> str | None:
    """The same for a pattern of a forest: each tree has its own labels.

    Parameters
    ----------
    forest : PatternForest
        For instance ``model.model_.weighted.forest``.
    pattern : int
        Its id in the forest, the index of ``model.patterns_``.
    atom_label, max_length :
        See :func:`pattern_smarts`; ``atom_label`` is that of the graphs' own node labels.

    Examples
    --------
    >>> from treelens import as_graph_collection
    >>> graphs = as_graph_collection(["CCN", "CNC"])
    >>> forest, _ = PatternForest.fit(graphs, depth=0, trees=("labels", "fine"))
    >>> methyl = forest.texts(range(forest.n_patterns)).index("CH3")
    >>> forest_smarts(forest, methyl)
    '[#6;A;h3;+0;R0]'
    """
    tree, inner = forest.place(pattern)
    seen = TREES[forest.trees[tree]][0]
    kind = atom_label if seen == "labels" else seen
    return pattern_smarts(forest.vocabularies[tree], inner, kind, max_length)


def atom_label_of(graphs: GraphCollection, vocabulary: PatternVocabulary) -> str | None:
    """What the node labels of molecules say: an ``atom_label`` of :func:`treelens.read_smiles`.

    None where the graphs are no molecules, or their labels come from elsewhere. Where several
    kinds give the same labels (charges are part of them, say, but no atom has one), it is the one
    that says least; on these molecules they agree.

    Parameters
    ----------
    graphs : GraphCollection
    vocabulary : PatternVocabulary
        Whose labels must be of the same kind.

    Examples
    --------
    >>> from treelens.graphs.molecules import smiles_to_collection
    >>> graphs = smiles_to_collection(["c1ccccc1O"], atom_label="element+aromatic")
    >>> atom_label_of(graphs, PatternVocabulary.fit(graphs, depth=0)[0])
    'element+aromatic'
    """
    first = [graphs[i] for i in range(min(len(graphs), _N_COMPARED))]
    if vocabulary.degree_labels or not all(is_molecule(graph) for graph in first):
        return None
    labels = {*graphs.node_alphabet, *vocabulary.node_alphabet}
    kinds = [kind for kind, read in _ATOM_READERS.items() if all(read(label) for label in labels)]
    return next((kind for kind in kinds if _are_labelled_by(kind, first)), None)


def _are_labelled_by(atom_label: str, graphs: Sequence[Graph]) -> bool:
    again = molecules_to_collection([molecule_of(g) for g in graphs], atom_label=atom_label)
    return all(a.node_labels == b.node_labels for a, b in zip(again, graphs, strict=True))


# --- atoms and bonds --------------------------------------------------------------------------


class _Atom(NamedTuple):
    """What an atom label says."""

    number: int | None  # None: any element
    more: str = ""  # further SMARTS conditions

    @property
    def conditions(self) -> str:
        return ("*" if self.number is None else f"#{self.number}") + self.more

    @property
    def is_metal(self) -> bool:
        return self.number not in _NOT_METALS


@cache
def _atomic_numbers() -> Mapping[str, int]:
    from rdkit import Chem

    table = Chem.GetPeriodicTable()
    return {table.GetElementSymbol(number): number for number in range(119)}


def _element(label: Any) -> _Atom | None:
    number = _atomic_numbers().get(label)
    return None if number is None else _Atom(number)


def _element_and_charge(label: Any) -> _Atom | None:
    parts = re.fullmatch(r"([A-Za-z*]+)([+-][1-9]\d*)?", str(label))
    number = None if parts is None else _atomic_numbers().get(parts[1])
    if parts is None or number is None:
        return None
    return _Atom(number, f";{parts[2] or '+0'}")


def _element_and_aromaticity(label: Any) -> _Atom | None:
    if label == "*":  # a dummy's sign has no small letter: aromatic or not, it looks the same
        return _Atom(0)
    plain = _element(label)
    if plain is not None:
        return _Atom(plain.number, ";A")
    aromatic = _element(str(label).capitalize()) if str(label).islower() else None
    return None if aromatic is None else _Atom(aromatic.number, ";a")


_FINE = re.compile(
    r"(?P<symbol>\*|[A-Z][a-z]?|[a-z]{1,2})(?P<h>H\d*)?(?P<charge>[+-]\d+)?(?P<ring>@)?"
)


def _fine(label: Any) -> _Atom | None:
    """A label such as ``"CH2@"``: element, aromaticity, hydrogens, charge and ring.

    Hydrogens are counted by ``h``, those that are no atoms of their own, as the labels count them.
    """
    parts = _FINE.fullmatch(str(label))
    bare = None if parts is None else _element_and_aromaticity(parts["symbol"])
    if parts is None or bare is None:
        return None
    hydrogens = (parts["h"] or "H0")[1:] or "1"
    ring = "" if bare.more == ";a" else ";R" if parts["ring"] else ";R0"
    if bare.number == 0 and not parts["ring"]:  # an aromatic dummy looks like one in no ring
        ring = ";a,R0"
    elif bare.number == 0:
        ring = ";A;R"
    return _Atom(bare.number, f"{bare.more};h{hydrogens};{parts['charge'] or '+0'}{ring}")


def _nothing(label: Any) -> _Atom | None:
    return _Atom(None)


def atom_conditions(label: Any, atom_label: str) -> str | None:
    """What stands between brackets for an atom of a label; None if the label is not of this kind.

    Examples
    --------
    >>> atom_conditions("CH3", "fine")
    '#6;A;h3;+0;R0'
    """
    atom = _READERS[atom_label](label) if atom_label in _READERS else None
    return None if atom is None else atom.conditions


# The kind that says least comes first.
_ATOM_READERS: Mapping[str, Callable[[Any], _Atom | None]] = {
    "element": _element,
    "element+charge": _element_and_charge,
    "element+aromatic": _element_and_aromaticity,
}
assert set(_ATOM_READERS) <= set(ATOM_LABELS)
# Beside these, what the trees of a forest look at.
_READERS = {**_ATOM_READERS, "fine": _fine, "none": _nothing}


def _bond_choices(bond: Any, one: _Atom, other: _Atom) -> tuple[str, ...]:
    """The SMARTS bonds that a bond label stands for: each of them, and no other."""
    if bond is None:
        return ("~",)
    if bond != "-":
        return (bond,) if bond in _BONDS else ()
    # Graphs count a dative bond, which is one that points at a metal, as a single one.
    return ("-", *(["->"] if other.is_metal else []), *(["<-"] if one.is_metal else []))


# --- patterns ---------------------------------------------------------------------------------


class _Writer:
    """Writes the patterns of one vocabulary, those that several others contain only once."""

    def __init__(
        self,
        vocabulary: PatternVocabulary,
        read_label: Callable[[Any], _Atom | None],
        max_length: int,
    ) -> None:
        self.vocabulary = vocabulary
        self.read_label = read_label
        self.max_length = max_length
        self.written: dict[tuple[int, int], str | None] = {}

    def atom(self, depth: int, color: int) -> str | None:
        """One bracketed atom that matches where the pattern's root is; None if it cannot be."""
        if (depth, color) not in self.written:
            text = self._write(depth, color)
            fits = text is not None and len(text) <= self.max_length
            self.written[depth, color] = text if fits else None
        return self.written[depth, color]

    def _write(self, depth: int, color: int) -> str | None:
        root = self._root(depth, color)
        if root is None or depth == 0:
            return root and f"[{root.conditions}]"
        groups = Counter(self.vocabulary.children(depth, color)[1])
        ways = [self._ways(root, depth - 1, *child, count) for child, count in groups.items()]
        if not all(ways):
            return None
        sure = chain.from_iterable(way[0] for way in ways if len(way) == 1)
        alone = f"{root.conditions};D{groups.total()}"
        branches = _branched(sure)
        conditions = [
            f"$([{alone}]{branches})" if branches else alone,
            *(",".join(f"$(*{_branched(x)})" for x in way) for way in ways if len(way) > 1),
        ]
        return f"[{';'.join(conditions)}]"

    def _ways(
        self, root: _Atom, depth: int, bond: Any, color: int, count: int
    ) -> list[tuple[str, ...]]:
        """All ways to write the branches of ``count`` neighbours alike; none if one cannot be."""
        neighbor, label = self.atom(depth, color), self._root(depth, color)
        if neighbor is None or label is None:
            return []
        bonds = combinations_with_replacement(_bond_choices(bond, root, label), count)
        return [tuple(sign + neighbor for sign in signs) for signs in bonds]

    def _root(self, depth: int, color: int) -> _Atom | None:
        return self.read_label(root_label(self.vocabulary, depth, color))


def _branched(branches: Iterable[str]) -> str:
    """``(-a)(-b)=c``: what follows an atom with these branches, the shortest first."""
    *inner, last = sorted(branches, key=lambda branch: (len(branch), branch)) or [""]
    return "".join(f"({branch})" for branch in inner) + last
