"""Table 2 on a tiny made set: run as a script, it can be killed.

``python tiny.py OUT`` writes the rows of three methods, one repetition, into OUT.
"""

from __future__ import annotations

import sys
from pathlib import Path

from reproduction.data import StudyOptions
from reproduction.protocol import DataSet

from reproduction import protocol, table2
from treelens import make_synthetic

METHODS = ("wwl", "learned_wwl", "shortest_path")
N_ROWS = 10 * len(METHODS)


def tiny_data(name: str = "tiny") -> DataSet:
    """Forty graphs, five of each substructure."""
    graphs, y = make_synthetic(5, noise_nodes=(2, 3), random_state=0)
    return DataSet.from_graphs(name, graphs, y)


def run(out: str | Path) -> Path:
    """Make the rows that are missing, with little to choose from."""
    table2.load_protocol_data = tiny_data
    protocol.DEPTHS, protocol.GAMMAS, protocol.CS = (1,), (1.0,), (1.0, 10.0)
    protocol.radii_for = lambda n_graphs: (1.0,)
    table2.run(StudyOptions(Path(out), ["tiny"], METHODS, repeats=1, n_jobs=1))
    return Path(out) / "rows" / "table2.jsonl"


if __name__ == "__main__":
    run(sys.argv[1])
