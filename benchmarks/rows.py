"""What every benchmark yields: one claim, what was measured, and whether it holds."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One line of the benchmark table.

    ``met`` is None where nothing could be measured; ``measured`` then says why.
    """

    claim: str
    measured: str
    target: str
    met: bool | None
