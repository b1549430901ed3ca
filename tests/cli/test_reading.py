"""The commands read molecules as the model says: through files, and through the real executable."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import treelens as tl
from cli.conftest import QUICK, run, write_csv
from cli.test_executable import execute, pytestmark  # noqa: F401 - the executable, and when to skip

NEUTRAL = [f"{'C' * n}{end}" for n in range(1, 11) for end in ("N", "C(=O)O")]
CHARGED = [f"{'C' * n}{end}" for n in range(1, 11) for end in ("[NH3+]", "C(=O)[O-]")]
ROWS = [(s, "neutral") for s in NEUTRAL] + [(s, "charged") for s in CHARGED]
TRUTH = [row[1] for row in ROWS]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_csv(tmp_path_factory.mktemp("recipe") / "molecules.csv", ROWS)


@pytest.fixture(scope="module")
def model(data: Path) -> Path:
    path = data.with_name("charged.treelens")
    done = run("fit", data, "--atom-label", "element+charge", "--out", path, *QUICK)
    assert done.code == 0, done.err
    assert "Fitted to: SMILES with atom_label='element+charge', hydrogens=False" in done.out
    return path


@pytest.fixture(scope="module")
def plain_model(data: Path) -> Path:
    path = data.with_name("plain.treelens")
    assert run("fit", data, "--out", path, *QUICK).code == 0
    return path


def predicted(path: Path) -> list[str]:
    with path.open(newline="") as file:
        return [row["class"] for row in csv.DictReader(file)]


def test_the_executable_reads_new_molecules_as_those_of_training(data, tmp_path):
    """The collection is labelled in Python; nothing but the model file says how."""
    graphs, y = tl.read_smiles(data, atom_label="element+charge")
    fitted = tl.GraphSVC("wwl-linear", 1, 0, C=10.0, cv=2, random_state=0).fit(graphs, y)
    fitted.save(tmp_path / "m.treelens")
    out = tmp_path / "out.csv"
    done = execute("predict", tmp_path / "m.treelens", data, "--out", out, "--target", "label")
    assert done.returncode == 0, done.stderr
    assert predicted(out) == TRUTH
    assert "Accuracy: 100.0" in done.stderr


def test_every_command_that_reads_data_reads_it_so(model, data, tmp_path):
    assert run("predict", model, data, "--target", "label", "--json").data["accuracy"] == 1.0
    page = tmp_path / "r.html"
    assert run("explain", model, data, "--target", "label", "--out", page).code == 0
    assert "element+charge" in page.read_text(encoding="utf-8")


def test_what_a_model_was_fitted_to_is_shown(model):
    assert "Fitted to: SMILES with atom_label='element+charge'" in run("patterns", model).out
    recipe = run("patterns", model, "--json").data["recipe"]
    assert (recipe["reader"], recipe["atom_label"]) == ("smiles", "element+charge")


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--atom-label", "element"], "--atom-label element: the model was fitted to graphs made "
      "from SMILES with atom_label='element+charge', hydrogens=False"),
     (["--hydrogens"], "--hydrogens: the model was fitted to"),
     (["--atom-label", "colour"], "--atom-label colour: expected parts of element, charge")],
)  # fmt: skip
def test_asking_for_another_reading_is_an_error(model, data, options, words):
    done = run("predict", model, data, *options)
    assert done.code == 2
    assert words in " ".join(done.err.split())


def test_asking_for_the_same_reading_is_fine(model, data):
    done = run("predict", model, data, "--atom-label", "element+charge", "--no-hydrogens", "--json",
               "--target", "label")  # fmt: skip
    assert done.data["accuracy"] == 1.0


def test_options_about_atoms_need_molecules(tmp_path):
    folder = tmp_path / "G"
    folder.mkdir()
    for part, text in {"A": "1, 2\n2, 1\n", "graph_indicator": "1\n1\n", "graph_labels": "1\n",
                       "node_labels": "0\n1\n"}.items():  # fmt: skip
        (folder / f"G_{part}.txt").write_text(text)
    done = run("fit", folder, "--atom-label", "element+charge")
    assert done.code == 2
    assert "holds graphs that bring their labels along, not molecules" in " ".join(done.err.split())


def test_a_known_data_set_is_read_as_asked(data_folder):
    if not (data_folder / "smiles" / "BBBP.csv.gz").exists():
        pytest.skip("needs smiles/BBBP.csv.gz in TREELENS_DATA")
    from treelens.cli.data import read_data
    from treelens.cli.reading import Reading

    plain, charged = read_data("BBBP"), read_data("BBBP", reading=Reading("element+charge"))
    assert charged.graphs.recipe.atom_label == "element+charge"
    assert "N+1" in charged.graphs.node_alphabet
    assert "N+1" not in plain.graphs.node_alphabet
    assert charged.rows.tolist() == plain.rows.tolist()
    assert charged.graphs.sizes.tolist() == plain.graphs.sizes.tolist()
