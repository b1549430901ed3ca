"""Figures that the guide and the page of the paper quote in words are those of the rows."""

import re

import numpy as np
import pytest
from reproduction.accuracy import summarize, table2_rows
from reproduction.compare import PARTS
from reproduction.fragments import NO_DESCRIPTORS
from reproduction.pages import grouped, rows_of
from reproduction.published import PAPER_ACCURACY, PAPER_P_VALUES, possible_p_values
from reproduction.tables.explanations import fragment_counts

from docs.conftest import ROOT

RESULTS = ROOT / "docs" / "results"


def words(name: str) -> str:
    """A page with every run of white space as one blank."""
    return " ".join((ROOT / name).read_text(encoding="utf-8").split())


def quoted(page: str, pattern: str) -> tuple[str, ...]:
    """The figures of a sentence; ``#`` in the pattern stands for one."""
    found = re.search(re.escape(pattern).replace(r"\#", r"([−+]?[\d.,]*\d)"), words(page))
    assert found is not None, f"{page} no longer says: {pattern}"
    return found.groups()


# --- the guide --------------------------------------------------------------------------------


@pytest.mark.parametrize("part", PARTS)
def test_all_methods_of_a_split_have_the_same_test_part(part):
    sizes: dict[tuple, set] = {}
    for row in rows_of(RESULTS, f"compare_{part}"):
        key = row["set"], row["kind"], row["split"]
        sizes.setdefault(key, set()).add((row["n_train"], row["n_test"]))
    assert {key: found for key, found in sizes.items() if len(found) > 1} == {}


def test_the_coverage_in_the_guide():
    rows = [r for r in rows_of(RESULTS, "compare_numbers") if r["method"] == "auto"]
    ends = []
    for kind in ("random", "scaffold"):
        by_set = grouped([r for r in rows if r["kind"] == kind], "set").values()
        shares = [100 * np.mean([r["coverage"] for r in own]) for own in by_set]
        ends += [f"{min(shares):.0f}", f"{max(shares):.0f}"]
    text = "90 % intervals held # to # % of the values, in folds of whole scaffolds [# to # %]"
    assert quoted("docs/guide/numbers.md", text) == tuple(ends)


def test_what_the_guide_says_of_advice():
    covered = [r["coverage_joint"] for r in rows_of(RESULTS, "advice") if r["method"] == "default"]
    assert len(covered) == 3
    found = quoted("docs/guide/next-compounds.md", "# to # % of the measured ones lie in the 90 %")
    assert found == (f"{100 * min(covered):.0f}", f"{100 * max(covered):.0f}")


def test_fragments_in_the_guide():
    counts = fragment_counts(rows_of(RESULTS, "fragments"))
    halves = [counts["met"][half, "fragments"] for half in ("half 1", "half 2")]
    assert halves == [8, 7]
    assert counts["met"]["all molecules", "fragments"] == 7
    assert {counts["met"][h, "ECFP4 forest"] for h in ("half 1", "half 2")} == {6}
    assert counts["planted"] == (10, 10)
    text = (
        "contributions in # and # % of fragments at the defaults, in # and # % without "
        "descriptors. Of the first ten rows # to # %"
    )
    shares = [
        100 * counts["crippen"][name, method]
        for method in ("fragments", NO_DESCRIPTORS)
        for name in ("ESOL", "Lipophilicity")
    ]
    stable = [100 * share for share in counts["stable"].values()]
    expected = [*shares, min(stable), max(stable)]
    assert quoted("docs/guide/fragments.md", text) == tuple(f"{x:.0f}" for x in expected)


def test_the_atoms_that_are_found_in_the_guide():
    rows = [r for r in rows_of(RESULTS, "ibenchmark") if r["explainer"] == "treelens"]
    assert len(rows) == 5
    assert quoted("docs/guide/fragments.md", "with a ROC AUC above # on five sets") == ("0.99",)
    assert min(row["roc_auc"] for row in rows) > 0.99


def test_the_million_in_the_page_on_many_graphs():
    row = next(row for row in rows_of(RESULTS, "million") if row["n"] == 10**6)
    fit, predict = row["fit"], row["predict"]
    text = "a million molecules took # minutes to fit and # minutes to predict on two cores, with #"
    memory = max(fit["largest_process_gb"], predict["largest_process_gb"])
    assert quoted("docs/scaling.md", text) == (
        f"{fit['seconds'] / 60:.1f}",
        f"{predict['seconds'] / 60:.1f}",
        f"{memory:.1f}",
    )
    kind = ("HIV", "default fit")
    (row,) = [r for r in rows_of(RESULTS, "device") if (r["set"], r["what"]) == kind]
    text = f"{row['n']:,} molecules of HIV takes [{row['seconds']:.0f} s]"
    assert text in words("docs/scaling.md")


# --- the page about the paper -----------------------------------------------------------------


def test_printed_p_values_that_the_printed_figures_cannot_give():
    outside = set()
    for (theirs, name), value in PAPER_P_VALUES.items():
        low, high = possible_p_values(name, theirs)
        if "<" not in value and not low <= float(value) <= high:
            outside.add(name)
    assert outside == {"PTC_MR", "PROTEINS", "NCI1"}
    assert "cannot come from the printed figures on PROTEINS, NCI1 and PTC_MR" in words(
        "docs/paper.md"
    )


def means(name):
    """Accuracy in percent of every method on a set."""
    found = summarize(table2_rows(rows_of(RESULTS, "table2")))[name]
    return {method: cell["mean"] for method, cell in found.items()}


def test_which_encoding_of_ptc_the_papers_figures_are_nearer_to():
    ours, with_hydrogens = means("PTC_MR"), means("PTC_DGCNN")
    nearer = [
        abs(ours[method] - published["PTC_MR"][0])
        < abs(with_hydrogens[method] - published["PTC_MR"][0])
        for method, published in PAPER_ACCURACY.items()
    ]
    assert "all but one of the paper's accuracies lie nearer to ours" in words("docs/paper.md")
    assert nearer.count(False) == 1


def test_random_walks_on_mutag_in_either_grid():
    first = [100 * row["accuracy"] for row in rows_of(RESULTS, "wider_grid")]
    gain = means("MUTAG")["random_walk"] - np.mean(first)
    assert "random walks on MUTAG rose by seven points" in words("docs/paper.md")
    assert round(gain) == 7
