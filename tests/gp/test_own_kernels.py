"""Kernels of a user's own on tables of numbers: searched, predicted with, explained, stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist

import treelens as tl
from strategies import random_collection
from treelens.gp.evidence import Evidence, EvidenceProblem
from treelens.gp.own_kernels import OwnKernelTerm
from treelens.gp.terms import NumbersTerm
from treelens.kernels.rbf import Rbf

RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=(40, 3))


@dataclass(frozen=True)
class PlainRbf(tl.Kernel):
    """The usual kernel, without what makes it fast."""

    length: float

    PARAMETERS: ClassVar = Rbf.PARAMETERS

    @classmethod
    def usual(cls, data):
        return cls(Rbf.usual(data).length)

    def matrix(self, left, right, n_jobs=1):
        return np.exp(-0.5 * cdist(left, right, "sqeuclidean") / self.length**2)


@dataclass(frozen=True)
class Rational(tl.Kernel):
    """Of two parameters."""

    length: float
    order: float

    PARAMETERS: ClassVar = (tl.Parameter("length", 1e-2, 1e3), tl.Parameter("order", 1e-1, 1e2))

    @classmethod
    def usual(cls, data):
        return cls(float(np.sqrt(data.shape[1])), 1.0)

    def matrix(self, left, right, n_jobs=1):
        squares = cdist(left, right, "sqeuclidean") / self.length**2
        return (1.0 + 0.5 * squares / self.order) ** -self.order


def test_the_search_sees_what_it_sees_of_the_usual_kernel():
    y = RNG.normal(size=(40, 1))
    found = []
    for term in (NumbersTerm(NUMBERS), OwnKernelTerm(NUMBERS, PlainRbf)):
        problem = EvidenceProblem((term,), y, np.ones(40))
        own = problem.start.terms[0]._replace(scales=np.array([0.3, -0.4]))
        parameters = problem.start._replace(terms=(own,))
        value, slopes = Evidence(problem)(parameters, "uniform")
        found.append(np.append(slopes, value))
        np.testing.assert_allclose(
            problem.kernel(parameters).terms[0].matrix(NUMBERS, NUMBERS)[0, :3],
            problem.kernel_matrix(parameters)[0, :3],
            rtol=1e-6,
        )
    np.testing.assert_allclose(*found, rtol=1e-5)


def test_slopes_in_the_numbers_are_differences():
    """What explanations need follows from the matrix alone."""
    rows, coefficients = NUMBERS[:5], RNG.normal(size=(5, 35))
    fast, plain = Rbf(1.3), PlainRbf(1.3)
    np.testing.assert_allclose(
        plain.gradient(rows, NUMBERS[5:], coefficients),
        fast.gradient(rows, NUMBERS[5:], coefficients),
        rtol=1e-5,
        atol=1e-8,
    )
    start = np.zeros(3)
    slopes = plain.path(start, rows, NUMBERS[5:], coefficients)
    ends = [(plain.matrix(x, NUMBERS[5:]) * coefficients).sum(axis=1) for x in (rows, 0 * rows)]
    np.testing.assert_allclose(((rows - start) * slopes).sum(axis=1), ends[0] - ends[1], rtol=1e-5)


def test_models_predict_explain_and_are_stored(tmp_path):
    graphs = random_collection(RNG, 40, max_nodes=6).with_names([f"g{k}" for k in range(40)])
    table = pd.DataFrame(NUMBERS, columns=list("abc")).assign(id=graphs.names)
    y = np.sin(2.0 * NUMBERS[:, 0]) + 0.1 * RNG.normal(size=40)
    views = [tl.WLPatterns(), tl.Table(table, kernel=Rational)]
    model = tl.GraphRegressor(1, "uniform", views=views, n_jobs=1).fit(graphs, y)
    assert set(model.model_.kernel.terms[1].kernel.values) == {"length", "order"}
    new = graphs[:6]
    mean, std = model.predict(new, return_std=True, tables=table)
    assert (std > 0).all()
    explained = model.explain(new[0], tables=table)
    whole = explained.base + explained.node_contributions.sum()
    assert whole + explained.rest["contribution"].sum() == pytest.approx(explained.decision)
    assert explained.decision == pytest.approx(mean[0])
    model.save(tmp_path / "m.treelens")
    loaded = tl.load(tmp_path / "m.treelens", classes=[Rational])
    np.testing.assert_allclose(loaded.predict(new, tables=table), mean)
    with pytest.raises(ValueError, match="unknown class, 'Rational'"):
        tl.load(tmp_path / "m.treelens")
    with pytest.raises(TypeError, match=r"subclass of tl\.Kernel"):
        tl.GraphRegressor(views=[tl.WLPatterns(), tl.Table(table, kernel="rbf")]).fit(graphs, y)
