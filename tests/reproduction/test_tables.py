"""Table 2 from rows: means, honest numbers of folds, published figures, tests, choices."""

from __future__ import annotations

import json

import numpy as np
import pytest
from reproduction.methods import title_of
from reproduction.protocol import N_OUTER
from reproduction.rows import RowFile
from reproduction.table2 import KEY
from reproduction.table2_grids import wider_grid_parts
from reproduction.tables import all_comparisons, summarize, write_table2

CHOICE = {"weight_radius": 0.3, "depth": 2, "kernel": "wwl", "gamma": 1.0, "C": 10.0}


def row(method, repetition, fold, accuracy, dataset="MUTAG", seed=0):
    return {
        "dataset": dataset, "method": method, "repetition": repetition, "fold": fold,
        "accuracy": accuracy, "seed": seed, "choice": CHOICE, "n_test": 19,
    }  # fmt: skip


def repetition_of(method, repetition, values):
    return [row(method, repetition, fold, value) for fold, value in enumerate(values)]


@pytest.fixture
def rows(rng):
    base = rng.uniform(0.7, 0.9, (3, N_OUTER))
    return [
        *(r for k in range(3) for r in repetition_of("wwl", k, base[k])),
        *(r for k in range(3) for r in repetition_of("learned_wwl", k, base[k] + 0.01 * (k + 1))),
        *repetition_of("shortest_path", 0, base[0])[:4],
    ]


def test_mean_and_deviation_are_over_repetition_means(rows):
    cell = summarize(rows)["MUTAG"]["wwl"]
    ours = [r for r in rows if r["method"] == "wwl"]
    means = [100 * np.mean([r["accuracy"] for r in ours if r["repetition"] == k]) for k in range(3)]
    assert cell["mean"] == pytest.approx(np.mean(means), abs=1e-3)
    assert cell["std"] == pytest.approx(np.std(means, ddof=1), abs=1e-3)
    assert cell["n_folds"] == 30


def test_an_unfinished_method_says_how_many_folds_it_has(rows):
    cell = summarize(rows)["MUTAG"]["shortest_path"]
    assert cell["n_folds"] == 4
    assert cell["std"] is None


def test_an_unfinished_repetition_does_not_count_beside_finished_ones(rows):
    extra = [row("wwl", 3, 0, 0.0)]
    assert summarize(rows + extra)["MUTAG"]["wwl"] == summarize(rows)["MUTAG"]["wwl"]


def test_learned_is_compared_with_every_other_method(rows):
    tests = all_comparisons(rows)["MUTAG"]
    assert set(tests) == {"learned_wwl"}
    assert set(tests["learned_wwl"]) == {"wwl", "shortest_path"}
    assert tests["learned_wwl"]["wwl"].difference == pytest.approx(0.02)


def test_files(rows, tmp_path):
    file = RowFile(tmp_path / "table2.jsonl", KEY)
    for r in [*rows, row("wwl", 0, 0, 0.0, seed=7)]:
        file.append(r)
    written = write_table2(tmp_path)
    assert {path.name for path in written} == {"table2.json", "table2_tests.json", "table2.md"}
    data = json.loads((tmp_path / "table2.json").read_text())
    assert data == summarize(rows)  # the other seed stays out
    page = (tmp_path / "table2.md").read_text()
    assert "python -m reproduction table2" in page
    assert "(88.37 ± 1.82)" in page.replace(
        "\N{NO-BREAK SPACE}", " "
    )  # the paper's learned WWL on MUTAG
    assert "[4 folds]" in page
    assert "| learned WWL | 0.3: 30 |" in page


def test_no_rows_is_an_error_that_says_what_to_do(tmp_path):
    with pytest.raises(ValueError, match="--tables-only"):
        write_table2(tmp_path)


def test_a_few_lucky_folds_do_not_make_the_best_method(rows, tmp_path):
    lucky = [row("learned_wl_oa", 0, fold, 1.0) for fold in range(3)]
    file = RowFile(tmp_path / "table2.jsonl", KEY)
    for r in [*rows, *lucky]:
        file.append(r)
    write_table2(tmp_path)
    page = (tmp_path / "table2.md").read_text()
    assert f"| {title_of('learned_wl_oa')} | 100.00 [3 folds] |" in page  # shown, but not bold
    assert f"| {title_of('learned_wl_oa')} |\n" not in page  # nor our best learned method


def test_both_grids_are_compared_on_the_folds_that_both_have(rows):
    wider = [{**r, "grid": "wide", "accuracy": 1.0} for r in repetition_of("wwl", 1, [0.5] * 10)]
    _, table = wider_grid_parts(rows, [*wider, row("wl_subtree", 0, 0, 1.0)])
    ours = [100 * r["accuracy"] for r in rows if r["method"] == "wwl" and r["repetition"] == 1]
    assert f"| MUTAG | WWL | {np.mean(ours):.2f} | 100.00 | 10 |" in table
    assert "WL subtree" not in table  # has no fold in the first grid
