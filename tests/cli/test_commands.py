"""Every command, in this process: what it prints, what it writes, what its JSON holds."""

from __future__ import annotations

import zipfile

import numpy as np

import treelens as tl
from cli.conftest import MOLECULES, QUICK, run, write_csv
from treelens.cli.data import GraphData
from treelens.cli.fit import compared_scores, fit_model, majority_score


def tiny_tu(folder, n=8):
    """Class 1: a path with a 9 in the middle; class 0: a triangle without."""
    edges, owner, labels, classes = [], [], [], []
    for graph in range(2 * n):
        first, positive = 3 * graph + 1, graph % 2
        edges += [(first, first + 1), (first + 1, first + 2)]
        edges += [] if positive else [(first, first + 2)]
        owner += [graph + 1] * 3
        labels += [graph % 3, 9 if positive else 8, graph % 3]
        classes.append(positive)
    files = {"A": [f"{u}, {v}" for u, v in edges], "graph_indicator": owner,
             "node_labels": labels, "graph_labels": classes}  # fmt: skip
    folder.mkdir()
    for part, lines in files.items():
        (folder / f"{folder.name}_{part}.txt").write_text("\n".join(map(str, lines)) + "\n")
    return folder


# --- fit ------------------------------------------------------------------------------------


def test_fit_prints_scores_beside_their_rivals_and_the_patterns(molecules, tmp_path):
    done = run("fit", molecules, "--target", "label", "--out", tmp_path / "m.treelens", "--method",
               "svc", "--depth", 1, "--kernel", "tanimoto", "--weight-radius", "0,2")  # fmt: skip
    assert done.code == 0, done.err
    for words in ("majority class", "50.0 %", "uniform weights", "learned weights", "100.0 %",
                  "class", "alcohol (20), amine (20)", "Time: ", "m.treelens"):  # fmt: skip
        assert words in done.out
    assert "\x1b" not in done.out + done.err
    assert tl.load(tmp_path / "m.treelens").predict(["CCCO", "CCCN"]).tolist() == [
        "alcohol", "amine",
    ]  # fmt: skip


def test_fit_says_what_it_does_about_a_rare_class(tmp_path):
    rare = write_csv(tmp_path / "rare.csv", MOLECULES[:25])
    options = ["--target", "label", *QUICK]
    done = run("fit", rare, "--out", tmp_path / "m.treelens", *options)
    assert done.code == 0, done.err
    text = " ".join(done.out.split())
    assert "is rare (20.0 %): settings are chosen by roc auc" in text
    assert "errors weigh the same in every class" in text
    given = run("fit", rare, "--out", tmp_path / "n.treelens", *options, "--scoring", "accuracy")
    assert "is rare" not in given.out


def test_fit_as_json(molecules, tmp_path):
    done = run("fit", molecules, "--out", tmp_path / "m.treelens", *QUICK, "--json", "--top", 3)
    assert done.code == 0, done.err
    assert done.data["data"]["classes"] == {"alcohol": 20, "amine": 20}
    assert done.data["scores"]["majority"] == 0.5
    assert done.data["scores"]["uniform"]["mean"] > 0.9
    assert done.data["scores"]["learned"] is None
    assert len(done.data["patterns"]) == 3
    assert done.data["model"] == str(tmp_path / "m.treelens")
    assert "Learning from 40 graphs" in done.err


def test_with_learned_weights_only_the_uniform_kernel_is_still_shown(molecules):
    graphs, y = tl.read_smiles(molecules)
    data = GraphData("x", graphs, y, np.arange(len(y)), len(y))
    settings = {
        "kernel": "wwl-linear",
        "depth": 1,
        "weight_radius": 2.0,
        "cv": 2,
        "C": 1.0,
        "random_state": 0,
    }
    _, result = fit_model(data, settings)
    assert result["scores"]["uniform"]["weight_radius"] == 0
    assert result["scores"]["learned"]["weight_radius"] == 2.0


def test_the_seed_settles_everything(molecules, tmp_path):
    for name in ("a", "b"):
        assert run("fit", molecules, "-o", tmp_path / name, *QUICK, "--seed", 3).code == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_fit_reads_an_sdf_with_a_property(tmp_path):
    from rdkit import Chem

    with Chem.SDWriter(str(tmp_path / "mols.sdf")) as writer:
        for smiles, label in MOLECULES:
            molecule = Chem.MolFromSmiles(smiles)
            molecule.SetProp("kind", label)
            writer.write(molecule)
    args = ["fit", tmp_path / "mols.sdf", "-o", tmp_path / "m.treelens", *QUICK]
    assert run(*args, "--target", "kind").code == 0
    without = run(*args)
    assert without.code == 2
    assert "--target COLUMN" in without.err
    assert "Its columns are: 'kind'" in without.err


def test_majority_scores():
    y = np.array(["a", "a", "a", "b"])
    assert majority_score(y, "accuracy") == 0.75
    assert majority_score(y, "balanced_accuracy") == 0.5
    assert majority_score(y, "roc_auc") == 0.5


# --- predict --------------------------------------------------------------------------------


def test_a_tu_zip_goes_all_the_way(tmp_path):
    folder = tiny_tu(tmp_path / "TINY")
    with zipfile.ZipFile(tmp_path / "TINY.zip", "w") as file:
        for path in folder.iterdir():
            file.write(path, f"TINY/{path.name}")
    out = tmp_path / "m.treelens"
    assert run("fit", tmp_path / "TINY.zip", "--out", out, *QUICK).code == 0
    done = run("predict", out, folder, "--json", "--target", "unused")
    assert done.data["accuracy"] == 1.0
    assert "--target unused is not used" in done.err


# --- looking at models ----------------------------------------------------------------------


def test_learned_weights_that_fell_behind_are_told(model):
    fitted = tl.load(model)
    uniform = fitted.cv_results_.best()
    fitted.cv_results_.scores[uniform._replace(weight_radius=1.0)] = [0.1]  # left after one split
    data = GraphData("x", None, np.array(["a", "b"]), np.arange(2), 2)
    scores = compared_scores(fitted, data, {})
    assert scores["learned"] is None
    assert scores["learned_fell_behind"]
