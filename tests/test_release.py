"""What stands in the way of a release, and what a wheel may hold, is noticed."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

import treelens

ROOT = Path(__file__).parents[1]
SCRIPTS = ROOT / ".github" / "scripts"


def script(name: str, folder: Path = SCRIPTS) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def checkout(tmp_path) -> Path:
    """A small checkout of version 1.2.3 that may be released."""
    (tmp_path / "src" / "treelens").mkdir(parents=True)
    (tmp_path / "src" / "treelens" / "__init__.py").write_text('__version__ = "1.2.3"\n')
    (tmp_path / "CITATION.cff").write_text(
        "cff-version: 1.2.0\nversion: 1.2.3\ndate-released: 2026-01-31\n"
        'repository-code: "https://git.example/treelens"\n'
    )
    (tmp_path / "pyproject.toml").write_text('repository = "https://git.example/treelens"\n')
    (tmp_path / "packaging" / "conda").mkdir(parents=True)
    recipe = tmp_path / "packaging" / "conda" / "recipe.yaml"
    recipe.write_text('context:\n  version: "1.2.3"\n')
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
        ("CITATION.cff", "version: 1.2.3", "version: 1.2.2", "citation.cff has 1.2.2 for version"),
        ("CITATION.cff", "2026-01-31", "2025-01-31", "citation.cff has 2025-01-31 for date"),
        ("CITATION.cff", "git.example", "other.example", "for repository-code: expected"),
        ("pyproject.toml", "https://git.example/treelens", "", "url is not set"),
        ("packaging/conda/recipe.yaml", "1.2.3", "1.2.2", "recipe.yaml has another version"),
        ("CHANGELOG.md", "1.2.3 (2026-01-31)", "1.2.3", "changelog.md has nothing"),
        ("CHANGELOG.md", "- New.", "", "changelog.md has nothing"),
    ],
)
def test_what_disagrees_is_named(checkout, file, old, new, message):
    path = checkout / file
    path.write_text(path.read_text().replace(old, new))
    found = script("check_release").problems_with("v1.2.3", checkout)
    assert message in found[0].lower()


def test_all_that_this_checkout_lacks_for_a_release_is_the_repository():
    release = script("check_release")
    assert release.version_of_code(release.ROOT) == treelens.__version__
    missing = release.problems_with(f"v{treelens.__version__}")
    if ".dev" not in treelens.__version__ and not release.repository_url(release.ROOT):
        assert len(missing) == 1
        assert "URL is not set" in missing[0]


def test_the_conda_recipe_asks_for_what_the_wheel_asks_for():
    tomllib = pytest.importorskip("tomllib", reason="Python 3.11 or later")
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    recipe = yaml.safe_load((ROOT / "packaging/conda/recipe.yaml").read_text(encoding="utf-8"))
    run = {text.replace(" ", "") for text in recipe["requirements"]["run"]}
    assert run == {f"python{project['requires-python']}", *project["dependencies"]}


@pytest.mark.parametrize(
    "file", [*sorted((ROOT / ".github").rglob("*.yml")), ROOT / ".readthedocs.yaml"], ids=str
)
def test_workflows_call_what_there_is(file):
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    assert yaml.safe_load(file.read_text(encoding="utf-8"))
    text, make = file.read_text(encoding="utf-8"), (ROOT / "Makefile").read_text(encoding="utf-8")
    for words in re.findall(r"run: make ([\w ]+)", text):
        for target in words.split():
            assert f"\n{target}:" in make
    for path in re.findall(r"python (\.github/\S+)|\$\((\.ci/\w+)\)|configuration: (\S+)", text):
        assert (ROOT / "".join(path)).exists()


@pytest.mark.parametrize(
    ("repository", "expected"),
    [
        ("", "`[a](b)` x ![badge](https://git.example/b.svg)"),
        (
            "https://git.example/us/treelens/",
            "![top](https://git.example/us/treelens/raw/HEAD/docs/top.png)\n\n`[a](b)` "
            "[x](https://git.example/us/treelens/blob/HEAD/docs/x.md#y) "
            "![badge](https://git.example/b.svg)",
        ),
    ],
)
def test_links_of_the_readme_work_elsewhere(repository, expected, tmp_path):
    pytest.importorskip("hatchling", reason="needs hatchling")
    hook = script("hatch_build", ROOT)
    text = (
        "![top](docs/top.png)\n\n`[a](b)` [x](docs/x.md#y) ![badge](https://git.example/b.svg)"
        "\n\n```python\nf[0](path)\n```\n"
    )
    (tmp_path / "README.md").write_text(text)
    metadata = {}
    hook.RepositoryHook(str(tmp_path), {"repository": repository}).update(metadata)
    assert metadata["readme"]["text"] == expected + "\n\n```python\nf[0](path)\n```\n"
    assert all(url.startswith(repository.rstrip("/")) for url in metadata["urls"].values())
    assert bool(metadata["urls"]) == bool(repository)


def test_the_readme_of_the_wheel_has_no_link_that_leads_nowhere(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith("METADATA"))
        text = archive.read(name).decode("utf-8")
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert "# treelens" in text
    assert [link for link in links if "://" not in link] == []


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel of this checkout, or a skip that says why it cannot be built."""
    builders = pytest.importorskip("hatchling.builders.wheel", reason="needs hatchling")
    builder = builders.WheelBuilder(str(ROOT))
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
