"""Draw ``attributes-n.png`` and ``attributes-z.png`` with the code of the guide on attributes.

python docs/images/make_attributes.py
"""

from __future__ import annotations

import re
from pathlib import Path

import treelens as tl
from treelens.explain.draw import Style, draw_graph

FOLDER = Path(__file__).parent
page = (FOLDER.parent / "guide" / "attributes.md").read_text(encoding="utf-8")
space: dict[str, object] = {}
exec(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1], space)  # the letters
graphs = tl.as_graph_collection(space["letters"], node_attributes=["x", "y"])
model = tl.GraphClassifier(depth=1).fit(graphs[:40], space["names"][:40])
found = {"n": model.explain(graphs[40]), "z": model.explain(graphs[41])}
limit = max(abs(each.node_contributions).max() for each in found.values())
for name, each in found.items():
    style = Style(width=260, height=150, toward="Z", limit=float(limit))
    picture = draw_graph(each.graph, each.node_contributions, format="png", style=style)
    (FOLDER / f"attributes-{name}.png").write_bytes(picture)
