"""Normalisations, by formula and at their edges."""

import numpy as np
import pytest

from treelens.kernels.gram import normalize_kernel


@pytest.fixture
def gram(rng: np.random.Generator) -> np.ndarray:
    counts = rng.integers(0, 5, (9, 6)).astype(float)
    counts[4] = 0.0  # shares nothing with anybody
    return np.minimum(counts[:, None], counts[None]).sum(axis=-1)


@pytest.mark.parametrize("how", ["cosine", "tanimoto"])
def test_formula(how: str, gram: np.ndarray) -> None:
    own = np.diag(gram)
    norm = np.sqrt(np.outer(own, own)) if how == "cosine" else own[:, None] + own[None] - gram
    expected = np.divide(gram, norm, out=np.zeros_like(gram), where=norm > 0)
    found = normalize_kernel(gram.copy(), own, own, how)
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert (found == found.T).all()
    assert np.diag(found).tolist() == [float(x > 0) for x in own]


@pytest.mark.parametrize("how", ["cosine", "tanimoto"])
def test_a_block_is_the_same_as_its_part_of_the_whole(how: str, gram: np.ndarray) -> None:
    own = np.diag(gram).copy()
    whole = normalize_kernel(gram.copy(), own, own, how)
    block = normalize_kernel(gram[2:5].copy(), own[2:5], own, how)
    assert (block == whole[2:5]).all()


def test_none_leaves_the_kernel_alone(gram: np.ndarray) -> None:
    own = np.diag(gram)
    assert normalize_kernel(gram, own, own, None) is gram


def test_an_unknown_normalisation(gram: np.ndarray) -> None:
    with pytest.raises(ValueError, match="'cosine' or 'tanimoto', got 'length'"):
        normalize_kernel(gram, np.diag(gram), np.diag(gram), "length")
