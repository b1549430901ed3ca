"""Table 2 from rows: means, numbers of folds, published figures, tests."""

import numpy as np
import pytest
from reproduction.methods import title_of
from reproduction.protocol import N_OUTER
from reproduction.rows import RowFile
from reproduction.table2 import KEY
from reproduction.tables import compare, folds_of, learning_tests, summarize, table2_rows
from scipy import stats

from reproduction import page_paper

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
    unfinished = [row("wwl", 3, 0, 0.0)]  # does not count beside finished repetitions
    assert summarize(rows + unfinished)["MUTAG"]["wwl"] == cell


def test_learned_is_compared_with_its_uniform_twin(rows):
    ((name, method, test, holm),) = learning_tests(folds_of(rows))
    assert (name, method) == ("MUTAG", "learned_wwl")
    assert test.difference == pytest.approx(0.02)
    assert holm == pytest.approx(test.p_corrected)  # of a single test


def test_comparison_by_hand(rng):
    first, second = (
        {(r, f): value for (r, f), value in np.ndenumerate(rng.normal(size=(4, 3)))}
        for _ in range(2)
    )
    found = compare(first, second, n_outer=3)
    apart = np.array([first[key] - second[key] for key in sorted(first)])
    assert found.difference == pytest.approx(apart.mean())
    means = apart.reshape(4, 3).mean(axis=1)
    expected = stats.ttest_1samp(means, 0.0, alternative="greater").pvalue
    assert found.p_repetitions == pytest.approx(expected)
    error = np.sqrt((1 / 12 + 1 / 2) * apart.var(ddof=1))
    assert found.p_corrected == pytest.approx(stats.t.sf(apart.mean() / error, 11))
    with pytest.raises(ValueError, match="no fold in common"):
        compare(first, {(9, 9): 1.0})


def test_the_page_marks_the_best_and_leaves_other_seeds_out(rows, tmp_path):
    lucky = [row("learned_wl_oa", 0, fold, 1.0) for fold in range(3)]
    with RowFile(tmp_path / "rows" / "table2.jsonl", KEY) as file:
        for r in [*rows, *lucky, row("wwl", 0, 0, 0.0, seed=7)]:
            file.append(r)
    assert summarize(table2_rows(tmp_path)) == summarize([*rows, *lucky])
    page = page_paper.write(tmp_path).read_text().replace("\N{NO-BREAK SPACE}", " ")
    assert f"| {title_of('learned_wl_oa')} | 100.00 [3 folds] |" in page  # shown, but not bold
    best = summarize(rows)["MUTAG"]["learned_wwl"]
    assert f"| learned WWL | **{best['mean']:.2f} ± {best['std']:.2f}** [30 folds]" in page
