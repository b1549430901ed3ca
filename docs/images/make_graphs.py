"""Draw ``graphs-team.png`` and ``graphs-hubs.png`` with the code of the guide on graphs.

python docs/images/make_graphs.py
"""

from __future__ import annotations

import doctest
import re
from pathlib import Path

FOLDER = Path(__file__).parent
page = (FOLDER.parent / "guide" / "graphs.md").read_text(encoding="utf-8")
blocks = re.findall(r"```pycon\n(.*?)```", page, re.DOTALL)
space: dict[str, object] = {}


def run(word: str) -> None:
    """Run the block of the page that has a word in it."""
    block = next(block for block in blocks if word in block)
    for example in doctest.DocTestParser().get_examples(block):
        exec(example.source, space)


exec("import warnings\nimport networkx as nx\nimport numpy as np\nimport treelens as tl", space)
run("teams =")
picture = space["model"].fragments_.draw(1, width=320, height=180, format="png")
(FOLDER / "graphs-team.png").write_bytes(picture)
run("hubs =")
explanation = space["model"].explain(space["networks"][4])
(FOLDER / "graphs-hubs.png").write_bytes(explanation.draw(width=320, height=240, format="png"))
