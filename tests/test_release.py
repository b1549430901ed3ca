"""What stands in the way of a release, and what a wheel may hold, is noticed."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
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
    changes = [
        "# Changes",
        "## Unreleased",
        "## 1.2.3 (2026-01-31)",
        "- New.",
        "## 1.2.2 (2025-01-31)",
        "- Old.\n",
    ]
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


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel of this checkout, or a skip that says why it cannot be built."""
    builders = pytest.importorskip("hatchling.builders.wheel", reason="needs hatchling")
    builder = builders.WheelBuilder(str(SCRIPTS.parents[1]))
    return Path(next(builder.build(directory=str(tmp_path_factory.mktemp("dist")))))


@pytest.fixture(scope="module")
def checkout_files() -> set[str]:
    """The files of the package, or a skip that says why they are not known."""
    try:
        return script("check_wheel").files_of_checkout()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs a git checkout")


def test_the_wheel_of_this_checkout_is_complete(wheel, checkout_files):
    assert script("check_wheel").problems_with(wheel, checkout_files) == []
    assert "treelens/serve/templates/page.html" in checkout_files


def test_what_a_wheel_has_too_much_or_too_little_is_named(wheel, checkout_files, tmp_path):
    check, spoiled = script("check_wheel"), tmp_path / wheel.name
    shutil.copy(wheel, spoiled)
    with zipfile.ZipFile(spoiled, "a") as archive:
        archive.writestr("reproduction/grids.py", "")
        archive.writestr("treelens/graphs/__pycache__/collection.pyc", "")
    problems = check.problems_with(spoiled, checkout_files | {"treelens/gone.py"})
    assert len(problems) == 3
    assert {p.split(": ")[1] for p in problems} >= {"reproduction/grids.py", "treelens/gone.py"}
