"""Batches from joint normal distributions, and conditions on columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from treelens.decisions.conditions import rows_where
from treelens.decisions.suggest import (
    Aim,
    choose_batch,
    expected_improvement,
    joint_samples,
    shortlisted_batch,
)
from treelens.errors import GraphDataError

SEQUENTIAL = ("expected_improvement", "ucb", "uncertainty")


def joint(rng, n=40, noise=0.05):
    """Means and a covariance of full rank whose neighbours are similar."""
    places = rng.uniform(size=(n, 2))
    squares = ((places[:, None] - places) ** 2).sum(axis=-1)
    return rng.normal(size=n), 1.5 * np.exp(-squares / 0.1) + 1e-6 * np.eye(n), noise


@pytest.mark.parametrize(("mean", "std", "best"), [(0.3, 1.2, 0.5), (-2.0, 0.4, 1.0), (3, 2, 0)])
def test_expected_improvement_is_the_integral(mean, std, best):
    integral, _ = quad(lambda x: (x - best) * norm.pdf(x, mean, std), best, mean + 12 * std)
    found = expected_improvement(np.array([mean]), np.array([std]), best)[0]
    np.testing.assert_allclose(found, integral, rtol=1e-6, atol=1e-12)


def naive_batch(mean, covariance, noise, n, aim, with_scores=False):
    """The same from the textbook: condition on the chosen means with a solve of their own."""
    chosen, scores, best = [], [], list(aim.best)
    for _ in range(n):
        among = covariance[np.ix_(chosen, chosen)] + noise * np.eye(len(chosen))
        cross = covariance[:, chosen]
        left = np.diagonal(covariance) - np.einsum(
            "ij,ji->i", cross, np.linalg.solve(among, cross.T)
        )
        std = np.sqrt(np.maximum(left, 1e-15))
        if aim.strategy == "ucb":
            wanted = mean + aim.exploration * std
        elif aim.strategy == "uncertainty":
            wanted = std.copy()
        else:
            z = (mean - min(best)) / std
            wanted = (mean - min(best)) * norm.cdf(z) + std * norm.pdf(z)
        wanted[chosen] = -np.inf
        chosen.append(int(wanted.argmax()))
        scores.append(wanted.max())
        best = sorted([*best, mean[chosen[-1]]])[1:]
    return (chosen, scores) if with_scores else chosen


@pytest.mark.parametrize("strategy", SEQUENTIAL)
@pytest.mark.parametrize("n_best", [1, 5])
def test_batches_are_those_of_explicit_conditioning(rng, strategy, n_best):
    mean, covariance, noise = joint(rng)
    aim = Aim(strategy, np.sort(rng.normal(size=n_best)), exploration=1.3)
    found = choose_batch(mean, covariance, noise, 12, aim, rng)
    assert found.positions.tolist() == naive_batch(mean, covariance, noise, 12, aim)
    assert (np.diff(found.scores) <= 1e-12).all()


def test_the_boundary_of_classes_stays_and_uncertainty_is_near_it(rng):
    mean = np.array([-1.0, 0.05, 1.0])
    aim = Aim("uncertainty", np.zeros(1), near=True)
    assert choose_batch(mean, 0.2 * np.eye(3), 0.1, 1, aim, rng).positions.tolist() == [1]
    # Whose 95 % interval reaches furthest beyond the boundary, though another is nearer to it.
    mean, variance = np.array([0.5, 1.0]), np.diag([0.01, 1.0])
    assert choose_batch(mean, variance, 0.1, 1, aim, rng).scores[0] == pytest.approx(0.96)
    aim = Aim("expected_improvement", np.zeros(1), near=True)
    mean = np.array([3.0, 2.0, 1.0])
    found = choose_batch(mean, 1e-6 * np.eye(3), 0.1, 3, aim, rng)
    np.testing.assert_allclose(found.scores, mean, rtol=1e-3)


def test_thompson_draws_maxima_as_often_as_they_occur():
    rng = np.random.default_rng(5)
    mean, covariance, _ = joint(rng, 8)
    often = (
        np.bincount(
            [
                choose_batch(mean, covariance, 0.1, 1, Aim("thompson", None), rng).positions[0]
                for _ in range(3000)
            ],
            minlength=8,
        )
        / 3000
    )
    samples = np.random.default_rng(6).multivariate_normal(mean, covariance, 20000)
    expected = np.bincount(samples.argmax(axis=1), minlength=8) / 20000
    np.testing.assert_allclose(often, expected, atol=0.035)
    batch = choose_batch(mean, covariance, 0.1, 8, Aim("thompson", None), rng).positions
    assert sorted(batch.tolist()) == list(range(8))


def test_samples_of_a_singular_covariance_move_together(rng):
    samples = joint_samples(np.zeros(3), np.ones((3, 3)), 500, rng)
    np.testing.assert_allclose(samples, samples[:, :1].repeat(3, axis=1), atol=1e-2)
    assert 0.8 < samples[:, 0].std() < 1.2


@pytest.mark.parametrize("strategy", SEQUENTIAL)
def test_a_shortlist_gives_the_batch_of_all(rng, strategy):
    mean, covariance, noise = joint(rng, 900)
    aim, asked = Aim(strategy, np.sort(mean)[-20:], 1.0), []

    def some(positions):
        asked.append(len(positions))
        return mean[positions], covariance[np.ix_(positions, positions)]

    whole = choose_batch(mean, covariance, noise, 20, aim, rng)
    found = shortlisted_batch(mean, np.diagonal(covariance), some, noise, 20, aim, rng, 900)
    assert found.positions.tolist() == whole.positions.tolist()
    assert asked[0] == 300
    short = shortlisted_batch(mean, np.diagonal(covariance), some, noise, 20, aim, rng, 350)
    assert asked[-1] <= 350
    assert len(set(short.positions.tolist())) == 20


# --- conditions on columns ----------------------------------------------------------------------

TABLE = pd.DataFrame(
    {
        "MW": [120.0, 480.0, 510.0, np.nan],
        "logP": [1.0, 5.5, 2.0, 3.0],
        "kind": ["a", "b", "a", "b"],
        "Assay type": ["x", "x", "y", "y"],
    }
)
COLUMNS = {name: TABLE[name].to_numpy() for name in TABLE}


@pytest.mark.parametrize(
    "condition",
    [
        "MW < 500",
        "MW < 500 and logP <= 5",
        "MW >= 500 or kind == 'b'",
        "not logP < 3",
        "100 < MW <= 480",
        "kind != 'a' and MW / 100 + logP * 2 > 10",
        "`Assay type` == 'x' and -logP < -2",
        "logP - 1 > 0 and (kind == 'a' or MW == 480)",
    ],
)
def test_rows_are_those_that_pandas_keeps(condition):
    expected = TABLE.eval(condition)
    assert rows_where(condition, COLUMNS.get).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("condition", "expected", "unknown"),
    [
        ("MW != 120", [False, True, True, False], 1),
        ("not MW < 500", [False, False, True, False], 1),
        ("MW / 0 > 1", [False] * 4, 4),
        ("not MW / 0 > 1", [False] * 4, 4),
        ("MW / (logP - 2) > 1", [False, True, False, False], 2),
        ("(logP - 2) / (logP - 2) != 3", [True, True, False, True], 1),
        ("MW * 1e306 * 100 > 1", [False] * 4, 4),
        ("MW / 0 > 1 or logP < 3", [True, False, True, False], 2),
    ],
)
def test_rows_where_a_condition_cannot_be_computed_are_left_out(condition, expected, unknown):
    with pytest.warns(UserWarning, match=f"{unknown} of 4 candidates left out"):
        assert rows_where(condition, COLUMNS.get).tolist() == expected


def test_names_and_texts_that_look_like_a_name_in_backticks():
    columns = {"quoted_0_": np.arange(4), "two words": np.array(["x", "`y z`", "", "y z"])}
    known = "quoted_0_ > 0 and `two words` == '`y z`'"
    assert rows_where(known, columns.get).tolist() == [False, True, False, False]
    with pytest.raises(GraphDataError, match="no column or descriptor '_quoted_0'"):
        rows_where("_quoted_0 < 5", COLUMNS.get)
    with pytest.raises(GraphDataError, match="the parts of '-`two words`'"):
        rows_where("-`two words` < 5", columns.get)


@pytest.mark.parametrize(
    "condition",
    [
        "__import__('os').system('true') == 0",
        "@pd.compat.os.system('true')",
        "MW.__class__ == 1",
        "(lambda: 1)() == 1",
        "[x for x in (1,)] == 1",
        "MW < 500; logP < 5",
        "MW[0] < 5",
        "f'{MW}' == 'a'",
        "(MW := 3) < 5",
        "MW ** 99999999 > 1",
        "MW in kind",
        "MW is kind",
        "MW",
        "MW + 1",
        "",
        "kind < 5",
        "kind == 5",
        "kind + 1 < 5",
        "1 < 2",
        "kind and MW < 5",
        "nothing < 5",
        "((" * 200 + "MW < 5" + "))" * 200,
        "MW < 5 and " * 200 + "MW < 5",
        "True",
        "1 < 2j",
        "MW < 1 / 0",
        "MW < 5 < 6",
        "_quoted_0 < 5",
        "-" * 900 + "MW < 5",
    ],
)
def test_whatever_is_no_comparison_of_columns_is_refused(condition):
    with pytest.raises(GraphDataError):
        rows_where(condition, {**COLUMNS, "pd": np.zeros(4)}.get)
