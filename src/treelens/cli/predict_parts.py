"""Predictions of a long table, part by part: little memory, and a stopped run goes on.

Beside the file to write stands a folder with what is done: one CSV file for each part of the
table, and one JSON file that says the part is whole. Once all are there they become the one file,
and the folder goes. A folder of another model, table or size of parts is refused.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from treelens.cli.console import InputError
from treelens.cli.predict_models import AskedRows, NamedModel, load_models, readings_for
from treelens.cli.reading import Reading
from treelens.graphs.rdkit_log import listening

if TYPE_CHECKING:
    import pandas as pd

    from treelens.cli.predict_table import PredictedTable
    from treelens.graphs.tables import Table

_PLAN = "plan.json"
# Also what is being written, or was when a run was killed.
_OWN_FILE = re.compile(r"\.?(plan\.json|part-\d{7}\.(csv|json))(\..*)?")
# What a plan holds, as an error calls it; of files, what they hold was compared.
_PLAN_IN_WORDS = {
    "models": "content of the model",
    "data": "content of the table",
    "part_size": "--part-size",
    "smiles": "--smiles",
    "ids": "--id",
    "atom_label": "--atom-label",
    "hydrogens": "--hydrogens",
    "version": "version of treelens",
}
_SHOWN_VALUES = set(_PLAN_IN_WORDS) - {"models", "data"}
_CHUNK = 2**20
_PLAIN = "C"  # a molecule that every model can say something of


@dataclass(frozen=True)
class PartsPlan:
    """What is predicted, and how: two runs with the same plan make the same parts.

    Attributes
    ----------
    models : tuple of str
        Paths.
    data : str
        A path.
    part_size : int
        Rows of the table in a part.
    asked : AskedRows
        As on the command line.
    """

    models: tuple[str, ...]
    data: str
    part_size: int
    asked: AskedRows = field(default_factory=AskedRows)

    def fingerprint(self) -> dict[str, Any]:
        """The plan with what the files hold in the place of their names."""
        from treelens import __version__

        models = [_digest(Path(model)) for model in self.models]
        contents = {"models": models, "data": _digest(Path(self.data))}
        return {**asdict(self), **contents, "version": __version__}


class Stamp(NamedTuple):
    """What tells that a file was replaced."""

    path: str
    size: int = -1
    changed: int = -1  # nanoseconds

    @classmethod
    def of(cls, path: str) -> Stamp:
        try:
            found = Path(path).expanduser().stat()
        except OSError:  # what is wrong with it is told where it is read
            return cls(path)
        return cls(path, found.st_size, found.st_mtime_ns)


def predict_in_parts(plan: PartsPlan, out: Path, n_jobs: int) -> dict[str, Any]:
    """Predict what is missing, in processes, write ``out``, and sum the parts up.

    Parameters
    ----------
    plan : PartsPlan
    out : path
        The CSV file; beside it, as long as parts are missing, ``out`` + ``.parts``.
    n_jobs : int
        Processes; -1: one for each processor. The file does not depend on it.
    """
    _loaded(plan.models)  # what is wrong with a model is told before the work
    folder = _opened_folder(plan, out)
    try:
        return _predicted(plan, folder, out, n_jobs)
    finally:  # a run that came to nothing leaves nothing
        if folder.exists() and not any(folder.glob("part-*.json")):
            _remove(folder)


def _predicted(plan: PartsPlan, folder: Path, out: Path, n_jobs: int) -> dict[str, Any]:
    from joblib import Parallel, delayed

    stamps = _stamps(plan.models)
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs")
    work = (delayed(_predict_part)(plan, folder, n, table) for n, table in _missing(plan, folder))
    for _ in parallel(work):
        pass
    if _stamps(plan.models) != stamps:
        raise InputError(
            "A model file was replaced while parts were predicted, so that they may be of two "
            f"models. Remove {folder} and begin again."
        )
    summaries = [json.loads(path.read_text()) for path in sorted(folder.glob("part-*.json"))]
    if not summaries:
        raise InputError(f"{plan.data} has column names but no rows: there is nothing to predict.")
    _join(folder, out, len(summaries))
    _remove(folder)
    return _summed(plan, summaries)


def _opened_folder(plan: PartsPlan, out: Path) -> Path:
    """The folder of the parts, new or with parts of the same plan in it."""
    from treelens.graphs.tables import STREAMED_ENDINGS, inner_suffix
    from treelens.storage.files import whole_file

    if inner_suffix(Path(plan.data)) not in STREAMED_ENDINGS:
        raise InputError(
            f"--part-size: {plan.data} cannot be read in parts; expected .csv, .tsv, .txt or .smi "
            "(or these with .gz). Leave --part-size out, or save the table as CSV."
        )
    folder = out.with_name(out.name + ".parts")
    if folder.exists():
        _check_own(folder)
    folder.mkdir(exist_ok=True)
    asked = json.dumps(plan.fingerprint(), indent=1)
    known = folder / _PLAN
    if not known.exists() or not any(folder.glob("part-*.json")):  # nothing that could be lost
        for half_written in folder.glob("part-*.csv"):
            half_written.unlink()
        with whole_file(known) as file:
            file.write(asked.encode())
    elif known.read_text() != asked:
        raise InputError(
            f"{folder} holds parts of another run: {_what_differs(known, json.loads(asked))}. "
            "Remove it, or choose another --out."
        )
    return folder


def _what_differs(known: Path, asked: dict[str, Any]) -> str:
    """Two plans side by side, in words."""
    try:
        found = json.loads(known.read_text())
        then, now = ({**plan, **plan["asked"]} for plan in (found, asked))
    except (ValueError, TypeError, KeyError):
        return f"its {known.name} cannot be read"
    told = [
        f"{words} ({then.get(name)!r} then, {now[name]!r} now)" if name in _SHOWN_VALUES else words
        for name, words in _PLAN_IN_WORDS.items()
        if then.get(name) != now[name]
    ]
    return f"not the same {' and '.join(told) or 'plan'}"


def _check_own(folder: Path) -> None:
    """Refuse what no run of ours left there: the folder goes once all parts are one file."""
    if not folder.is_dir():
        raise InputError(
            f"{folder} is in the way: parts are kept in a folder of that name. Move it, or choose "
            "another --out."
        )
    strange = [x for x in sorted(folder.iterdir()) if not _OWN_FILE.fullmatch(x.name)]
    if strange:
        raise InputError(
            f"{folder} holds {strange[0].name}, which is no part of a run: parts are kept there, "
            "and the folder goes when they are whole. Move it, or choose another --out."
        )


def _remove(folder: Path) -> None:
    """Take away what a run made, and nothing else."""
    for path in folder.iterdir():
        if _OWN_FILE.fullmatch(path.name):
            path.unlink()
    folder.rmdir()


def _missing(plan: PartsPlan, folder: Path) -> Iterator[tuple[int, Table]]:
    """The parts of the table that are not done yet."""
    from treelens.graphs.tables import read_table_blocks

    blocks = read_table_blocks(Path(plan.data).expanduser(), plan.part_size)
    for number, table in enumerate(blocks):
        if not _marker(folder, number).exists():
            yield number, table


def _marker(folder: Path, number: int) -> Path:
    return folder / f"part-{number:07d}.json"


def _predict_part(plan: PartsPlan, folder: Path, number: int, table: Table) -> None:
    """Write the predictions of one part and then, as the sign that it is whole, its summary."""
    from treelens.storage.csv_text import csv_text
    from treelens.storage.files import whole_file

    with listening() as listener:
        found = _predictions(plan, table)
    rows = len(table.rows)
    whole = found.whole.iloc[:rows].copy()
    whole["row"] += table.first_row
    header = csv_text(whole.iloc[:0], index=False)
    text = csv_text(whole, index=False)
    marker = _marker(folder, number)
    with whole_file(marker.with_suffix(".csv")) as file:
        file.write((text if number == 0 else text[len(header) :]).encode("utf-8"))
    warned = {
        kind: [table.first_row + row for row in sorted(some)]
        for kind, some in listener.found.items()
    }
    models = [_summary(one.iloc[:rows]) for one in found.of_models]
    summary = {"n_rows": rows, "models": models, "warned": warned}
    with whole_file(marker) as file:
        file.write(json.dumps(summary).encode())


def _predictions(plan: PartsPlan, table: Table) -> PredictedTable:
    """The predictions of one part, its rows numbered from 1, and of one row more."""
    from treelens.cli.data import GraphData
    from treelens.cli.molecules import molecules_in_table
    from treelens.cli.predict_models import for_each_model
    from treelens.cli.predict_table import predicted_table

    models, asked = _loaded(plan.models), plan.asked
    readings = readings_for(models, asked, table.columns)
    # A part may hold no molecule at all, and then no model says which columns there are.
    position = table.columns.index(_smiles_column(asked.smiles, table, readings[0]))
    plain = ["" if k != position else _PLAIN for k in range(len(table.columns))]
    more = table._replace(
        rows=[*table.rows, plain], lines=None if table.lines is None else [*table.lines, 0]
    )

    def read(reading: Reading) -> GraphData:
        found = molecules_in_table(more, reading, asked.smiles, asked.ids, [], _silent)
        rows = found["graphs"].graph_data["row"].astype(int) - table.first_row
        return GraphData(source=plan.data, y=None, rows=rows, **found)

    sets = for_each_model(models, readings, read, [None] * len(models), _silent)
    return predicted_table(models, sets)


def _silent(text: str) -> None:
    """Every part would say the same."""


def _smiles_column(asked: str | None, table: Table, reading: Reading) -> str:
    from treelens.cli.columns import smiles_column

    known = None if reading.table is None else reading.table.smiles
    return smiles_column(table, asked, known, _silent)


def _loaded(paths: tuple[str, ...]) -> list[NamedModel]:
    """The models, once for each process as long as the files stay; a part is one thread's work."""
    return _loaded_as_stamped(_stamps(paths))


@lru_cache(maxsize=1)
def _loaded_as_stamped(files: tuple[Stamp, ...]) -> list[NamedModel]:
    return load_models([Path(file.path) for file in files], n_jobs=1)


def _stamps(paths: tuple[str, ...]) -> tuple[Stamp, ...]:
    return tuple(map(Stamp.of, paths))


# --- sums over parts ------------------------------------------------------------------------


def _summary(found: pd.DataFrame) -> dict[str, Any]:
    """What one model said of a part."""
    readable = found[found["out_of_vocabulary"].notna()]
    summary: dict[str, Any] = {
        "n_readable": len(readable),
        "out_of_vocabulary": float(readable["out_of_vocabulary"].sum()),
    }
    if "in_domain" in readable:
        summary["n_outside"] = int((~readable["in_domain"].astype(bool)).sum())
    if "class" in readable:
        summary["classes"] = readable["class"].astype(str).value_counts().to_dict()
    elif len(readable):
        summary["range"] = [float(readable["prediction"].min()),
                            float(readable["prediction"].max())]  # fmt: skip
    return summary


def _summed(plan: PartsPlan, parts: list[dict[str, Any]]) -> dict[str, Any]:
    """What ``treelens predict`` tells of a table, from what was told of its parts."""
    n_rows = sum(part["n_rows"] for part in parts)
    n_models = len(plan.models)
    of_models = [[part["models"][k] for part in parts] for k in range(n_models)]
    readable = min(sum(part["n_readable"] for part in one) for one in of_models)
    result: dict[str, Any] = {
        "n_rows": n_rows, "n_unreadable": n_rows - readable, "n_parts": len(parts),
        "warned": _joined([part["warned"] for part in parts]),
    }  # fmt: skip
    told = [_summed_model(one) for one in of_models]
    if n_models == 1:
        return result | told[0]
    models = [{"model": str(each.path), "target": each.name} for each in _loaded(plan.models)]
    return result | {"models": [name | one for name, one in zip(models, told, strict=True)]}


def _joined(parts: list[dict[str, list[int]]]) -> dict[str, list[int]]:
    """Rows under every kind of warning."""
    kinds = dict.fromkeys(kind for part in parts for kind in part)
    return {kind: [row for part in parts for row in part.get(kind, [])] for kind in kinds}


def _summed_model(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The same of one model."""
    readable = sum(part["n_readable"] for part in parts)
    result: dict[str, Any] = {
        "mean_out_of_vocabulary": sum(p["out_of_vocabulary"] for p in parts) / max(1, readable),
        "n_outside": sum(part.get("n_outside", 0) for part in parts),
    }
    if "classes" in parts[0]:
        counts: dict[str, int] = {}
        for part in parts:
            for name, n in part["classes"].items():
                counts[name] = counts.get(name, 0) + n
        return {**result, "predicted": dict(sorted(counts.items())), "accuracy": None}
    ranges = [part["range"] for part in parts if "range" in part]
    low, high = (f(r[k] for r in ranges) if ranges else None for k, f in ((0, min), (1, max)))
    return {**result, "predicted": {"smallest": low, "largest": high}}


def _join(folder: Path, out: Path, n_parts: int) -> None:
    """All parts as one file, whole or not at all."""
    from treelens.storage.files import whole_file

    with whole_file(out) as file:
        for number in range(n_parts):
            with _marker(folder, number).with_suffix(".csv").open("rb") as source:
                shutil.copyfileobj(source, file, _CHUNK)


def _digest(path: Path) -> str:
    found = hashlib.sha256()
    with path.expanduser().open("rb") as file:
        while chunk := file.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()
