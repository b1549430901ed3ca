"""Which changes of a molecule would help: replacements from matched pairs, as table and page.

Matched pairs are two molecules that differ by one substituent. RDKit's ``rdMMPA`` cuts every
molecule at each single bond outside of rings. Two molecules with the same larger side (the constant
part) are a pair, and the change is from one smaller side to the other: ``F >> Cl``. A hydrogen is a
substituent like any other.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup
from sklearn.base import is_regressor

from treelens.chem.descriptors import rdkit_descriptors
from treelens.chem.matched_pairs import (
    Change,
    attachment,
    cuts_of,
    hydrogen_cuts,
    joined,
    matched_pairs,
)
from treelens.chem.molecule_table import MoleculeTable
from treelens.chem.molecules import smiles_to_collection
from treelens.chem.parsing import molecules_behind, parsed_smiles, quiet, rdkit, smiles_parser
from treelens.decisions.suggest import direction
from treelens.errors import check_truth, check_whole
from treelens.estimators.prediction_table import prediction_table
from treelens.evaluation.metrics import NINETY
from treelens.explain.draw import Style, draw_graph
from treelens.report.render import templates
from treelens.storage.files import whole_file

_BLOCK = 500  # new molecules at a time: their covariance with the lead is that of all pairs
_MOST_SHOWN = 5  # pairs that a row names


def advise(
    model: Any,
    lead: str,
    n: int | None = 50,
    maximize: bool = True,
    *,
    training: Any = None,
    wanted: Any = None,
    min_pairs: int = 1,
    largest_change: int = 10,
) -> pd.DataFrame:
    """Predict what replacing a substituent would do to a molecule.

    Substituents that the training molecules exchange for each other, in matched pairs (two
    molecules that differ by one substituent), are exchanged in the lead, at the same kind of atom.

    Parameters
    ----------
    model : GraphRegressor or GraphClassifier
    lead : str
        A SMILES.
    n : int or None, default=50
        How many changes to return, the most helpful first; None: all.
    maximize : bool, default=True
        Whether large values are wanted, or small ones.
    training : MoleculeTable, optional
        Molecules with measured values to take the pairs from; by default those that the model
        keeps.
    wanted : class, optional
        With a classifier, the class whose decision value is looked at; see :func:`suggest`.
    min_pairs : int, default=1
        Changes that fewer pairs show are left out.
    largest_change : int, default=10
        Heavy atoms of a substituent, at most.

    Returns
    -------
    DataFrame
        One row per new molecule: ``change`` (``"F >> Cl"``, substituents written from the atom they
        are joined by) and ``at``, the atom of the lead that carries it (``c`` is aromatic);
        ``smiles``; ``difference``, the predicted change of the value (on the scale that was
        learned, such as log10; of classes, that of the decision value), with ``std`` and its 90 %
        interval, which are those of the difference, without the noise of measurements (what is
        uncertain about two similar molecules is mostly common to both, and cancels);
        ``prediction`` or ``probability_CLASS`` of the new molecule; ``in_domain``;
        ``weight_change`` and ``logp_change``; ``measured``, whether it is a training molecule;
        ``n_pairs``, ``pair_mean`` and ``pair_std``, the measured differences of the pairs that show
        this change (of classes, of 0 and 1), which need not have the sign of ``difference``, and
        ``pairs``, some of them by name.

    Examples
    --------
    >>> import treelens as tl
    >>> smiles = [f"c1ccc({x})cc1{y}" for x in ("F", "Cl", "C", "O") for y in ("", "N", "CC", "OC")]
    >>> values = [float("F" in s) + 0.5 * ("N" in s) for s in smiles]
    >>> model = tl.GraphRegressor(depth=2).fit(smiles, values)
    >>> table = tl.advise(model, "c1ccc(Cl)cc1C=O")
    >>> table["change"].iloc[0], bool(table["difference"].iloc[0] > 0.5)
    ('Cl >> F', True)
    """
    numbers = is_regressor(model)  # whose differences keep their sign
    check_truth("maximize", maximize)
    for name, number in (("n", n), ("min_pairs", min_pairs), ("largest_change", largest_change)):
        if number is not None or name != "n":
            check_whole(name, number, 1)
    code, column, sign = direction(model, wanted, maximize or numbers)
    with quiet():
        molecule = smiles_parser()(lead) if isinstance(lead, str) else None
    if molecule is None:
        raise ValueError(f"The lead {lead!r} cannot be read: give one SMILES.")
    known, values, names = _training(model, training, code)
    ideas = replacements(molecule, known, largest_change, min_pairs)
    if not ideas:
        raise ValueError(
            "No replacement was found: no substituent of the lead is exchanged for another in a "
            "matched pair of the training molecules. Try a larger largest_change."
        )
    lead, measured = rdkit().MolToSmiles(molecule), set(map(rdkit().MolToSmiles, known))
    left = pd.DataFrame([{"change": x.text, "at": x.at} for x, _ in ideas.values()])
    middle = _predicted(model, lead, list(ideas), code, column, sign)
    middle["measured"] = [smiles in measured for smiles in ideas]
    right = pd.DataFrame([_support(pairs, values, names) for _, pairs in ideas.values()])
    table = pd.concat([left, middle, right], axis=1).sort_values(
        "difference", ascending=numbers and not maximize, kind="stable", ignore_index=True
    )
    table = table if n is None else table.head(n)
    table.attrs["wanted"] = None if code is None else str(model.classes_[code])
    return table


def _training(model: Any, given: Any, code: int | None) -> tuple[list[Any], np.ndarray, list[str]]:
    """Molecules, values on the learned scale (or 1 for the wanted class, else 0), and names."""
    kept = model.model_.training
    if given is not None:
        if not isinstance(given, MoleculeTable) or given.targets is None:
            raise TypeError("training must be a table with a target: tl.read_table(path, target=).")
        molecules, names = molecules_behind(given.graphs), given.graphs.names
        known = given.targets
        limits = known.limits
        if code is None:
            values = known.numbers_on(kept.record.scale)
        else:
            values = np.array([str(y) == str(model.classes_[code]) for y in known.tolist()], float)
    elif kept.smiles is None or not any(kept.smiles):
        raise ValueError(
            "The model keeps no training molecules, which matched pairs are taken from: give the "
            "table that it was fitted to, with training=TABLE."
        )
    else:
        molecules, names, limits = parsed_smiles(kept.smiles), kept.names, kept.limits
        values = kept.targets if code is None else (kept.targets == code).astype(float)
    texts = [str(k + 1) for k in range(len(values))] if names is None else list(map(str, names))
    measured = np.ones(len(values), dtype=bool) if limits is None else limits == 0
    there = [k for k, each in enumerate(molecules) if each is not None and measured[k]]
    return [molecules[k] for k in there], values[there], [texts[k] for k in there]


def replacements(
    lead: Any, molecules: list[Any], largest: int, min_pairs: int
) -> dict[str, tuple[Change, list[tuple[int, int]]]]:
    """Return new molecules, each with the change that most pairs show, and these pairs."""
    lead, *molecules = map(_plain, [lead, *molecules])
    cuts = cuts_of(lead, largest) | hydrogen_cuts(lead)
    changes: dict[Change, list[tuple[int, int]]] = {}
    for change, *pair in matched_pairs(molecules, largest, {cut.variable for cut in cuts}):
        changes.setdefault(change, []).append((pair[0], pair[1]))
    at_cuts: dict[tuple[str, str], list[str]] = {}
    for constant, variable in sorted(cuts):
        at_cuts.setdefault((variable, attachment(constant)[0]), []).append(constant)
    found: dict[str, tuple[Change, list[tuple[int, int]]]] = {}
    own = rdkit().MolToSmiles(lead)
    for change, pairs in changes.items():
        if len(pairs) < min_pairs:
            continue
        for constant in at_cuts.get((change.before, change.at), []):
            smiles = joined(constant, change.after)
            if smiles is None or smiles == own:
                continue
            if smiles not in found or len(pairs) > len(found[smiles][1]):
                found[smiles] = (change, pairs)
    return found


def _plain(molecule: Any) -> Any:
    """A copy without hydrogen atoms and atom map numbers, which mark cuts here."""
    with quiet():
        copy = rdkit().RemoveHs(molecule)
    for atom in copy.GetAtoms():
        atom.SetAtomMapNum(0)
    return copy


def _support(pairs: list[tuple[int, int]], values: np.ndarray, names: list[str]) -> dict[str, Any]:
    """What measured pairs say of a change."""
    one, other = np.array(pairs).T
    measured = values[other] - values[one]
    named = [f"{names[i]} >> {names[j]}" for i, j in pairs[:_MOST_SHOWN]]
    return {
        "n_pairs": len(pairs),
        "pair_mean": float(measured.mean()),
        "pair_std": float(measured.std(ddof=1)) if len(pairs) > 1 else np.nan,
        "pairs": "; ".join(named) + ("; ..." if len(pairs) > _MOST_SHOWN else ""),
    }


def _predicted(
    model: Any, lead: str, smiles: list[str], code: int | None, column: int, sign: float
) -> pd.DataFrame:
    """Predicted differences to the lead, the domain, and changes of weight and logP."""
    differences, stds = [], []
    for start in range(0, len(smiles), _BLOCK):
        graphs = model._new_graphs([lead, *smiles[start : start + _BLOCK]])
        mean, covariance = model.model_.joint(graphs, model._n_jobs())
        values, own = sign * mean[:, column], np.diagonal(covariance)
        differences.append(values[1:] - values[0])
        stds.append(np.sqrt(np.maximum(own[1:] + own[0] - 2.0 * covariance[0, 1:], 0.0)))
    difference, std = np.concatenate(differences), np.concatenate(stds)
    table = prediction_table(model, model._new_graphs(smiles)).reset_index(drop=True)
    shown = "prediction" if code is None else f"probability_{model.classes_.tolist()[code]}"
    described = rdkit_descriptors(parsed_smiles([lead, *smiles]), ["MolWt", "MolLogP"])
    changes = (described[1:] - described[0]).round(3)
    return pd.DataFrame(
        {
            "smiles": smiles,
            "difference": difference,
            "std": std,
            "lower_90": difference - NINETY * std,
            "upper_90": difference + NINETY * std,
            shown: table[shown],
            "in_domain": table["in_domain"],
            "weight_change": changes[:, 0],
            "logp_change": changes[:, 1],
        }
    )


def write_advice(table: pd.DataFrame, lead: str, path: str | Path) -> Path:
    """Write the table of :func:`treelens.advise` with a drawing of every molecule."""
    rows = [{**row, "drawing": _drawing(row["smiles"])} for row in table.to_dict("records")]
    template = templates("decisions").get_template("advice.html")
    page = template.render(lead=lead, drawing=_drawing(lead), rows=rows)
    with whole_file(path) as file:
        file.write(page.encode("utf-8"))
    return Path(path)


def _drawing(smiles: str) -> Markup:
    style = Style(230, 150, legend=False, title=smiles)
    return Markup(draw_graph(smiles_to_collection([smiles])[0], style=style))
