"""The search for weights by marginal likelihood: it improves, converges, and respects priors."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from gp.test_evidence import _problem, _with_patterns
from treelens.gp.evidence import NOISE, Evidence
from treelens.gp.search import STAGES, maximise_evidence
from treelens.patterns.histograms import Features


def _in_stages(problem):
    """All stages, each from where the last one ended."""
    fits, start = [], None
    for stage in STAGES:
        fits.append(maximise_evidence(problem, stage, start))
        start = fits[-1].parameters
    return fits


def test_every_stage_improves_on_the_last_and_converges():
    problem, _ = _problem(n=40, strength=2.0)
    uniform, depths, branches = _in_stages(problem)
    for fit, stage in zip((uniform, depths, branches), STAGES, strict=True):
        assert fit.converged
        assert {step.stage for step in fit.history} == {stage}
        objectives = [step.objective for step in fit.history]
        assert all(later <= earlier + 1e-9 for earlier, later in pairwise(objectives))
    assert branches.objective <= depths.objective <= uniform.objective
    assert not uniform.parameters.terms[0].deviations.any()
    assert not uniform.parameters.terms[0].level_logits.any()
    assert not depths.parameters.terms[0].deviations.any()
    assert branches.parameters.terms[0].deviations.any()
    value, gradient = Evidence(problem)(branches.parameters, "branches")
    assert value == pytest.approx(branches.objective)
    assert branches.history[-1].gradient_norm == pytest.approx(np.abs(gradient).max(), rel=1e-6)
    cut_off = maximise_evidence(problem, "branches", max_steps=2)
    assert not cut_off.converged
    assert len(cut_off.history) == 2


def test_a_strong_prior_leaves_branches_unchanged():
    problem, _ = _problem(n=40, strength=1e12)
    (term,) = problem.terms
    weights = term.weights(_in_stages(problem)[-1].parameters.terms[0])
    for level in range(3):
        here = weights[term.hierarchy.level_of == level]
        np.testing.assert_allclose(here, here[0], rtol=1e-4)


def test_a_start_without_noise_does_not_end_where_noise_explains_everything():
    """Half of the graphs are copies with other targets, which a start from others cannot know."""
    problem, _ = _problem(n=30)
    features, targets = problem.terms[0].features, problem.targets
    both = np.r_[np.arange(30), np.arange(30)]
    signal = 3.0 * features.diagonal()[:, None] / features.diagonal().std()
    noisy = np.concatenate([signal + 0.3 * targets, signal - 0.3 * targets])
    doubled = _with_patterns(problem, features=Features.of(features).select(both).pairs)
    problem = replace(doubled, targets=noisy - noisy.mean(), noise_factors=np.ones(60))
    start = problem.start._replace(log_noise=NOISE.bounds[0])
    found = maximise_evidence(problem, "uniform", start, check_noise=True)
    assert found.parameters.noise < 0.5 * noisy.var()
    better = start.with_scales_of(found.parameters)
    values = [Evidence(problem)(p, "uniform")[0] for p in (start, better)]
    assert values[1] < values[0]
    assert Evidence(problem).value(better) == pytest.approx(values[1])


def test_a_check_of_a_likely_noise_changes_nothing():
    problem, _ = _problem(n=40)
    plain = maximise_evidence(problem, "depths", max_steps=8)
    start = plain.parameters
    again, checked = (
        maximise_evidence(problem, "depths", start, max_steps=5, check_noise=check)
        for check in (False, True)
    )
    assert checked.history == again.history
    assert checked.parameters.log_noise == again.parameters.log_noise
    for one, other in zip(checked.parameters.terms[0], again.parameters.terms[0], strict=True):
        np.testing.assert_array_equal(one, other)
