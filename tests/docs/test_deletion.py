"""The page on deleted nodes says what its rows say, and the deletions are what it says."""

from __future__ import annotations

import importlib
import re

import networkx as nx
import numpy as np
import pytest
from reproduction.rows import read_rows

from docs.conftest import ROOT
from treelens import Graph
from treelens.kernels.table import KERNELS

RESULTS = ROOT / "docs" / "results"
KINDS = ("most", "scattered", "connected", "least")


@pytest.fixture(scope="module")
def rows() -> dict[tuple[str, str, str], dict]:
    found = read_rows(RESULTS / "deletion.jsonl")
    return {(row["dataset"], row["kernel"], row["weights"]): row for row in found}


@pytest.fixture(scope="module")
def page() -> str:
    return (RESULTS / "deletion.md").read_text(encoding="utf-8")


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.bench_deletion")


def mean_and_error(values: np.ndarray, factor: float = 1.0) -> tuple[float, float]:
    return factor * values.mean(), factor * values.std(ddof=1) / np.sqrt(len(values))


def relative_falls(row: dict) -> dict[str, np.ndarray]:
    return {kind: np.array(row["falls"][kind]) / np.mean(row["decisions"]) for kind in KINDS}


def lines_of(page: str) -> dict[tuple[str, str, str], list[str]]:
    """Cells of all tables by data set, form and weights."""
    found = {}
    for part in page.split("\n## ")[1:]:
        name, table = part.split("\n", 1)
        for line in re.findall(r"^\| ([a-z-]+ \| (?:uniform|learned) .*) \|$", table, re.MULTILINE):
            kernel, weights, *cells = (cell.strip() for cell in line.split("|"))
            found[name, kernel, weights] = cells
    return found


def test_all_forms_and_weights_of_three_sets_are_there(rows, page):
    expected = {
        (name, kernel, weights)
        for name in ("MUTAG", "PTC_MR", "BBBP")
        for kernel in KERNELS
        for weights in ("uniform", "learned")
    }
    assert set(rows) == set(lines_of(page)) == expected


def test_the_tables_follow_from_the_rows(rows, page):
    for key, cells in lines_of(page).items():
        row, falls = rows[key], relative_falls(rows[key])
        assert len(row["graphs"]) == len(row["predicted"]) == row["n_test"] > 50
        expected = [f"{100 * row['accuracy']:.1f}"]
        for values in (*falls.values(), falls["most"] - falls["scattered"]):
            expected.append("{:.2f} ± {:.2f}".format(*mean_and_error(values)))
        for kind in KINDS:
            flips = np.array(row["flips"][kind])
            expected.append("{:.1f} ± {:.1f}".format(*mean_and_error(flips, 100)))
        assert cells == expected, key


def test_the_sentences_follow_from_the_rows(rows, page):
    def ahead(row: dict, control: str, chosen: np.ndarray | slice = slice(None)) -> bool:
        falls = relative_falls(row)
        mean, error = mean_and_error((falls["most"] - falls[control])[chosen])
        return mean > 2 * error

    counts = [sum(ahead(row, kind) for row in rows.values()) for kind in KINDS[1:]]
    quoted = re.search(
        r"Of (\d+) models, .* than \*scattered\* in (\d+), than \*connected\* in (\d+), and than "
        r"\*least\* in (\d+)\.", page,
    )  # fmt: skip
    assert quoted is not None
    assert list(map(int, quoted.groups())) == [len(rows), *counts]
    flips = [100 * np.mean([np.mean(r["flips"][kind]) for r in rows.values()]) for kind in KINDS]
    assert re.findall(r"([\d.]+) % (?:of the graphs )?after \*", page) == [
        f"{x:.1f}" for x in flips
    ]
    by_class = [
        ahead(row, "scattered", np.array(row["predicted"]) == label)
        for row in rows.values()
        for label in sorted(set(row["predicted"]))
    ]
    assert f"in {sum(by_class)} of {len(by_class)} cases" in page
    shares = [
        100 * (relative_falls(row)["most"] <= relative_falls(row)["scattered"]).mean()
        for row in rows.values()
    ]
    text = f"in {min(shares):.0f} to {max(shares):.0f} % of the graphs of a model"
    assert f"{text}, {np.mean(shares):.1f} % on average" in page


def test_deleted_nodes_take_their_edges_along(bench):
    graph = Graph(("a", "b", "c", "d"), ((0, 1), (0, 3), (1, 2), (2, 3)), ("w", "x", "y", "z"))
    left = bench.without_nodes(graph, [1])
    assert (left.node_labels, left.edges, left.edge_labels) == (
        ("a", "c", "d"), ((0, 2), (1, 2)), ("x", "z"),
    )  # fmt: skip
    both = bench.collected([left, graph])
    assert [(x.node_labels, x.edges, x.edge_labels) for x in both] == [
        (x.node_labels, x.edges, x.edge_labels) for x in (left, graph)
    ]


def test_what_is_deleted(bench, rng):
    ring = Graph(
        ("a",) * 20, tuple((min(k, (k + 1) % 20), max(k, (k + 1) % 20)) for k in range(20))
    )
    contributions = rng.permutation(20).astype(float)
    most, least, *draws = bench.deletions_of(ring, contributions, rng)
    assert sorted(contributions[most]) == [16, 17, 18, 19]
    assert sorted(contributions[least]) == [0, 1, 2, 3]
    assert {len(set(draw)) for draw in draws} == {4}
    whole = ring.to_networkx()
    pieces = [nx.number_connected_components(whole.subgraph(draw)) for draw in draws]
    scattered, connected = np.split(np.array(pieces), 2)
    assert (connected == 1).all()
    assert scattered.mean() > 2
