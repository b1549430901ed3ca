"""Substituted benzenes with a value that follows from their substituents, and models of them."""

from __future__ import annotations

import numpy as np
import pytest

import treelens as tl

pytest.importorskip("rdkit")

ENDS = ("O", "N", "C(=O)O", "C(N)=O", "CO", "OC", "S(N)(=O)=O", "C#N")
OTHERS = ("", "C", "Cl", "F", "Br", "CC", "OCC", "CCC")
EFFECTS = dict(zip(OTHERS, (0.0, -0.4, -0.9, -0.2, -1.1, -0.8, -0.3, -1.3), strict=True))


def benzene(end: str, other: str) -> str:
    return f"c1cc({other})ccc1{end}" if other else f"c1ccccc1{end}"


def value_of(end: str, other: str) -> float:
    return 0.5 * ENDS.index(end) + EFFECTS[other]


@pytest.fixture(scope="session")
def molecules() -> tuple[list[str], np.ndarray]:
    pairs = [(end, other) for end in ENDS for other in OTHERS]
    rng = np.random.default_rng(0)
    noise = rng.normal(scale=0.1, size=len(pairs))
    return [benzene(*p) for p in pairs], np.array([value_of(*p) for p in pairs]) + noise


@pytest.fixture(scope="session")
def halves(molecules):
    """Every other molecule is measured, the others are the pool."""
    order = np.random.default_rng(1).permutation(len(molecules[0]))
    return order[:40], order[40:]


@pytest.fixture(scope="session")
def model(molecules, halves):
    smiles, values = molecules
    known = halves[0]
    return tl.GraphRegressor(depth=2, descriptors=False, n_jobs=1).fit(
        [smiles[k] for k in known], values[known]
    )


@pytest.fixture(scope="session")
def classifier(molecules, halves):
    smiles, values = molecules
    known = halves[0]
    classes = np.where(values[known] > np.median(values), "high", "low")
    return tl.GraphClassifier(depth=2, descriptors=False, n_jobs=1).fit(
        [smiles[k] for k in known], classes
    )
