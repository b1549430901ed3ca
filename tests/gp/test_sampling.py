"""Draws of training graphs, and memory that is checked before it is taken."""

import numpy as np
import psutil
import pytest

from treelens.gp import sampling
from treelens.gp.sampling import (
    available_bytes,
    check_memory,
    draw_by_group,
    draw_rare,
    landmarks_for,
    sample_for,
)


def test_groups_keep_their_shares():
    assert draw_by_group(np.zeros(5, int), 5, 0).tolist() == [0, 1, 2, 3, 4]
    groups = np.repeat([0, 1, 2], [600, 300, 100])
    drawn = draw_by_group(groups, 100, seed=3)
    assert len(np.unique(drawn)) == 100
    assert np.abs(np.bincount(groups[drawn]) - [60, 30, 10]).max() <= 1
    assert (draw_by_group(groups, 100, seed=3) == drawn).all()
    assert (draw_by_group(groups, 100, seed=4) != drawn).any()


def test_landmarks_only_beyond_the_exact_size():
    groups = np.zeros(50, int)
    assert landmarks_for(groups, 50, 10, 0) is None
    plan = landmarks_for(groups, 49, 10, 0)
    assert (plan.n_landmarks, len(plan.first)) == (10, 2)
    assert len(landmarks_for(groups, 49, 10, 0, rare=True).first) == 5
    assert landmarks_for(groups, 49, 80, 0).n_landmarks == 50


def test_a_draw_of_the_rare_has_it_whole_and_three_times_as_many_others():
    rng = np.random.default_rng(0)
    codes = rng.permutation(np.repeat([0, 1, 2], [3000, 150, 120]))
    drawn = draw_rare(codes, 3000, seed=0)
    assert np.bincount(codes[drawn]).tolist() == [360, 150, 120]
    assert (np.diff(drawn) > 0).all()
    assert (drawn == draw_rare(codes, 3000, seed=0)).all()
    assert (drawn != draw_rare(codes, 3000, seed=1)).any()
    assert np.bincount(codes[draw_rare(codes, 90, seed=0)]).tolist() == [30, 30, 30]
    few = np.repeat([0, 1], [500, 5])  # too few to learn scales from: the others fill up
    assert np.bincount(few[draw_rare(few, 3000, seed=0)]).tolist() == [195, 5]


def test_scales_of_the_rare_are_fitted_in_proportion():
    codes = np.repeat([0, 1], [950, 50])
    plain, rare = (sample_for(codes, is_rare, 400, seed=0) for is_rare in (False, True))
    assert plain.scales is None
    assert np.bincount(codes[plain.weights]).tolist() == [380, 20]
    assert np.bincount(codes[rare.weights]).tolist() == [150, 50]
    assert np.bincount(codes[rare.scales]).tolist() == [380, 20]
    assert rare.largest == 400


def test_a_fit_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(sampling, "available_bytes", lambda: 2**30)
    check_memory(1_000, 1_000, None)
    check_memory(20_000, 3_000, 1_000)
    with pytest.raises(MemoryError, match=r"about 8.9 GiB, and 1.0 GiB .* exact_size"):
        check_memory(20_000, 3_000, None)


@pytest.mark.parametrize(
    ("limit", "used"),
    [("memory.max", "memory.current"),
     ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes")],
)  # fmt: skip
def test_the_limit_of_a_container_counts(tmp_path, limit, used):
    (tmp_path / "memory").mkdir()
    (tmp_path / used).write_text("1000\n")
    (tmp_path / limit).write_text("max\n")
    free = psutil.virtual_memory().available
    assert available_bytes(tmp_path) == pytest.approx(free, rel=0.2)
    (tmp_path / limit).write_text("5000\n")
    assert available_bytes(tmp_path) == 4000
