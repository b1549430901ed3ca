"""What a wheel holds: the library, the report's templates, the command line, and nothing else.

python .github/scripts/check_wheel.py dist/*.whl
"""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path

# Paths inside a wheel, by what they are.
ALLOWED = {
    "code": r"treelens/([a-z_]+/)?[a-z_]+\.py",
    "types": r"treelens/(py\.typed|__init__\.pyi)",
    "templates of the report": r"treelens/report/templates/[\w.-]+",
    "metadata": r"treelens-[\w.]+\.dist-info/(METADATA|WHEEL|RECORD|entry_points\.txt)",
    "licence": r"treelens-[\w.]+\.dist-info/licenses/LICENSE",
}
NEEDED = (
    "treelens/__init__.pyi",
    "treelens/py.typed",
    "treelens/cli/main.py",
    "treelens/report/templates/report.html",
)


def problems_with(wheel: Path) -> list[str]:
    """What is there and should not be, and what is not and should."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    extra = [n for n in names if not any(re.fullmatch(p, n) for p in ALLOWED.values())]
    missing = [n for n in NEEDED if n not in names]
    return [f"should not be there: {n}" for n in extra] + [f"is missing: {n}" for n in missing]


def main() -> int:
    problems = [f"{path}: {p}" for path in sys.argv[1:] for p in problems_with(Path(path))]
    for problem in problems:
        sys.stderr.write(problem + "\n")
    if len(sys.argv) < 2:
        sys.stderr.write("name at least one wheel\n")
    return 1 if problems or len(sys.argv) < 2 else 0


if __name__ == "__main__":
    sys.exit(main())
