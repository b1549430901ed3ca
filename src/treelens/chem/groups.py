"""Well-known groups of atoms, and which of them a fragment is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any

from treelens.explain.fragment_search import (
    ExplainedGraphs,
    Fragment,
    some_of,
)

# The best fit is the name, the first of equal ones: those at the end are for fragments that
# comprise several of the others.
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
_LEAST_SHARE = 0.95  # of the occurrences must fit
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


def group_name(
    explained: ExplainedGraphs, fragment: Fragment, molecule: Callable[[int], Any]
) -> str:
    """The name of a fragment, marked "(some)" if most molecules with the group do not have it."""
    name = _best_group(explained, fragment, molecule)
    if not name:
        return ""
    query, sample = group_queries()[name], some_of(range(len(explained.graphs)), _MOST_SEARCHED)
    having = set(explained.graph_of_node[fragment.roots].tolist())
    n_having = sum(graph in having for graph in sample)
    n_others = sum(g not in having and molecule(g).HasSubstructMatch(query) for g in sample)
    return name if n_having >= _LEAST_COVERED * (n_having + n_others) else name + SOME


def _best_group(
    explained: ExplainedGraphs, fragment: Fragment, molecule: Callable[[int], Any]
) -> str:
    """The well-known group that fits 95 % of a fragment's occurrences, and best; or an empty text.

    A group fits an occurrence where at least 60 % of the fragment's atoms belong to one match of
    the group, or half of them if the fragment has that match whole; they are at least half of the
    match, and all of the fragment's atoms but carbon are in it: a ring is no name for its chlorine.
    """
    roots = some_of(fragment.roots, MOST_CHECKED)
    owner, balls = explained.graph_of_node[roots], explained.balls(roots, fragment.depth)
    starts = explained.graphs.node_offsets[owner]
    places = []  # molecules, the atoms of occurrences in them, and those that are no carbons
    for k, graph in enumerate(owner.tolist()):
        nodes = balls.indices[balls.indptr[k] : balls.indptr[k + 1]]
        mol, atoms = molecule(graph), set((nodes - starts[k]).tolist())
        others = {k for k in atoms if mol.GetAtomWithIdx(k).GetAtomicNum() != _CARBON}
        places.append((mol, atoms, others))
    sample = some_of(places, _SAMPLED)
    ranked: list[tuple[float, int, str]] = []
    for name, query in group_queries().items():
        share, quality = _fit(sample, query)
        if share >= _LEAST_SHARE:
            ranked.append((-quality, len(ranked), name))
    names = (name for _, _, name in sorted(ranked))
    return next((x for x in names if _fit(places, group_queries()[x])[0] >= _LEAST_SHARE), "")


def _fit(places: Sequence[tuple[Any, set[int], set[int]]], query: Any) -> tuple[float, float]:
    """The share of the places where a group fits, and how well it fits on average."""
    fits, quality = 0, 0.0
    for molecule, atoms, others in places:
        inside, covered = 0.0, 0.0  # shares of the atoms and of the best match that they have
        for match in molecule.GetSubstructMatches(query, maxMatches=1000):
            common = len(atoms.intersection(match)) if others.issubset(match) else 0
            fit = common / len(atoms), common / len(match)
            if fit[0] * fit[1] > inside * covered:
                inside, covered = fit
        fits += covered >= _COVERED and inside >= (_INSIDE_IF_WHOLE if covered == 1 else _INSIDE)
        quality += inside * covered
    return fits / len(places), quality / len(places)


def groups_of(molecule: Any) -> list[tuple[str, list[tuple[int, ...]]]]:
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
