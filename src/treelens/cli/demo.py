"""``treelens demo``: learn on real molecules that are on this machine already."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treelens.cli import options
from treelens.cli.console import Output, command
from treelens.cli.fit import fit_model, show_fit

if TYPE_CHECKING:
    from treelens.graphs.molecule_table import MoleculeTable

# Comes with RDKit: inhibitors with their activity (pIC50), of one assay in ChEMBL.
_MOLECULES, _ACTIVITIES = "CHEMBL2321810.smi", "CHEMBL2321810_act.csv"


@command
def demo_cli(
    output: Output,
    out: Annotated[Path, typer.Option("--out", "-o", help="The report to write.")] = Path(
        "treelens-demo.html"
    ),
    seed: options.Seed = 0,
    jobs: options.Jobs = -1,
) -> None:
    """Learn on real molecules, print the scores and write a report; needs no network, no data.

    Takes the 1,017 molecules with activities that come with RDKit, and predicts these; without
    RDKit, made-up graphs of two classes. The report shows graphs that were held out.
    """
    import numpy as np

    from treelens.storage.files import checked_target

    folder = _rdkit_examples()
    reads = [] if folder is None else [folder / name for name in (_MOLECULES, _ACTIVITIES)]
    checked_target(out, reads=reads)
    data, story = demo_data()
    output.progress(f"{story} Every fifth is held out for the report.")
    held_out = np.arange(len(data.graphs)) % 5 == 4
    learned, test = data.pick(np.flatnonzero(~held_out)), data.pick(np.flatnonzero(held_out))
    settings = options.Training(seed=seed, jobs=jobs).gp_settings()
    training = replace(learned, n_rows=len(learned.graphs))
    model, result = fit_model(training, "evidence", settings)
    model.report(out, test.graphs, test.y, names=test.source)
    output.finish({"story": story, **result, "report": str(out)}, _show)


def demo_data() -> tuple[MoleculeTable, str]:
    """Return the molecules that come with RDKit, else the synthetic study, and what they are."""
    import numpy as np
    import pandas as pd

    from treelens.graphs.molecule_table import MoleculeTable
    from treelens.graphs.molecules import read_smiles
    from treelens.graphs.synthetic import make_synthetic

    folder = _rdkit_examples()
    if folder is None:
        graphs, y = make_synthetic(random_state=0)
        what = "synthetic graphs", graphs, y, np.arange(len(y)), len(y)
        return MoleculeTable(*what), (
            f"{len(graphs)} made-up graphs (RDKit, which carries molecules, is not installed: pip "
            "install rdkit). Class 1 has the pattern 0(0,1,2) in it, class -1 has not."
        )
    graphs, _ = read_smiles(folder / _MOLECULES, target=None, names="name", on_invalid="skip")
    activities = pd.read_csv(folder / _ACTIVITIES, dtype={"Name": str}).set_index("Name")["Act"]
    assert graphs.names is not None
    y = activities.loc[list(graphs.names)].to_numpy(dtype=float)
    what = "RDKit's example molecules", graphs, y, np.arange(len(y)), len(y)
    return MoleculeTable(*what, "pIC50", "regression"), (
        f"{len(graphs)} molecules with measured activities (pIC50, from {y.min():g} to "
        f"{y.max():g}), which come with RDKit (ChEMBL assay 2321810)."
    )


def _rdkit_examples() -> Path | None:
    try:
        from rdkit import RDConfig
    except ImportError:
        return None
    folder = Path(RDConfig.RDContribDir, "FreeWilson", "data")
    return folder if all((folder / name).is_file() for name in (_MOLECULES, _ACTIVITIES)) else None


def _show(output: Output, result: dict[str, Any]) -> None:
    show_fit(output, result)
    output.line(f"Report: {result['report']} (open it in a browser)")
