"""The search for weights by evidence: it climbs, rests, and says when it was stopped."""

import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from gp.test_evidence import _problem, _with_covariates
from treelens.gp.evidence import (
    EvidenceProblem,
    evidence_objective,
)
from treelens.gp.evidence_search import (
    learn_by_evidence,
    refit_scales,
)


def test_search_climbs_and_comes_to_rest():
    problem, _ = _problem(n=40)
    fit = learn_by_evidence(problem, "branches")
    assert fit.converged
    assert [step.stage for step in fit.history] == sorted(
        (step.stage for step in fit.history), key=["uniform", "depths", "branches"].index
    )
    objectives = [step.objective for step in fit.history]
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(objectives))
    value, gradient = evidence_objective(problem, fit.parameters)
    assert value == pytest.approx(objectives[-1])
    assert fit.history[-1].gradient_norm == pytest.approx(np.abs(gradient).max(), rel=1e-6)
    assert not fit.uniform.deviations.any()
    assert not fit.uniform.level_logits.any()
    assert fit.parameters.deviations.any()


def test_too_few_steps_are_said():
    problem, _ = _problem(n=40)
    with pytest.warns(ConvergenceWarning, match="max_steps"):
        fit = learn_by_evidence(problem, "branches", max_steps=2)
    assert not fit.converged
    assert len(fit.history) == 6


def test_a_strong_prior_holds_the_branches_still():
    problem, _ = _problem(n=40, strength=1e12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = learn_by_evidence(problem, "branches")
    weights = problem.weights(fit.parameters)
    for level in range(3):
        here = weights[problem.hierarchy.level_of == level]
        np.testing.assert_allclose(here, here[0], rtol=1e-4)


def test_scales_fitted_again_leave_the_weights_and_surprise_less():
    problem, _ = _problem(n=25)
    other, _ = _problem(seed=3, n=30)
    other = EvidenceProblem(  # other graphs, over the same patterns
        other.features, problem.hierarchy, other.targets, other.noise_factors, 20.0, 1
    )
    fit = learn_by_evidence(problem)
    again = refit_scales(fit, other)
    for before, after in ((fit.parameters, again.parameters), (fit.uniform, again.uniform)):
        np.testing.assert_array_equal(before.deviations, after.deviations)
        np.testing.assert_array_equal(before.level_logits, after.level_logits)
        values = [evidence_objective(other, p, "uniform")[0] for p in (before, after)]
        assert values[1] < values[0]


def test_covariates_that_say_the_targets_are_found():
    problem, *_ = _with_covariates(n=60)
    targets = np.sin(problem.covariates[:, :1])
    informed = replace(problem, targets=targets - targets.mean())
    deaf = replace(informed, covariates=np.random.default_rng(1).normal(size=(60, 3)))
    loud, quiet = (learn_by_evidence(p).parameters.covariate_scales() for p in (informed, deaf))
    assert loud.amplitude > 5 * quiet.amplitude
