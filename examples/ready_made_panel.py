"""Build an ADME panel from public training data: one model of up to 31 endpoints.

    python examples/ready_made_panel.py --data FOLDER --out adme.treelens

FOLDER (by default ``TREELENS_DATA``) holds the training parts of the ADMET benchmark group of
Therapeutics Data Commons, ``tdc/NAME.train_val.csv.gz`` with columns ``Drug`` and ``Y`` (Huang et
al., NeurIPS Datasets and Benchmarks 2021), and of the OpenADMET-ExpansionRx challenge,
``expansionrx/train.csv.gz`` (doi 10.57967/hf/9687). Both are under CC BY 4.0: a model that is
passed on must name them. Test parts are not read. Scores, size and time are written next to the
file as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

import treelens as tl

SOURCES = {
    "TDC": "Therapeutics Data Commons, ADMET benchmark group, training parts, CC BY 4.0",
    "ExpansionRx": "OpenADMET-ExpansionRx challenge, training part, 10.57967/hf/9687, CC BY 4.0",
}
SMILES, CLASSES = "SMILES", {0: "no", 1: "yes"}


def tdc_parts(folder: Path) -> dict[str, pd.DataFrame]:
    """Return the training part of each set, with its endpoint as a column."""
    found = {}
    for path in sorted(folder.glob("tdc/*.train_val.csv.gz")):
        part, name = pd.read_csv(path), f"TDC {path.name.split('.')[0]}"
        values = part["Y"].map(CLASSES) if set(part["Y"]) == set(CLASSES) else part["Y"]
        found[name] = pd.DataFrame({SMILES: part["Drug"], name: values})
    return found


def expansion_parts(folder: Path) -> dict[str, pd.DataFrame]:
    """Return each endpoint of the challenge; what it shares with others, the model learns."""
    path = folder / "expansionrx" / "train.csv.gz"
    if not path.is_file():
        return {}
    table = pd.read_csv(path)
    names = [name for name in table.columns if name not in (SMILES, "Molecule Name")]
    return {
        f"ExpansionRx {name}": table[[SMILES, name]]
        .dropna()
        .rename(columns={name: f"ExpansionRx {name}"})
        for name in names
    }


def wide_table(parts: dict[str, pd.DataFrame], share: float) -> pd.DataFrame:
    """Return one row for each molecule and endpoint; molecules are merged when they are read.

    Endpoints of different sources stay apart, also where they are called alike: units, assays and
    protocols differ.
    """
    some = [part.sample(frac=share, random_state=0) for part in parts.values()]
    return pd.concat(some, ignore_index=True)


def fitted(table: pd.DataFrame, names: list[str], settings: argparse.Namespace) -> tl.GraphPanel:
    """Return the panel of a table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        table.to_csv(path, index=False)
        # Salts count as their largest part, so that molecules of the sources meet.
        read = tl.read_table(path, target=names, smiles=SMILES, standardize=("fragment",))
    for note in read.notes:
        print(f"Note: {note}", file=sys.stderr)
    panel = tl.GraphPanel(n_jobs=settings.jobs, n_landmarks=settings.landmarks)
    return panel.fit(read.graphs, read.targets)


def main() -> None:
    """Read, fit, print scores, save."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("TREELENS_DATA"))
    parser.add_argument("--out", type=Path, default=Path("adme.treelens"))
    parser.add_argument("--sources", nargs="+", choices=SOURCES, default=list(SOURCES))
    parser.add_argument("--share", type=float, default=1.0, help="of the rows of each endpoint")
    parser.add_argument("--landmarks", type=int, default=5000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--no-training-data", action="store_true", help="leave SMILES out")
    parser.add_argument(
        "--variances", action="store_true", help="keep what standard deviations need: large"
    )
    settings = parser.parse_args()
    readers = {"TDC": tdc_parts, "ExpansionRx": expansion_parts}
    parts = {}
    for source in settings.sources if settings.data else ():
        parts |= readers[source](settings.data)
    if len(parts) < 2:
        sys.exit("No data: give a folder with tdc/ and expansionrx/ as --data or TREELENS_DATA.")
    start = time.perf_counter()
    panel = fitted(wide_table(parts, settings.share), list(parts), settings)
    wall, cpu = time.perf_counter() - start, time.process_time()
    panel.save(settings.out, not settings.no_training_data, settings.variances)
    # Absolute errors are those of medians; means, and RMSE, are ruled by the longest tails.
    columns = ["n", "mae", "coverage", "roc_auc", "pr_auc", "mcc"]
    scores = panel.loo_.loc["new"].reindex(columns=columns).dropna(axis=1, how="all")
    pd.set_option("display.width", 200, "display.max_columns", 20, "display.max_rows", 100)
    print("Scores of each endpoint, all cells of a molecule left out:")
    print(scores.to_string(float_format="{:.3f}".format, na_rep=""))
    record = {
        "treelens": tl.__version__,
        "sources": {name: SOURCES[name] for name in settings.sources},
        "n_molecules": len(panel.model_.training.targets),
        "n_cells": int(scores["n"].sum()),
        "share_of_rows": settings.share,
        "seconds": round(wall),
        "processor_seconds": round(cpu),
        "peak_memory_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
        "file_mb": round(settings.out.stat().st_size / 1e6, 1),
        "left_out": json.loads(scores.to_json(orient="index")),
    }
    settings.out.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
    print(
        f"{record['n_molecules']:,} molecules, {record['n_cells']:,} cells: {wall / 60:.0f} min "
        f"({cpu / 60:.0f} of the processor), {record['peak_memory_gb']} GB, "
        f"{settings.out} has {record['file_mb']} MB."
    )


if __name__ == "__main__":
    main()
