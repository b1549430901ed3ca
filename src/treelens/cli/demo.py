"""``treelens demo``: learn on real molecules that are on this machine already."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treelens.cli import options
from treelens.cli.console import Output, command

if TYPE_CHECKING:
    from treelens.graphs.molecule_table import MoleculeTable

# Comes with RDKit: inhibitors with their activity (pIC50), of one assay in ChEMBL.
_MOLECULES, _ACTIVITIES = "CHEMBL2321810.smi", "CHEMBL2321810_act.csv"


def demo_cli(
    out: Annotated[Path, typer.Option("--out", "-o", help="The report to write.")] = Path(
        "treelens-demo.html"
    ),
    seed: options.Seed = 0,
    jobs: options.Jobs = -1,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Learn on real molecules, print the scores and write a report; needs no network, no data.

    Takes the 1,017 molecules with activities that come with RDKit, and predicts these; without
    RDKit, made-up graphs of two classes. The report shows graphs that were held out.
    """
    with command(as_json, debug) as output:
        from treelens.cli.fit import fit_model
        from treelens.storage.files import checked_target

        folder = _rdkit_examples()
        reads = [] if folder is None else [folder / name for name in (_MOLECULES, _ACTIVITIES)]
        checked_target(out, reads=reads)
        data, story = demo_data()
        output.progress(story)
        training, held_out = held_out_fifth(data)
        settings = options.process_settings("auto", None, "auto", seed, jobs)
        model, result = fit_model(training, "evidence", settings)
        model.report(out, held_out.graphs, held_out.y, names=held_out.source)
        output.finish({"story": story, **result, "report": str(out)}, _show)


def held_out_fifth(data: MoleculeTable) -> tuple[MoleculeTable, MoleculeTable]:
    """Graphs to learn from, and every fifth one to look at."""
    import numpy as np

    held_out = np.arange(len(data.graphs)) % 5 == 4
    learned = np.flatnonzero(~held_out)
    return replace(data.pick(learned), n_rows=len(learned)), data.pick(np.flatnonzero(held_out))


def demo_data() -> tuple[MoleculeTable, str]:
    """The molecules that RDKit carries or else the synthetic study, and what they are."""
    folder = _rdkit_examples()
    return _synthetic() if folder is None else _inhibitors(folder)


def _rdkit_examples() -> Path | None:
    try:
        from rdkit import RDConfig
    except ImportError:
        return None
    folder = Path(RDConfig.RDContribDir, "FreeWilson", "data")
    return folder if all((folder / name).is_file() for name in (_MOLECULES, _ACTIVITIES)) else None


def _inhibitors(folder: Path) -> tuple[MoleculeTable, str]:
    import numpy as np
    import pandas as pd

    from treelens.graphs.molecule_table import MoleculeTable
    from treelens.graphs.molecules import read_smiles

    graphs, _ = read_smiles(folder / _MOLECULES, target=None, names="name", on_invalid="skip")
    activities = pd.read_csv(folder / _ACTIVITIES, dtype={"Name": str}).set_index("Name")["Act"]
    assert graphs.names is not None
    y = activities.loc[list(graphs.names)].to_numpy(dtype=float)
    story = (
        f"{len(graphs)} molecules with measured activities (pIC50, from {y.min():g} to "
        f"{y.max():g}), which come with RDKit (ChEMBL assay 2321810). Every fifth is held out for "
        "the report."
    )
    rows = np.arange(len(graphs))
    return MoleculeTable(
        "RDKit's example molecules", graphs, y, rows, len(rows), "pIC50", "regression"
    ), story


def _synthetic() -> tuple[MoleculeTable, str]:
    import numpy as np

    from treelens.graphs.molecule_table import MoleculeTable
    from treelens.graphs.synthetic import make_synthetic

    graphs, y = make_synthetic(random_state=0)
    story = (
        f"{len(graphs)} made-up graphs (RDKit, which carries molecules, is not installed: pip "
        "install 'treelens[chem]'). Class 1 has the pattern 0(0,1,2) in it, class -1 has not. "
        "Every fifth is held out for the report."
    )
    return MoleculeTable("synthetic graphs", graphs, y, np.arange(len(graphs)), len(graphs)), story


def _show(output: Output, result: dict[str, Any]) -> None:
    from treelens.cli.fit import show_fit

    show_fit(output, result)
    output.line(f"Report: {result['report']} (open it in a browser)")
