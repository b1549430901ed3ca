"""Runs what a page of Markdown tells its readers to run."""

import doctest
import io
import os
import re
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from typer.testing import CliRunner

import treelens as tl
from treelens.cli.main import app

pytest.importorskip("rdkit")

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_DECIMAL = re.compile(r"[+-]?\d+\.\d+")
_CODE = re.compile(r"`[^`\n]*`")
_BETWEEN_WORDS = re.compile(r"[\s\[\](){},]+")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_DOCTEST_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    """A fenced block: its language, its text, and the line of the page that it begins on."""

    language: str
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for match in _FENCE.finditer(text):
        yield Block(match[1], match[2], text.count("\n", 0, match.start()) + 2)


def dead_links(page: Path) -> list[str]:
    """Links of a page to files that are not there."""
    text = _CODE.sub("", _FENCE.sub("", page.read_text(encoding="utf-8")))
    local = (link.split("#")[0] for link in _LINK.findall(text) if "://" not in link)
    return [link for link in local if link and not (page.parent / link).exists()]


@pytest.fixture
def run_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], dict[str, int]]:
    """Run every block of a page in order, in a folder with small data; counts them by kind."""
    write_small_data(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TREELENS_DATA", str(tmp_path))  # nothing is fetched from the network
    monkeypatch.setenv("MPLBACKEND", "Agg")

    def run(page: Path) -> dict[str, int]:
        namespace: dict[str, Any] = {"__name__": page.stem}
        counts: dict[str, int] = {}
        printed = ""
        for block in blocks(page):
            place = f"{page.name}:{block.line}"
            if block.language == "bash":
                printed = run_commands(block.text, place)
            elif block.language == "output":
                check_printed(block.text, printed, place)
            elif block.language == "pycon":
                run_session(block.text, place, namespace)
            elif block.language == "python":
                code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
                with redirect_stdout(io.StringIO()) as shown:
                    exec(code, namespace)
                printed = shown.getvalue()
            counts[block.language] = counts.get(block.language, 0) + 1
        return counts

    return run


def run_session(text: str, place: str, namespace: dict[str, Any]) -> None:
    """A session with prompts: what it prints must be what the page says."""
    test = doctest.DocTestParser().get_doctest(text, namespace, place, place, 0)
    complaints: list[str] = []
    runner = doctest.DocTestRunner(_UpToRounding(), optionflags=_DOCTEST_FLAGS)
    failed = runner.run(test, out=complaints.append, clear_globs=False).failed
    namespace.update(test.globs)
    assert not failed, "".join(complaints)


class _UpToRounding(doctest.OutputChecker):
    """Decimal numbers may differ by one in their last digit: another machine rounds otherwise."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        quoted, printed = _BETWEEN_WORDS.split(want), _BETWEEN_WORDS.split(got)
        same = len(quoted) == len(printed) and all(map(_is_same, quoted, printed))
        return same or super().check_output(want, got, optionflags)


# --- commands -------------------------------------------------------------------------------


def check_printed(text: str, printed: str, place: str) -> None:
    """What a page quotes is part of what is printed above it, line breaks and rounding apart."""
    quoted, whole = text.split(), printed.split()
    starts = range(len(whole) - len(quoted) + 1)
    same = any(all(map(_is_same, quoted, whole[start:])) for start in starts)
    assert same, f"{place}: not printed:\n{text}\nbut:\n{printed}"


def _is_same(quoted: str, printed: str) -> bool:
    """Whether words are equal, or decimal numbers that differ by one in their last digit."""
    quoted, printed = quoted.rstrip(".,:"), printed.rstrip(".,:")
    if quoted == printed or not (_DECIMAL.fullmatch(quoted) and _DECIMAL.fullmatch(printed)):
        return quoted == printed
    digits = len(quoted.partition(".")[2])
    return abs(float(quoted) - float(printed)) < 1.5 * 10.0**-digits


def run_commands(text: str, place: str) -> str:
    """Return what the commands print."""
    printed = []
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            printed.append(_COMMANDS[words[0]](words[1:], f"{place}: {line}"))
    return "\n".join(filter(None, printed))


def _treelens(words: list[str], place: str) -> str:
    """The command in this process; the executable has tests of its own."""
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, f"{place}\n{done.output}\n{done.exception}"
    return done.output


def _python(words: list[str], place: str) -> None:
    """Only asked what it can do: the experiments and benchmarks take hours."""
    assert words[0] == "-m", place
    done = subprocess.run(
        [sys.executable, "-m", words[1], "--help"], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, f"{place}\n{done.stderr}"


def _make(words: list[str], place: str) -> None:
    """Make says what it would do; doing it would build environments within environments."""
    done = subprocess.run(
        ["make", "--dry-run", *words], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, f"{place}\n{done.stderr}"


def _pip(words: list[str], place: str) -> None:
    """Installing needs a network; that the extras asked for exist does not."""
    assert words[0] == "install", place
    asked = {name for word in words for name in re.findall(r"\[(\w+)\]", word)}
    known = set(metadata.metadata("treelens").get_all("Provides-Extra") or ())
    assert asked <= known, f"{place}: there are only the extras {sorted(known)}"


_COMMANDS: dict[str, Callable[[list[str], str], str | None]] = {
    "treelens": _treelens,
    "python": _python,
    "make": _make,
    "pip": _pip,
}


# --- small data -----------------------------------------------------------------------------


def write_small_data(folder: Path) -> None:
    """What the pages speak of: tables of molecules, and a TU archive."""
    os.makedirs(folder, exist_ok=True)
    alcohols = [f"{'C' * n}O" for n in range(2, 8)] + [f"{'C' * n}C(C)O" for n in range(1, 7)]
    rows = [(smiles, "alcohol") for smiles in alcohols]
    rows += [(smiles.replace("O", "N"), "amine") for smiles in alcohols]
    table = ["smiles,label", *(",".join(row) for row in rows)]
    (folder / "molecules.csv").write_text("\n".join(table) + "\n", encoding="utf-8")
    new = [
        "smiles,label",
        "CCCCCCCCCCCCO,alcohol",
        "OCC(C)C,alcohol",
        "NC(C)(C)C,amine",
        "NCC(C)C,amine",
    ]
    (folder / "new.csv").write_text("\n".join(new) + "\n", encoding="utf-8")
    graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
    write_tu(folder / "MINE.zip", graphs, y)
    attributes = np.random.default_rng(0).normal(size=(graphs.n_nodes, 2))
    write_tu(folder / "LETTERS.zip", graphs, y, attributes)


def write_tu(
    path: Path, graphs: tl.GraphCollection, y: np.ndarray, attributes: np.ndarray | None = None
) -> None:
    """A TU archive of graphs without edge labels."""
    starts = graphs.node_offsets[:-1] + 1
    parts = {
        "A": [
            f"{u + start}, {v + start}"
            for graph, start in zip(graphs, starts, strict=True)
            for u, v in graph.edges
        ],
        "graph_indicator": np.repeat(np.arange(len(graphs)) + 1, graphs.sizes).tolist(),
        "graph_labels": y.tolist(),
        "node_labels": [label for graph in graphs for label in graph.node_labels],
    }
    if attributes is not None:
        parts["node_attributes"] = [", ".join(map(str, row)) for row in attributes.tolist()]
    with zipfile.ZipFile(path, "w") as file:
        for part, lines in parts.items():
            file.writestr(f"{path.stem}_{part}.txt", "\n".join(map(str, lines)) + "\n")
