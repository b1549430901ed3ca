"""A wheel holds the files of the package that git does not ignore, its metadata, nothing else.

python .github/scripts/check_wheel.py dist/*.whl
"""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
METADATA = r"treelens-[\w.]+\.dist-info/(METADATA|WHEEL|RECORD|entry_points\.txt|licenses/LICENSE)"


def files_of_checkout(root: Path = ROOT) -> set[str]:
    """The files of the package that git does not ignore, as a wheel names them."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "treelens"]
    listed = subprocess.run(command, cwd=root / "src", capture_output=True, text=True, check=True)
    return {name for name in listed.stdout.splitlines() if (root / "src" / name).is_file()}


def problems_with(wheel: Path, expected: set[str]) -> list[str]:
    """What is there and should not be, and what is not and should."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not re.fullmatch(METADATA, name)}
    extra, missing = sorted(names - expected), sorted(expected - names)
    return [f"should not be there: {n}" for n in extra] + [f"is missing: {n}" for n in missing]


def main() -> int:
    expected = files_of_checkout()
    problems = [
        f"{path}: {p}" for path in sys.argv[1:] for p in problems_with(Path(path), expected)
    ]
    for problem in problems:
        sys.stderr.write(problem + "\n")
    if len(sys.argv) < 2:
        sys.stderr.write("name at least one wheel\n")
    return 1 if problems or len(sys.argv) < 2 else 0


if __name__ == "__main__":
    sys.exit(main())
