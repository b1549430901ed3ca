"""Where the studies find their data."""

from __future__ import annotations

import os
from pathlib import Path


def data_folder() -> Path:
    """The folder that ``TREELENS_DATA`` names."""
    folder = os.environ.get("TREELENS_DATA")
    if not folder or not Path(folder).is_dir():
        raise SystemExit("Set TREELENS_DATA to a folder with smiles/, tu/ and moleculeace/.")
    return Path(folder)
