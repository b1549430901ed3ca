"""What a study is told, and where it finds its data."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class StudyOptions:
    """What the command line asks of a study; None means all, or the study's own number."""

    out: Path
    sets: Sequence[str] | None = None
    methods: Sequence[str] | None = None
    repeats: int | None = None
    data: Path | None = None
    n_jobs: int = -1
    device: str = "cpu"


def data_folder() -> Path:
    """The folder that ``TREELENS_DATA`` names."""
    folder = os.environ.get("TREELENS_DATA")
    if not folder or not Path(folder).is_dir():
        raise SystemExit("Set TREELENS_DATA to a folder with smiles/, tu/ and moleculeace/.")
    return Path(folder)
