"""The forms of a weighted kernel against their formulas, and what makes them usable: PSD."""

from __future__ import annotations

import numpy as np
import pytest

from strategies import random_collection
from treelens.kernels.forms import FORMS, form_kernel
from treelens.kernels.gram import pair_sums
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.pairs import PairFeatures
from treelens.patterns.vocabulary import PatternVocabulary

GAMMA = 0.7


def weighted_sums(form: str) -> tuple[np.ndarray, np.ndarray]:
    """``<W, Z>`` of all pairs of some random graphs, and the histograms behind it."""
    rng = np.random.default_rng(3)
    vocabulary, colors = PatternVocabulary.fit(random_collection(rng, 25), 2)
    histograms = PatternHistograms.from_colors(vocabulary, colors)
    pairs = PairFeatures.from_histograms(histograms, FORMS[form].kind)
    weights = 2 * rng.random(pairs.n_patterns)
    return pair_sums(pairs, None, weights), pairs.self_sums(weights)


FORMULAS = {
    "exponential": lambda s, d, b: np.exp(-GAMMA * (b - s)),
    "metric": lambda s, d, b: np.exp(-GAMMA * (0.5 * (d[:, None] + d[None]) - s)),
    "tanimoto": lambda s, d, b: s / (d[:, None] + d[None] - s),
    "tanimoto-exponential": lambda s, d, b: np.exp(-GAMMA * (1 - s / (d[:, None] + d[None] - s))),
    "assignment": lambda s, d, b: s,
    "subtree": lambda s, d, b: s,
    "linear": lambda s, d, b: s,
    "subtree-cosine": lambda s, d, b: s / np.sqrt(np.outer(d, d)),
}


@pytest.mark.parametrize("form", FORMS)
def test_formula_and_positive_semidefinite(form: str) -> None:
    sums, own = weighted_sums(form)
    before = sums.copy()
    kernel = form_kernel(form, sums, own, own, own.max(), GAMMA)
    assert (sums == before).all()  # the sums serve the next candidate too
    np.testing.assert_allclose(kernel, FORMULAS[form](sums, own, own.max()), rtol=1e-12)
    assert (kernel == kernel.T).all()
    assert np.linalg.eigvalsh(kernel).min() > -1e-10


def test_forms_without_scale_need_none() -> None:
    for form, about in FORMS.items():
        if not about.has_gamma:
            sums, own = weighted_sums(form)
            assert np.isfinite(form_kernel(form, sums, own, own, 1.0)).all()


@pytest.mark.parametrize("form", FORMS)
def test_the_scale_matters_exactly_where_a_form_has_one(form: str) -> None:
    sums, own = weighted_sums(form)
    one, other = (form_kernel(form, sums, own, own, own.max(), g) for g in (GAMMA, 2 * GAMMA))
    assert np.array_equal(one, other) == (not FORMS[form].has_gamma)


def test_an_unknown_form() -> None:
    with pytest.raises(ValueError, match=r"form must be one of .* got 'cubic'"):
        form_kernel("cubic", np.eye(2), np.ones(2), np.ones(2), 1.0)
