"""Figures that a page quotes are those of the rows: computed again here, never written down."""

import re
from functools import cache

import numpy as np
import pytest
from reproduction.compare import PARTS
from reproduction.earlier_classes import hiv_tests
from reproduction.fragments import NO_DESCRIPTORS
from reproduction.page_choice import comparisons
from reproduction.page_compare import coverage_text, lead_text, short_table
from reproduction.page_explanations import atom_areas, fragment_counts
from reproduction.pages import holm_of, paired, rows_of
from reproduction.published import PAPER_ACCURACY

from docs.conftest import ROOT
from reproduction import claims

RESULTS = ROOT / "docs" / "results"


def words(name: str) -> str:
    """A page with every run of white space as one blank."""
    return " ".join((ROOT / name).read_text(encoding="utf-8").split())


@cache
def evidence() -> claims.Evidence:
    return claims.Evidence(RESULTS)


def quoted(page: str, pattern: str) -> tuple[str, ...]:
    """The figures of a sentence; ``#`` in the pattern stands for one."""
    found = re.search(re.escape(pattern).replace(r"\#", r"([−+]?[\d.,]*\d)"), words(page))
    assert found is not None, f"{page} no longer says: {pattern}"
    return found.groups()


# --- README, guide and changes ------------------------------------------------------------------


def test_the_table_and_the_coverage_of_the_readme():
    assert short_table(RESULTS) in (ROOT / "README.md").read_text(encoding="utf-8")
    assert lead_text(RESULTS) in words("README.md")
    text = coverage_text(RESULTS)
    assert text in words("README.md")
    random, scaffold = re.findall(r"(\S+(?: to \S+)?) % of", text)
    assert f"held {random} % of the values, in folds of whole scaffolds [{scaffold} %]" in words(
        "docs/guide/numbers.md"
    )


def test_chemprop_in_the_readme():
    text = (
        "has # on FreeSolv, # on ESOL and # on Lipophilicity, five networks #, # and # "
        "(treelens on these: #, # and #)"
    )
    errors = [
        [
            r["rmse"]
            for r in rows_of(RESULTS, "compare_numbers")
            if (r["set"], r["method"], r["kind"]) == (name, method, "random") and r["split"] < 5
        ]
        for method in ("chemprop", "chemprop_ensemble", "auto")
        for name in ("FreeSolv", "ESOL", "Lipophilicity")
    ]
    assert {len(values) for values in errors} == {5}
    assert quoted("README.md", text) == tuple(f"{np.mean(values):.3f}" for values in errors)
    rows = [
        r
        for r in rows_of(RESULTS, "compare_numbers")
        if (r["set"], r["kind"]) == ("Lipophilicity", "scaffold")
    ]
    test = paired(rows, "auto", "chemprop_ensemble", "rmse", ("split",))
    found = quoted("README.md", "its five networks are ahead by # (p = #)")
    assert found == (f"{test.difference:.3f}", f"{test.p_value:.2f}")


@pytest.mark.parametrize("part", PARTS)
def test_all_methods_of_a_split_have_the_same_test_part(part):
    sizes: dict[tuple, set] = {}
    for row in rows_of(RESULTS, f"compare_{part}"):
        key = row["set"], row["kind"], row["split"]
        sizes.setdefault(key, set()).add((row["n_train"], row["n_test"]))
    assert {key: found for key, found in sizes.items() if len(found) > 1} == {}


def test_where_the_readme_says_not_to_use_it():
    adjusted = holm_of(hiv_tests(rows_of(RESULTS, "hiv")))
    found = quoted("README.md", "not significant by ROC AUC (p = #; by PR AUC p = #)")
    assert found == tuple(f"{adjusted[score]:.2f}" for score in ("roc_auc", "pr_auc"))
    data = evidence()
    found = quoted("README.md", "from # points behind to # points ahead of uniform weights")
    tests = [data.test(n, "gp_branches", "gp_uniform") for n in data.sets_with("gp_uniform")]
    assert len(tests) == 7
    gains = [100 * test.difference for test in tests]
    assert found == (f"{-min(gains):.1f}", f"{max(gains):.1f}")
    assert min(test.p_corrected for test in tests) > 0.05  # "nowhere significantly"
    classes = [c for c in comparisons(RESULTS) if c.part == "table2"]
    worst = min(c.gain("auto", c.best).difference for c in classes)
    assert quoted("README.md", "up to # points behind the best one") == (f"{-worst:.1f}",)
    toxic = {row["model"]: row for row in rows_of(RESULTS, "toxicophores")}
    areas = {m: np.mean(row["areas"]["contributions"]) for m, row in toxic.items()}
    assert areas["ECFP4 forest by SHAP"] >= areas["treelens"]


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
    found = atom_areas(rows_of(RESULTS, "atom_truth"))
    assert len(found) == 5
    assert quoted("docs/guide/fragments.md", "with a ROC AUC above # on five sets") == ("0.99",)
    assert min(mean for mean, _ in found.values()) > 0.99


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


def test_the_finding_and_the_table_of_claims_are_those_of_the_rows():
    page = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    marked = {claims.FINDING: claims.finding, (claims.BEGIN, claims.END): claims.claims_table}
    for (begin, end), part in marked.items():
        assert page.partition(begin)[2].partition(end)[0].strip() == part(RESULTS)


def test_printed_p_values_that_the_printed_figures_cannot_give():
    assert set(claims.impossible_p_values()) == {"PTC_MR", "PROTEINS", "NCI1"}
    assert "On three of the four sets the printed value lies outside" in words("docs/paper.md")


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
    for row in evidence().bounds:
        if row["run"] == "paper" and row["dataset"] in moved:
            moved[row["dataset"]].append(row["moved"])
    text = "ends at # on MUTAG and # on NCI1 on average, and at # and # at most"
    means = [f"{np.mean(values):.4f}" for values in moved.values()]
    largest = [f"{max(values):.4f}" for values in moved.values()]
    assert list(quoted("docs/paper.md", text)) == means + largest


def test_random_walks_on_mutag_in_either_grid():
    first = [
        100 * row["accuracy"]
        for row in rows_of(RESULTS, "wider_grid")
        if (row["dataset"], row["method"], row.get("grid", "first"))
        == ("MUTAG", "random_walk", "first")
    ]
    gain = evidence().mean("MUTAG", "random_walk") - np.mean(first)
    assert "random walks on MUTAG rose by seven points" in words("docs/paper.md")
    assert round(gain) == 7
