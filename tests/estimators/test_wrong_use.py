"""What users get wrong gets an error that says where and what to do; nothing is ignored."""

from __future__ import annotations

import numpy as np
import pytest

import treelens as tl

pytest.importorskip("rdkit", reason="needs RDKit")
SMILES = ["C" * n + end for n in range(1, 13) for end in ("O", "N")]
VALUES = np.arange(24.0)


@pytest.fixture(scope="module")
def described():
    return tl.GraphRegressor(depth=1, weights="uniform", descriptors=True).fit(SMILES, VALUES)


@pytest.mark.parametrize("covariates", [{"nonsense": ["a", "b"]}, np.ones((2, 1)), ["nonsense"]])
def test_covariates_of_a_model_without_any_are_refused(described, covariates):
    with pytest.raises(ValueError, match="fitted without any"):
        described.predict(SMILES[:2], covariates=covariates)


def test_a_missing_covariate_is_named_without_the_descriptors():
    model = tl.GraphRegressor(depth=1, weights="uniform", descriptors=True)
    model.fit(SMILES, VALUES, covariates={"heat": VALUES % 5})
    with pytest.raises(ValueError, match="heat") as error:
        model.predict(SMILES[:2], covariates={"assay": ["a", "b"]})
    assert "rdkit:" not in str(error.value)


def test_a_value_of_a_covariate_that_training_never_saw_is_named():
    model = tl.GraphRegressor(depth=1, weights="uniform", descriptors=False)
    model.fit(SMILES, VALUES, covariates={"assay": list("ab" * 12)})
    with pytest.warns(UserWarning, match="'Z'"):
        model.predict(SMILES[:2], covariates={"assay": ["a", "Z"]})


def test_descriptors_that_are_asked_for_are_used_or_refused():
    few = tl.GraphRegressor(depth=1, weights="uniform", descriptors=True).fit(
        SMILES[:8], VALUES[:8]
    )
    assert few.uses_descriptors_
    graphs = [([(0, 1)], {0: "a", 1: "b"}), ([(0, 1)], {0: "a", 1: "a"})] * 3
    with pytest.raises(ValueError, match="molecules"):
        tl.GraphRegressor(descriptors=True).fit(graphs, np.arange(6.0))
    with pytest.raises(ValueError, match="descriptors"):
        tl.GraphRegressor(descriptors=True, device="cuda").fit(SMILES, VALUES)


def test_targets_of_the_wrong_kind():
    with pytest.raises(ValueError, match=r"'abc'.*position 2"):
        tl.GraphRegressor().fit(SMILES[:4], ["1", "2", "abc", "4"])
    with pytest.raises(ValueError, match="GraphRegressor"):
        tl.GraphClassifier().fit(SMILES[:4], [0.5, 1.25, 3.5, 4.75])


def test_a_tree_of_another_kind():
    with pytest.raises(ValueError, match="trees must be"):
        tl.GraphRegressor(trees=([1],)).fit(SMILES, VALUES)
