"""The committed figures of evidence are those of the committed rows."""

import json
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from reproduction import glance

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"


def _rows(name):
    path = RESULTS / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def _grouped(name):
    groups = defaultdict(list)
    for row in _rows(name):
        groups[row["set"], row["method"]].append(row)
    return groups


def test_numbers_are_those_of_the_rows():
    summary = json.loads((RESULTS / "regression.json").read_text())
    groups = _grouped("regression")
    assert {(s, m) for s, methods in summary.items() for m in methods} == set(groups)
    for (name, method), rows in groups.items():
        assert len({row["split"] for row in rows}) == len(rows)
        found = summary[name][method]
        assert found["n_splits"] == len(rows)
        assert found["rmse"] == pytest.approx(np.mean([row["rmse"] for row in rows]))
        if "coverage" in rows[0]:
            assert found["coverage"] == pytest.approx(np.mean([r["coverage"] for r in rows]))


def test_assays_are_those_of_the_rows():
    summary = json.loads((RESULTS / "moleculeace.json").read_text())
    for (name, method), rows in _grouped("moleculeace").items():
        assert len(rows) == 1
        for score in ("rmse", "rmse_cliff"):
            assert summary[name][method][score] == rows[0][score]


def test_classes_are_those_of_the_rows():
    summary = json.loads((RESULTS / "evidence.json").read_text())
    for (name, method), rows in _grouped("evidence").items():
        assert len({(row["repetition"], row["fold"]) for row in rows}) == len(rows)
        assert summary[name][method]["accuracy"] == pytest.approx(
            100 * np.mean([row["accuracy"] for row in rows])
        )


def _quoted(pattern):
    text = " ".join((ROOT / "README.md").read_text().split())
    found = re.search(pattern, text)
    assert found, pattern
    return [float(x.rstrip(".")) for x in found.groups()]


def test_the_readme_quotes_the_rows():
    groups = _grouped("regression")
    quoted = _quoted(
        r"ESOL, FreeSolv and Lipophilicity \(.*?\) ([\d.]+), ([\d.]+) and ([\d.]+), with uniform "
        r"weights ([\d.]+), ([\d.]+) and ([\d.]+), a Tanimoto process on ECFP6 counts "
        r"([\d.]+), ([\d.]+) and ([\d.]+)"
    )
    expected = [
        np.mean([row["rmse"] for row in groups[name, method]])
        for method in ("treelens", "treelens_uniform", "ecfp_gp")
        for name in ("ESOL", "FreeSolv", "Lipophilicity")
    ]
    np.testing.assert_allclose(quoted, expected, atol=0.0006)


def test_the_readme_quotes_what_descriptors_add():
    rows = _grouped("regression")["FreeSolv", "treelens_descriptors"]
    assert len(rows) == 20
    (quoted,) = _quoted(r"descriptors as covariates the error on FreeSolv is ([\d.]+)")
    assert quoted == pytest.approx(np.mean([row["rmse"] for row in rows]), abs=0.0006)


def test_the_readme_quotes_the_assays():
    rows = _grouped("moleculeace")
    names = sorted({name for name, _ in rows})
    quoted = _quoted(
        r"On (\d+) assays of MoleculeACE the mean error is ([\d.]+) \(on cliffs ([\d.]+)\), that "
        r"of the same Tanimoto process ([\d.]+)"
    )
    ours = [rows[name, "treelens"][0] for name in names]
    theirs = [rows[name, "ecfp_gp"][0] for name in names]
    expected = [
        len(names),
        np.mean([row["rmse"] for row in ours]),
        np.mean([row["rmse_cliff"] for row in ours]),
        np.mean([row["rmse"] for row in theirs]),
    ]
    np.testing.assert_allclose(quoted, expected, atol=0.0006)


def test_the_readme_quotes_the_classes():
    groups = _grouped("evidence")
    quoted = _quoted(r"learning takes ENZYMES from ([\d.]+) to ([\d.]+) %")
    expected = [
        100 * np.mean([row["accuracy"] for row in groups["ENZYMES", method]])
        for method in ("evidence_uniform", "evidence_branches")
    ]
    np.testing.assert_allclose(quoted, expected, atol=0.06)
    quoted = _quoted(r"and DD from ([\d.]+) to ([\d.]+) %")
    expected = [
        100 * np.mean([row["accuracy"] for row in groups["DD", method]])
        for method in ("evidence_uniform", "evidence_branches")
    ]
    np.testing.assert_allclose(quoted, expected, atol=0.06)


def test_what_stands_after_the_correction_is_what_the_readme_says():
    line = next(
        line
        for line in (RESULTS / "table2.md").read_text().splitlines()
        if line.startswith("| DD |") and "branches" in line
    )
    (quoted,) = _quoted(r"stands after a correction for the thirty tests of .*? \(p = ([\d.]+)\)")
    assert quoted == float(line.split("|")[5])
    text = (RESULTS / "index.md").read_text()
    assert f"the gain on DD (p = {quoted}) is left" in text


def test_the_readme_quotes_the_learning_curves():
    curves = json.loads((RESULTS / "curves.json").read_text())["ESOL"]
    learned, uniform, process = (
        curves[method]["50"]["rmse"] for method in ("treelens", "treelens_uniform", "ecfp_gp")
    )
    quoted = _quoted(r"on ESOL learned weights take (\d+) % off .*? \(and (\d+) % off")
    expected = [100 * (1 - learned / uniform), 100 * (1 - learned / process)]
    np.testing.assert_allclose(quoted, expected, atol=0.6)


@pytest.mark.parametrize("page", ["README.md", "docs/results/index.md"])
def test_the_table_at_a_glance_is_that_of_the_rows(page):
    text = (ROOT / page).read_text()
    groups, assays = _grouped("regression"), _grouped("moleculeace")
    for label in ("ESOL", "FreeSolv", "Lipophilicity", "MoleculeACE"):
        line = next(line for line in text.splitlines() if line.startswith(f"| {label}, "))
        for method, cell in zip(glance.METHODS, line.split("|")[2:-1], strict=True):
            of_set = [row["rmse"] for row in groups[label, method]]
            of_assays = [rows[0]["rmse"] for (_, m), rows in assays.items() if m == method]
            errors = of_assays if label == "MoleculeACE" else of_set
            if not errors:
                assert cell.strip() == "–"
                continue
            assert float(cell.split()[0]) == pytest.approx(np.mean(errors), abs=0.0006)


def test_scaffold_folds_are_those_of_the_rows():
    summary = json.loads((RESULTS / "regression_scaffold.json").read_text())
    groups = _grouped("regression_scaffold")
    for name, methods in summary.items():
        splits = [{row["split"] for row in groups[name, method]} for method in methods]
        common = set.intersection(*splits)
        for method, found in methods.items():
            errors = [r["rmse"] for r in groups[name, method] if r["split"] in common]
            assert found["n_splits"] == len(errors)
            assert found["rmse"] == pytest.approx(np.mean(errors))


def test_the_readme_quotes_hiv():
    rows = [row for row in _rows("hiv") if row["method"] == "treelens"]
    quoted = _quoted(r"as it comes has a mean ROC AUC of ([\d.]+) and PR AUC of ([\d.]+)")
    expected = [np.mean([row[score] for row in rows]) for score in ("roc_auc", "pr_auc")]
    np.testing.assert_allclose(quoted, expected, atol=0.0006)
    exact = [row for row in _rows("device") if row["what"] == "exact, learned"]
    quoted = _quoted(r"exactly on a GPU\]\(.*?\) ([\d.]+) and ([\d.]+)")
    expected = [np.mean([row[score] for row in exact]) for score in ("roc_auc", "pr_auc")]
    np.testing.assert_allclose(quoted, expected, atol=0.0006)


def test_the_readme_says_where_learning_adds_points():
    groups = _grouped("evidence")
    quoted = _quoted(r"DD \+([\d.]+) and ENZYMES \+([\d.]+) points")
    expected = [
        100 * np.mean([row["accuracy"] for row in groups[name, "evidence_branches"]])
        - 100 * np.mean([row["accuracy"] for row in groups[name, "evidence_uniform"]])
        for name in ("DD", "ENZYMES")
    ]
    np.testing.assert_allclose(quoted, expected, atol=0.06)
