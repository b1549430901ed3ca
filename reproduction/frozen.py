"""Which source code made a row, and which state of it has the defaults of the published rows.

``python -m reproduction freeze`` writes the current state to ``frozen.json``. Sets that are kept
aside are run with that state only, so that nothing can be chosen by them.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import treelens

FROZEN = Path(__file__).with_name("frozen.json")
_DIGITS = 16


def digest(*parts: Any) -> str:
    """Return a short hash of texts, bytes and arrays."""
    found = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray) and part.dtype != object:
            part = np.ascontiguousarray(part).tobytes()
        own = part if isinstance(part, bytes) else json.dumps(_plain(part)).encode()
        found.update(hashlib.sha256(own).digest())
    return found.hexdigest()[:_DIGITS]


def _plain(part: Any) -> Any:
    return part.tolist() if isinstance(part, np.ndarray) else part


@cache
def source_hash() -> str:
    """Return a hash of all files of the library's source code: the same wherever it lies."""
    root = Path(treelens.__file__).parent
    files = sorted(path for path in root.rglob("*.py*") if path.suffix in (".py", ".pyi"))
    return digest(*(x for p in files for x in (p.relative_to(root).as_posix(), p.read_bytes())))


@cache
def frozen_defaults() -> dict[str, str]:
    """Return name, commit and source hash of the frozen state."""
    return json.loads(FROZEN.read_text(encoding="utf-8"))


def source_of_library() -> dict[str, str | None]:
    """Return hash and commit of the library and, if it is frozen, the name of its defaults."""
    frozen, own = frozen_defaults(), source_hash()
    if own == frozen["source"]:
        return {"source": own, "commit": frozen["commit"], "defaults": frozen["name"]}
    return {"source": own, "commit": _commit(), "defaults": None}


def _commit() -> str | None:
    root = Path(treelens.__file__).resolve().parents[2]
    commit = _git(root, "rev-parse", "HEAD")
    changed = commit and _git(root, "status", "--porcelain", "--", "src")
    return f"{commit}+changes" if changed else commit


def _git(root: Path, *arguments: str) -> str | None:
    command = ["git", "-C", str(root), *arguments]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() if found.returncode == 0 else None


def freeze(_: Any) -> None:
    """Write the current state of ``src``, which must be committed, as the frozen one."""
    commit = _commit()
    if commit is None or commit.endswith("+changes"):
        raise ValueError("src/ has changes that are not committed: commit them first.")
    number = int(frozen_defaults()["name"].removeprefix("defaults-")) + 1
    found = {"name": f"defaults-{number}", "commit": commit, "source": source_hash()}
    FROZEN.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    frozen_defaults.cache_clear()
    print(f"{FROZEN}: {found}")
