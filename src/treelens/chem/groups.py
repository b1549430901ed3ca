"""Well-known groups of atoms, and which of them a fragment is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from treelens.explain.fragment_search import (
    ExplainedGraphs,
    Fragment,
    some_of,
)

if TYPE_CHECKING:
    from rdkit.Chem import Mol

# Of groups with the same atoms, :func:`groups_of` names the first.
GROUPS = MappingProxyType(
    {
        "aromatic nitro": "c[N+](=O)[O-]",
        "aliphatic nitro": "[CX4][N+](=O)[O-]",
        "nitro on a five-membered heteroaromatic ring": "[O-][N+](=O)c1cc[c,n][o,s,n]1",
        "N-nitro": "N[N+](=O)[O-]",
        "nitrate ester": "[#6]O[N+](=O)[O-]",
        "nitroso": "[#6,#7,#8][NX2;+0]=O",
        "N-nitroso": "[NX3][NX2;+0]=O",
        "primary aromatic amine": "c[NX3;H2]",
        "secondary aromatic amine": "c[NX3;H1]",
        "tertiary aromatic amine": "c[NX3;H0;!$(N~[!#6])]",
        "primary aliphatic amine": "[CX4][NX3;H2]",
        "secondary aliphatic amine": "[CX4][NX3;H1][CX4]",
        "tertiary aliphatic amine": "[CX4][NX3;H0]([CX4])[CX4]",
        "quaternary ammonium": "[CX4][N+]([CX4])([CX4])[CX4]",
        "hydroxylamine": "[#6][NX3][OX2;H1]",
        "oxime": "[#6]=N[OX2]",
        "hydrazine": "[NX3;!$(N~[O,S])][NX3;!$(N~[O,S])]",
        "hydrazone": "[#6]=N[NX3]",
        "azo": "[#6]N=N[#6]",
        "triazene": "[NX3]N=N",
        "azide": "N=[N+]=[N-]",
        "diazo": "[#6]=[N+]=[N-]",
        "diazonium": "[#6][N+]#N",
        "nitrile": "[#6]C#N",
        "isocyanate": "N=C=O",
        "isothiocyanate": "N=C=S",
        "epoxide": "C1OC1",
        "aziridine": "C1NC1",
        "oxetane": "C1COC1",
        "beta-lactone": "O=C1CCO1",
        "peroxide": "OO",
        "alkyl fluoride": "[CX4]F",
        "trifluoromethyl": "[#6]C(F)(F)F",
        "alkyl chloride": "[CX4]Cl",
        "alkyl bromide": "[CX4]Br",
        "alkyl iodide": "[CX4]I",
        "geminal dichloride": "[CX4](Cl)Cl",
        "trichloromethyl": "C(Cl)(Cl)Cl",
        "vinyl halide": "C=C[F,Cl,Br,I]",
        "aryl fluoride": "cF",
        "aryl chloride": "cCl",
        "aryl bromide": "cBr",
        "aryl iodide": "cI",
        "acyl halide": "[#6]C(=O)[F,Cl,Br,I]",
        "carbamoyl chloride": "NC(=O)Cl",
        "aldehyde": "[#6][CX3;H1]=O",
        "unsaturated aldehyde": "C=C[CX3;H1]=O",
        "ketone": "[#6]C(=O)[#6]",
        "diaryl ketone": "cC(=O)c",
        "quinone": "O=C1[#6]~[#6]C(=O)[#6]~[#6]1",
        "carboxylic acid": "[#6]C(=O)[OX2;H1]",
        "carboxylate": "[#6]C(=O)[O-]",
        "aromatic carboxylic acid": "cC(=O)[OX2;H1]",
        "ester": "[#6]C(=O)O[#6]",
        "carbamate": "NC(=O)O[#6]",
        "carbonate": "[#6]OC(=O)O[#6]",
        "primary amide": "[#6]C(=O)[NX3;H2]",
        "secondary amide": "[#6]C(=O)[NX3;H1][#6]",
        "tertiary amide": "[#6]C(=O)[NX3;H0]([#6])[#6]",
        "amide": "[#6]C(=O)N",
        "urea": "NC(=O)N",
        "thiourea": "NC(=S)N",
        "imide": "C(=O)NC(=O)",
        "guanidine": "NC(=N)N",
        "amidine": "[#6]C(=N)N",
        "imine": "[#6]C=N[#6]",
        "primary alcohol": "[CX4;H2][OX2;H1]",
        "secondary alcohol": "[CX4;H1][OX2;H1]",
        "tertiary alcohol": "[CX4;H0][OX2;H1]",
        "phenol": "c[OX2;H1]",
        "alkyl ether": "[CX4]O[CX4]",
        "aryl ether": "cO[CX4]",
        "methoxy": "O[CH3]",
        "acetal": "O[CX4]O",
        "thiol": "[#6][SX2;H1]",
        "thioether": "[#6][SX2][#6]",
        "disulphide": "[#6]SS[#6]",
        "sulphoxide": "[#6]S(=O)[#6]",
        "sulphone": "[#6]S(=O)(=O)[#6]",
        "sulphonic acid": "[#6]S(=O)(=O)[O;H1,-]",
        "primary sulphonamide": "[#6]S(=O)(=O)[NX3;H2]",
        "secondary sulphonamide": "[#6]S(=O)(=O)[NX3;H1][#6]",
        "tertiary sulphonamide": "[#6]S(=O)(=O)[NX3;H0]([#6])[#6]",
        "sulphonamide": "[#6]S(=O)(=O)N",
        "sulphonate or sulphate ester": "[CX4]OS(=O)(=O)",
        "phosphate": "OP(=O)(O)O",
        "phosphonate": "[#6]P(=O)(O)O",
        "thiophosphate": "OP(=S)(O)O",
        "alkene": "[#6]C=C[#6]",
        "terminal alkene": "C=[CH2]",
        "alkyne": "C#C",
        "michael acceptor": "C=CC=O",
        "tert-butyl": "[CX4]([CH3])([CH3])[CH3]",
        "isopropyl": "[CH;X4]([CH3])[CH3]",
        "ethyl": "[CH2][CH3]",
        "methyl on an aromatic ring": "c[CH3]",
        "alkyl chain": "[CH2;R0][CH2;R0][CH2;R0]",
        "cyclohexane": "C1CCCCC1",
        "benzene ring": "c1ccccc1",
        "ring-fused aromatic carbons": "c(c)(c)c(c)c",
        "polycyclic aromatic": "c1ccc2c(c1)ccc1ccccc12",
        "naphthalene": "c1ccc2ccccc2c1",
        "pyridine": "c1ccncc1",
        "pyrimidine": "c1cncnc1",
        "imidazole": "c1cncn1",
        "pyrazole": "c1ccnn1",
        "pyrrole or indole nitrogen": "c[nH]c",
        "thiophene": "c1ccsc1",
        "furan": "c1ccoc1",
        "thiazole": "c1cscn1",
        "biaryl": "c-!@c",
        "piperidine": "C1CCNCC1",
        "piperazine": "C1CNCCN1",
        "morpholine": "C1COCCN1",
        "nitro": "[#6][N+](=O)[O-]",
        "fluoride": "[#6]F",
        "chloride": "[#6]Cl",
        "bromide": "[#6]Br",
        "iodide": "[#6]I",
        "hydroxyl": "[#6][OX2;H1]",
        "ether": "[#6][OX2][#6]",
        "carbonyl": "[#6]=O",
    }
)
_SAMPLED = 30  # occurrences that candidate names are ranked on
MOST_CHECKED = 300  # occurrences that a name is checked on
_LEAST_SHARE = 0.9  # of the occurrences must fit
_INSIDE, _COVERED = 0.6, 0.5
_INSIDE_IF_WHOLE = 0.5  # of atoms, where the fragment has the group whole
_CARBON = 6
_MOST_SEARCHED = 300  # molecules that are searched for a group
_LEAST_COVERED = 0.5  # of the molecules with a group have the fragment, or it is only some of them
SOME = " (some)"


@cache
def group_queries() -> dict[str, Any]:
    """The RDKit queries of the well-known groups."""
    from rdkit import Chem

    return {name: Chem.MolFromSmarts(smarts) for name, smarts in GROUPS.items()}


class GroupNames:
    """Names the fragments of some molecules by well-known groups."""

    def __init__(self, explained: ExplainedGraphs, molecule: Callable[[int], Any]) -> None:
        self.explained, self.molecule = explained, molecule
        self.sample = some_of(range(len(explained.graphs)), _MOST_SEARCHED)
        self.holders = cache(self._holders)

    def _holders(self, name: str) -> frozenset[int]:
        """Return which molecules of the sample have a group."""
        query = group_queries()[name]
        return frozenset(k for k in self.sample if self.molecule(k).HasSubstructMatch(query))

    def name(self, fragment: Fragment) -> str:
        """Return the most specific group that fits, or an empty text.

        Of the groups that fit at least 90 % of the fragment's occurrences it is the one that fits
        best, or a larger one around it which is in fewer molecules: an alcohol's oxygen that is
        an acid's nine times of ten is named by the acid. It is marked "(some)" if most molecules
        that have the group do not have the fragment.
        """
        places = self._places(fragment)
        fits = {
            n: _Fit.of(some_of(places, _SAMPLED), query) for n, query in group_queries().items()
        }
        fits = {name: fit for name, fit in fits.items() if fit.share >= _LEAST_SHARE}
        while fits:
            best = max(fits, key=lambda name: fits[name].quality)  # the first of equal ones
            around = [name for name, fit in fits.items() if fit.contains(fits[best])]
            for name in sorted(around, key=lambda x: (len(self.holders(x)), -fits[x].size)):
                if _Fit.of(places, group_queries()[name]).share >= _LEAST_SHARE:
                    return self._marked(name, fragment)
                del fits[name]
        return ""

    def _marked(self, name: str, fragment: Fragment) -> str:
        having = set(self.explained.graph_of_node[fragment.roots].tolist())
        n_having, n_others = len(having.intersection(self.sample)), self.holders(name) - having
        least = _LEAST_COVERED * (n_having + len(n_others))
        return name if n_having >= least else name + SOME

    def _places(self, fragment: Fragment) -> list[tuple[Any, set[int], set[int]]]:
        """Return molecules, the atoms of occurrences in them, and those that are no carbons."""
        explained = self.explained
        roots = some_of(fragment.roots, MOST_CHECKED)
        owner, balls = explained.graph_of_node[roots], explained.balls(roots, fragment.depth)
        starts, places = explained.graphs.node_offsets[owner], []
        for k, graph in enumerate(owner.tolist()):
            nodes = balls.indices[balls.indptr[k] : balls.indptr[k + 1]]
            mol, atoms = self.molecule(graph), set((nodes - starts[k]).tolist())
            others = {k for k in atoms if mol.GetAtomWithIdx(k).GetAtomicNum() != _CARBON}
            places.append((mol, atoms, others))
        return places


class _Fit(NamedTuple):
    """How a group fits some occurrences of a fragment.

    It fits one where at least 60 % of the fragment's atoms belong to one match of the group, or
    half of them if the fragment has that match whole; they are at least half of the match, and all
    of the fragment's atoms but carbon are in it: a ring is no name for its chlorine.
    """

    matches: list[frozenset[int]]  # the best of each occurrence, empty where there is none
    share: float  # of the occurrences that it fits
    quality: float  # how well, on average
    size: int  # atoms

    @classmethod
    def of(cls, places: Sequence[tuple[Any, set[int], set[int]]], query: Mol) -> _Fit:
        fits, quality, matches = 0, 0.0, []
        for molecule, atoms, others in places:
            inside, covered = 0.0, 0.0  # shares of the atoms and of the best match that they have
            best: frozenset[int] = frozenset()
            for match in molecule.GetSubstructMatches(query, maxMatches=1000):
                common = len(atoms.intersection(match)) if others.issubset(match) else 0
                fit = common / len(atoms), common / len(match)
                if fit[0] * fit[1] > inside * covered:
                    (inside, covered), best = fit, frozenset(match)
            least = _INSIDE_IF_WHOLE if covered == 1 else _INSIDE
            fits += covered >= _COVERED and inside >= least
            quality += inside * covered
            matches.append(best)
        return cls(matches, fits / len(places), quality / len(places), query.GetNumAtoms())

    def contains(self, other: _Fit) -> bool:
        """Whether matches of the other group lie in those of this one, nine times of ten."""
        pairs = zip(self.matches, other.matches, strict=True)
        return sum(own >= its for own, its in pairs) >= _LEAST_SHARE * len(self.matches)


def groups_of(molecule: Mol) -> list[tuple[str, list[tuple[int, ...]]]]:
    """Return the well-known groups of a molecule with the atoms of each occurrence.

    A group whose atoms all belong to a larger group is left out: the carbonyl of an acid.

    Examples
    --------
    >>> from rdkit import Chem
    >>> groups_of(Chem.MolFromSmiles("CC(=O)O"))
    [('carboxylic acid', [(0, 1, 2, 3)])]
    """
    places = [
        (set(match), name)
        for name, query in group_queries().items()
        for match in molecule.GetSubstructMatches(query, maxMatches=100)
    ]
    found: dict[str, list[tuple[int, ...]]] = {}
    taken: list[set[int]] = []
    for atoms, name in sorted(places, key=lambda place: -len(place[0])):  # stable
        if not any(atoms <= other for other in taken):
            taken.append(atoms)
            found.setdefault(name, []).append(tuple(sorted(atoms)))
    return list(found.items())
