"""Scores of candidate fragments: all at once are those of one by one."""

import numpy as np
import pytest

from explain.test_fragment_search import SMILES, is_nitro_atom, seen_of
from treelens.explain.fragment_scores import Rivals
from treelens.explain.fragment_search import find_candidates
from treelens.explain.fragment_seen import mean_over_graphs, other_carriers


def test_all_scores_at_once_are_those_of_one_by_one():
    rng = np.random.default_rng(1)
    seen = seen_of(SMILES, lambda g, n: is_nitro_atom(g, n) + 0.3 * rng.normal())
    patterns = find_candidates(seen, 3, 1)
    scores = Rivals.of(seen, patterns).scores(seen, seen.phi)
    assert (scores != 0).any()
    assert (scores == 0).any()
    for pattern, score in zip(patterns.tolist(), scores.tolist(), strict=True):
        roots, others = seen.carriers(pattern), other_carriers(seen, pattern)
        own = mean_over_graphs(seen.balls(roots, 1) @ seen.phi, seen.graph_of_node[roots])
        rest = mean_over_graphs(seen.balls(others, 1) @ seen.phi, seen.graph_of_node[others])
        usual = 0.0 if np.isnan(rest.mean) else rest.mean
        beyond, error = own.mean - usual, np.hypot(own.error, np.nan_to_num(rest.error))
        nodes = np.unique(seen.balls(roots, 1).indices)
        size = seen.balls(roots, 1).nnz / len(roots)
        alike = abs(own.mean) / np.hypot(own.mean, own.error * np.sqrt(own.n_graphs))
        expected = (
            min(abs(own.mean), abs(beyond)) / size * alike
            * np.sqrt(len(nodes) / own.n_graphs * min(own.n_graphs, 60))
        )  # fmt: skip
        sure = abs(beyond) > 2 * error and beyond * own.mean > 0
        assert score == pytest.approx(np.sign(own.mean) * expected if sure else 0.0)
