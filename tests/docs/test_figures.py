"""Figures that a page quotes are those of the rows: computed again here, never written down."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import numpy as np
import pytest
from reproduction.claims import BEGIN, END, Evidence, claims_table, signed
from reproduction.grids import GRIDS
from reproduction.methods import EVIDENCE_METHODS
from reproduction.published import (
    PAPER_ACCURACY,
    PAPER_BEST,
    PAPER_P_VALUES,
    possible_p_values,
)
from reproduction.rows import read_rows
from reproduction.significance import Comparison
from reproduction.table2_grids import grid_name

from docs.conftest import ROOT

RESULTS = ROOT / "docs" / "results"
PAPER_SETS = ("MUTAG", "PTC_MR", "PROTEINS", "NCI1")
LEARNED = ("learned_wl_subtree", "learned_wl_oa", "learned_wwl", "learned_wl_tanimoto")
UNIFORM = ("wl_subtree", "wl_oa_plain", "wl_oa", "wwl", "wl_tanimoto")


def words(name: str) -> str:
    """A page with every run of white space as one blank."""
    return " ".join((ROOT / name).read_text(encoding="utf-8").split())


@cache
def evidence() -> Evidence:
    return Evidence(RESULTS)


def quoted(page: str, pattern: str) -> tuple[str, ...]:
    """The figures of a sentence; ``#`` in the pattern stands for one."""
    found = re.search(re.escape(pattern).replace(r"\#", r"([−+]?[\d.,]*\d)"), words(page))
    assert found is not None, f"{page} no longer says: {pattern}"
    return found.groups()


def listed(values: list[float]) -> list[str]:
    return [f"{value:.1f}" for value in values]


# --- Table 2 ----------------------------------------------------------------------------------

FOUR = "#, #, # and # %"


def test_accuracies_in_the_readme():
    data = evidence()
    assert list(quoted("README.md", f"best figures of any method are {FOUR}")) == listed(
        [PAPER_BEST[name] for name in PAPER_SETS]
    )
    for method, title in (
        ("learned_wwl", "our learned WWL has"),
        ("learned_wl_oa", "our learned WL-OA or Tanimoto"),
    ):
        assert list(quoted("README.md", f"{title} {FOUR}")) == listed(
            [data.mean(name, method) for name in PAPER_SETS]
        )
    best = [
        max(data.mean(name, m) for m in UNIFORM if m in data.accuracy[name]) for name in PAPER_SETS
    ]
    assert list(quoted("README.md", f"kernels with uniform weights {FOUR}")) == listed(best)


def test_enzymes_in_the_readme():
    """The gains, and the uniform kernel that does as well as one of them: in the same sentence."""
    data = evidence()
    text = (
        "On ENZYMES (# folds) learning adds # points to WL-OA or Tanimoto (p = #) and # to the "
        "exponential Tanimoto kernel (p = #), which with uniform weights has # %, against # % for "
        "learned WL-OA or Tanimoto"
    )
    gains = [data.test("ENZYMES", f"learned_{m}", m) for m in ("wl_oa", "wl_tanimoto")]
    assert quoted("README.md", text) == (
        str(gains[0].n_folds), *gain_texts(gains),
        *listed([data.mean("ENZYMES", m) for m in ("wl_tanimoto", "learned_wl_oa")]),
    )  # fmt: skip
    assert data.mean("ENZYMES", "wl_tanimoto") > data.mean("ENZYMES", "learned_wl_oa")


def gain_texts(tests: list[Comparison]) -> list[str]:
    """Points and corrected p-value of each."""
    return [
        text
        for test in tests
        for text in (f"{100 * test.difference:.1f}", f"{test.p_corrected:.2f}")
    ]


def test_no_gain_of_learning_is_significant():
    """What the README says of all of them."""
    data = evidence()
    assert "No gain is significant by the corrected test" in words("README.md")
    for name, methods in data.folds.items():
        for learned in (
            "learned_wl_subtree",
            "learned_wl_oa",
            "learned_wwl",
            "learned_wl_tanimoto",
        ):
            uniform = learned.removeprefix("learned_")
            if learned in methods and uniform in methods:
                assert data.test(name, learned, uniform).p_corrected > 0.05, (name, learned)


def test_the_papers_own_protocol_in_the_readme():
    found = quoted("README.md", "in its own grid, has # and # % on MUTAG and PTC_MR")
    assert list(found) == listed(
        [evidence().mean(name, "paper_protocol") for name in ("MUTAG", "PTC_MR")]
    )


def test_enzymes_on_the_page_about_the_paper():
    data = evidence()
    gains = [data.test("ENZYMES", f"learned_{m}", m) for m in ("wl_oa", "wl_tanimoto")]
    wasserstein = data.test("ENZYMES", "learned_wwl", "wwl")
    other = json.loads((RESULTS / "formulations.json").read_text(encoding="utf-8"))["ENZYMES"]
    text = (
        "learned weights gain # points in the Tanimoto form (corrected p = #) and # in the "
        "exponential Tanimoto form (p = #) on the folds of Table 2, and # in the former on other "
        "folds of the same graphs, with another way to decide between the classes; the exponential "
        "WWL form gains #. And the exponential Tanimoto kernel with uniform weights has # %, "
        "against # % for learned WL-OA or Tanimoto"
    )
    assert quoted("docs/paper.md", text) == (
        *gain_texts(gains), f"{other['tanimoto']['difference']:.1f}",
        signed(100 * wasserstein.difference, 1),
        *listed([data.mean("ENZYMES", m) for m in ("wl_tanimoto", "learned_wl_oa")]),
    )  # fmt: skip


def test_walks_and_paths_without_labels_on_the_page_about_the_paper():
    text = (
        "without them random walks have # % on PTC_MR instead of # % (the paper: # %), and "
        "shortest paths # % instead of # % (# %;"
    )
    data = evidence()
    expected = [
        value
        for method in ("random_walk", "shortest_path")
        for value in (
            data.mean("PTC_MR", f"{method}_unlabelled"), data.mean("PTC_MR", method),
            PAPER_ACCURACY[method]["PTC_MR"][0],
        )
    ]  # fmt: skip
    assert list(quoted("docs/paper.md", text)) == listed(expected)


def test_random_walks_on_mutag_in_either_grid():
    before = [
        100 * row["accuracy"]
        for row in read_rows(RESULTS / "wider_grid.jsonl")
        if (row["dataset"], row["method"], grid_name(row)) == ("MUTAG", "random_walk", "first")
    ]
    found = quoted("docs/paper.md", "random walks on MUTAG rose from # to # %")
    data = evidence()
    after = data.mean("MUTAG", "random_walk")
    assert list(found) == listed([sum(before) / len(before), after])
    table = json.loads((RESULTS / "table2.json").read_text(encoding="utf-8"))["MUTAG"]
    better = [method for method, cell in table.items() if cell["mean"] > after]
    assert better == ["paper_protocol"]  # "the best kernel of ours there but one"


def test_random_walks_on_nci1_take_the_largest_cost():
    rows = [
        row
        for row in read_rows(RESULTS / "table2.jsonl")
        if (row["dataset"], row["method"]) == ("NCI1", "random_walk")
    ]
    assert "they take the largest `C` in every fold" in words("docs/paper.md")
    assert {row["choice"]["C"] for row in rows} == {GRIDS[grid_name(rows[0])].Cs[-1]}


def test_json_of_table_2_is_that_of_its_rows():
    data = json.loads((RESULTS / "table2.json").read_text(encoding="utf-8"))
    rows = evidence().accuracy
    for name, methods in data.items():
        nested = {m: cell for m, cell in methods.items() if m not in EVIDENCE_METHODS}
        assert nested == {m: rows[name][m] for m in nested}
    for name in PAPER_SETS:
        assert "wl_oa_plain" in data[name]
    for name in ("MUTAG", "PTC_MR"):
        assert data[name]["paper_protocol"]["n_folds"] == 100


# --- the page about the paper -----------------------------------------------------------------


def test_the_table_of_claims_is_that_of_the_rows():
    page = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    found = page.partition(BEGIN)[2].partition(END)[0]
    assert found.strip() == claims_table(RESULTS)


def test_printed_p_values_that_the_printed_figures_cannot_give():
    """Bounds by brute force: ten differences with the printed mean and any possible deviation."""
    outside = set()
    for (theirs, name), value in PAPER_P_VALUES.items():
        low, high = possible_p_values(name, theirs)
        assert 0 <= low < high < 0.5
        if "<" not in value and not low <= float(value) <= high:
            outside.add(name)
    assert outside == {"PTC_MR", "PROTEINS", "NCI1"}
    text = words("docs/paper.md")
    assert "On three of the four sets the printed value lies outside" in text
    assert float(PAPER_P_VALUES["wwl", "PTC_MR"]) < possible_p_values("PTC_MR")[0]
    for name in ("PROTEINS", "NCI1"):
        assert float(PAPER_P_VALUES["wwl", name]) > possible_p_values(name)[1]


def test_which_encoding_of_ptc_the_papers_figures_are_nearer_to():
    data = evidence()
    nearer = [
        abs(data.mean("PTC_MR", method) - published["PTC_MR"][0])
        < abs(data.mean("PTC_DGCNN", method) - published["PTC_MR"][0])
        for method, published in PAPER_ACCURACY.items()
    ]
    assert "all but one of the paper's accuracies lie nearer to ours" in words("docs/paper.md")
    assert nearer.count(False) == 1


def test_how_far_the_printed_steps_move_the_weights():
    moved: dict[str, list[float]] = {"MUTAG": [], "NCI1": []}
    for row in read_rows(RESULTS / "bounds.jsonl"):
        if row["run"] == "paper" and row["dataset"] in moved:
            moved[row["dataset"]].append(row["moved"])
    text = "ends at # on MUTAG and # on NCI1 on average, and at # and # at most"
    means = [f"{sum(values) / len(values):.4f}" for values in moved.values()]
    largest = [f"{max(values):.4f}" for values in moved.values()]
    assert list(quoted("docs/paper.md", text)) == means + largest


# --- other pages ------------------------------------------------------------------------------


def test_the_synthetic_study_in_the_readme():
    study = evidence().synthetic
    ranks, free = study["top_pattern_rank"]["ranks"], study["unprotected"]
    text = (
        "WWL # %, with learned weights # %; the planted pattern has the largest weight of its "
        "depth on # of # data sets"
    )
    assert quoted("README.md", text) == (
        *listed([study["wwl"]["mean"], study["learned_wwl"]["mean"]]),
        str(ranks.count(1)), str(len(ranks)),
    )  # fmt: skip
    found = quoted("README.md", "Where noise may fall on it, WWL has # % and learned weights # %")
    assert list(found) == listed([free["wwl"]["mean"], free["learned_wwl"]["mean"]])


def cells(page: str) -> list[list[str]]:
    """The cells of all tables of a page of results."""
    lines = (RESULTS / page).read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if "|" in line]


def measured(page: str, claim: str) -> str:
    """What a page of results says was measured for a claim."""
    (found,) = [row[1] for row in cells(page) if row[0].startswith(claim)]
    return found


def test_speed_in_the_readme():
    """The two ratios that flatter come with what they rest on, and the like-for-like one."""
    distance = "WWL distance matrix, NCI1, depths 0 to 5, against "
    (transport,) = re.findall(r"^([\d,]+) ×.*scaled", measured("benchmarks.md", distance + "one"))
    (grakel,) = re.findall(r"^([\d,]+) ×", measured("benchmarks.md", distance + "GraKeL"))
    (like,) = re.findall(r"^([\d,]+) ×", measured("benchmarks.md", "WL subtree kernel, NCI1"))
    assert quoted("README.md", "That is # times as fast as another kernel of GraKeL's") == (grakel,)
    (rounded,) = quoted("README.md", "extrapolated from 2,000 pairs, some # times as fast")
    exact, shown = (int(text.replace(",", "")) for text in (transport, rounded))
    assert 0.9 * exact < shown <= exact
    assert quoted("README.md", "on one thread, it is # times as fast as GraKeL") == (like,)


def test_hiv_in_the_readme():
    """A forest on fingerprints is ahead there, and the text says so."""
    scaling = json.loads((RESULTS / "scaling.json").read_text(encoding="utf-8"))
    (run,) = [part for part in scaling.values() if "auc_ecfp4_forest" in part]
    found = quoted("README.md", "fingerprints is ahead: ROC AUC #, ours #")
    assert found == (f"{run['auc_ecfp4_forest']:.3f}", f"{run['auc']:.3f}")
    assert run["auc_ecfp4_forest"] > run["auc"]


def test_hiv_on_scaffold_folds_in_the_readme():
    """Means of the rows, and the paired differences with their errors."""
    lines = (RESULTS / "hiv.jsonl").read_text(encoding="utf-8").splitlines()
    rows = {(row["method"], row["fold"]): row for row in map(json.loads, lines)}
    scores = {
        (method, score): np.array([rows[method, fold][score] for fold in range(5)])
        for method in ("treelens", "ecfp_forest")
        for score in ("roc_auc", "pr_auc")
    }
    text = "has a mean ROC AUC of # and PR AUC of #, a forest on ECFP4 counts # and #"
    means = (
        f"{scores[m, s].mean():.3f}"
        for m in ("treelens", "ecfp_forest")
        for s in ("roc_auc", "pr_auc")
    )
    assert quoted("README.md", text) == tuple(means)
    expected = []
    for score in ("roc_auc", "pr_auc"):
        apart = scores["treelens", score] - scores["ecfp_forest", score]
        expected += [f"{apart.mean():.3f}", f"{apart.std(ddof=1) / np.sqrt(5):.3f}"]
    assert quoted("README.md", "(differences # ± # and # ± #)") == tuple(expected)


def test_the_million_in_the_guide_to_scale():
    lines = (RESULTS / "million.jsonl").read_text(encoding="utf-8").splitlines()
    row = next(row for row in map(json.loads, lines) if row["n"] == 10**6)
    fit, predict = row["fit"], row["predict"]
    text = (
        "a million molecules took # minutes from the file to the model (with other programs "
        "running) and # minutes to the predictions, # a second, with # GB"
    )
    assert quoted("docs/scaling.md", text) == (
        f"{fit['seconds'] / 60:.1f}",
        f"{predict['seconds'] / 60:.1f}",
        f"{10**6 / predict['seconds']:,.0f}",
        f"{max(fit['largest_process_gb'], predict['largest_process_gb']):.1f}",
    )
    assert row["n_rows"] == 10**6


def test_growth_in_the_guide_to_scale():
    results = json.loads((RESULTS / "scaling.json").read_text(encoding="utf-8"))
    grown = [row for name, row in results.items() if name.startswith("growth-")]
    grown.sort(key=lambda row: row["n_graphs"])
    n = [row["n_graphs"] for row in grown]
    each, fixed = np.polyfit(n, [row["cpu_seconds"] for row in grown], 1)
    predicting = np.polyfit(n, [row["cpu_seconds_predicting"] for row in grown], 1)[0]
    memory = [row["peak_gb"] for row in grown]
    text = (
        "a fit took # s of processor time and # ms for every graph, predictions # ms a graph, and "
        "memory was # to # GB from # to # graphs"
    )
    assert quoted("docs/scaling.md", text) == (
        f"{fixed:.0f}", f"{1e3 * each:.2f}", f"{1e3 * predicting:.2f}", f"{min(memory):.2f}",
        f"{max(memory):.2f}", f"{n[0]:,}", f"{n[-1]:,}",
    )  # fmt: skip
    further = 1e3 * np.diff([row["cpu_seconds"] for row in grown]) / np.diff(n)
    text = "A further graph cost # ms at first and # ms in the end"
    assert quoted("docs/scaling.md", text) == (f"{further[0]:.2f}", f"{further[-1]:.2f}")
    assert {row["n_landmarks"] for row in grown} == {1000}
    assert "in blocks of 5,000, with 1,000 landmarks" in words("docs/scaling.md")


def test_what_random_fourier_features_were_dropped_for():
    """Points below the exact classifier, wherever they are told."""
    results = json.loads((RESULTS / "scaling.json").read_text(encoding="utf-8"))

    def lost(part: str, method: str) -> str:
        folds = results[part]["folds"].values()
        return f"{100 * np.mean([fold['exact'] - fold[method] for fold in folds]):.1f}"

    both = lost("dropped-NCI1", "random-features"), lost("dropped-Ames", "random-features")
    assert quoted("docs/scaling.md", "Random Fourier features (4,096) lost # and #") == both
    assert quoted("CHANGELOG.md", "for they were # and # points below the exact") == both
    bins = lost("accuracy-NCI1", "random-bins"), lost("accuracy-Ames", "random-bins")
    assert quoted("docs/scaling.md", "bins (4,096) # and #") == bins
    near = lost("accuracy-NCI1", "nystroem"), lost("accuracy-Ames", "nystroem")
    assert quoted("docs/scaling.md", "Nyström (2,000 landmarks) loses # and #") == near
    house = "these features lost # points to the exact kernel on NCI1, where bins lost #"
    assert quoted("CONTRIBUTING.md", house) == (both[0], bins[0])


def test_toxicophores_in_the_readme():
    common: dict[str, Any] = {row[0]: row[4] for row in cells("toxicophores.md") if len(row) == 6}
    text = "Area under the ROC curve #; occlusion of a fingerprint forest has #"
    expected = common["learned weights"], common["ECFP4 random forest, occlusion"]
    assert quoted("README.md", text) == expected


@pytest.mark.parametrize("page", ["benchmarks.md", "toxicophores.md"])
def test_pages_without_rows_are_named_as_such(page):
    """The README claims rows for accuracies alone; these pages have none."""
    assert not (RESULTS / page).with_suffix(".jsonl").exists()
    assert "on speed and on toxicophores keep summaries only" in words("README.md")
