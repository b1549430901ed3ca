"""The figure of the guide: six fragments of a model of mutagens, as the table draws them."""

from __future__ import annotations

import re
from html import escape
from typing import Any

RANKS = (1, 2, 5, 6, 17, 19)
_WIDTH, _HEIGHT, _CAPTION = 260, 180, 34


def sheet(table: Any, ranks: tuple[int, ...] = RANKS) -> str:
    """Drawings side by side, three in a row, each with its name and effect below."""
    cells = []
    for k, rank in enumerate(ranks):
        x, y = (k % 3) * _WIDTH, (k // 3) * (_HEIGHT + _CAPTION)
        row = table.loc[rank]
        inner = re.sub(r"^<svg ", f'<svg x="{x}" y="{y}" ', table.draw(rank), count=1)
        first, *alike = row["pattern"].split(" | ")
        called = row["name"] or (f"{first} and alike" if alike else first)
        words = f"{called}: {row['effect']:+.2f} ± {row['error']:.2f}"
        cells.append(
            f'{inner}<text x="{x + _WIDTH / 2}" y="{y + _HEIGHT + 18}" text-anchor="middle" '
            f'font-family="sans-serif" font-size="11" fill="#222">{escape(words)}</text>'
        )
    width, height = 3 * _WIDTH, -(-len(ranks) // 3) * (_HEIGHT + _CAPTION)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img"><title>Fragments of a model of mutagens'
        f'</title><rect width="100%" height="100%" fill="#fff"/>{"".join(cells)}</svg>\n'
    )
