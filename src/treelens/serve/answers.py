"""What the page and the JSON interface answer, as plain data: tables and compound cards."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.base import is_regressor

from treelens.estimators.named_models import NamedModel, predict_molecules
from treelens.graphs.chem import why_unreadable
from treelens.graphs.collection import GraphCollection
from treelens.graphs.descriptors import PREFIX
from treelens.graphs.recipe import learned_transform
from treelens.graphs.table_reader import rows_of_table
from treelens.graphs.tables import Table, sdf_of_bytes, smiles_column, table_of_bytes
from treelens.report.compound import GroupEvidence, compound_card
from treelens.report.formats import Units, plain_summary

FORMATS = ("csv", "smi", "sdf")
_CHUNK = 250  # rows between two looks at the clock
_PASTED = "the molecules"  # what messages call them


class TooMuchError(ValueError):
    """A request above a limit."""


class TooLongError(RuntimeError):
    """A request that took too long."""


@dataclass(frozen=True)
class Limits:
    """The largest request that is answered."""

    molecules: int = 5000
    smiles: int = 1000  # characters, and atoms of a record of an SDF
    bytes: int = 8_000_000
    seconds: float = 60.0


class Workbench:
    """Models that answer one question at a time, whatever thread it comes from."""

    def __init__(self, models: Sequence[NamedModel], limits: Limits | None = None) -> None:
        for each in models:
            recipe = each.model.recipe_
            if recipe is None or not recipe.is_molecular:
                raise ValueError(
                    f"{each.path} was not fitted to molecules read from SMILES or SDF: there is "
                    "nothing to paste. Use 'treelens predict' for other graphs."
                )
        self.models, self.limits = list(models), limits or Limits()
        names = [n for each in models for n in getattr(each.model, "covariates_", ())]
        self.covariates = [n for n in dict.fromkeys(names) if not n.startswith(PREFIX)]
        # Estimators compute some parts when they are first needed, and RDKit's log is global.
        self._lock = threading.Lock()
        self._evidence: dict[str, GroupEvidence] = {}

    def warm_up(self) -> None:
        """Compute and compile what the first request would wait for."""
        with self._lock:
            self._evidence = {each.name: GroupEvidence(each.model) for each in self.models}
        if not self.covariates:
            self.cards("CCO", None, {})

    def facts(self) -> list[dict[str, Any]]:
        """Return what the models predict."""
        return [plain_summary(self._facts(each)) for each in self.models]

    def _facts(self, each: NamedModel) -> dict[str, Any]:
        model, record = each.model, each.record
        numbers = is_regressor(model)
        return {
            "name": each.name,
            "prefix": each.prefix,
            "kind": "numbers" if numbers else "classes",
            "classes": None if numbers else [str(label) for label in model.classes_],
            "unit": None if record is None else record.units,
            "scale": None if record is None else record.transform,
            "decimals": self._decimals(each),
            "n_training_molecules": len(model.model_.training.targets),
            "molecules_read": str(model.recipe_),
        }

    # --- tables -----------------------------------------------------------------------------------

    def table_of_smiles(self, smiles: Sequence[str], covariates: Mapping[str, str]) -> Table:
        """Return a table of SMILES; each has the same covariates, and may have a name behind it."""
        pairs = [[*text.split(None, 1), "", ""][:2] for text in smiles]
        values = [covariates.get(name, "") for name in self.covariates]
        rows = [[first, name.strip(), *values] for first, name in pairs]
        return self._checked(Table(_PASTED, ["smiles", "name", *self.covariates], rows, None), None)

    def table_of_file(self, kind: str, data: bytes) -> tuple[Table, list[Any] | None]:
        """Return the table in the bytes of a file, and the molecules of an SDF."""
        place, molecules = Path(f"the table.{kind}"), None  # a name for messages, never opened
        if kind == "sdf":
            if data.count(b"$$$$") > self.limits.molecules:
                raise TooMuchError(self._too_many(data.count(b"$$$$")))
            hydrogens = any(each.model.recipe_.hydrogens for each in self.models)
            with self._lock:
                molecules, table = sdf_of_bytes(place, data, hydrogens)
        else:
            table = table_of_bytes(place, data)
        return self._checked(table, molecules), molecules

    def _checked(self, table: Table, molecules: list[Any] | None) -> Table:
        if not table.rows:
            raise ValueError("There is no molecule: expected at least one.")
        if len(table.rows) > self.limits.molecules:
            raise TooMuchError(self._too_many(len(table.rows)))
        if molecules is None:
            known = next((each.record.smiles for each in self.models if each.record), None)
            known = known if known in table.columns else None
            sizes = [len(text) for text in table.column(
                smiles_column(table, None, known, []), "smiles")]  # fmt: skip
        else:
            sizes = [0 if m is None else m.GetNumAtoms() for m in molecules]
        for row, size in enumerate(sizes):
            if size > self.limits.smiles:
                what = "atoms" if molecules else "characters"
                raise TooMuchError(
                    f"The molecule in {table.place(row)} has {size:,} {what}: at most "
                    f"{self.limits.smiles:,} are taken."
                )
        return table

    def _too_many(self, n: int) -> str:
        return (
            f"These are {n:,} molecules: at most {self.limits.molecules:,} are taken at once. Use "
            "'treelens predict' for more."
        )

    def predict_smiles(
        self, smiles: Sequence[str], covariates: Mapping[str, str], deadline: float | None = None
    ) -> pd.DataFrame:
        """Return the predictions of all models, the table that ``treelens predict`` writes."""
        return self._predict(self.table_of_smiles(smiles, covariates), None, deadline)

    def predict_file(self, kind: str, data: bytes, deadline: float | None = None) -> pd.DataFrame:
        """Return the same for the bytes of a file of one of the ``FORMATS``."""
        return self._predict(*self.table_of_file(kind, data), deadline)

    def _predict(
        self, table: Table, molecules: list[Any] | None, deadline: float | None
    ) -> pd.DataFrame:
        frames = []
        for start in range(0, len(table.rows), _CHUNK):
            self._check_time(deadline)
            some = slice(start, start + _CHUNK)
            lines = None if table.lines is None else table.lines[some]
            part = table._replace(rows=table.rows[some], lines=lines, first_row=start)
            own = None if molecules is None else molecules[some]
            with self._lock:
                frames.append(predict_molecules(self.models, part, own).frame)
        return pd.concat(frames, ignore_index=True)

    def _check_time(self, deadline: float | None) -> None:
        if deadline is not None and time.monotonic() > deadline:
            raise TooLongError

    # --- cards ------------------------------------------------------------------------------------

    def cards(
        self,
        smiles: str,
        previous: str | None,
        covariates: Mapping[str, str],
        deadline: float | None = None,
    ) -> list[dict[str, Any]]:
        """Return a card of one molecule by each model, with the difference from another one."""
        found = []
        for each in self.models:
            self._check_time(deadline)
            with self._lock:
                texts = [smiles, *([previous] if previous and previous.strip() else [])]
                graphs = self._graphs(each, texts, covariates)
                card = compound_card(each.model, graphs, self._evidence.get(each.name))
            found.append(plain_summary({"model": self._facts(each), **self._in_units(each, card)}))
        return found

    def _graphs(
        self, each: NamedModel, smiles: Sequence[str], covariates: Mapping[str, str]
    ) -> GraphCollection:
        """Return one or two molecules; the second is left out where it cannot be read."""
        table = self.table_of_smiles(smiles, covariates)
        recipe = each.model.recipe_.for_new_molecules("smiles")
        names = [n for n in getattr(each.model, "covariates_", ()) if not n.startswith(PREFIX)]
        read = rows_of_table(table, None, recipe, "smiles", "none", names, may_be_empty=True)
        if 0 in read.unreadable:
            text = table.rows[0][0]
            raise ValueError(f"{text[:80]!r} cannot be read: {why_unreadable(text)}.")
        return read.graphs

    def _in_units(self, each: NamedModel, card: dict[str, Any]) -> dict[str, Any]:
        """Return a card with values in the units of the table."""
        scale = learned_transform(each.model.recipe_) if is_regressor(each.model) else None
        if scale is None:
            return card
        names = ("predicted", "lower_90", "upper_90")
        near = [row | {"value": float(scale.inverse(row["value"]))} for row in card["neighbors"]]
        return card | {n: float(scale.inverse(card[n])) for n in names} | {"neighbors": near}

    def _decimals(self, each: NamedModel) -> int | None:
        """Decimals of values; None for three digits of values on a logarithmic scale."""
        if not is_regressor(each.model) or learned_transform(each.model.recipe_) is not None:
            return None
        return min(max(Units.of({"std": each.model.model_.training.targets.std()}).decimals, 0), 6)
