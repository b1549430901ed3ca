"""Which changes of a molecule would help: their predicted differences, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtr
from sklearn.base import is_regressor

from treelens.chem.descriptors import rdkit_descriptors
from treelens.chem.identity import standard_smiles
from treelens.chem.molecule_table import MoleculeTable
from treelens.chem.parsing import parsed_smiles, quiet, rdkit, smiles_parser
from treelens.decisions.changes import (
    Idea,
    Known,
    ideas_for,
    known_molecules,
    support,
    without_marks,
)
from treelens.decisions.suggest import direction
from treelens.errors import check_truth, check_whole
from treelens.estimators.base import FittedEstimator
from treelens.estimators.panel_fitting import PanelEstimator
from treelens.estimators.prediction_table import prediction_table
from treelens.estimators.profile import IN_PROFILE, Profile
from treelens.evaluation.metrics import NINETY

_BLOCK = 500  # new molecules at a time: their covariance with the lead is that of all pairs
BETTER, HIGHER, GAIN = "probability_better", "probability_higher", "profile_gain"


def advise(
    model: FittedEstimator,
    lead: str,
    n: int | None = 50,
    maximize: bool = True,
    *,
    training: object = None,
    wanted: object = None,
    min_pairs: int = 1,
    largest_change: int = 10,
    profile: Profile | Mapping[str, Any] | None = None,
    endpoint: str | None = None,
    scans: bool = True,
    only_better: bool = True,
) -> pd.DataFrame:
    """Predict what small changes would do to a molecule, and return those that help.

    Substituents that the training molecules exchange for each other, in matched pairs (two
    molecules that differ by one substituent), are exchanged in the lead, where the atoms within two
    bonds of the one that carries them are the same. Scans make usual changes at every position,
    whether a pair shows them or not: F, Cl, methyl, OMe, OH and CN for an aromatic hydrogen, N for
    an aromatic CH, and methyl for other hydrogens of carbon and nitrogen.

    Parameters
    ----------
    model : GraphRegressor, GraphClassifier or GraphPanel
    lead : str
        A SMILES.
    n : int or None, default=50
        How many changes to return, the best first; None: all.
    maximize : bool, default=True
        Whether large values are wanted, or small ones.
    training : MoleculeTable, optional
        Molecules with measured values to take the pairs from; by default those that the model
        keeps. Of one endpoint.
    wanted : class, optional
        With a classifier, the class whose decision value is looked at; see :func:`suggest`.
    min_pairs : int, default=1
        Changes that fewer pairs show are left out; scans are not asked for pairs. A pair of which
        one value is at a limit of the assay does not count.
    largest_change : int, default=10
        Heavy atoms of a substituent, at most.
    profile : Profile or dict, optional
        What is wanted of the endpoints, in place of ``maximize`` and ``wanted``. Changes are ranked
        by the gain in the probability that all conditions hold.
    endpoint : str, optional
        Of several endpoints without a profile, the one that is to become better.
    scans : bool, default=True
        Whether to make changes that no pair shows.
    only_better : bool, default=True
        Whether to leave out changes that more probably hurt than help.

    Returns
    -------
    DataFrame
        One row per new molecule, the most probable improvement first: ``change`` (``"F >> Cl"``,
        substituents written from the atom they are joined by) and ``at``, the atoms of the lead
        around it, within two bonds, as SMARTS (``*`` is the substituent, ``[C;R]`` an atom in a
        ring that is not aromatic); ``smiles``; ``probability_better``, that the new molecule is
        better than the lead; ``difference``, the predicted change of the value (on the scale that
        was learned, such as log10; of classes, that of the decision value), with ``std`` and its
        90 % interval, which are those of the difference, without the noise of measurements (what is
        uncertain about two similar molecules is mostly common to both, and cancels);
        ``prediction`` or ``probability_CLASS`` of the new molecule; ``in_domain``;
        ``weight_change`` and ``logp_change``; ``measured``, whether it is a training molecule;
        ``source``, ``"pairs"`` or ``"scan"``; ``n_pairs``, ``pair_mean`` and ``pair_std``, the
        measured differences of the pairs that show this change (of classes, of 0 and 1), which need
        not have the sign of ``difference``, and ``pairs``, some of them by name.

        Of several endpoints, ``difference``, ``std``, ``probability_better``, ``prediction``,
        ``n_pairs``, ``pair_mean`` and ``pair_std`` have a column for each, with its name and ``_``
        in front. What is better says the profile, of a range its middle; of an endpoint that it
        does not name there is ``probability_higher``. With a profile ``probability_of_profile`` of
        the new molecule and ``profile_gain``, its difference to that of the lead, come first. With
        neither profile nor endpoint all changes are returned, the surest differences first.

        ``attrs["lead"]`` has the predictions of the lead and, where it is a training molecule, its
        measured values; ``attrs["n_tried"]`` the number of changes that were looked at, and
        ``attrs["ranked_by"]`` what rows are sorted by.

    Examples
    --------
    >>> import treelens as tl
    >>> smiles = [f"c1ccc({x})cc1{y}" for x in ("F", "Cl", "C", "O") for y in ("", "N", "CC", "OC")]
    >>> values = [float("F" in s) + 0.5 * ("N" in s) for s in smiles]
    >>> model = tl.GraphRegressor(depth=2).fit(smiles, values)
    >>> table = tl.advise(model, "c1ccc(Cl)cc1C=O")
    >>> row = table[table["change"] == "Cl >> F"].iloc[0]
    >>> row["source"], bool(row["difference"] > 0.5), bool(row["probability_better"] > 0.9)
    ('pairs', True, True)
    """
    for name, flag in (("maximize", maximize), ("scans", scans), ("only_better", only_better)):
        check_truth(name, flag)
    for name, number in (("n", n), ("min_pairs", min_pairs), ("largest_change", largest_change)):
        if number is not None or name != "n":
            check_whole(name, number, 1)
    aim = _Aim.of(model, maximize, wanted, profile, endpoint)
    molecule = _lead_of(lead, model.recipe_)
    if training is not None and not isinstance(training, MoleculeTable):
        raise TypeError("training must be a table with a target: tl.read_table(path, target=).")
    known = known_molecules(model.model_, training, aim.code, model.recipe_)
    ideas = ideas_for(molecule, known, model.recipe_, largest_change, min_pairs, scans)
    if not ideas:
        raise ValueError(
            "No change was found: no substituent of the lead is exchanged for another in a matched "
            "pair of the training molecules, at the same atoms within two bonds"
            f"{', and no scan fits it' if scans else ''}. Try a larger largest_change."
        )
    text = rdkit().MolToSmiles(molecule)
    answers = _answers(model, text, [idea.smiles for idea in ideas], aim)
    table = _rows(answers, ideas, known)
    order, kept = _ranked(table, answers, only_better)
    table = table.iloc[order[kept]].reset_index(drop=True)
    table = table if n is None else table.head(n)
    classes = model.model_.classes
    table.attrs = {
        "wanted": None if aim.code is None or classes is None else str(classes[aim.code]),
        "lead": _about_lead(answers, known),
        "n_tried": len(ideas),
        "only_better": only_better and answers.ranked_by is not None,
        "ranked_by": _in_words(answers.ranked_by),
    }
    return table


def _lead_of(lead: object, recipe: object) -> Any:
    """Return the lead as a molecule, in the standard form that training molecules have."""
    with quiet():
        molecule = smiles_parser()(lead) if isinstance(lead, str) else None
    if molecule is None:
        raise ValueError(f"The lead {lead!r} cannot be read: give one SMILES.")
    (text,) = standard_smiles([rdkit().MolToSmiles(without_marks(molecule))], recipe)
    (found,) = parsed_smiles([text])
    return without_marks(found)


# --- what is wanted -------------------------------------------------------------------------------


class _Aim(NamedTuple):
    """What is wanted of new molecules."""

    several: bool
    profile: Profile | None
    endpoint: str | None  # of several
    wanted: str | None  # class of an endpoint of several
    code: int | None  # of the class that is looked for, in a model of one endpoint
    column: int  # of decision values
    sign: float  # that makes large decision values those of the class
    better: float  # 1 where larger differences are better, else -1

    @classmethod
    def of(
        cls,
        model: FittedEstimator,
        maximize: bool,
        wanted: object,
        profile: Profile | Mapping[str, Any] | None,
        endpoint: str | None,
    ) -> _Aim:
        chosen = None if profile is None else Profile.of(profile)
        if chosen is not None and (wanted is not None or endpoint is not None or not maximize):
            raise ValueError(
                "profile says what is wanted: leave wanted, endpoint and maximize (--minimize) out."
            )
        if isinstance(model, PanelEstimator):
            if chosen is not None:
                chosen.check(model._fitted_model)
            if model._is_panel:
                if endpoint is not None:
                    endpoint = model.endpoint(endpoint).name  # or an error that names them
                text = None if wanted is None else str(wanted)
                return cls(True, chosen, endpoint, text, None, 0, 1.0, 1.0 if maximize else -1.0)
        if endpoint is not None:
            raise ValueError("endpoint names one of several: the model has one.")
        numbers = is_regressor(model)  # whose differences keep their sign
        if chosen is not None and not numbers:
            (condition,) = chosen.conditions.values()
            wanted = condition.text
        code, column, sign = direction(model, wanted, maximize or numbers)
        better = 1.0 if maximize or not numbers else -1.0
        return cls(False, chosen, None, None, code, column, sign, better)


class _End(NamedTuple):
    """An endpoint of the answers."""

    name: str | None
    prefix: str  # of its columns
    shown: str  # the column of predictions, without the prefix
    better: float  # 1 where larger differences are better, -1 where smaller ones are, 0: unknown

    @property
    def chance(self) -> str:
        """The column of the probability of a difference in the direction that is wanted."""
        return self.prefix + (BETTER if self.better else HIGHER)


@dataclass(frozen=True, eq=False)
class _Answers:
    """What a model says of the lead, the first row of its table, and of new molecules."""

    model: Any
    lead: str
    ends: list[_End]
    table: pd.DataFrame
    difference: np.ndarray  # (n_new, n_endpoints) to the lead
    std: np.ndarray  # (n_new, n_endpoints) of the differences
    ranked_by: str | None

    @property
    def in_domain(self) -> np.ndarray:
        """Whether new molecules are in the domain of all endpoints that are looked at."""
        some = [end for end in self.ends if end.better] or self.ends
        columns = [self.table[f"{end.prefix}in_domain"].to_numpy(dtype=bool) for end in some]
        return np.logical_and.reduce(columns)[1:]


def _answers(model: Any, lead: str, smiles: list[str], aim: _Aim) -> _Answers:
    """Return predictions of the lead and of new molecules, and their differences."""
    tables, differences, stds = [], [], []
    for start in range(0, len(smiles), _BLOCK):
        graphs = model._new_graphs([lead, *smiles[start : start + _BLOCK]])
        if aim.several:
            found = model._decide_from_first(graphs)
            table = model._panel_predictions(graphs, profile=aim.profile, found=found)
            mean, std = found.mean, found.from_first
        else:
            table = prediction_table(model, graphs, profile=aim.profile)
            joint, covariance = model.model_.joint(graphs, model._n_jobs())
            own = np.diagonal(covariance)
            mean = aim.sign * joint[:, [aim.column]]
            std = np.sqrt(np.maximum(own + own[0] - 2.0 * covariance[0], 0.0))[:, None]
        tables.append(table.reset_index(drop=True).iloc[min(start, 1) :])
        differences.append(mean[1:] - mean[0])
        stds.append(std[1:])
    whole = pd.concat(tables, ignore_index=True)
    ends, turned = _ends_of(model, whole, aim)
    difference = turned * np.concatenate(differences)
    ranked_by = GAIN if aim.profile is not None else None
    if ranked_by is None and (not aim.several or aim.endpoint is not None):
        ranked_by = next(end.chance for end in ends if end.better)
    return _Answers(model, lead, ends, whole, difference, np.concatenate(stds), ranked_by)


def _ends_of(model: Any, table: pd.DataFrame, aim: _Aim) -> tuple[list[_End], np.ndarray]:
    """Return the endpoints, and signs (n_endpoints,) that turn decision values to classes."""
    if not aim.several:
        shown, better = "prediction", aim.better
        if aim.code is not None:
            shown = f"probability_{model.classes_.tolist()[aim.code]}"
        elif aim.profile is not None:
            (only,) = aim.profile.conditions.values()
            better = only.direction(float(table["prediction"].iloc[0]))
        return [_End(None, "", shown, better)], np.ones(1)
    ends, signs = [], []
    for end in model.model_.endpoints:
        condition = None if aim.profile is None else aim.profile.conditions.get(end.name)
        own, prefix = aim.endpoint == end.name, f"{end.name}_"
        if end.classes is None:
            better = aim.better if own else 0.0
            if condition is not None:
                better = condition.direction(float(table[f"{prefix}prediction"].iloc[0]))
            ends.append(_End(end.name, prefix, "prediction", better))
            signs.append(1.0)
            continue
        label = condition.text if condition is not None else aim.wanted if own else None
        names = list(map(str, end.classes.tolist()))
        if label is not None and label not in names:
            raise ValueError(f"wanted={label}: name the class to look for, one of {names}.")
        code = 1 if label is None else names.index(label)
        better = 0.0 if condition is None and not own else aim.better
        ends.append(_End(end.name, prefix, f"probability_{end.classes.tolist()[code]}", better))
        signs.append(1.0 if code else -1.0)
    return ends, np.array(signs)


# --- the table ------------------------------------------------------------------------------------


def _rows(answers: _Answers, ideas: list[Idea], known: Known) -> pd.DataFrame:
    """Return the table of all ideas, in their order."""
    table = answers.table.iloc[1:].reset_index(drop=True)
    columns: dict[str, Any] = {
        "change": [idea.change for idea in ideas],
        "at": [idea.at for idea in ideas],
        "smiles": [idea.smiles for idea in ideas],
    }
    if IN_PROFILE in answers.table:
        chances = answers.table[IN_PROFILE].to_numpy()
        columns |= {IN_PROFILE: chances[1:], GAIN: chances[1:] - chances[0]}
    for k, end in enumerate(answers.ends):
        difference, std = answers.difference[:, k], answers.std[:, k]
        columns |= {
            end.chance: ndtr((end.better or 1.0) * _scaled(difference, std)),
            f"{end.prefix}difference": difference,
            f"{end.prefix}std": std,
            f"{end.prefix}lower_90": difference - NINETY * std,
            f"{end.prefix}upper_90": difference + NINETY * std,
            end.prefix + end.shown: table[end.prefix + end.shown],
        }
    molecules = parsed_smiles([answers.lead, *columns["smiles"]])
    described = rdkit_descriptors(molecules, ["MolWt", "MolLogP"])
    changes = (described[1:] - described[0]).round(3)
    measured = set(known.smiles)
    columns |= {
        "in_domain": answers.in_domain,
        "weight_change": changes[:, 0],
        "logp_change": changes[:, 1],
        "measured": [idea.standard in measured for idea in ideas],
    }
    prefixes = [end.prefix for end in answers.ends]
    rows = pd.DataFrame([support(idea, known, prefixes) for idea in ideas])
    return pd.concat([pd.DataFrame(columns), rows], axis=1)


def _scaled(difference: np.ndarray, std: np.ndarray) -> np.ndarray:
    """Return differences over their deviations; 0 where nothing differs."""
    return np.divide(difference, std, out=np.sign(difference) * 1e3 * (std == 0), where=std > 0)


def _ranked(
    table: pd.DataFrame, answers: _Answers, only_better: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the order of rows, the best first, and which of the ordered rows are kept."""
    scaled = _scaled(answers.difference, answers.std)
    wanted = np.array([end.better for end in answers.ends])
    if answers.ranked_by == GAIN:
        key = table[GAIN].to_numpy()
    elif answers.ranked_by is not None:  # digits that probabilities near one have lost
        key = (scaled * wanted)[:, np.flatnonzero(wanted)[0]]
    else:
        key = np.abs(scaled).max(axis=1)
    order = np.argsort(-key, kind="stable")
    kept = key[order] > 0 if only_better and answers.ranked_by else np.ones(len(key), dtype=bool)
    return order, kept


def _about_lead(answers: _Answers, known: Known) -> dict[str, Any]:
    """Return the predictions of the lead and what was measured of it."""
    row, place = answers.table.iloc[0].to_dict(), known.of(answers.lead)
    found: dict[str, Any] = {
        "smiles": answers.lead,
        "name": None if place is None else known.names[place],
    }
    if IN_PROFILE in row:
        found[IN_PROFILE] = row[IN_PROFILE]
    fitted = answers.model.model_
    of_each = [(end.record, end.classes) for end in getattr(fitted, "endpoints", ())]
    of_each = of_each or [(fitted.training.record, fitted.classes)]
    ends = []
    for k, (end, (record, classes)) in enumerate(zip(answers.ends, of_each, strict=True)):
        names = ("prediction", "lower_90", "upper_90") if classes is None else ("class", end.shown)
        scale = None if record.scale is None else record.scale.in_words
        own = {"endpoint": record.name, "unit": record.unit, "scale": scale}
        own |= {name: row[end.prefix + name] for name in (*names, "in_domain")}
        own["measured"] = None if place is None else known.text(place, k, record, classes)
        ends.append({**own, "text": _text_of(own)})
    return {**found, "endpoints": ends}


def _in_words(ranked_by: str | None) -> str:
    """Return what rows are sorted by."""
    if ranked_by is None:
        return "how sure a difference of any endpoint is"
    if ranked_by == GAIN:
        return "the gain in the probability that the whole profile holds"
    end = ranked_by.removesuffix(BETTER).rstrip("_")
    return "the probability of being better than the lead" + (f" in {end}" if end else "")


def _text_of(end: dict[str, Any]) -> str:
    """Return what is predicted of an endpoint of the lead, and what was measured, in words."""
    unit = f" {end['unit']}" if end["unit"] and end["unit"] not in (end["endpoint"] or "") else ""
    if "class" in end:
        chance = next((name for name in end if name.startswith("probability_")), "")
        label = chance.removeprefix("probability_")
        text = f"predicted {end['class']}, {label} with a probability of {end[chance]:.2f}"
    else:
        text = (
            f"predicted {end['prediction']:.3g}{unit} "
            f"({end['lower_90']:.3g} to {end['upper_90']:.3g})"
        )
    text += "" if end["in_domain"] else ", outside the domain"
    text += f", measured {end['measured']}{unit}" if end["measured"] is not None else ""
    return text if end["endpoint"] is None else f"{end['endpoint']}: {text}"
