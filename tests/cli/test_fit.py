"""``treelens fit``: classes and numbers, one target or several, and what is printed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import treelens as tl
from cli.conftest import (
    ALCOHOLS,
    AMINES,
    MOLECULES,
    QUICK,
    SMALL,
    ok,
    refused,
    run,
    tiny_tu,
    write_csv,
)
from treelens.estimators import fit_report

# A number that atoms decide: 0.37 for each carbon, two more for each nitrogen.
NUMBERS = [(s, round(0.37 * s.count("C") + 2.0 * s.count("N"), 3)) for s in ALCOHOLS + AMINES]
# One in ten is rare, and no structure tells it apart.
RARE = [
    (f"{'C' * (1 + n % 20)}{'ONS'[n // 20]}", "hit" if n % 10 == 3 else "miss") for n in range(60)
]
# Words that only the authors of the program understand.
JARGON = (
    "evidence",
    "nats",
    "came to rest",
    "leans",
    "less without",
    "NLPD",
    "trees",
    "hydrogens=",
    "onverged",
    "graphs",
    "unknown making",
    "labels+edges",
    "weights of branches",
)


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_csv(tmp_path_factory.mktemp("numbers") / "x.csv", NUMBERS, "smiles,value")


# --- numbers --------------------------------------------------------------------------------------


def test_numbers(numbers, tmp_path):
    done = ok("fit", numbers, "--out", tmp_path / "m", *SMALL)
    assert "the target is 'value'" in done.err
    assert "fitting a regression; --task classification" in done.err
    for words in (
        "40 molecules",
        "value from 0.74 to 6.44",
        "RMSE",
        "R2",
        "90 % interval",
        "optimistic",
        "beyond those above it",
        "mean with it",
    ):
        assert words in done.out, words
    assert not [word for word in JARGON if word in done.out.replace(str(tmp_path), "")]
    model = tl.load(tmp_path / "m")
    assert isinstance(model, tl.GraphRegressor)
    assert model.loo_.r2 > 0.9
    found = run("fit", numbers, "--out", tmp_path / "m", *SMALL, "--json", "--top", 3).data
    assert (found["method"], found["task"]) == ("gp", "regression")
    assert found["leave_one_out"]["model"]["rmse"] == model.loo_.rmse
    assert found["leave_one_out"]["mean"]["rmse"] == np.std([y for _, y in NUMBERS])
    assert found["learning_gain"]["sentence"] == model.learning_gain_.sentence
    assert len(found["patterns"]) == 3
    assert any("fitting a regression" in note for note in found["notes"])
    table = model.fragments([s for s, _ in NUMBERS])
    for row in found["fragments"]:
        own = table.loc[row["rank"]]
        assert (row["pattern"], row["support"]) == (own["pattern"], own["support"])
        assert row["effect"] == pytest.approx(own["effect"])


def test_the_task_can_be_chosen(tmp_path):
    levels = [(s, [0.5, 1.5][i % 2]) for i, (s, _) in enumerate(MOLECULES)]
    data = write_csv(tmp_path / "levels.csv", levels)
    args = ["fit", data, "--out", tmp_path / "m", *SMALL, "--json"]
    assert run(*args).data["task"] == "classification"  # two numbers can pass for classes
    assert tl.load(tmp_path / "m").classes_.tolist() == ["0.5", "1.5"]
    assert run(*args, "--task", "regression").data["task"] == "regression"
    rows = [(s, y, 0.37 * i) for i, (s, y) in enumerate(MOLECULES)]
    both = write_csv(tmp_path / "both.csv", rows, "smiles,label,size")
    refused(
        run(
            "fit",
            both,
            "--target",
            "size",
            "--out",
            tmp_path / "two.treelens",
            *SMALL,
            "--threshold",
            "0.3",
        ),
        "'size' has numbers",
    )
    assert not list(tmp_path.glob("two*"))  # not even the model of the classes
    write_csv(data, [(s, f"{7 * i}.0") for i, (s, _) in enumerate(MOLECULES)])
    assert run(*args).data["data"]["values"]["largest"] == 273.0
    assert tl.load(tmp_path / "m").train_values_.dtype == np.float64


@pytest.mark.parametrize("options", [SMALL, QUICK], ids=["gp", "svc"])
def test_the_seed_settles_everything(options, molecules, tmp_path):
    for name in ("a", "b"):
        ok("fit", molecules, "-o", tmp_path / name, *options, "--seed", 3)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


# --- classes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [SMALL, QUICK], ids=["gp", "svc"])
def test_classes(options, molecules, tmp_path):
    done = ok("fit", molecules, "--out", tmp_path / "m", *options)
    for words in (
        "alcohol (20), amine (20)",
        "most frequent class",
        "50.0 %",
        "100.0 %",
        "primary aliphatic amine",
        "Time: ",
    ):
        assert words in done.out, words
    assert not [word for word in JARGON if word in done.out.replace(str(tmp_path), "")]
    assert "\x1b" not in done.out + done.err
    loaded = tl.load(tmp_path / "m")
    assert loaded.predict(["CCCO", "CCCN"]).tolist() == ["alcohol", "amine"]
    found = run("fit", molecules, "--out", tmp_path / "m", *options, "--json").data
    assert found["data"]["classes"] == {"alcohol": 20, "amine": 20}
    assert 1 <= len(found["fragments"]) <= 5
    assert (found["toward"], found["no_fragments_for"]) == ("amine", None)
    rows = {row["name"]: row for row in found["fragments"]}
    assert rows["primary aliphatic amine"]["effect"] > 0.9
    assert all(abs(row["effect"]) > 2 * row["error"] for row in rows.values())


def test_recall_and_precision_are_those_of_the_class_that_effects_speak_of(tmp_path):
    """Of the rarer class they would be 1.0 here, under a heading that does not say so."""
    rows = [(s, "a") for s in ALCOHOLS[:12]] + [(s, "b") for s in AMINES[:20]]
    rows += [(s, "b") for s in ("CS", "CCS", "CCCS")]
    args = ["fit", write_csv(tmp_path / "x.csv", rows), "-o", tmp_path / "m", *SMALL]
    found = run(*args, "--weights", "uniform", "--json").data
    model = tl.load(tmp_path / "m")
    predicted, truth = model.loo_.predictions, model.classes_[model.train_codes_]
    scores = found["leave_one_out"]
    assert scores["positive"] == found["toward"] == "b"
    assert scores["model"]["recall"] == np.mean(predicted[truth == "b"] == "b")
    assert "Recall and precision are those of b." in run(*args).out


def test_a_tuned_threshold_is_printed_with_the_accuracy_without_it(tmp_path):
    args = [
        "fit",
        write_csv(tmp_path / "x.csv", RARE),
        "-o",
        tmp_path / "m",
        *SMALL,
        "--threshold",
        "recall=0.9",
    ]
    found = run(*args, "--json").data["leave_one_out"]["threshold"]
    model = tl.load(tmp_path / "m")
    assert found["class"] == "hit"
    assert found["recall"] >= 0.9
    most = model.loo_.probabilities.argmax(axis=1)
    assert found["accuracy_most_probable"] == np.mean(most == model.train_codes_)
    text = " ".join(run(*args).out.split())
    assert "hit is predicted from a probability of" in text
    assert "(--threshold recall=0.9)" in text


def test_scores_of_a_support_vector_machine(molecules, tmp_path):
    found = run(
        "fit",
        molecules,
        "--out",
        tmp_path / "m",
        "--method",
        "svc",
        "--depth",
        1,
        "--kernel",
        "tanimoto",
        "--weight-radius",
        "0,2",
        "--json",
    ).data
    assert found["scores"]["majority"] == 0.5
    assert found["scores"]["uniform"]["mean"] > 0.9
    assert isinstance(tl.load(tmp_path / "m"), tl.GraphSVC)
    rare = write_csv(tmp_path / "rare.csv", MOLECULES[:25])
    done = run("fit", rare, "--out", tmp_path / "m.treelens", *QUICK)
    assert "is rare (20.0 %)" in " ".join(done.out.split())


# --- fragments ------------------------------------------------------------------------------------


def test_as_many_fragments_as_asked_for(molecules, tmp_path, monkeypatch):
    args = ["fit", molecules, "-o", tmp_path / "m", *SMALL]
    assert len(run(*args, "--fragments", 1, "--json").data["fragments"]) == 1
    assert "effect" not in run(*args, "--fragments", 0).out
    monkeypatch.setattr(fit_report, "_MOST_SEARCHED", 39)
    assert "a while with 40 molecules" in run(*args).out
    three = [
        (f"{'C' * n}{atom}", name)
        for n in range(2, 12)
        for atom, name in (("O", "alcohol"), ("N", "amine"), ("S", "thiol"))
    ]
    args[1] = write_csv(tmp_path / "x.csv", three)
    assert "a while with 3 classes" in run(*args).out
    assert "thiol, for thiol" in run(*args, "--fragments", 3).out


# --- several targets, other sources ---------------------------------------------------------------


def _several(path):
    """Two targets with gaps, one of numbers and one of classes, and a molecule that repeats."""
    rows = [
        (s, y if k % 3 else "", "NO"["O" in s] if k % 4 else "", 0.31 * k)
        for k, (s, y) in enumerate(NUMBERS)
    ]
    return write_csv(path, [*rows, ("OCC", 5, "O", 1)], "smiles,logP (x),kind,k")


def test_several_targets_are_one_model(tmp_path):
    data, out = _several(tmp_path / "x.csv"), tmp_path / "m.treelens"
    done = ok("fit", data, "--target", "logP (x),kind", "-o", out, *SMALL)
    model = tl.load(out)
    assert isinstance(model, tl.GraphPanel)
    assert model.endpoints_ == ["logP (x)", "kind"]
    assert "2 endpoints" in done.out
    assert "Correlations between endpoints" in done.out
    found = ok("fit", data, "--target", "logP (x)", "--target", "kind", "-o", out, *SMALL, "--json")
    first, second = found.data["endpoints"]
    assert first["n"] == 27  # 26 of 40 rows, and OCC, which fills the gap of CCO
    assert (first["classes"], second["classes"]) == (None, ["N", "O"])
    assert first["new"]["r2"] <= first["gap"]["r2"] + 0.1
    assert second["new"]["roc_auc"] > 0.5
    found = ok("info", out, "--json").data
    assert [each["endpoint"] for each in found["endpoints"]] == ["logP (x)", "kind"]
    assert found["sizes"]["cells"] == first["n"] + second["n"]
    assert "own share" in ok("info", out).out


def test_all_columns_of_numbers(tmp_path):
    data, out = _several(tmp_path / "x.csv"), tmp_path / "m.treelens"
    found = ok("fit", data, "--targets", "all", "-o", out, *SMALL, "--json")
    assert [each["endpoint"] for each in found.data["endpoints"]] == ["logP (x)", "k"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--target", "kind,sort"], "no column 'sort' (target)"),
        (["--target", ","], "names no column"),
        (["--target", "kind,k", "--targets", "all"], "not both"),
        (["--target", "kind,k", "--method", "svc"], "--method svc learns one --target"),
        (["--target", "kind,k", "--noise", "k"], "write {} for the name of the target"),
        (["--target", "kind,k", "--covariates", "logP (x)"], "--covariates is for one --target"),
        (["--target", "kind,k", "--fragments", "3"], "for one --target"),
        (["--target", "logP (x),k", "--threshold", "0.3"], "--threshold is for classes"),
    ],
)
def test_what_several_targets_do_not_take(options, words, tmp_path):
    data, out = _several(tmp_path / "x.csv"), tmp_path / "m.treelens"
    refused(run("fit", data, *options, "-o", out, *SMALL), words)
    assert not out.exists()


def test_limits_among_several_targets_are_learned(tmp_path):
    rows = [(s, y, y, "<" if k == 4 else "=") for k, (s, y) in enumerate(NUMBERS)]
    data = write_csv(tmp_path / "x.csv", rows, "smiles,a,b,b sign")
    args = ["fit", data, "--target", "a,b", "-o", tmp_path / "m", *SMALL]
    done = run(*args, "--qualifier", "{} sign")
    assert f"a ({len(rows)}), b ({len(rows) - 1} and 1 limits)" in done.err


@pytest.mark.parametrize("options", [SMALL, QUICK], ids=["gp", "svc"])
def test_a_tu_folder_goes_all_the_way(options, tmp_path):
    folder = tiny_tu(tmp_path / "TINY")
    done = run("fit", folder, "--out", tmp_path / "m", *options)
    assert "16 graphs" in done.out
    done = run("predict", tmp_path / "m", folder, "--json", "--target", "unused")
    assert done.data["predicted"] == {"0": 8, "1": 8}
    assert done.data["accuracy"] == 1.0
    assert "not used" in done.err
    refused(run("fit", folder, "--atom-label", "element"), "is for molecules")
    refused(run("fit", folder, "--covariates", "x"), "no columns")


def test_molecules_are_read_as_the_options_say(tmp_path):
    rows = [
        (f"{'C' * n}{end}", kind)
        for n in range(1, 11)
        for end, kind in (("N", "no"), ("C(=O)O", "no"), ("[NH3+]", "yes"), ("C(=O)[O-]", "yes"))
    ]
    data = write_csv(tmp_path / "x.csv", rows)
    done = run(
        "fit",
        data,
        "--atom-label",
        "element+charge",
        "--standardize-steps",
        "fragment",
        "-o",
        tmp_path / "m",
        *QUICK,
        "--json",
    )
    recipe = done.data["recipe"]
    assert (recipe["atom_label"], recipe["standardize"]) == ("element+charge", ["fragment"])
    assert run("predict", tmp_path / "m", data, "--target", "label", "--json").data["accuracy"] == 1
    assert "element+charge" in run("patterns", tmp_path / "m").out
    refused(run("fit", data, "--atom-label", "colour"), "colour")
    refused(run("fit", data, "--standardize-steps", "wash"), "wash")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--kernel", "wwl-linear"], "--kernel is an option of --method svc"),
        (["--weight-radius", "0"], "--weight-radius is an option of --method svc"),
        (["--scoring", "accuracy"], "--scoring is an option of --method svc"),
        (["--depth", "1,2"], "--depth 1,2"),
        (["--depth", "21"], "--depth 21"),
        (["--weights", "best"], "'best' is not one of"),
        (["--jobs", "0"], "--jobs 0"),
        (["--covariates", ","], "--covariates"),
        (["--method", "svc", "--weights", "depths"], "--weights is an option of --method gp"),
        (["--method", "svc", "--covariates", "x"], "--covariates is an option of --method gp"),
        (["--method", "svc", "--threshold", "0.3"], "--threshold is an option of"),
        (["--method", "svc", "--task", "regression"], "classes only"),
        (["--method", "svc", "--kernel", "best"], "--kernel best"),
        (["--method", "svc", "--weight-radius", "nan"], "--weight-radius nan: expected"),
        (["--threshold", "high"], "got 'high'"),
    ],
)
def test_options_that_do_not_fit_are_refused(given, words, molecules, tmp_path):
    refused(run("fit", molecules, "--out", tmp_path / "m", *given), words)
    assert not (tmp_path / "m").exists()


def test_several_targets_make_one_file_at_the_defaults(tmp_path):
    ends = list(enumerate("ON"))
    rows = [(f"{'C' * n}{end}", n + k, n - 2 * k) for n in range(1, 13) for k, end in ends]
    data = write_csv(tmp_path / "x.csv", rows, "smiles,logD,logS")
    for targets in (["--targets", "all"], ["--target", "logD,logS"]):
        done = ok("fit", data, *targets, "--out", tmp_path / "m")
        assert "2 endpoints, 48 measured cells" in done.out
    done = ok("evaluate", data, "--targets", "all", "--folds", "2")
    assert "together" in done.out


# --- tables of one's own --------------------------------------------------------------------------


def test_a_table_by_id_and_an_array_by_row_are_views(tmp_path):
    """Only the tables know the values: they stay by id, in any order, in fit and predict."""
    values = np.random.default_rng(0).normal(size=len(NUMBERS))
    rows = [(f"m{k}", s, v) for k, ((s, _), v) in enumerate(zip(NUMBERS, values, strict=True))]
    keyed = [(name, 2.0 * v) for name, _, v in rows][::-1]
    data, new = (
        write_csv(tmp_path / f"{name}.csv", some, "id,smiles,value")
        for name, some in (("data", rows[::2]), ("new", rows[1::2]))
    )
    table = write_csv(tmp_path / "heat.csv", keyed, "id,twice")
    np.save(tmp_path / "first.npy", values[::2, None])
    np.save(tmp_path / "second.npy", values[1::2, None])
    for given, later in (("heat.csv", "heat.csv"), ("first.npy", "second.npy")):
        model = tmp_path / f"{given}.model"
        ok("fit", data, "--view", tmp_path / given, "--out", model, *SMALL)
        assert tl.load(model).shares_[given.split(".")[0]] > 0.5
        done = ok("predict", model, new, "--view", tmp_path / later, "--target", "value", "--json")
        assert done.data["r2"] > 0.9
        refused(run("predict", model, new), "give --view FILE")
    np.save(tmp_path / "short.npy", values[:2, None])
    refused(run("fit", data, "--view", tmp_path / "short.npy"), "no row for")
    refused(run("fit", data, "--view", table, "--method", "svc"), "--view is an option")
