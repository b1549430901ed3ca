"""Rows that repeat a molecule."""

from __future__ import annotations

import numpy as np

from cli.conftest import ALCOHOLS, MOLECULES, run, write_csv
from cli.test_messy import VALUES
from treelens.cli.data import read_training_data
from treelens.cli.reading import Reading


def test_repeats_do_not_flatter(tmp_path):
    """Sixty molecules twice, with classes by chance: nothing can be learned."""
    rng = np.random.default_rng(0)
    smiles = [f"{'C' * (1 + i % 30)}{'NO'[i // 30]}" for i in range(60)]
    labels = rng.choice(["a", "b"], 60)
    rows = [(s, c) for s, c in zip(smiles, labels, strict=True)]
    backwards = [(s[::-1], c) for s, c in rows]
    data = write_csv(tmp_path / "x.csv", rows + backwards)
    args = ["evaluate", data, "--models", "evidence_uniform", "--folds", 3, "--depth", 4, "--json"]
    for duplicates in ("merge", "keep"):  # where copies stay, they stay in one fold
        done = run(*args, "--duplicates", duplicates)
        assert done.data["models"][0]["accuracy"] < 0.7


def test_groups_name_the_first_of_each_molecule(tmp_path):
    rows = [*MOLECULES, ("OCC", "alcohol"), ("NCC", "amine")]
    data = write_csv(tmp_path / "x.csv", rows)
    found = read_training_data(str(data), duplicates="keep")
    assert found.groups.tolist() == [*range(40), 0, 20]
    assert read_training_data(str(data)).groups.tolist() == list(range(40))


def test_the_class_of_most_rows_wins_and_a_tie_is_left_out(tmp_path):
    rows = [*MOLECULES, ("OCC", "amine"), ("OCC", "amine"), ("NCC", "alcohol")]
    data = write_csv(tmp_path / "x.csv", rows)
    notes: list[str] = []
    found = read_training_data(str(data), note=notes.append)
    assert found.y.tolist()[0] == "amine"
    assert len(found.graphs) == 39
    assert 20 not in found.rows
    assert "1 with a tie was left out" in notes[-1]


def test_stereoisomers_are_told_apart_where_asked_for(tmp_path):
    pair = [("C[C@H](F)O", 1.25), ("C[C@@H](F)O", 3.5)]
    data = write_csv(tmp_path / "x.csv", [*zip(ALCOHOLS, VALUES, strict=False), *pair],
                     "smiles,value")  # fmt: skip
    notes: list[str] = []
    assert len(read_training_data(str(data), task="auto", note=notes.append).graphs) == 21
    assert "(1 of them as another stereoisomer or isotope" in notes[-1]
    both = read_training_data(str(data), task="auto", reading=Reading("element+chirality"))
    assert len(both.graphs) == 22
