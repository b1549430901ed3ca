"""Learning curves and active learning: parts that grow, and pages that say what the rows say."""

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from reproduction.curve_pages import curves_of
from reproduction.curves import growing_parts

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def test_parts_grow_within_a_split_and_never_meet_the_test_part():
    last = {}
    for split, size, train, test in growing_parts(500, 3, (50, 100, 400, 401)):
        assert size <= 400  # four fifths of 500
        assert len(set(train.tolist())) == len(train) == size
        assert not set(train.tolist()) & set(test.tolist())
        assert len(test) == 100
        if split in last:
            assert set(last[split].tolist()) < set(train.tolist())
        last[split] = train
    assert set(last) == {0, 1, 2}
    assert not np.array_equal(last[0], last[1])


def test_a_mean_is_over_splits_that_every_method_has():
    rows = [
        {"set": "a", "method": method, "size": 50, "split": split, "rmse": rmse}
        for method, split, rmse in [("x", 0, 1.0), ("x", 1, 3.0), ("x", 2, 50.0),
                                    ("y", 0, 2.0), ("y", 1, 2.0)]
    ]  # fmt: skip
    curves = curves_of(rows)
    assert curves["a"]["x"][50] == (2.0, pytest.approx(1.0), 2)
    assert curves["a"]["y"][50] == (2.0, 0.0, 2)


@pytest.mark.parametrize("name", ["curves", "active"])
def test_committed_numbers_are_those_of_the_rows(name):
    lines = (RESULTS / f"{name}.jsonl").read_text().splitlines()
    errors = defaultdict(dict)
    for row in map(json.loads, lines):
        errors[row["set"], row["size"], row["method"]][row["split"]] = row["rmse"]
    summary = json.loads((RESULTS / f"{name}.json").read_text())
    for set_name, methods in summary.items():
        for method, sizes in methods.items():
            for size, found in sizes.items():
                splits = [errors[set_name, int(size), other] for other in methods]
                common = set.intersection(*map(set, splits))
                assert found["n_splits"] == len(common) > 0
                own = errors[set_name, int(size), method]
                assert found["rmse"] == pytest.approx(np.mean([own[s] for s in common]))
