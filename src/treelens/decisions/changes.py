"""Changes of a molecule: those that matched pairs of measured molecules show, and scans.

Matched pairs are two molecules that differ by one substituent. RDKit's ``rdMMPA`` cuts every
molecule at each single bond outside of rings. Two molecules with the same larger side (the constant
part) are a pair, and the change is from one smaller side to the other: ``F >> Cl``. A hydrogen is a
substituent like any other. A change is made where the atoms around it are those of its pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from treelens.chem.identity import comparable_smiles, standard_smiles, steps_of
from treelens.chem.matched_pairs import (
    Change,
    attachment,
    cuts_of,
    hydrogen_cuts,
    joined,
    matched_pairs,
)
from treelens.chem.molecule_table import MoleculeTable
from treelens.chem.parsing import molecules_behind, parsed_smiles, quiet, rdkit
from treelens.chem.scans import scans
from treelens.chem.units import factors_between, is_same_quantity
from treelens.errors import GraphDataError
from treelens.models.fitted import FittedModel
from treelens.targets import TargetRecord

if TYPE_CHECKING:
    from rdkit.Chem import Mol

_MOST_SHOWN = 5  # pairs that a row names


class Known(NamedTuple):
    """Molecules of which something is known, by endpoint."""

    molecules: list[Any]  # without hydrogen atoms and atom map numbers
    smiles: list[str]  # canonical
    names: list[str]
    # (n_molecules, n_endpoints) on the scales that are learned, of classes 1 for what is looked
    # for and else 0; NaN where nothing is known
    values: np.ndarray
    limits: np.ndarray  # (n_molecules, n_endpoints) 1: a lower limit, -1: an upper one
    labels: list[tuple[str, str]]  # of 0 and 1, by endpoint; of numbers empty

    @property
    def exact(self) -> np.ndarray:
        """Values that were measured, not those at a limit of the assay."""
        return np.where(self.limits == 0, self.values, np.nan)

    def of(self, smiles: str) -> int | None:
        """Return the position of a molecule, None where it is not among them."""
        return self.smiles.index(smiles) if smiles in self.smiles else None

    def text(
        self, place: int, endpoint: int, record: TargetRecord, classes: np.ndarray | None
    ) -> str | None:
        """Return what was measured of an endpoint of a molecule, ``>`` where it is a limit."""
        value, limit = self.values[place, endpoint], self.limits[place, endpoint]
        if np.isnan(value):
            return None
        if classes is not None:
            return str(self.labels[endpoint][int(value)])
        shown = value if record.scale is None else record.scale.inverse(np.array([value]))[0]
        return f"{('<', '', '>')[int(limit) + 1]}{shown:.4g}"


class Idea(NamedTuple):
    """A new molecule, and why."""

    smiles: str
    change: str
    at: str
    pairs: list[tuple[int, int]]  # measured molecules that show the change; none of a scan
    standard: str = ""  # SMILES of the standard form, by which molecules are the same


def known_molecules(
    model: FittedModel, table: MoleculeTable | None, code: int | None, recipe: object
) -> Known:
    """Return the training molecules that a model keeps, or those of a table in their place.

    ``code`` is the class that is looked for, in a model of one endpoint. Molecules are in the
    standard form of ``recipe``, as the model keeps them.
    """
    kept = model.training
    names: Sequence[str] | np.ndarray | None
    if table is not None:
        molecules, names = molecules_behind(table.graphs), table.graphs.names
        values, limits = _values_of(table, model, code)
    elif kept.smiles is None or not any(kept.smiles):
        raise ValueError(
            "The model keeps no training molecules, which matched pairs are taken from: give the "
            "table that it was fitted to, with training=TABLE."
        )
    else:
        molecules, names, limits = parsed_smiles(kept.smiles), kept.names, kept.limits
        values = kept.targets
        if code is not None:
            values = (values == code).astype(float)
        elif model.endpoint_names:
            classes = np.array([own is not None for own in _classes_of(model)])
            values = np.where(classes & ~np.isnan(values), (values > 0).astype(float), values)
    values = values.reshape(len(values), -1)
    limits = np.zeros(values.shape) if limits is None else limits.reshape(values.shape)
    texts = [str(k + 1) for k in range(len(values))] if names is None else list(map(str, names))
    some = [k for k, each in enumerate(molecules) if each is not None]
    plain = [without_marks(molecules[k]) for k in some]
    smiles = [rdkit().MolToSmiles(molecule) for molecule in plain]
    if table is not None and steps_of(table.graphs.recipe) != steps_of(recipe):
        smiles = standard_smiles(smiles, recipe)
        plain = [without_marks(molecule) for molecule in parsed_smiles(smiles)]
    labels = [_labels(own, code) for own in _classes_of(model)]
    return Known(plain, smiles, [texts[k] for k in some], values[some], limits[some], labels)


def _classes_of(model: FittedModel) -> list[np.ndarray | None]:
    """Return the classes of each endpoint, None of numbers."""
    return [model.endpoint(name).classes for name in model.endpoint_names] or [model.classes]


def _labels(classes: np.ndarray | None, code: int | None) -> tuple[str, str]:
    """Return what 0 and 1 stand for, 1 for the class that is looked for."""
    if classes is None:
        return "", ""
    names = list(map(str, classes.tolist()))
    wanted = names[1 if code is None else code]
    others = [name for name in names if name != wanted]
    return (others[0] if len(others) == 1 else f"not {wanted}"), wanted


def _values_of(
    table: MoleculeTable, model: FittedModel, code: int | None
) -> tuple[np.ndarray, np.ndarray | None]:
    known = table.targets
    if known is None or model.endpoint_names:
        raise TypeError(
            "training must be a table with the target of a model of one endpoint: "
            "tl.read_table(path, target=)."
        )
    record, name = model.training.record, table.target
    if name and record.name and not is_same_quantity(name, record.name):
        raise GraphDataError(
            f"{table.source} was read with the target {name!r}, and the model learned "
            f"{record.name!r}: give a table of that, with its name."
        )
    if code is None:
        unit, goal = known.unit, record.unit
        if unit is not None and goal is not None:
            molecules, known = molecules_behind(table.graphs), known[:]
            factors = factors_between(unit, goal, name or "y", molecules)
            known.values = known.numbers() * factors
        return known.numbers_on(record.scale), known.limits
    assert model.classes is not None
    wanted = str(model.classes[code])
    return np.array([str(y) == wanted for y in known.tolist()], float), known.limits


def without_marks(molecule: Mol) -> Any:
    """Return a copy without hydrogen atoms and atom map numbers, which mark cuts here."""
    with quiet():
        copy = rdkit().RemoveHs(molecule)
    for atom in copy.GetAtoms():
        atom.SetAtomMapNum(0)
    return copy


def ideas_for(
    lead: Mol, known: Known, recipe: object, largest: int, min_pairs: int, with_scans: bool
) -> list[Idea]:
    """Return new molecules, each with the change that most pairs show, the smallest of several.

    The lead and the known molecules are in the standard form of ``recipe``; new ones are written
    as the tautomers that the change makes, and are compared in that form.
    """
    own = rdkit().MolToSmiles(lead)
    ideas = _from_pairs(lead, known, largest, min_pairs)
    ideas += [Idea(scan.smiles, scan.text, scan.at, []) for scan in scans(lead) if with_scans]
    made = standard_smiles([idea.smiles for idea in ideas], recipe, tautomers=False)
    standard = comparable_smiles(made, [lead, *known.molecules], recipe)
    ideas = [
        idea._replace(smiles=x, standard=standard[x]) for x, idea in zip(made, ideas, strict=True)
    ]
    ideas.sort(key=lambda x: (-len(x.pairs), len(x.change), x.change, x.at, x.smiles))
    found: dict[str, Idea] = {}
    for idea in ideas:
        if idea.standard != own:
            found.setdefault(idea.smiles, idea)
    return list(found.values())


def _from_pairs(lead: Mol, known: Known, largest: int, min_pairs: int) -> list[Idea]:
    cuts = cuts_of(lead, largest) | hydrogen_cuts(lead)
    at_cuts: dict[tuple[str, str], list[str]] = {}
    for constant, variable in sorted(cuts):
        at_cuts.setdefault((variable, attachment(constant)[0]), []).append(constant)
    measured = ~np.isnan(known.exact)
    some = np.flatnonzero(measured.any(axis=1)).tolist()
    changes: dict[Change, list[tuple[int, int]]] = {}
    molecules = [known.molecules[k] for k in some]
    for change, one, other in matched_pairs(molecules, largest, {cut.variable for cut in cuts}):
        pair = some[one], some[other]
        if (change.before, change.at) in at_cuts and (measured[pair[0]] & measured[pair[1]]).any():
            changes.setdefault(change, []).append(pair)
    return [
        Idea(smiles, change.text, change.at, sorted(pairs))
        for change, pairs in changes.items()
        if len(pairs) >= min_pairs
        for constant in at_cuts[change.before, change.at]
        if (smiles := joined(constant, change.after)) is not None
    ]


def support(idea: Idea, known: Known, prefixes: list[str]) -> dict[str, Any]:
    """Return what measured pairs say of a change, with columns for each endpoint."""
    row: dict[str, Any] = {
        "source": "pairs" if idea.pairs else "scan",
        "n_pairs": len(idea.pairs),
    }
    one, other = np.array(idea.pairs, dtype=np.int64).reshape(-1, 2).T
    off = known.exact[other] - known.exact[one]  # (n_pairs, n_endpoints)
    for prefix, own in zip(prefixes, off.T, strict=True):
        own = own[~np.isnan(own)]
        if prefix:
            row[f"{prefix}n_pairs"] = len(own)
        row[f"{prefix}pair_mean"] = float(own.mean()) if len(own) else np.nan
        row[f"{prefix}pair_std"] = float(own.std(ddof=1)) if len(own) > 1 else np.nan
    named = [f"{known.names[i]} >> {known.names[j]}" for i, j in idea.pairs[:_MOST_SHOWN]]
    row["pairs"] = "; ".join(named) + ("; ..." if len(idea.pairs) > _MOST_SHOWN else "")
    return row
