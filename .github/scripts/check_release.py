"""Whether a tag may be released: the version, its section in CHANGELOG.md, CITATION.cff.

python .github/scripts/check_release.py v0.2.0 --notes notes.md
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def version_of_code(root: Path) -> str:
    text = (root / "src" / "treelens" / "__init__.py").read_text(encoding="utf-8")
    return _first(r'^__version__ = "(.+)"$', text)


def version_of_citation(root: Path) -> str:
    return _first(r"^version: (.+)$", (root / "CITATION.cff").read_text(encoding="utf-8"))


def changes_of(version: str, root: Path) -> str:
    """The section ``## 0.2.0 (2026-01-31)`` of the list of changes; empty if there is none."""
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    heading = rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$"
    found = re.search(heading + r"\n(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
    return "" if found is None else found.group(1).strip()


def problems_with(tag: str, root: Path = ROOT) -> list[str]:
    """What stands in the way of a release, one sentence each."""
    version = version_of_code(root)
    found = []
    if tag != f"v{version}":
        found.append(f"The tag is {tag}, but __version__ is {version}: expected v{version}.")
    if version_of_citation(root) != version:
        found.append(f"CITATION.cff says {version_of_citation(root)}, not {version}.")
    if not changes_of(version, root):
        found.append(f"CHANGELOG.md has nothing under '## {version} (YYYY-MM-DD)'.")
    return found


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text, flags=re.MULTILINE)
    return "" if found is None else found.group(1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tag")
    parser.add_argument("--notes", type=Path, help="where to write the section of this version")
    given = parser.parse_args()
    problems = problems_with(given.tag)
    for problem in problems:
        sys.stderr.write(problem + "\n")
    if not problems and given.notes is not None:
        given.notes.write_text(changes_of(version_of_code(ROOT), ROOT) + "\n", encoding="utf-8")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
