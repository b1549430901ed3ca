"""What was published: figures of the paper as data, and its Table 1 beside our counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from reproduction.data import StudyOptions
from reproduction.pages import Rows, markdown_table
from reproduction.table2 import DATASETS
from treelens.graphs.collection import GraphCollection
from treelens.graphs.datasets import load_dataset

QUICK_DATASETS = ("MUTAG", "PTC_MR", "PTC_DGCNN", "ENZYMES")


def run(options: StudyOptions) -> None:
    """Count what is not yet counted."""
    with options.rows("table1", ("set",)) as rows:
        for name in options.sets or (QUICK_DATASETS if options.quick else DATASETS):
            if {"set": name} not in rows:
                graphs, y = load_dataset(name)
                rows.append({"set": name, **describe(graphs, np.asarray(y))})


def describe(graphs: GraphCollection, y: np.ndarray) -> dict[str, Any]:
    """Count graphs, classes, nodes, edges and labels."""
    classes, sizes = np.unique(y, return_counts=True)
    return {
        "graphs": len(graphs),
        "class_sizes": dict(zip(map(str, classes.tolist()), sizes.tolist(), strict=True)),
        "mean_nodes": round(float(graphs.sizes.mean()), 2),
        "mean_edges": round(graphs.n_edges / len(graphs), 2),
        "node_labels": len(graphs.node_alphabet),
        "edge_labels": len(graphs.edge_alphabet or ()),
    }


def table1(statistics: Rows) -> str:
    """Our counts beside the paper's."""
    header = ["data set", "graphs", "class sizes", "nodes", "edges", "node labels", "edge labels"]
    rows = []
    for found in statistics:
        name = found["set"]
        printed = PAPER_STATISTICS.get(published_name(name), {})
        sizes = " + ".join(str(size) for size in sorted(found["class_sizes"].values())[::-1])
        if len(set(found["class_sizes"].values())) == 1:
            sizes = f"{len(found['class_sizes'])} × {max(found['class_sizes'].values())}"
        graphs, nodes, edges, labels = (
            f"{found[ours]} ({printed[theirs]})" if theirs in printed else found[ours]
            for ours, theirs in (
                ("graphs", "graphs"),
                ("mean_nodes", "nodes"),
                ("mean_edges", "edges"),
                ("node_labels", "labels"),
            )
        )
        rows.append([name, graphs, sizes, nodes, edges, labels, found["edge_labels"] or "none"])
    return markdown_table(header, rows)


# Errors of others on the assays of MoleculeACE, and where they were published.
PUBLISHED = json.loads(
    Path(__file__).with_name("published_moleculeace.json").read_text(encoding="utf-8")
)
PAPER = "Nguyen, Nguyen and Mamitsuka 2021, Table 2"

# method -> data set -> (mean, standard deviation)
PAPER_ACCURACY: dict[str, dict[str, tuple[float, float]]] = {
    "random_walk": {
        "MUTAG": (85.06, 0.18),
        "PTC_MR": (55.74, 3.64),
        "PROTEINS": (71.11, 0.83),
        "NCI1": (62.88, 0.22),
    },
    "shortest_path": {
        "MUTAG": (85.49, 0.59),
        "PTC_MR": (53.29, 0.92),
        "PROTEINS": (73.03, 1.13),
        "NCI1": (61.36, 0.19),
    },
    "wl_subtree": {
        "MUTAG": (85.61, 0.85),
        "PTC_MR": (61.89, 1.97),
        "PROTEINS": (72.5, 0.32),
        "NCI1": (85.61, 0.13),
    },
    "wl_oa_plain": {
        "MUTAG": (88.17, 1.98),
        "PTC_MR": (60.49, 1.39),
        "PROTEINS": (75.89, 0.41),
        "NCI1": (86.17, 0.35),
    },
    "wwl": {
        "MUTAG": (86.95, 1.35),
        "PTC_MR": (64.86, 1.57),
        "PROTEINS": (74.25, 0.74),
        "NCI1": (85.69, 0.28),
    },
    "learned_wwl": {
        "MUTAG": (88.37, 1.82),
        "PTC_MR": (65.44, 0.97),
        "PROTEINS": (75.73, 0.57),
        "NCI1": (86.45, 0.11),
    },
}


def published_name(name: str) -> str:
    """The column of the paper's table that a data set stands beside."""
    return "PTC_MR" if name == "PTC_DGCNN" else name


def published_accuracy(method: str, name: str) -> tuple[float, float] | None:
    """Mean and deviation that the paper prints for a method on a data set, if it does."""
    return PAPER_ACCURACY.get(method, {}).get(published_name(name))


# One-sided paired t-tests over repetitions, as printed in Section 5.2: the proposed method against
# another; "<" stands for "below".
PAPER_P_VALUES: dict[tuple[str, str], str] = {
    ("wwl", "MUTAG"): "0.061",
    ("wwl", "PROTEINS"): "0.0087",
    ("wwl", "NCI1"): "0.055",
    ("wwl", "PTC_MR"): "0.0035",
    ("wl_oa_plain", "PTC_MR"): "< 0.001",
}

# Repetitions behind a mean and its standard deviation.
PAPER_REPETITIONS = 10


def possible_p_values(name: str, theirs: str = "wwl") -> tuple[float, float]:
    """Smallest and largest p-value that a paired test of the printed figures can have.

    The proposed method against another, one-sided, over ten repetitions. The standard deviation of
    the differences lies between the difference and the sum of the two printed ones, whatever their
    correlation; all printed figures may be half a unit of their last digit off, and the deviations
    may have been divided by n instead of n - 1.
    """
    half = 0.005
    (ours, our_std), (other, other_std) = (
        PAPER_ACCURACY[method][name] for method in ("learned_wwl", theirs)
    )
    difference = ours - other
    inflated = np.sqrt(PAPER_REPETITIONS / (PAPER_REPETITIONS - 1))
    spreads = (
        max(abs(our_std - other_std) - 2 * half, 0.0),
        inflated * (our_std + other_std + 2 * half),
    )
    values = []
    for gain, spread in zip((difference + 2 * half, difference - 2 * half), spreads, strict=True):
        error = spread / np.sqrt(PAPER_REPETITIONS)
        values.append(float(stats.t.sf(gain / error, PAPER_REPETITIONS - 1)) if error else 0.0)
    return values[0], values[1]


PAPER_SYNTHETIC = {"wwl": 82.4, "learned_wwl": 95.0}

# Accuracies that others have published, and how they were measured. "PTC" of the networks is the
# encoding with hydrogens.
OTHERS_ACCURACY: dict[str, dict[str, tuple[float, float | None]]] = {
    "PATCHY-SAN (Niepert, Ahmed and Kutzkov 2016)": {
        "MUTAG": (92.6, 4.2),
        "PTC_DGCNN": (60.0, 4.8),
        "PROTEINS": (75.9, 2.8),
        "NCI1": (78.6, 1.9),
        "DD": (77.1, 2.4),
    },
    "DGCNN (Zhang et al. 2018)": {
        "MUTAG": (85.8, 1.7),
        "PTC_DGCNN": (58.6, 2.5),
        "PROTEINS": (75.5, 0.9),
        "NCI1": (74.4, 0.5),
        "DD": (79.4, 0.9),
    },
    "GIN-0 (Xu et al. 2019)": {
        "MUTAG": (89.4, 5.6),
        "PTC_DGCNN": (64.6, 7.0),
        "PROTEINS": (76.2, 2.8),
        "NCI1": (82.7, 1.7),
    },
    "GIN (Errica et al. 2020)": {
        "PROTEINS": (73.3, 4.0),
        "NCI1": (80.0, 1.4),
        "ENZYMES": (59.6, 4.5),
        "DD": (75.3, 2.9),
    },
    "DGCNN (Errica et al. 2020)": {
        "PROTEINS": (72.9, 3.5),
        "NCI1": (76.4, 1.7),
        "ENZYMES": (38.9, 5.7),
        "DD": (76.6, 4.3),
    },
    "GIN-eps (Morris et al. 2020)": {"PROTEINS": (72.2, None), "NCI1": (77.7, None)},
    "WL subtree (Kriege et al. 2016)": {
        "MUTAG": (86.0, None),
        "PTC_MR": (61.3, None),
        "PROTEINS": (75.6, None),
        "NCI1": (85.8, None),
    },
    "WL-OA (Kriege et al. 2016)": {
        "MUTAG": (84.5, None),
        "PTC_MR": (63.6, None),
        "PROTEINS": (76.4, None),
        "NCI1": (86.1, None),
    },
    "WWL (Togninalli et al. 2019)": {
        "MUTAG": (87.3, None),
        "PTC_MR": (66.3, None),
        "PROTEINS": (74.3, None),
        "NCI1": (85.8, None),
    },
}
# Table 3: seconds for the whole classification task on one processor.
PAPER_SECONDS: dict[str, dict[str, float | str]] = {
    "batch": {"MUTAG": 16140, "PTC_MR": 31800, "PROTEINS": "> 3 days", "NCI1": "> 1 week"},
    "stochastic": {"MUTAG": 92, "PTC_MR": 228, "PROTEINS": 4840, "NCI1": 18300},
}

# Table 1 as printed. Edges of MUTAG and PROTEINS are counted twice there.
PAPER_STATISTICS: dict[str, dict[str, float | str]] = {
    "MUTAG": {"graphs": 188, "nodes": 17.9, "edges": 39.6, "labels": 7},
    "PTC_MR": {"graphs": 344, "nodes": 25.6, "edges": 51.9, "labels": 19},
    "PROTEINS": {"graphs": 1113, "nodes": 39.1, "edges": 145.63, "labels": 3},
    "NCI1": {"graphs": 4110, "nodes": "N/A", "edges": "N/A", "labels": "N/A"},
}
