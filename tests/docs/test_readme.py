"""What the README says to type works, and its links lead somewhere."""

from __future__ import annotations

import json
import re

import pytest

from docs.conftest import ROOT, blocks, dead_links

PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")


def test_every_block_of_the_readme_runs(run_page):
    counts = run_page(ROOT / "README.md")
    assert counts["python"] >= 1
    assert counts["bash"] >= 3


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name):
    assert not dead_links(ROOT / name)


def test_the_readme_keeps_its_word_on_length():
    lengths = {
        block.language: [line for line in block.text.splitlines() if line.strip()]
        for block in blocks(ROOT / "README.md")
    }
    assert len(lengths["python"]) <= 15
    assert len(lengths["bash"]) == 3  # the last of them: fit, predict, explain


def test_a_command_that_does_not_exist_is_noticed(run_page, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```bash\ntreelens no-such-command\n```\n")
    with pytest.raises(AssertionError, match="no-such-command"):
        run_page(page)


def test_a_wrong_output_is_noticed(run_page, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```pycon\n>>> 1 + 1\n3\n```\n")
    with pytest.raises(AssertionError, match="Expected"):
        run_page(page)


@pytest.mark.parametrize("name", ["README.md", "docs/paper.md"])
def test_figures_of_the_synthetic_study_are_those_that_were_measured(name):
    study = json.loads((ROOT / "docs/results/synthetic.json").read_text(encoding="utf-8"))
    ranks = study["top_pattern_rank"]["ranks"]
    text = " ".join((ROOT / name).read_text(encoding="utf-8").split())
    quoted = re.search(
        r"WWL ([\d.]+) %, (?:with )?learned weights ([\d.]+) %; the (?:planted )?pattern has the "
        r"largest weight of its depth on (\d+) of (\d+) data sets", text,
    )  # fmt: skip
    assert quoted is not None
    measured = [f"{study[method]['mean']:.1f}" for method in ("wwl", "learned_wwl")]
    assert list(quoted.groups()) == [*measured, str(ranks.count(1)), str(len(ranks))]


def test_figures_on_toxicophores_are_those_that_were_measured():
    table = (ROOT / "docs/results/toxicophores.md").read_text(encoding="utf-8")
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    quoted = re.search(r"ROC curve ([\d.]+); occlusion of a fingerprint forest has ([\d.]+)", text)
    rows = [[cell.strip() for cell in line.split("|")] for line in table.splitlines()]
    common = {row[1]: row[5] for row in rows if len(row) == 8}
    expected = common["learned weights"], common["ECFP4 random forest, occlusion"]
    assert quoted is not None
    assert quoted.groups() == expected


PAPER_SETS = ("MUTAG", "PTC_MR", "PROTEINS", "NCI1")
UNIFORM = ("wl_subtree", "wl_oa", "wwl")


def table2() -> dict:
    return json.loads((ROOT / "docs/results/table2.json").read_text(encoding="utf-8"))


def test_figures_of_table_2_in_the_readme_are_those_that_were_measured():
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    figures = r"([\d.]+), ([\d.]+), ([\d.]+) and ([\d.]+) %"
    quoted = re.search(
        rf"our learned WWL has {figures}, our learned WL-OA {figures}, and the best of our kernels "
        rf"with uniform weights {figures}. Learning adds ([\d.]+) points to WL-OA on ENZYMES", text,
    )  # fmt: skip
    assert quoted is not None
    measured = table2()
    rows = [[measured[s][m]["mean"] for s in PAPER_SETS] for m in ("learned_wwl", "learned_wl_oa")]
    rows.append([max(measured[s][m]["mean"] for m in UNIFORM) for s in PAPER_SETS])
    gain = measured["ENZYMES"]["learned_wl_oa"]["mean"] - measured["ENZYMES"]["wl_oa"]["mean"]
    expected = [f"{x:.1f}" for x in (*(x for row in rows for x in row), gain)]
    assert list(quoted.groups()) == expected


def test_gains_of_learning_on_the_page_about_the_paper_are_those_that_were_measured():
    text = " ".join((ROOT / "docs/paper.md").read_text(encoding="utf-8").split())
    quoted = re.search(r"learned minus uniform WWL: (.*?): no gain", text)
    assert quoted is not None
    gains = {name: gain for gain, name in re.findall(r"([−+][\d.]+) \((\w+)\)", quoted[1])}
    measured = {
        name: methods["learned_wwl"]["mean"] - methods["wwl"]["mean"]
        for name, methods in table2().items()
    }
    assert gains == {name: f"{x:+.2f}".replace("-", "−") for name, x in measured.items()}
