"""``treelens predict``: numbers or classes of new graphs, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from treelens.cli import options
from treelens.cli.console import InputError, Output, command, percent

if TYPE_CHECKING:
    import pandas as pd

    from treelens.graphs.molecule_table import MoleculeTable
    from treelens.graphs.tables import Table

CHUNK_ROWS = 5000
# Beyond this mean share of patterns that training has not, the labels are probably other ones.
_STRANGE = 0.5
_SHARES = ("accuracy", "balanced_accuracy", "recall", "precision", "coverage")
_WORDS = {"coverage": "Within the 90 % interval", "accuracy": "Accuracy", "recall": "Recall",
          "balanced_accuracy": "Balanced accuracy", "precision": "Precision",
          "log_loss": "Log loss"}  # fmt: skip


def predict_cli(
    models: Annotated[
        list[Path],
        typer.Argument(
            metavar="MODEL",
            help="A file that 'treelens fit' wrote, or several: one table for all of them.",
            show_default=False,
        ),
    ],
    data: options.Data,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The CSV file to write.", show_default="print it"),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            help="A column with the truth, to score predictions; of several models one each, with "
            "commas between.",
            metavar="COLUMN",
        ),
    ] = None,
    smiles: options.Smiles = None,
    ids: options.Ids = None,
    jobs: options.Jobs = -1,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Predict numbers or classes of DATA with a MODEL, or with several.

    Writes one line a row, after the columns that name it (--id). Numbers: prediction, standard
    deviation and 90 % interval of a new measurement, in the units of the training table. Classes:
    class, its probability, decision value. Both: whether the molecule lies in the domain of
    applicability (in_domain), the expected error, the similarity to the nearest training graph,
    and the share of its patterns that are not in the training graphs. Rows that cannot be read
    stay, empty, with the reason in the last column.
    With several models, the target of each stands before the names of its columns.
    Text that a spreadsheet would run as a formula gets a single quote in front.
    A long table is predicted in chunks; the same command continues one that was stopped.
    """
    with command(as_json, debug) as output:
        from treelens.cli.data import files_behind, kind_of
        from treelens.storage.files import checked_target

        kind = kind_of(data)
        if out is not None:
            out = checked_target(out, reads=chain(models, files_behind(data)))
        run = _Run(output, load_models(models, options.checked_jobs(jobs)), data, smiles, ids)
        if kind in ("tu", "name"):
            found = run.graphs(target, out, as_json)
        else:
            found = run.table(kind, target, out, as_json)
        output.finish(found, _show)


# --- models ---------------------------------------------------------------------------------------


class NamedModel(NamedTuple):
    """A model, and what its columns are called by."""

    path: Path
    model: Any
    name: str  # its target; where that is not known, its file
    prefix: str  # before the names of its columns; empty where there is one model

    @property
    def record(self) -> Any:
        """The record of the table that it was fitted to, or None."""
        return None if self.model.recipe_ is None else self.model.recipe_.table


def load_models(paths: Sequence[Path], jobs: int) -> list[NamedModel]:
    """The models of files, or an error where they cannot stand side by side."""
    from treelens.cli.data import load_model

    models: list[NamedModel] = []
    for path in paths:
        each = NamedModel(path, load_model(path, jobs), path.stem, "")
        name = path.stem if each.record is None else each.record.target or path.stem
        models.append(each._replace(name=name, prefix=f"{name}_" if len(paths) > 1 else ""))
    seen: dict[str, NamedModel] = {}
    for each in models:
        other = seen.setdefault(each.name, each)
        if other is not each:
            raise InputError(
                f"{other.path} and {each.path} both predict {each.name!r}, so that their columns "
                "would have the same names. Give one model for each target."
            )
    recipes = {each.model.recipe_ is None or each.model.recipe_.is_molecular: each
               for each in models}  # fmt: skip
    if len(recipes) > 1:
        raise InputError(
            f"{recipes[True].path} was fitted to molecules, {recipes[False].path} to other graphs "
            f"({recipes[False].model.recipe_}): predict with one after the other."
        )
    return models


def _targets_for(models: Sequence[NamedModel], asked: str | None) -> list[str | None]:
    """The column with the truth for each model: by the names of their targets, else in order."""
    if asked is None or len(models) == 1:
        return [asked] * len(models)
    columns = options.column_list(asked, "--target")
    names = [each.name for each in models]
    if set(columns) <= set(names):
        return [name if name in columns else None for name in names]
    if len(columns) != len(models):
        raise InputError(
            f"--target {asked}: these are {len(columns)} columns for {len(models)} models "
            f"({', '.join(names)}). Name a column for each, in the order of the models and with "
            "commas between, or some of the models' own targets."
        )
    return list(columns)


def _common_records(
    models: Sequence[NamedModel], smiles: str | None, columns: Sequence[str]
) -> Any:
    """The records of the models, with the same column of SMILES and the same ids."""
    known = [each for each in models if each.record is not None]
    if len(models) == 1 or not known:
        return [each.record for each in models]
    found = {each.record.smiles: each for each in known if each.record.smiles in columns}
    if len(found) > 1 and smiles is None:
        (one, first), (other, second), *_ = found.items()
        raise InputError(
            f"{first.path} was fitted to the SMILES of column {one!r}, {second.path} to those of "
            f"{other!r}, and the table has both: name the one to read with --smiles COLUMN."
        )
    ids = tuple(dict.fromkeys(name for each in known for name in each.record.ids))
    column = next(iter(found), None)
    return [None if each.record is None else replace(each.record, smiles=column, ids=ids)
            for each in models]  # fmt: skip


# --- a run ----------------------------------------------------------------------------------------


@dataclass
class _Run:
    """One run of the command: reads chunks, predicts them, and writes them."""

    output: Output
    models: list[NamedModel]
    data: str
    smiles: str | None
    ids: str | None
    frames: list[pd.DataFrame] = field(default_factory=list)  # columns of the models only
    truths: list[list[str]] = field(default_factory=list)  # of each model with a target

    def graphs(self, target: str | None, out: Path | None, as_json: bool) -> dict[str, Any]:
        """Predict graphs that came with classes, all at once."""
        from sklearn.base import is_regressor

        from treelens.cli.data import read_data

        table = read_data(self.data, smiles=self.smiles, names=self.ids, target=target,
                          model=self.models[0].model)  # fmt: skip
        for note in table.notes:
            self.output.note(note)
        frame = self._predicted([table] * len(self.models))
        known = [None if is_regressor(each.model) else table.y for each in self.models]
        summary = self._summary(table.source, frame, [table.rows] * len(known), known)
        return {**summary, **self._written(frame, out, as_json)}

    def table(
        self, kind: str, target: str | None, out: Path | None, as_json: bool
    ) -> dict[str, Any]:
        """Predict a table of molecules in chunks."""
        import pandas as pd

        targets = _targets_for(self.models, target)
        self.truths = [[] for _ in targets]
        recipes = [each.model.recipe_ for each in self.models]
        hydrogens = any(recipe is not None and recipe.hydrogens for recipe in recipes)
        chunks = _chunks(self.data, kind, hydrogens)
        first = list(islice(chunks, 2))
        if not first:
            raise InputError(f"{self.data} has column names but no rows: nothing to predict.")
        long = len(first) > 1
        with ExitStack() as stack:
            sink = None
            if long and out is not None and kind == "table":
                sink = stack.enter_context(self._partial(out))
            for number, (table, molecules) in enumerate(chain(first, chunks)):
                self._take_truths(table, targets)
                if sink is not None and table.first_row < sink.n_rows:
                    continue  # done by an earlier run
                try:
                    frame = self._predicted(self._readings(table, molecules))
                except KeyboardInterrupt:
                    if sink is not None and sink.n_rows:
                        self.output.note(f"The same command continues at row {sink.n_rows + 1}.")
                    raise
                data = _csv(frame, header=number == 0)
                if sink is not None:
                    sink.append(data, len(frame))
                elif long and out is None and not as_json:
                    self.output.csv(data.decode())
                if sink is None:
                    self.frames.append(frame)
            if sink is not None:
                whole = self._read_back(sink.path)
                sink.finish()
            else:
                whole = pd.concat(self.frames, ignore_index=True)
        self._note_rdkit()
        truth = [self._truth(each, name, texts) for each, name, texts
                 in zip(self.models, targets, self.truths, strict=True)]  # fmt: skip
        summary = self._summary(
            self.data, whole, [rows for rows, _ in truth], [y for _, y in truth]
        )
        if sink is not None:
            return {**summary, "out": str(out)}
        return {**summary, **self._written(whole, out, as_json, printed=long)}

    def _partial(self, out: Path) -> Any:
        from treelens import __version__
        from treelens.cli.partial import PartialOutput

        paths = [each.path.expanduser() for each in self.models]
        settings = {"smiles": self.smiles, "ids": self.ids, "chunk": CHUNK_ROWS,
                    "version": __version__}  # fmt: skip
        return PartialOutput(out, [*paths, Path(self.data).expanduser()], settings)

    def _readings(self, table: Table, molecules: Sequence[Any] | None) -> list[MoleculeTable]:
        """A chunk as each model reads it; molecules are made once for models that read alike."""
        from treelens.graphs.alike import without_hydrogens
        from treelens.graphs.molecule_table import covariate_names, rows_of_table
        from treelens.graphs.recipe import GraphRecipe

        records = _common_records(self.models, self.smiles, table.columns)
        made: dict[GraphRecipe, MoleculeTable] = {}
        readings = []
        beside = [name for each in self.models for name in covariate_names((), None, each.model)]
        for each, record in zip(self.models, records, strict=True):
            known = each.model.recipe_ or GraphRecipe()
            recipe = known.for_new_molecules("smiles" if molecules is None else "sdf")
            if recipe not in made:
                own = molecules
                if own is not None and not recipe.hydrogens:  # another model may need them
                    own = [without_hydrogens(molecule) for molecule in own]
                made[recipe] = rows_of_table(
                    table, own, recipe, self.smiles, self.ids, list(dict.fromkeys(beside)), record,
                    may_be_empty=True,
                )  # fmt: skip
                for note in made[recipe].notes:
                    self.output.note(note)
            readings.append(made[recipe])
        return readings

    def _predicted(self, readings: Sequence[MoleculeTable]) -> pd.DataFrame:
        from treelens.estimators.prediction_table import predict_rows

        models, prefixes = [m.model for m in self.models], [m.prefix for m in self.models]
        return predict_rows(models, readings, prefixes)

    def _take_truths(self, table: Table, targets: Sequence[str | None]) -> None:
        from treelens.graphs.columns import asked_column

        for column, texts in zip(targets, self.truths, strict=True):
            if column is not None:
                asked_column(table.columns, column, "target", table.source)
                texts.extend(table.column(column, "target"))

    def _truth(self, each: NamedModel, column: str | None, texts: list[str]) -> tuple[Any, Any]:
        """Rows with a truth, and the truths; (None, None) where no column was named."""
        import numpy as np
        from sklearn.base import is_regressor

        from treelens.graphs.tables import Table
        from treelens.graphs.targets import as_numbers, read_target

        if column is None:
            return None, None
        table = Table(self.data, [column], [[text] for text in texts], None)
        task = "regression" if is_regressor(each.model) else "classification"
        notes: list[str] = []
        y, labelled = read_target(table, column, np.arange(len(texts)), task, notes)
        for note in notes:
            self.output.note(note)
        rows = np.flatnonzero(labelled)
        if len(rows) < len(texts):
            n = len(texts) - len(rows)
            self.output.note(f"{n} row{'s' if n > 1 else ''} without {column!r}: predicted, and "
                             "not scored.")  # fmt: skip
        if task == "regression":
            y = as_numbers(y, column, lambda k: table.place(int(rows[k])))
        return rows, y

    def _note_rdkit(self) -> None:
        from treelens.graphs.molecule_notes import about_rdkit_warnings
        from treelens.graphs.rdkit_log import heard

        for note in about_rdkit_warnings(heard()):
            self.output.note(note)

    def _read_back(self, path: Path) -> pd.DataFrame:
        """The predictions of all chunks, also of those of earlier runs."""
        import pandas as pd

        text = {f"{each.prefix}class": str for each in self.models} | {"problem": str}
        return pd.read_csv(path, dtype=text, keep_default_na=False, na_values=[""])

    def _written(
        self, frame: pd.DataFrame, out: Path | None, as_json: bool, printed: bool = False
    ) -> dict[str, Any]:
        from treelens.storage.files import whole_file

        if out is not None:
            with whole_file(out) as file:
                file.write(_csv(frame, header=True))
            return {"out": str(out)}
        if as_json:
            return {"predictions": frame.to_dict("records")}
        if not printed:
            self.output.csv(_csv(frame, header=True).decode())
        return {}

    # --- summary ----------------------------------------------------------------------------

    def _summary(
        self, source: str, whole: pd.DataFrame, rows: Sequence[Any], truths: Sequence[Any]
    ) -> dict[str, Any]:
        """Counts, scores where the truth is known, and notes on what looks wrong."""
        bad = whole.index[whole["problem"].fillna("") != ""]
        if len(bad):
            shown = ", ".join(f"row {k + 1} ({whole['problem'][k]})" for k in bad[:5])
            more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
            self.output.note(
                f"{len(bad)} of {len(whole)} rows could not be read and have an empty prediction: "
                f"{shown}{more}."
            )
        counts = {"n_rows": len(whole), "n_unreadable": len(bad)}
        found = [self._of_model(*each, whole) for each in
                 zip(self.models, rows, truths, strict=True)]  # fmt: skip
        if len(self.models) == 1:
            return counts | found[0]
        names = [{"model": str(each.path), "target": each.name} for each in self.models]
        return counts | {"models": [n | one for n, one in zip(names, found, strict=True)]}

    def _of_model(self, each: NamedModel, rows: Any, y: Any, whole: pd.DataFrame) -> dict[str, Any]:
        import numpy as np

        from treelens.estimators.prediction_table import table_columns

        about = f"{each.name}: " if each.prefix else ""
        columns = [c for c in table_columns(each.model) if c != "nearest"]
        own = whole[[each.prefix + c for c in columns]].set_axis(columns, axis=1)
        readable = own["out_of_vocabulary"].notna().to_numpy()
        found = own[readable]
        unseen = float(found["out_of_vocabulary"].astype(float).mean()) if len(found) else 0.0
        if unseen > _STRANGE:
            self.output.note(
                f"{about}{percent(unseen)} of the patterns of these graphs are not in the training "
                "graphs: they are probably labelled in another way, and the predictions mean "
                "little."
            )
        if "in_domain" in found:
            inside = found["in_domain"].astype(str) == "True"
            if n := int((~inside).sum()):
                self.output.note(
                    f"{about}{n} of {len(found)} molecules lie outside the domain of applicability "
                    "(in_domain is False): expect larger errors there."
                )
        scored = None if y is None else np.flatnonzero(readable[rows])
        truth = None if scored is None else (own.iloc[rows[scored]], y[scored])
        of = _class_summary if "class" in found else _number_summary
        summary = of(each.model, found, truth)
        if not summary.pop("any_known", True):
            self.output.note(f"{about}None of the true classes is a class of the model.")
        return {"mean_out_of_vocabulary": unseen, **summary}


def _chunks(
    source: str, kind: str, hydrogens: bool
) -> Iterator[tuple[Table, Sequence[Any] | None]]:
    """A table in chunks of rows, with the molecules of an SDF."""
    from treelens.cli.data import source_table
    from treelens.graphs.sdf import read_sdf
    from treelens.graphs.tables import (
        STREAMED_ENDINGS,
        inner_suffix,
        read_table_blocks,
        read_text_table,
    )

    path = Path(source).expanduser()
    molecules = None
    if kind == "table" and inner_suffix(path) in STREAMED_ENDINGS:
        for table in read_table_blocks(path, CHUNK_ROWS):
            yield table, None
        return
    if kind == "sdf":
        molecules, table = read_sdf(path, keep_hydrogens=hydrogens)
    else:
        table = read_text_table(path) if kind == "table" else source_table(source)
    for start in range(0, len(table.rows), CHUNK_ROWS):
        some = slice(start, start + CHUNK_ROWS)
        lines = None if table.lines is None else table.lines[some]
        part = table._replace(rows=table.rows[some], lines=lines, first_row=start)
        yield part, None if molecules is None else molecules[some]


def _csv(frame: pd.DataFrame, header: bool) -> bytes:
    from treelens.storage.csv_text import csv_text

    text = csv_text(frame, index=False)
    start = 0 if header else len(csv_text(frame.iloc[:0], index=False))
    return text[start:].encode("utf-8")


def _class_summary(model: Any, found: pd.DataFrame, truth: Any) -> dict[str, Any]:
    import numpy as np

    from treelens.evaluation.metrics import class_scores, rarer_code
    from treelens.evaluation.validation import codes_among
    from treelens.storage.csv_text import harmless

    plain = {harmless(str(c)): str(c) for c in model.classes_.tolist()}  # as read back from a file

    def named(classes: pd.Series) -> np.ndarray:
        return np.array([plain.get(str(c), str(c)) for c in classes], dtype=object)

    classes, counts = np.unique(named(found["class"]), return_counts=True)
    summary: dict[str, Any] = {
        "predicted": dict(zip(classes.tolist(), counts.tolist(), strict=True)), "accuracy": None,
    }  # fmt: skip
    if truth is None or not len(truth[1]):
        return summary
    rows, y = truth
    chances = rows[[f"probability {c}" for c in model.classes_.tolist()]].to_numpy(dtype=float)
    positive = rarer_code(model.train_codes_) if len(model.classes_) == 2 else None
    codes = codes_among(np.asarray(y), model.classes_)
    scores = class_scores(
        codes, codes_among(named(rows["class"]), model.classes_), chances, positive
    )
    of = None if positive is None else str(model.classes_[positive])
    return {**summary, **scores, "positive": of, "n_scored": len(y),
            "any_known": bool((codes >= 0).any())}  # fmt: skip


def _number_summary(model: Any, found: pd.DataFrame, truth: Any) -> dict[str, Any]:
    from treelens.evaluation.metrics import number_scores
    from treelens.graphs.record import learned_transform

    values = found["prediction"].astype(float)
    ends = [float(values.min()), float(values.max())] if len(values) else [None, None]
    summary: dict[str, Any] = {"predicted": {"smallest": ends[0], "largest": ends[1]}}
    if truth is None or not len(truth[1]):
        return summary
    rows, y = truth
    scale = learned_transform(model.recipe_)
    mean = rows["prediction"].to_numpy(dtype=float)
    std = rows["std" if scale is None else f"std_{scale.name}"].to_numpy(dtype=float)
    named = {"n_scored": len(y)}
    if scale is None:
        return {**summary, **number_scores(y, mean, std), **named}
    there = scale.checked(y, lambda k: f"the value of row {int(rows.index[k]) + 1}")
    return {
        **summary,
        **number_scores(there, scale.forward(mean), std),
        **named,
        "scale": scale.name,
    }


# --- printing -------------------------------------------------------------------------------------


def _show(output: Output, result: dict[str, Any]) -> None:
    counts = f"{result['n_rows']} rows; {{}}{result['n_unreadable']} not readable."
    if "models" not in result:
        output.progress(" ".join([counts.format(f"{_range(result)}; "), *_scores(result)]))
    else:
        output.progress(counts.format(""))
        for each in result["models"]:
            output.progress(" ".join([f"{each['target']}: {_range(each)}.", *_scores(each)]))
    if "out" in result:
        output.line(f"Predictions: {result['out']}")


def _range(result: dict[str, Any]) -> str:
    predicted = result["predicted"]
    if "accuracy" in result:
        return "predicted " + ", ".join(f"{name} {n}" for name, n in predicted.items())
    ends = [predicted[name] for name in ("smallest", "largest")]
    return "predicted " + ("nothing" if None in ends else "from {:.4g} to {:.4g}".format(*ends))


def _scores(result: dict[str, Any]) -> list[str]:
    """Scores in words, where the truth is known: ``["RMSE: 0.5.", "R2: 0.812."]``."""
    from treelens.evaluation.metrics import CLASS_SCORES, NUMBER_SCORES

    words = []
    for name, (title, _) in {**CLASS_SCORES, **NUMBER_SCORES}.items():
        value = result.get(name)
        if value is None or name == "nlpd":
            continue
        title = _WORDS.get(name, title)
        if "scale" in result and name in ("rmse", "mae"):
            title += f" of {result['scale']}"
        if result.get("positive") and name in ("recall", "precision", "pr_auc"):
            title += f" ({result['positive']})"
        digits = ".4g" if name in ("rmse", "mae") else ".3f"
        words.append(f"{title}: {percent(value) if name in _SHARES else format(value, digits)}.")
    if result.get("names_one_class"):
        words.append("All rows were predicted to be of the same class.")
    return words
