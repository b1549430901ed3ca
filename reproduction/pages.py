"""Tables and pages from rows."""

from __future__ import annotations

from pathlib import Path


def write_all(out: Path) -> None:
    """Write every page that there are rows for."""
