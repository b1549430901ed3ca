"""The study of formulations: an honest protocol, learners that do what they say, a true page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from reproduction.formulations import DEFAULT, FORMULATIONS
from reproduction.formulations_page import CHOSEN, chosen_rows, summarize
from reproduction.learners import (
    DepthScaledWeights,
    StudyWeights,
    pattern_parents,
    smoothed_weights,
)
from reproduction.protocol import DataSet, kernel_search, run_wl_fold
from reproduction.rows import read_rows
from scipy import stats
from sklearn.base import clone

import tiny_studies as tiny
from reproduction import __main__ as command_line
from reproduction import formulation_study as study
from reproduction import paper as door
from reproduction import protocol
from treelens import make_synthetic
from treelens.patterns.pairs import PairFeatures
from treelens.svm.search import Base

SOME = (DEFAULT, "smoothed", "metric")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Little to choose from: the searches are what takes time here."""
    monkeypatch.setattr(protocol, "DEPTHS", (1, 2))
    monkeypatch.setattr(protocol, "GAMMAS", (3.0,))
    monkeypatch.setattr(protocol, "CS", (1.0, 10.0))
    monkeypatch.setattr(protocol, "radii_for", lambda n_graphs: (1.0, 3.0))
    monkeypatch.setattr(protocol, "N_INNER", 3)
    monkeypatch.setattr(protocol, "repetitions_for", lambda n_graphs: 1)


@pytest.fixture(scope="module")
def made() -> DataSet:
    graphs, y = make_synthetic(8, random_state=1)
    return DataSet.from_graphs("made", graphs, y)


@pytest.fixture
def tiny_set(monkeypatch) -> None:
    monkeypatch.setattr(study, "load_vocabularies", lambda name: {False: tiny.tiny_data(name)})
    monkeypatch.setitem(study.PLAN, "tiny", (2, 2))


# --- the protocol -----------------------------------------------------------------------------


def test_default_and_its_twin_are_those_of_table_2(made):
    row = study.run_fold({False: made}, 0, 3, [DEFAULT], seed=5)[0]
    uniform, learned = run_wl_fold(made, 0, 3, ["wwl", "learned_wwl"], seed=5)
    assert row["uniform_accuracy"] == uniform["accuracy"]
    assert row["uniform_choice"] == uniform["choice"]
    assert row["uniform_inner_score"] == uniform["inner_score"]
    for field in ("accuracy", "choice", "inner_score", "n_test"):
        assert row[field] == learned[field]


def test_formulations_of_one_form_and_vocabulary_share_one_uniform_search(made, monkeypatch):
    searched, search = [], study.uniform_search
    monkeypatch.setattr(
        study, "uniform_search", lambda *args: searched.append(args[2]) or search(*args)
    )
    rows = study.run_fold({False: made}, 0, 0, [DEFAULT, "box", "min_support", "tanimoto"])
    assert searched == [("wwl",), ("tanimoto",)]
    assert len({row["uniform_accuracy"] for row in rows[:3]}) == 1
    assert [row["choice"]["kernel"] for row in rows] == ["wwl"] * 3 + ["tanimoto"]


def test_classes_of_the_test_part_change_nothing(monkeypatch):
    """Only whether they are right: with two classes turned round, right becomes wrong."""
    monkeypatch.setattr(protocol, "DEPTHS", (1,))
    data = tiny.tiny_data()  # small, since every formulation is run twice
    codes = data.codes
    train, test = protocol.outer_split(codes, 0, 1, study.SEED)
    inner = protocol.inner_splits(codes, train, 1)
    monkeypatch.setattr(study, "outer_split", lambda *args: (train, test))
    monkeypatch.setattr(study, "inner_splits", lambda *args: inner)
    lies = codes.copy()
    lies[test] = 1 - lies[test]
    every = [name for name, spec in FORMULATIONS.items() if not spec.edge_labels]
    honest = study.run_fold({False: data}, 0, 1, every)
    lied = study.run_fold({False: replace(data, codes=lies)}, 0, 1, every)
    assert [row["formulation"] for row in honest] == every
    for ours, theirs in zip(honest, lied, strict=True):
        for field in ("choice", "uniform_choice", "inner_score", "uniform_inner_score"):
            assert ours[field] == theirs[field], (ours["formulation"], field)
        for field in ("accuracy", "uniform_accuracy"):
            assert ours[field] == pytest.approx(1 - theirs[field])


def test_radii_are_those_of_the_formulation(made):
    rows = study.run_fold({False: made}, 0, 0, [DEFAULT, "large_radii"])
    assert rows[0]["choice"]["weight_radius"] in protocol.radii_for(len(made.codes))
    assert rows[1]["choice"]["weight_radius"] in FORMULATIONS["large_radii"].radii


def test_edge_labels_are_used_where_there_are_any(mutag, made, monkeypatch):
    monkeypatch.setattr(study, "load_dataset", lambda name: mutag)
    with_labels = study.load_vocabularies("MUTAG")
    assert with_labels[True].vocabulary.n_patterns > with_labels[False].vocabulary.n_patterns
    monkeypatch.setattr(study, "load_dataset", lambda name: (made.graphs, made.codes))
    assert list(study.load_vocabularies("made")) == [False]


def test_no_fold_is_one_of_table_2():
    for name in (*study.DATASETS, "NCI1"):
        assert {study.SEED + r for r, _ in study.planned_folds(name)}.isdisjoint(range(10))


# --- rows -------------------------------------------------------------------------------------


def without_times(path: Path) -> list[dict]:
    times = ("seconds", "uniform_seconds")
    return [{k: v for k, v in row.items() if k not in times} for row in read_rows(path)]


def test_rows_resume(tmp_path, tiny_set, monkeypatch):
    options = {"datasets": ["tiny"], "formulations": SOME}
    path = study.run_formulations(tmp_path / "whole", **options)[0]
    whole = path.read_bytes().splitlines(keepends=True)
    assert len(whole) == 4 * len(SOME)
    (tmp_path / "cut").mkdir()
    cut = tmp_path / "cut" / "formulations.jsonl"
    cut.write_bytes(b"".join(whole[:7]) + whole[7][:20])  # killed in the middle of a fold
    study.run_formulations(tmp_path / "cut", **options)
    assert cut.read_bytes().splitlines(keepends=True)[:7] == whole[:7]
    assert without_times(cut) == without_times(path)
    monkeypatch.setattr(study, "load_vocabularies", None)  # nothing misses: no data are loaded
    study.run_formulations(tmp_path / "cut", **options)
    assert without_times(cut) == without_times(path)


def test_a_formulation_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"no formulation 'boxes'.*box"):
        study.run_formulations(tmp_path, formulations=["boxes"])
    with pytest.raises(ValueError, match="holds no row"):
        study.run_formulations(tmp_path, tables_only=True)


def test_options_reach_the_study(tmp_path, monkeypatch):
    calls = []

    def runner(name):
        return lambda out, quick, **options: calls.append((name, options)) or []

    monkeypatch.setattr(door, "_runner", runner)
    monkeypatch.setattr(door, "_table2", lambda options: lambda out, quick: [])
    command = ["formulations", "--out", str(tmp_path), "--formulations", "box", "--jobs", "2"]
    command_line.main([*command, "--datasets", "MUTAG"])
    expected = {"formulations": ["box"], "n_jobs": 2, "datasets": ["MUTAG"]}
    assert calls == [("formulations", expected)]
    calls.clear()
    door.reproduce("all", tmp_path, n_jobs=2, seed=0, datasets=["MUTAG"])
    assert dict(calls)["formulations"] == {"n_jobs": 2}  # the seed of Table 2 is not its own


# --- learners ---------------------------------------------------------------------------------


def test_smoothing_by_a_plain_loop(made, rng):
    vocabulary, support = made.vocabulary, made.histograms.support
    weights, k = rng.uniform(0, 3, vocabulary.n_patterns), 5.0
    expected = weights.copy()
    for pattern in range(vocabulary.n_patterns):
        parent = vocabulary.parent(pattern)
        toward = 1.0 if parent is None else expected[parent]
        n = support[pattern]
        expected[pattern] = (n * weights[pattern] + k * toward) / (n + k)
    parents = pattern_parents(vocabulary)
    found = smoothed_weights(weights, support, parents, vocabulary.level_offsets, k)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_the_smoothed_learner_counts_training_graphs(made):
    """Through the search, which hands over shallow patterns of some of the graphs only."""
    train = np.arange(0, len(made.codes), 2)
    spec = FORMULATIONS["smoothed"]
    learn = {}
    for name in (DEFAULT, "smoothed"):
        learner = study.make_learner(FORMULATIONS[name], made, seed=0)
        search = kernel_search(made, [(train, train)], learner, final=True)
        learn[name] = search.learn(Base("wasserstein", 1, 3.0), train).weights_
    histograms = made.histograms.select_depths(0, 1).select_graphs(train)
    expected = smoothed_weights(
        learn[DEFAULT], histograms.support, pattern_parents(made.vocabulary),
        histograms.level_offsets, spec.settings["strength"],
    )  # fmt: skip
    np.testing.assert_array_equal(learn["smoothed"], expected)
    assert not np.allclose(learn["smoothed"], learn[DEFAULT])


@pytest.mark.parametrize(("name", "factor"), [("halving_radii", 0.5), ("doubling_radii", 2.0)])
def test_radii_per_depth_reach_the_learner(made, name, factor):
    train = np.arange(len(made.codes))
    learner = study.make_learner(FORMULATIONS[name], made, seed=0)
    search = kernel_search(made, [(train, train)], learner, final=True)
    learned = search.learn(Base("wasserstein", 2, 0.4), train)
    radii = [0.4, 0.4 * factor, 0.4 * factor**2]
    np.testing.assert_allclose(learned.radii_, radii)
    features = PairFeatures.from_histograms(made.histograms.select_depths(0, 2))
    settings = {**protocol.LEARNER, "random_state": 0}
    plain = StudyWeights(radii, **settings).fit(features, made.codes)
    np.testing.assert_array_equal(learned.weights_, plain.weights_)
    equal = StudyWeights(0.4, **settings).fit(features, made.codes)
    assert not np.allclose(learned.weights_, equal.weights_)


def test_learners_can_be_cloned_with_a_radius_and_a_tolerance(made):
    for name, spec in FORMULATIONS.items():
        learner = clone(study.make_learner(spec, made, seed=3))
        learner.set_params(radius=2.0, tol=0.01, max_iter=7)
        assert learner.get_params()["max_iter"] == 7, name
    assert clone(DepthScaledWeights(depth_factor=3.0)).depth_factor == 3.0


# --- the page ---------------------------------------------------------------------------------


def made_rows(rng, formulations=(DEFAULT, "box"), gain=0.0) -> list[dict]:
    return [
        {
            "dataset": name, "formulation": f, "repetition": r, "fold": fold, "seed": study.SEED,
            "accuracy": rng.uniform(0.6, 0.8) + gain, "uniform_accuracy": rng.uniform(0.6, 0.8),
            "inner_score": rng.uniform(), "uniform_inner_score": rng.uniform(),
        }
        for name in ("MUTAG", "PTC_MR") for f in formulations for r, fold in np.ndindex(2, 10)
    ]  # fmt: skip


def write_page(folder: Path, rows: list[dict]) -> str:
    lines = [json.dumps(row) + "\n" for row in rows]
    (folder / "formulations.jsonl").write_text("".join(lines))
    study.run_formulations(folder, tables_only=True)
    return (folder / "formulations.md").read_text()


def table_line(page: str, heading: str, title: str) -> list[str]:
    """The cells of one line of the table under a heading."""
    part = page.split(f"## {heading}\n")[1]
    line = next(x for x in part.splitlines() if x.startswith(f"| {title}"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_numbers_of_the_page_are_those_of_the_rows(tmp_path, rng):
    rows = made_rows(rng)
    other_seed = [{**row, "seed": 7, "accuracy": 0.0} for row in rows]
    page = write_page(tmp_path, [*rows, *other_seed])
    gains, levels = [], []
    for name in ("MUTAG", "PTC_MR"):
        own = [row for row in rows if (row["dataset"], row["formulation"]) == (name, "box")]
        learned, uniform = (np.array([r[c] for r in own]) for c in ("accuracy", "uniform_accuracy"))
        d = learned - uniform
        t = d.mean() / np.sqrt((1 / len(d) + 1 / 9) * d.var(ddof=1))
        gains.append((100 * d.mean(), stats.t.sf(t, len(d) - 1)))
        levels.append(f"{100 * learned.mean():.2f} ({100 * uniform.mean():.2f})")
    cells = [f"{gain:+.2f}, {p:.3f}" for gain, p in gains]
    mean = f"{np.mean([gain for gain, _ in gains]):+.2f}"
    assert table_line(page, "Learned minus uniform", "box") == ["box instead of ball", *cells, mean]
    assert table_line(page, "Accuracy", "box")[1:] == levels
    assert table_line(page, "Learned minus uniform", "folds")[1:3] == ["20", "20"]
    assert "There are 6 tests in this table" in page  # two formulations and the choice, two sets
    summary = json.loads((tmp_path / "formulations.json").read_text())
    assert summary["MUTAG"]["box"]["n_folds"] == 20


def test_the_page_says_what_wins(tmp_path, rng):
    page = write_page(tmp_path, made_rows(rng))
    assert "No formulation wins on any data set" in page
    winning = [*made_rows(rng, (DEFAULT,)), *made_rows(rng, ("box",), gain=0.5)]
    page = write_page(tmp_path, winning)
    assert "No formulation wins" not in page
    verdict = page.split("## In short")[1].split("##")[0]
    assert "the number of tests allowed for: box instead of ball on MUTAG" in verdict
    assert "default: all pairs, balanced, quantile margins, ball on" not in verdict


def test_the_choice_inside_goes_by_the_inner_score_alone(rng):
    rows = made_rows(rng, (DEFAULT, "box", "metric"))
    chosen = chosen_rows([*rows[:-1]])  # one fold of PTC_MR lacks a formulation: it does not count
    assert len(chosen) == 39
    for choice in chosen:
        place = ("dataset", "repetition", "fold")
        own = [row for row in rows if all(row[x] == choice[x] for x in place)]
        assert choice["accuracy"] == max(own, key=lambda r: r["inner_score"])["accuracy"]
        twin = max(own, key=lambda r: r["uniform_inner_score"])
        assert choice["uniform_accuracy"] == twin["uniform_accuracy"]
    assert summarize(rows)["MUTAG"][CHOSEN]["n_folds"] == 20
