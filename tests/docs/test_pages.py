"""What pages say to type works, links lead somewhere, and the reference has every public name."""

import re

import pytest

import treelens as tl
from docs.conftest import ROOT, blocks, dead_links

GUIDE = sorted((ROOT / "docs" / "guide").glob("*.md"))
LANDING = ROOT / "docs" / "index.md"
OTHERS = [
    ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", LANDING,
    ROOT / "docs" / "paper.md", ROOT / "docs" / "scaling.md",
    *sorted((ROOT / "docs" / "results").glob("*.md")),
]  # fmt: skip


@pytest.mark.parametrize("page", [ROOT / "README.md", LANDING, *GUIDE], ids=lambda page: page.stem)
def test_every_block_runs(page, run_page):
    counts = run_page(page)
    if page.stem == "README":
        assert counts["python"] >= 1
        assert counts["bash"] >= 2


@pytest.mark.parametrize(
    "page", [*GUIDE, *OTHERS], ids=lambda page: f"{page.parent.name}-{page.stem}"
)
def test_links_lead_somewhere(page):
    assert not dead_links(page)


def test_the_readme_keeps_its_word_on_length():
    lengths = {
        block.language: [line for line in block.text.splitlines() if line.strip()]
        for block in blocks(ROOT / "README.md")
    }
    assert len(lengths["python"]) <= 15
    assert len(lengths["bash"]) == 3  # the last of them: fit, predict, explain
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 95


@pytest.mark.parametrize(
    ("block", "message"),
    [("bash\ntreelens no-such-command", "no-such-command"), ("pycon\n>>> 1 + 1\n3", "Expected")],
)
def test_what_a_page_says_wrongly_is_noticed(block, message, run_page, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"```{block}\n```\n")
    with pytest.raises(AssertionError, match=message):
        run_page(page)


def test_every_public_name_is_in_the_reference_once():
    page = (ROOT / "docs" / "api" / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^   (\w+)$", page, flags=re.MULTILINE)
    assert sorted(listed) == sorted(set(tl.__all__) - {"__version__"})
