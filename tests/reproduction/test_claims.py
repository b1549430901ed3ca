"""The table of claims: made from rows, put where the page wants it, verdicts that can change."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from reproduction.data import StudyOptions
from reproduction.published import PAPER_ACCURACY, possible_p_values
from scipy import stats

from reproduction import claims

RESULTS = Path(__file__).parents[2] / "docs" / "results"


@pytest.fixture
def folder(tmp_path):
    """A copy of the rows that the table reads."""
    copy = tmp_path / "docs" / "results"
    (copy / "rows").mkdir(parents=True)
    for name in ("table2", "synthetic", "runtime", "bounds"):
        shutil.copy(RESULTS / "rows" / f"{name}.jsonl", copy / "rows")
    return copy


def test_the_table_goes_between_the_marks_and_nowhere_else(folder):
    page = folder.parent / "paper.md"
    start = f"{claims.FINDING[0]}\nold\n{claims.FINDING[1]}\nbetween\n"
    page.write_text(f"{start}{claims.BEGIN}\nold\n{claims.END}\nafter\n", encoding="utf-8")
    for _ in range(2):  # a second time changes nothing
        claims.run(StudyOptions(folder))
        text = page.read_text(encoding="utf-8")
        assert f"\n{claims.FINDING[1]}\nbetween\n{claims.BEGIN}\n" in text
        assert claims.finding(folder) in text
        assert text.endswith(f"{claims.END}\nafter\n")
        assert claims.claims_table(folder) in text
        assert "old" not in text.split("\n")


def test_verdicts_follow_the_rows(folder):
    """Had learned WWL been far ahead on the same folds, the verdict would say so."""
    evidence = claims.Evidence(folder)
    assert claims._gains(evidence).verdict == "no gain"
    for methods in evidence.folds.values():
        methods["learned_wwl"] = {
            (repetition, fold): value + 0.05 + 0.001 * fold
            for (repetition, fold), value in methods["wwl"].items()
        }
    assert claims._gains(evidence).verdict == "holds on some sets"


@pytest.mark.parametrize("name", ["MUTAG", "PTC_MR", "PROTEINS", "NCI1"])
@pytest.mark.parametrize("correlation", [-1.0, -0.5, 0.0, 0.9, 1.0])
def test_no_ten_repetitions_with_the_printed_figures_leave_the_bounds(name, correlation):
    """Ten pairs with exactly the printed means, deviations and any correlation."""
    rng = np.random.default_rng(0)
    (ours, our_std), (theirs, their_std) = (PAPER_ACCURACY[m][name] for m in ("learned_wwl", "wwl"))
    basis, _ = np.linalg.qr(np.column_stack([np.ones(10), rng.normal(size=(10, 2))]))
    first, second = 3 * basis[:, 1], 3 * basis[:, 2]  # mean 0, sample variance 1, uncorrelated
    mixed = correlation * first + np.sqrt(1 - correlation**2) * second
    test = stats.ttest_rel(
        ours + our_std * first, theirs + their_std * mixed, alternative="greater"
    )
    low, high = possible_p_values(name)
    assert low <= test.pvalue <= high
