"""Candidates and their scores: which is best, and which finished."""

from __future__ import annotations

from treelens.svm.search_result import Candidate, SearchResult

A, B, C = (Candidate(0.0, depth, "tanimoto", None, 1.0) for depth in (1, 2, 3))


def test_of_equals_the_lower_loss_and_then_the_simplest():
    scores = {C: [0.9], B: [0.9], A: [0.9]}
    assert SearchResult(1, 0.2, scores, {A: [0.5], B: [0.4], C: [0.4]}).best() == B
    assert SearchResult(1, 0.2, scores, {A: [0.4], B: [0.4], C: [0.4]}).best() == A
    assert SearchResult(1, 0.2, scores, {A: [0.4], B: [0.4], C: [0.4]}).best(
        lambda c: c.depth > 1) == B  # fmt: skip
    assert SearchResult(2, 0.2, scores, {}).best() is None


def test_only_candidates_that_finished_can_win():
    result = SearchResult(2, 0.2, {A: [0.9], B: [0.5, 0.5]}, {A: [0.1], B: [0.9, 0.9]})
    assert result.finished() == [B]
    assert result.winner() == B


def test_rounding_decides_nothing():
    """Means that differ in the last bits are equal: then the simpler one is best."""
    third = {A: [0.1, 0.2, 0.3], B: [0.3, 0.2, 0.1]}
    assert sum(third[A]) != sum(third[B])
    assert SearchResult(3, 0.2, third, {A: [1.0], B: [1.0]}).best() == A
    assert SearchResult(3, 0.2, dict(reversed(third.items())), {A: [1.0], B: [1.0]}).best() == A


def test_kernels_of_one_pair_feature_share_a_base():
    wwl, laplacian = (Candidate(1.0, 2, kernel, 1.0, 1.0) for kernel in ("wwl", "laplacian"))
    assert wwl.base == laplacian.base
    assert wwl.base != A.base
    assert wwl.base != wwl._replace(depth=1).base
    assert wwl.base == wwl._replace(C=7.0, gamma=3.0).base
