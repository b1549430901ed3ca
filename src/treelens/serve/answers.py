"""What the page and the JSON interface answer, as plain data: tables and compound cards."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from treelens.chem.parsing import reasons
from treelens.chem.predicted_rows import NamedModel, predict_molecules
from treelens.chem.recipe import recipe_for_molecules
from treelens.chem.sdf import sdf_of_bytes, smiles_column
from treelens.chem.table_reader import rows_of_table
from treelens.errors import check_number, check_whole
from treelens.estimators.profile import IN_PROFILE, SHARE
from treelens.graphs.kinds import noun_of
from treelens.graphs.tables import Table, table_of_bytes
from treelens.report.render import Units, plain_summary
from treelens.report.sections import compound_card, group_evidence, group_holders
from treelens.targets import positive_code

_A_DAY = 86_400.0
_MOST_CARDS = 3  # models whose cards are shown together
_N_QUANTILES = 21  # of training values, by which cells are coloured
_CHUNK = 250  # rows that are predicted in one turn
SMALL_BODY = 65_536  # bytes


class TooMuchError(ValueError):
    """A request above a limit."""


@dataclass(frozen=True)
class Limits:
    """The largest request that is answered."""

    molecules: int = 5000
    smiles: int = 1000  # characters, and atoms of a record of an SDF
    bytes: int = 8_000_000
    seconds: float = 60.0  # for a request to arrive, and for it to be answered
    connections: int = 500  # open at once
    bytes_at_once: int = 64_000_000  # of all large requests

    def __post_init__(self) -> None:
        for name in ("molecules", "smiles", "bytes", "connections", "bytes_at_once"):
            check_whole(name, getattr(self, name), 1)
        check_number("seconds", self.seconds, 1e-3, _A_DAY)


class Deadline:
    """When a request must be answered, and how much of its time it has waited for others.

    A request waits from the beginning until it ``works``, and whenever it ``waits`` again.
    """

    def __init__(self, seconds: float) -> None:
        self._since: float | None = time.monotonic()  # waiting; None: at work
        self._end, self._waited = self._since + seconds, 0.0

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self._end - time.monotonic()

    @property
    def waited(self) -> float:
        """Seconds of waiting until now."""
        since = self._since
        return self._waited + (0.0 if since is None else time.monotonic() - since)

    def waits(self) -> None:
        self._since = time.monotonic()

    def works(self) -> None:
        self._waited, self._since = self.waited, None


@dataclass(frozen=True)
class Shown:
    """What the page has a column and a card for: a model, or an endpoint of a panel."""

    name: str
    prefix: str  # of its columns in the table of predictions
    model: Any  # estimator
    owner: NamedModel  # the model that it belongs to

    @classmethod
    def of(cls, each: NamedModel) -> list[Shown]:
        """Return one of a model, or those of the endpoints of a panel."""
        names = each.model.model_.endpoint_names
        if not names:
            return [cls(each.name, each.prefix, each.model, each)]
        return [cls(x, f"{each.prefix}{x}_", each.model.endpoint(x), each) for x in names]


class Turns:
    """Whose turn it is: one at a time, first those who have had the fewest turns.

    A large request takes many turns, so a small one waits for one turn of it at most.
    """

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._numbers = count()
        self._waiting: set[tuple[int, int]] = set()
        self._taken = False

    @contextmanager
    def turn(self, n_before: int, deadline: Deadline | None = None) -> Iterator[None]:
        """Wait for a turn; past the deadline there is a ``TimeoutError``."""
        deadline = deadline or Deadline(_A_DAY)
        deadline.waits()
        with self._change:
            own = (n_before, next(self._numbers))
            self._waiting.add(own)
            left = deadline.left
            try:
                if left <= 0 or not self._change.wait_for(lambda: self._is_next(own), left):
                    raise TimeoutError
                self._taken = True
                deadline.works()
            finally:
                self._waiting.remove(own)
                self._change.notify_all()
        try:
            yield
        finally:
            with self._change:
                self._taken = False
                self._change.notify_all()

    def _is_next(self, own: tuple[int, int]) -> bool:
        return not self._taken and min(self._waiting) == own


class Workbench:
    """Models that answer one question at a time, whatever thread it comes from.

    Past a ``deadline`` there is a ``TimeoutError``.
    """

    def __init__(self, models: Sequence[NamedModel], limits: Limits | None = None) -> None:
        for each in models:
            recipe = each.model.recipe_
            if noun_of(recipe) != "molecules":
                raise ValueError(
                    f"{each.path} was not fitted to molecules read from SMILES or SDF: there is "
                    "nothing to paste. Use 'treelens predict' for other graphs."
                )
        self.models, self.limits = list(models), limits or Limits()
        self.shown = [shown for each in models for shown in Shown.of(each)]
        self.covariates = list(dict.fromkeys(n for each in models for n in _covariates(each)))
        # Estimators compute some parts when they are first needed, and RDKit's log is global.
        self._turns = Turns()
        self._evidence: dict[str, dict[str, Any]] = {}

    @property
    def as_cells(self) -> bool:
        """Whether the page shows a coloured cell for each target, of which there may be many."""
        several = len(self.shown) > _MOST_CARDS or len(self.shown) > len(self.models)
        return several or self.profile is not None

    @property
    def profile(self) -> dict[str, str] | None:
        """What is wanted of molecules in words, and the columns that say how probable it is."""
        found = self.models[0].profile
        if found is None:
            return None
        wanted = ", ".join(f"{name} {own.text}" for name, own in found.conditions.items())
        prefix = self.models[0].prefix
        return {"wanted": wanted, "column": prefix + IN_PROFILE, "share": prefix + SHARE}

    def warm_up(self) -> None:
        """Compute and compile what the first request would wait for."""
        with self._turns.turn(0):
            for each in self.models:
                holders = group_holders(each.model.model_.training.smiles)
                own = [shown for shown in self.shown if shown.owner is each]
                self._evidence |= {x.name: group_evidence(x.model, holders) for x in own}
        if not self.covariates:
            self.predict_smiles(["CCO"], {})  # keeps what variances of panels need
            self.cards("CCO", None, {})

    def facts(self) -> list[dict[str, Any]]:
        """Return what the models predict."""
        return [plain_summary(_facts(each)) for each in self.shown]

    def predict_smiles(
        self, smiles: Sequence[str], covariates: Mapping[str, str], deadline: Deadline | None = None
    ) -> pd.DataFrame:
        """Return the predictions of all models, the table that ``treelens predict`` writes."""
        return self._predict(self._table_of_smiles(smiles, covariates), None, deadline)

    def predict_file(
        self, kind: str, data: bytes, deadline: Deadline | None = None
    ) -> pd.DataFrame:
        """Return the same for the bytes of a file: ``"csv"``, ``"smi"`` or ``"sdf"``."""
        place, molecules = Path(f"the table.{kind}"), None  # a name for messages, never opened
        if kind == "sdf":
            self._check_number(data.count(b"$$$$"))
            hydrogens = any(each.model.recipe_.hydrogens for each in self.models)
            with self._turns.turn(int(is_large_body(len(data))), deadline):
                molecules, table = sdf_of_bytes(place, data, hydrogens)
        else:
            table = table_of_bytes(place, data)
        return self._predict(self._checked(table, molecules), molecules, deadline)

    def _table_of_smiles(self, smiles: Sequence[str], covariates: Mapping[str, str]) -> Table:
        """Return a table of SMILES; each has the same covariates, and may have a name behind it."""
        values = [covariates.get(name, "") for name in self.covariates]
        pairs = [[*text.split(None, 1), "", ""][:2] for text in smiles]
        rows = [[first, name.strip(), *values] for first, name in pairs]
        columns = ["smiles", "name", *self.covariates]
        return self._checked(Table("the molecules", columns, rows, None), None)

    def _checked(self, table: Table, molecules: list[Any] | None) -> Table:
        if not table.rows:
            raise ValueError("There is no molecule: expected at least one.")
        self._check_number(len(table.rows))
        if molecules is None:
            known = next((each.record.smiles for each in self.models if each.record), None)
            known = known if known in table.columns else None
            sizes = map(len, table.column(smiles_column(table, None, known, []), "smiles"))
        else:
            sizes = map(int, (0 if m is None else m.GetNumAtoms() for m in molecules))
        for row, size in enumerate(sizes):
            if size > self.limits.smiles:
                what = "atoms" if molecules else "characters"
                raise TooMuchError(
                    f"The molecule in {table.place(row)} has {size:,} {what}: at most "
                    f"{self.limits.smiles:,} are taken."
                )
        return table

    def _check_number(self, n: int) -> None:
        if n > self.limits.molecules:
            raise TooMuchError(
                f"These are {n:,} molecules: at most {self.limits.molecules:,} are taken at once. "
                "Use 'treelens predict' for more."
            )

    def _predict(
        self, table: Table, molecules: list[Any] | None, deadline: Deadline | None
    ) -> pd.DataFrame:
        frames, first = [], int(is_large(len(table.rows)))
        for turn, start in enumerate(range(0, len(table.rows), _CHUNK), first):
            some = slice(start, start + _CHUNK)
            own = None if molecules is None else molecules[some]
            with self._turns.turn(turn, deadline):
                frames.append(predict_molecules(self.models, table.part(some), own).columns.frame())
        return pd.concat(frames, ignore_index=True)

    def cards(
        self,
        smiles: str,
        previous: str | None,
        covariates: Mapping[str, str],
        deadline: Deadline | None = None,
        targets: Sequence[str] | None = None,
    ) -> list[dict[str, Any]]:
        """Return a card of one molecule by each model, with the difference from another one.

        The other molecule is left out where it cannot be read. ``targets`` are the names of those
        to explain; None: all.
        """
        texts, found = [smiles, *([previous] if previous and previous.strip() else [])], []
        for turn, each in enumerate(self._named(targets)):
            recipe = recipe_for_molecules(each.model.recipe_, "smiles")
            with self._turns.turn(turn, deadline):
                table = self._table_of_smiles(texts, covariates)
                own = _covariates(each.owner)
                read = rows_of_table(table, None, recipe, "smiles", "none", own)
                if 0 in read.unreadable:
                    text = table.rows[0][0]
                    why = reasons([text], [0], read.why)[0]
                    raise ValueError(f"{text[:80]!r} cannot be read: {why}.")
                card = compound_card(each.model, read.graphs, self._evidence.get(each.name))
            scale = each.model.model_.training.record.reported
            if scale is not None:  # back to units of the table
                middle, std = (np.array([card[name]]) for name in ("predicted", "std"))
                for row in (card, *card["neighbors"]):
                    for name in {"lower_90", "upper_90", "value"} & row.keys():
                        row[name] = float(scale.inverse(row[name]))
                card["predicted"] = float(scale.inverse_mean(middle, std)[0])
            found.append(plain_summary({"model": _facts(each), **card}))
        return found

    def _named(self, targets: Sequence[str] | None) -> list[Shown]:
        names = [each.name for each in self.shown]
        if targets is None:
            return self.shown
        if unknown := [name for name in targets if name not in names]:
            raise ValueError(f"{unknown[0]!r:.80} is none of the targets: {', '.join(names)}.")
        return [each for each in self.shown if each.name in targets]


def is_large(n_molecules: int) -> bool:
    """Whether so many molecules take more than one turn."""
    return n_molecules > _CHUNK


def is_large_body(n_bytes: int) -> bool:
    """Whether a request of so many bytes may hold more than a few molecules."""
    return n_bytes > SMALL_BODY


def _covariates(each: NamedModel) -> list[str]:
    """Return the covariates that come with a molecule."""
    return each.model.model_.given_columns


def _wanted_of(each: Shown) -> dict[str, str] | None:
    """Return what a profile wants of an endpoint, and the column of its probability."""
    profile, own = each.owner.profile, each.model.model_.training.record.name or "target"
    if profile is None or own not in profile.conditions:
        return None
    return {
        "text": profile.conditions[own].text,
        "column": f"{each.owner.prefix}{own}_in_profile",
    }


def _facts(each: Shown) -> dict[str, Any]:
    model = each.model
    numbers = model.model_.classes is None
    target, targets = model.model_.training.record, model.model_.training.reported
    decimals = quantiles = None
    if numbers:
        values = targets if target.reported is None else target.reported.inverse(targets)
        quantiles = np.quantile(values, np.linspace(0.0, 1.0, _N_QUANTILES)).tolist()
    code = positive_code(model.model_.classes)
    if numbers and target.reported is None:  # else three digits
        decimals = min(max(Units.of({"std": targets.std()}).decimals, 0), 6)
    return {
        "name": each.name,
        "prefix": each.prefix,
        "common": each.owner.prefix,  # of the columns that all endpoints of a panel share
        "quantiles": quantiles,  # of the training values, in the units of the table
        "kind": "numbers" if numbers else "classes",
        "classes": None if numbers else [str(label) for label in model.classes_],
        # what groups are compared by; of many classes the last
        "positive": None if numbers else str(model.classes_[-1 if code is None else code]),
        "unit": target.unit,
        "wanted": _wanted_of(each),
        "scale": target.transform,
        "hidden": None if target.hidden is None else target.hidden.in_words,
        "decimals": decimals,
        "n_training_molecules": len(targets),
        "molecules_read": str(model.recipe_),
    }
