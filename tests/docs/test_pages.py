"""Pages and examples run as they stand, links lead somewhere, the structure keeps its limits."""

import re
import subprocess
import sys

import pytest

import treelens as tl
from docs.conftest import ROOT, blocks, dead_links

GUIDE = sorted((ROOT / "docs" / "guide").glob("*.md"))
LANDING = ROOT / "docs" / "index.md"
OTHERS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    LANDING,
    ROOT / "docs" / "paper.md",
    ROOT / "docs" / "scaling.md",
    *sorted((ROOT / "docs" / "results").glob("*.md")),
]


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


def test_what_the_readme_names_as_test_command_is_what_has_to_pass():
    first = next(b for b in blocks(ROOT / "README.md") if b.language == "bash")
    commands = [line.split("#")[0].strip() for line in first.text.splitlines()]
    assert commands == ["make demo", "make test"]
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


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


@pytest.mark.parametrize("name", ["own_view", "own_kernel"])
def test_examples_of_views_and_kernels_run(name, tmp_path):
    program = ROOT / "examples" / f"{name}.py"
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "from its file: True" in done.stdout
    assert len(program.read_text().splitlines()) < 60  # as the guide promises


def test_the_measures_of_the_structure_keep_their_limits(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.delitem(sys.modules, "benchmarks", raising=False)
    structure = __import__("benchmarks.structure", fromlist=["structure"])
    limits, found = structure.read_limits(), structure.measures()
    assert set(structure.TITLES) <= set(limits)
    assert structure.above(limits, found) == []
    monkeypatch.setattr(structure, "esol_table", lambda: None)
    monkeypatch.setattr(structure, "read_limits", lambda: {**limits, "statements": 10})
    assert structure.check() == 1
    assert "statements is" in capsys.readouterr().out
