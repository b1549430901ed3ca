"""What the README says to type works, and its links lead somewhere."""

from __future__ import annotations

import pytest

from docs.conftest import ROOT, blocks, dead_links

PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")


def test_every_block_of_the_readme_runs(run_page):
    counts = run_page(ROOT / "README.md")
    assert counts["python"] >= 1
    assert counts["bash"] >= 2


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
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 95


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
