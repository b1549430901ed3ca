"""Whether a tag may be released: its version, date and list of changes, and the repository's URL.

python .github/scripts/check_release.py v0.2.0 --notes notes.md
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
RECIPE = Path("packaging", "conda", "recipe.yaml")


def version_of_code(root: Path) -> str:
    text = (root / "src" / "treelens" / "__init__.py").read_text(encoding="utf-8")
    return _first(r'^__version__ = "(.+)"$', text)


def citation(field: str, root: Path) -> str:
    text = (root / "CITATION.cff").read_text(encoding="utf-8")
    return _first(rf'^{field}: "?([^"\n]+)"?$', text)


def repository_url(root: Path) -> str:
    """The URL that pyproject.toml has for hatch_build.py; empty while there is none."""
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    return _first(r'^repository = "(.*)"$', text)


def date_of_changes(version: str, root: Path) -> str:
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    return _first(rf"^## {re.escape(version)} \((\d{{4}}-\d\d-\d\d)\)$", text)


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
    if not changes_of(version, root):
        found.append(f"CHANGELOG.md has nothing under '## {version} (YYYY-MM-DD)'.")
    repository = repository_url(root)
    if not repository:
        found.append("pyproject.toml: the repository's URL is not set (RELEASING.md says where).")
    cited = {
        "version": version,
        "date-released": date_of_changes(version, root),
        "repository-code": repository,
    }
    for field, expected in cited.items():
        if expected and citation(field, root) != expected:
            has = citation(field, root) or "nothing"
            found.append(f"CITATION.cff has {has} for {field}: expected {expected}.")
    if _first(r'^  version: "(.+)"$', (root / RECIPE).read_text(encoding="utf-8")) != version:
        found.append(f"{RECIPE.as_posix()} has another version than {version}.")
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
