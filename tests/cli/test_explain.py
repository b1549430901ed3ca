"""``treelens explain``, ``fragments``, ``patterns``, ``info``, ``suggest`` and ``advise``."""

from __future__ import annotations

import re

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import treelens as tl
from cli.conftest import ALCOHOLS, AMINES, SMALL, ok, refused, run, write_csv
from decisions.conftest import ENDS, OTHERS, benzene, value_of
from treelens.cli import console
from treelens.cli.explain import explain_fragments

SMILES = [
    *("C" * k + "c1ccccc1[N+](=O)[O-]" for k in range(1, 9)),
    *("C" * k + "c1ccccc1O" for k in range(1, 9)),
]


def test_patterns(model, tmp_path):
    done = run("patterns", model, "--top", 4, "--json")
    shown = done.data["patterns"]
    differences = [row["difference"] for row in shown]
    assert differences == sorted(differences, key=abs, reverse=True)
    assert differences == [row["frequency amine"] - row["frequency alcohol"] for row in shown]
    assert min(differences) < 0 < max(differences)
    assert "amine - alcohol" in run("patterns", model).out
    assert {"O", "N"} <= {row["pattern"] for row in shown}
    by_support = run("patterns", model, "--sort", "support", "--json").data["patterns"]
    assert by_support[0]["pattern"] == "C"
    done = run("patterns", model, "--out", tmp_path / "patterns.csv")
    assert "C(-C,-O)" in done.out
    assert len(pd.read_csv(tmp_path / "patterns.csv")) == len(tl.load(model).patterns_)
    assert run("patterns", model, "--sort", "beauty").code == 2


def test_info_shows_the_table_that_a_model_was_fitted_to(tmp_path, model):
    rows = [(f"m{k}", s, 1.5**k) for k, s in enumerate([*ALCOHOLS, *AMINES, "OCC"])]
    data = write_csv(tmp_path / "x.csv", rows, "Compound ID,Structure,IC50 (nM)")
    svc, model = model, tmp_path / "m.treelens"
    ok(
        "fit",
        data,
        "--target",
        "IC50 (nM)",
        "--transform",
        "log10",
        "--standardize",
        "-o",
        model,
        *SMALL,
    )
    text = " ".join(run("info", model).out.split())
    for words in (
        "kind GraphRegressor",
        "predicts log10 of 'IC50 (nM)'",
        "file x.csv",
        "molecules in column Structure",
        "rows named by Compound ID",
        "rows 41",
        "standardize=('fragment', 'uncharge', 'tautomer')",
        "noise",
        "graphs 40",
    ):
        assert words in text, words
    assert "SMILES, names and values kept" in text
    found = run("info", model, "--json").data
    known = {name: found["target"][name] for name in ("name", "unit", "transform", "chosen")}
    own = {"name": "IC50 (nM)", "unit": "nM", "transform": "log10", "chosen": False}
    assert known == own
    fitted = tl.load(model).model_
    noise = fitted.target_scale * fitted.noise**0.5
    assert found["kernel"]["noise"] == pytest.approx(noise, rel=1e-5)
    assert run("info", svc, "--json").data["kernel"]["kernel"] == "wwl-linear"


def test_weights_are_listed_where_they_differ(molecules, tmp_path):
    for weights, shown in (("uniform", False), ("depths", True)):
        ok("fit", molecules, "-o", tmp_path / "m", *SMALL, "--weights", weights)
        assert ("Weight of levels" in run("info", tmp_path / "m").out) == shown
        assert ("(weights are uniform)" in run("patterns", tmp_path / "m").out) != shown


def test_fragments_as_a_table_as_json_and_as_csv(tmp_path, monkeypatch):
    y = [1] * 8 + [0] * 8
    tl.GraphClassifier(depth=1).fit(SMILES, np.array(y)).save(tmp_path / "m")
    data = write_csv(tmp_path / "x.csv", list(zip(SMILES, y, strict=True)), "smiles,class")
    shown = ok("fragments", tmp_path / "m", data, "--csv", tmp_path / "f.csv")
    assert "nitro" in shown.out
    assert "Size: the mean atom" in shown.out
    monkeypatch.setattr(console, "_WIDTH_OF_A_FILE", 50)
    lines = run("fragments", tmp_path / "m", data).out.splitlines()
    table = pd.read_csv(tmp_path / "f.csv")
    assert sum(" ± " in line for line in lines) == len(table)  # cut, not folded
    assert any("…" in line for line in lines)
    assert not table["smarts"].str.contains("…").any()
    assert (tmp_path / "f.csv").read_text().splitlines()[0].startswith("rank,name,smarts")
    found = run("fragments", tmp_path / "m", data, "--json", "--target", "class", "--top", 3).data
    assert len(found["fragments"]) <= 3
    assert found["left_out"]
    assert found["fragments"][0]["support 1"] + found["fragments"][0]["support 0"] > 0


def test_without_fragments_every_place_says_why(tmp_path):
    """No pattern is in more than two of these molecules."""
    smiles = ["C", "CC", "N", "NN", "O", "OO"]
    rows = list(zip(smiles, [0.5, 1.5, 2.0, 3.5, 4.0, 5.5], strict=True))
    data = write_csv(tmp_path / "x.csv", rows, "smiles,y")
    out, page = tmp_path / "m", tmp_path / "page.html"
    shown = run("fit", data, "--out", out, "--task", "regression", "--descriptors", "no")
    sentence = "No fragment in at least 3 molecules has an effect beyond two standard errors."
    assert sentence in shown.out, shown.err
    assert sentence in run("fragments", out, data).out
    ok("explain", out, data, "--out", page)
    assert sentence in page.read_text()
    assert repr(tl.load(out).fragments(smiles)).startswith(sentence)


def test_no_row_of_patterns_is_printed_twice(tmp_path):
    """Labels of different trees may read the same: the column of the tree tells them apart."""
    molecules = [
        a + b for a in ("c1ccccc1", "C1CCOC1", "C=C") for b in ("C", "CO", "O", "N", "C=O")
    ]
    model = tl.GraphRegressor(depth=1, weights="uniform", descriptors=False, progress=False)
    model.fit(molecules, [float(len(text)) for text in molecules]).save(tmp_path / "m.treelens")
    lines = run("patterns", tmp_path / "m.treelens", "--top", 500).out.splitlines()
    shown = [" ".join(line.split()) for line in lines if line.strip()]
    assert len(shown) > 20
    assert len(shown) == len(set(shown))


def test_patterns_of_single_atoms_have_a_table_of_their_effects(tmp_path):
    data = write_csv(tmp_path / "x.csv", list(zip(SMILES, range(16), strict=True)), "smiles,y")
    run("fit", data, "--out", tmp_path / "m", "--depth", 0, "--task", "regression")
    found = run("fragments", tmp_path / "m", data, "--json").data["fragments"]
    assert found
    assert {row["depth"] for row in found} == {0}


@pytest.mark.parametrize(("effects", "is_said"), [([0.5, -0.4, 0.1], False), ([0.1, -0.5], True)])
def test_an_order_other_than_by_size_is_said(effects, is_said, capsys):
    fragments = [{"effect": effect, "name": ""} for effect in effects]
    explain_fragments(console.Output(as_json=False), {"fragments": fragments, "noun": "molecules"})
    assert ("how many atoms and molecules have it" in capsys.readouterr().out) == is_said


def test_single_atoms_of_any_kind_are_told_from_those_of_one(tmp_path):
    ends = ("O", "OC", "N", "C(=O)O", "OCC", "Cl", "c1ccccc1O", "C1CCOC1")
    smiles = [f"{'C' * n}{end}" for n in range(1, 9) for end in ends]
    values = [1.3 * s.count("O") + 0.7 * s.endswith("O") - 0.1 * len(s) for s in smiles]
    data = write_csv(tmp_path / "x.csv", list(zip(smiles, values, strict=True)), "smiles,y")
    options = ("--task", "regression", "--depth", 0, "--fragments", 20)
    fitted = run("fit", data, "--out", tmp_path / "m", *options)
    for done in (fitted, run("fragments", tmp_path / "m", data)):
        rows = [line for line in done.out.splitlines() if re.search("[+-]0*[.0-9]+ ± ", line)]
        named = [re.split(r"\s{2,}", re.sub(r"^\s*\d*\s*", "", row))[0] for row in rows]
        assert len(set(named)) == len(named) > 5
        assert {"O", "any O"} <= set(named)


def test_rows_that_fit_left_out_become_no_test_set(tmp_path, monkeypatch):
    """Molecules with contradictory classes are not learned, and no test of the model either."""
    rows = [(s, "acid" if k < 8 else "base") for k, s in enumerate(SMILES)]
    rows += [(s, "base") for s in SMILES[:3]]
    data = write_csv(tmp_path / "x.csv", rows)
    model, given = tmp_path / "m.treelens", []
    ok("fit", data, "-o", model, *SMALL, "--fragments", 0)
    monkeypatch.setattr(
        tl.GraphClassifier, "report", lambda self, path, X, y, **_: given.append((X, y))
    )
    ok("explain", model, data, "--target", "label", "-o", tmp_path / "r.html")
    ((graphs, y),) = given
    fitted = tl.load(model)
    assert len(graphs) == len(y) == len(fitted.train_codes_) == 13
    assert y.tolist() == fitted.classes_[fitted.train_codes_].tolist()
    one = write_csv(tmp_path / "one.csv", [("CCO", "acid")])  # too little to learn, not to explain
    ok("explain", model, one, "--target", "label", "-o", tmp_path / "r.html")


# --- suggest and advise ---------------------------------------------------------------------------

PAIRS = [(end, other) for end in ENDS for other in OTHERS]
LEAD = "c1cc(Br)ccc1CC=O"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("decisions")
    known, rest = PAIRS[::2], PAIRS[1::2]
    rows = [(f"K{k}", benzene(*p), f"{value_of(*p):.3f}") for k, p in enumerate(known)]
    write_csv(folder / "known.csv", rows, "id,smiles,value")
    rows = [(f"P{k}", benzene(*p), k) for k, p in enumerate([*rest, known[0]])]
    write_csv(folder / "pool.csv", rows, "id,smiles,price")
    ok(
        "fit",
        folder / "known.csv",
        "--target",
        "value",
        "--task",
        "regression",
        "-o",
        folder / "m.treelens",
        *SMALL,
        "--fragments",
        0,
    )
    return folder


def test_suggestions_are_those_of_the_library(files):
    model, pool, out = files / "m.treelens", files / "pool.csv", files / "next.csv"
    done = ok("suggest", model, pool, "--n", 5, "--out", out, "--where", "MW < 200 and price > 1")
    assert "1 of 31 candidates left out: already in the training data." in done.err
    assert "5 of 31 candidates that meet the condition (33 in all)" in done.out
    written = pd.read_csv(out)
    loaded = tl.load(model)
    table = tl.read_table(pool, model=loaded)
    expected = tl.suggest(loaded, table, 5, where="MW < 200 and price > 1")
    assert written["index"].tolist() == expected["index"].tolist()
    assert written["name"].tolist() == expected["name"].tolist()
    assert {"prediction", "lower_90", "probability_better", "nearest_value"} <= set(written)
    told = run("suggest", model, pool, "--n", 3, "--minimize", "--strategy", "greedy", "--json")
    lowest = tl.suggest(loaded, table, 3, "greedy", maximize=False)
    assert [row["index"] for row in told.data["suggestions"]] == lowest["index"].tolist()
    assert "1 of 33 candidates left out: already in the training data." in told.data["notes"]


def test_the_table_for_people_fits_80_columns(files, tmp_path, monkeypatch):
    monkeypatch.setattr(console, "_WIDTH_OF_A_FILE", 80)
    pool = pd.read_csv(files / "pool.csv").assign(id="a molecule with a long name")
    pool.to_csv(tmp_path / "pool.csv", index=False)
    args = ["suggest", files / "m.treelens", tmp_path / "pool.csv", "--n", 5]
    rows = run(*args, "--json").data["suggestions"]
    lines = [line.split() for line in run(*args).out.splitlines() if " to " in line]
    assert len(lines) == 5  # no cell is folded
    for row, line in zip(rows, lines, strict=True):
        assert f"({row['lower_90']:.3g} to {row['upper_90']:.3g})" in " ".join(line)
        assert line[-3] == ("yes" if row["in_domain"] else "no")
        assert line[-2] == row["nearest_name"]
        assert " ".join(line).startswith("a molecule wi…")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ((), ", large values wanted (--minimize: small)"),
        (("--minimize",), ", small values wanted"),
        (("--strategy", "uncertainty"), ""),
    ],
)
def test_which_values_are_wanted_is_said(files, more, words):
    done = run("suggest", files / "m.treelens", files / "pool.csv", "--n", 2, *more)
    title = next(line.strip() for line in done.out.splitlines() if "of 33 candidates" in line)
    assert title == f"2 of 33 candidates{words}"


def test_the_limit_of_a_neighbour_is_shown(files, tmp_path):
    known = pd.read_csv(files / "known.csv").assign(relation="=")
    known.loc[known["value"] > known["value"].quantile(0.6), "relation"] = ">"
    known.to_csv(tmp_path / "known.csv", index=False)
    data, model = tmp_path / "known.csv", tmp_path / "m.treelens"
    ok("fit", data, "--target", "value", "--qualifier", "relation", "-o", model, *SMALL)
    args = ["suggest", model, files / "pool.csv", "--n", 20]
    lines = run(*args).out.splitlines()
    rows = run(*args, "--json").data["suggestions"]
    assert {row["nearest_limit"] for row in rows} == {"", ">"}
    for row in rows:
        (line,) = [line for line in lines if f" {row['name']} " in f" {line} "]
        shown = f"{row['nearest_name']} ({row['nearest_limit']}{row['nearest_value']:.3g})"
        assert line.strip().endswith(shown)


def test_the_class_that_is_looked_for_is_said(files):
    known = pd.read_csv(files / "known.csv")
    high = known["value"] > known["value"].median()
    active = high.map({True: "active", False: "inactive"}).to_numpy()
    model = tl.GraphClassifier(depth=1, descriptors=False).fit(known["smiles"].tolist(), active)
    model.save(files / "classes.treelens")
    minimized = (("--minimize",), "inactive")
    for more, wanted in ((), "active"), (("--wanted", "inactive"), "inactive"), minimized:
        done = run("suggest", files / "classes.treelens", files / "pool.csv", "--n", 2, *more)
        assert f"2 of 33 candidates, looking for class {wanted}" in done.out, done.err
        done = run("advise", files / "classes.treelens", LEAD, *more)
        assert f"towards class {wanted}" in done.out, done.err
    assert "active - inactive" in run("patterns", files / "classes.treelens").out


def test_a_bad_condition_is_one_error(files):
    model, pool = files / "m.treelens", files / "pool.csv"
    refused(run("suggest", model, pool, "--where", "__import__('os')"), "cannot be used")
    refused(run("suggest", model, pool, "--strategy", "best"), "expected_improvement")
    refused(run("suggest", model, pool, "--out", pool), "same file")


@pytest.mark.parametrize("number", ["nan", "inf", "-1"])
def test_a_bad_exploration_is_one_error(files, number):
    done = run("suggest", files / "m.treelens", files / "pool.csv", "--exploration", number)
    refused(done, "exploration")


def test_advice_is_that_of_the_library(files):
    model, out, page = files / "m.treelens", files / "advice.csv", files / "advice.html"
    lead = files / "lead.smi"
    lead.write_text(f"{LEAD} lead\n")
    done = ok("advise", model, lead, "--n", 8, "--out", out, "--html", page)
    expected = tl.advise(tl.load(model), LEAD, 8)
    assert pd.read_csv(out)["change"].tolist() == expected["change"].tolist()
    assert expected["change"].iloc[0] in done.out
    assert page.read_text().count("<tr>") == 9
    refused(run("advise", model, LEAD, "--out", page, "--html", page), "named twice")
    told = run("advise", model, LEAD, "--training", files / "known.csv", "--json", "--n", 8)
    assert [row["change"] for row in told.data["advice"]] == expected["change"].tolist()


def test_advice_fits_80_columns_and_marks_pairs_that_differ_the_other_way(
    files, tmp_path, monkeypatch
):
    monkeypatch.setattr(console, "_WIDTH_OF_A_FILE", 80)
    known = pd.read_csv(files / "known.csv")  # in half of which pairs differ the other way
    half = known["smiles"].str.contains("Br|Cl")
    known.assign(value=known["value"].where(half, -9.0)).to_csv(tmp_path / "k.csv", index=False)
    training = ["--training", tmp_path / "k.csv"]
    args = ["advise", files / "m.treelens", LEAD, "--all", *training]
    rows, page = run(*args, "--json").data["advice"], tmp_path / "page.html"
    done = ok(*args, "--html", page)
    lines = [line for line in done.out.splitlines() if " ± " in line]
    mined = [row for row in rows if row["source"] == "pairs"]
    opposite = [row["pair_mean"] * row["difference"] < 0 for row in mined]
    assert len(lines) == len(rows) > len(mined)  # no cell is folded
    assert 0 < sum(opposite) < len(mined)
    against = dict(zip((row["smiles"] for row in mined), opposite, strict=True))
    for row, line in zip(rows, lines, strict=True):
        assert len(line) <= 80
        assert "…" in line or row["smiles"] in line  # cut where it is long
        assert f" {100 * row['probability_better']:.1f} % " in line
        if row["source"] == "scan":
            assert " scan " in line
        else:
            sign = " (!)" * against[row["smiles"]]
            assert f"{row['pair_mean']:+.3g} of {row['n_pairs']}{sign}  " in line
    assert page.read_text().count("the other way") == sum(opposite)


def test_advice_of_several_targets_says_what_a_change_does_to_each(files, tmp_path, monkeypatch):
    monkeypatch.setattr(console, "_WIDTH_OF_A_FILE", 140)
    known = pd.read_csv(files / "known.csv")
    table = pd.DataFrame({"one": known["value"], "other": 2.0 - known["value"] ** 2})
    model, page = tmp_path / "panel.treelens", tmp_path / "page.html"
    panel = tl.GraphPanel(depth=1, descriptors=False).fit(known["smiles"].tolist(), table)
    panel.save(model)
    profile = tmp_path / "profile.toml"
    profile.write_text('one = "> 2"\nother = "< 0"\n')
    args = ["advise", model, known["smiles"][0], "--profile", profile, "--n", 3]
    done = ok(*args, "--html", page)
    rows = run(*args, "--json").data["advice"]
    expected = tl.advise(panel, known["smiles"][0], 3, profile={"one": "> 2", "other": "< 0"})
    assert [row["smiles"] for row in rows] == expected["smiles"].tolist()
    for row in rows:
        (line,) = [line for line in done.out.splitlines() if f" {row['smiles']} " in line]
        for name in ("one", "other"):
            assert f"({100 * row[f'{name}_probability_better']:.0f} % better)" in line
    assert f"one: predicted {expected.attrs['lead']['endpoints'][0]['prediction']:.3g}" in done.out
    assert page.read_text().count('data-label="whole profile"') == 3
    assert "one" in ok("advise", model, LEAD, "--endpoint", "one").out
    refused(run("advise", model, LEAD, "--endpoint", "none"), "endpoint must be one of")


def test_a_model_without_its_molecules_asks_for_them(files):
    model = files / "bare.treelens"
    ok(
        "fit",
        files / "known.csv",
        "--target",
        "value",
        "--task",
        "regression",
        "-o",
        model,
        *SMALL,
        "--fragments",
        0,
        "--no-training-data",
    )
    assert "left out" in run("info", model, "--json").data["training_data"]
    assert "nearest_name" not in run("predict", model, LEAD, "--json").data["predictions"][0]
    known = run("predict", files / "m.treelens", LEAD, "--json").data["predictions"][0]
    assert known["nearest_name"].startswith("K")
    refused(run("advise", model, LEAD), "--training")
    done = ok("advise", model, LEAD, "--training", files / "known.csv")
    assert "Br >> " in done.out
    ok("suggest", model, files / "pool.csv", "--n", 2)


def test_fragments_of_graphs_name_classes_and_no_smarts(tmp_path):
    folder = tmp_path / "NETS"
    folder.mkdir()
    shapes = [nx.star_graph(6), nx.cycle_graph(7), nx.path_graph(7)]
    graphs = [shapes[k % 3] for k in range(24)]
    together = nx.disjoint_union_all(graphs)
    arcs = [f"{u + 1}, {v + 1}\n{v + 1}, {u + 1}" for u, v in together.edges]
    texts = {
        "A": arcs,
        "graph_indicator": [str(k + 1) for k in range(24) for _ in range(7)],
        "graph_labels": [str(k % 3) for k in range(24)],
    }
    for part, lines in texts.items():
        (folder / f"NETS_{part}.txt").write_text("\n".join(lines) + "\n", encoding="ascii")
    ok("fit", folder, "--out", tmp_path / "m", *SMALL, "--fragments", 3)
    shown = ok("fragments", tmp_path / "m", folder).out
    assert "SMARTS" not in shown
    assert "class" in shown
    assert "node with 6 edges" in shown
