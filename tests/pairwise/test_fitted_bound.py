"""The generalisation bound of a fitted model: its parts and its assumptions."""

import json
import math

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import treelens as tl
from naive import learning as naive


@pytest.fixture(scope="module")
def study():
    return tl.make_synthetic(5, random_state=0)


def fitted(study, learner=None, weight_radius=1.0, kernel="wwl"):
    model = tl.GraphSVC(
        kernel, 2, weight_radius, gamma=1.0, C=10.0, learner=learner, random_state=0
    )
    return model.fit(*study)


def test_uniform_weights_leave_the_part_that_does_not_depend_on_learning(study):
    bound = fitted(study, weight_radius=0.0).generalization_bound(delta=0.1)
    n, largest = bound["n_graphs"], bound["constants"]["loss_bound"]
    assert n == len(study[1])
    assert bound["stability"]["k_n"] == bound["stability"]["weights"] == 0
    expected = largest * math.sqrt(2 / n * math.log(2 / 0.1))
    assert bound["stability"]["gap"] == pytest.approx(expected)
    assert bound["any_solver"]["radius"] == 0


@pytest.mark.parametrize("kernel", ["wwl", "tanimoto", "wl-subtree"])
def test_quasi_newton_is_bounded_for_any_solver_alone(study, kernel):
    model = fitted(study, kernel=kernel)
    bound = model.generalization_bound()
    assert bound["stability"]["gap"] is None
    assert "takes no single-pair steps" in bound["stability"]["reason"]
    assert bound["gap"] == bound["any_solver"]["gap"]
    assert bound["loss"] == pytest.approx(model.learner_.history_[-1], rel=1e-9)
    assert bound["any_solver"]["radius"] == pytest.approx(math.sqrt(3))
    factor = bound["constants"]["pair_factor"]
    weights = naive.ordered_pair_weights(np.asarray(study[1]), balance=True)
    assert factor == pytest.approx(weights.max() * weights.size)
    assert bound["constants"]["lipschitz"] == pytest.approx(
        factor * model.learner_.result_.pair_norm
    )
    assert any("training distances" in caveat for caveat in bound["caveats"])


def test_the_papers_numbers_by_its_formula(study):
    solver = tl.StochasticGradient(500, 1e-4, halvings=0, average=False, n_checks=0)
    learner = tl.PairwiseWeights(solver=solver, margins=(1.0, 0.5), sigma=0.1, balance=False)
    bound = fitted(study, learner).generalization_bound()
    constants, stability = bound["constants"], bound["stability"]
    n, beta = bound["n_graphs"], constants["pair_norm"]
    k_n = 4 * 1e-4 * 500 * beta**2 / n
    assert constants["lipschitz"] == beta  # no balancing there
    assert constants["smoothness"] == pytest.approx(beta**2 / 0.1)
    assert stability["weights"] == pytest.approx(4 * 1e-4 * 500 * beta / n)
    assert stability["k_n"] == pytest.approx(k_n)
    spread = math.sqrt(2 / n * math.log(2 / 0.05))
    assert stability["gap"] == pytest.approx(2 * k_n + (n * k_n + constants["loss_bound"]) * spread)
    assert bound["gap"] == min(stability["gap"], bound["any_solver"]["gap"])
    assert len(bound["caveats"]) == 1  # margins and factors are fixed beforehand


def test_steps_that_are_too_large_give_a_reason(study):
    learner = tl.PairwiseWeights(
        solver=tl.StochasticGradient(n_steps=1000, step_size=1e3, n_checks=0)
    )
    bound = fitted(study, learner).generalization_bound()
    assert bound["stability"]["gap"] is None
    assert "the step size is 1000" in bound["stability"]["reason"]
    assert bound["gap"] == bound["any_solver"]["gap"]


def test_many_steps_are_capped_by_the_size_of_the_ball(study):
    solver = tl.StochasticGradient(n_steps=100_000, step_size=0.05, halvings=0, n_checks=0)
    learner = tl.PairwiseWeights(solver=solver)
    bound = fitted(study, learner).generalization_bound()
    assert bound["stability"]["step_sum"] == pytest.approx(5000)
    assert bound["stability"]["weights"] == pytest.approx(2 * math.sqrt(3))


def test_caveat_about_the_choice_only_where_there_was_one(study):
    one = fitted(study).generalization_bound()
    assert not any("candidates" in caveat for caveat in one["caveats"])
    several = tl.GraphSVC("wwl", [1, 2], 0.5, gamma=1.0, C=10.0, random_state=0)
    bound = several.fit(*study).generalization_bound()
    assert any("2 candidates" in caveat for caveat in bound["caveats"])


def test_bound_is_plain_data_and_survives_saving(study, tmp_path):
    model = fitted(study)
    model.save(tmp_path / "model.zip")
    bound = model.generalization_bound()
    assert json.loads(json.dumps(bound)) == bound
    assert tl.load(tmp_path / "model.zip").generalization_bound() == bound


def test_bad_use(study):
    with pytest.raises(NotFittedError):
        tl.GraphSVC().generalization_bound()
    model = fitted(study, weight_radius=0.0)
    for delta in (0.0, 1.0, -0.1, math.nan):
        with pytest.raises(ValueError, match="delta must be a probability"):
            model.generalization_bound(delta)
    gaps = [model.generalization_bound(delta)["gap"] for delta in (1e-9, 0.01, 0.2)]
    assert np.isfinite(gaps[0])
    assert (np.diff(gaps) < 0).all()  # a bound that may fail more often is tighter
