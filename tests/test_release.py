"""What stands in the way of a release, and what a wheel may hold, is noticed."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

import treelens

SCRIPTS = Path(__file__).parents[1] / ".github" / "scripts"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def checkout(tmp_path) -> Path:
    """A small checkout of version 1.2.3 that may be released."""
    (tmp_path / "src" / "treelens").mkdir(parents=True)
    (tmp_path / "src" / "treelens" / "__init__.py").write_text('__version__ = "1.2.3"\n')
    (tmp_path / "CITATION.cff").write_text("cff-version: 1.2.0\nversion: 1.2.3\n")
    changes = ["# Changes", "## Unreleased", "## 1.2.3 (2026-01-31)", "- New.",
               "## 1.2.2 (2025-01-31)", "- Old.\n"]  # fmt: skip
    (tmp_path / "CHANGELOG.md").write_text("\n\n".join(changes))
    return tmp_path


def test_a_tag_that_agrees_with_everything_may_be_released(checkout):
    release = script("check_release")
    assert release.problems_with("v1.2.3", checkout) == []
    assert release.changes_of("1.2.3", checkout) == "- New."


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("src/treelens/__init__.py", "1.2.3", "1.2.4", "the tag is v1.2.3, but __version__"),
        ("CITATION.cff", "version: 1.2.3", "version: 1.2.2", "citation.cff says 1.2.2"),
        ("CHANGELOG.md", "1.2.3 (2026-01-31)", "1.2.3", "changelog.md has nothing"),
        ("CHANGELOG.md", "- New.", "", "changelog.md has nothing"),
    ],
)
def test_what_disagrees_is_named(checkout, file, old, new, message):
    path = checkout / file
    path.write_text(path.read_text().replace(old, new))
    found = script("check_release").problems_with("v1.2.3", checkout)
    assert message in found[0].lower()


def test_the_citation_is_of_this_version():
    release = script("check_release")
    assert release.version_of_code(release.ROOT) == treelens.__version__
    assert release.version_of_citation(release.ROOT) == treelens.__version__.split(".dev")[0]


def test_what_does_not_belong_into_a_wheel_is_named(tmp_path):
    wheel = tmp_path / "treelens-1.2.3-py3-none-any.whl"
    check = script("check_wheel")
    names = [*check.NEEDED, "treelens/graphs/collection.py", "treelens-1.2.3.dist-info/METADATA"]
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in names:
            archive.writestr(name, "")
    assert check.problems_with(wheel) == []
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("reproduction/grids.py", "")
        archive.writestr("treelens/graphs/__pycache__/collection.pyc", "")
    assert len(check.problems_with(wheel)) == 2
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("treelens/__init__.py", "")
    assert len(check.problems_with(wheel)) == len(check.NEEDED)
