"""Panels: evidence and posterior against a dense joint process, slopes against differences."""

from dataclasses import replace

import numpy as np
import pytest

from gp.test_evidence import _parameters, _problem
from naive import panel as naive
from treelens.gp import panel_posterior
from treelens.gp.panel import (
    Cells,
    CellTable,
    PanelEvidence,
    PanelParameters,
    PanelProblem,
    Sharing,
)
from treelens.gp.panel_fit import Single, joined
from treelens.gp.panel_posterior import ExactPanel, LoneEndpoint, given_siblings, with_lone
from treelens.gp.search import Stage
from treelens.gp.terms import NumbersTerm, TermParameters

N, N_NEW, N_ENDPOINTS = 14, 4, 3


def _table(seed=0, n=N, n_endpoints=N_ENDPOINTS):
    """Values with gaps; one graph has none, one endpoint a single one."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(n, n_endpoints))
    table[rng.uniform(size=table.shape) < 0.4] = np.nan
    table[3] = np.nan
    table[-1, 0] = 0.7
    table[:-1, -1] = np.nan
    table[-1, -1] = 0.3
    return table


def _cells(values):
    return Cells.of(CellTable.plain(values))


def _problem_of(terms, table):
    """A search that begins with usual kernels, which explain as much of each endpoint as usual."""
    amplitudes = np.array([term.USUAL_AMPLITUDE for term in terms])
    single = Single(tuple(term.start for term in terms), amplitudes, 0.1)
    masks = [np.ones(term.n_patterns, dtype=bool) for term in terms]
    return PanelProblem(terms, _cells(table), joined(table, [single] * table.shape[1], masks))


@pytest.fixture
def panel():
    rng = np.random.default_rng(2)
    patterns = _problem(n=N)[0].terms[0]
    numbers = NumbersTerm(rng.normal(size=(N, 2)))
    problem = _problem_of((patterns, numbers), _table())
    own = _parameters(_problem(n=N)[0]).terms[0]
    terms = (
        own._replace(scales=np.append(own.scales[:-1], 0.0), deviations=0.0 * own.deviations),
        TermParameters(np.log([1.4, 1.0]), np.empty(0), np.empty(0)),
    )
    sharing = tuple(
        Sharing(0.7 * rng.normal(size=(N_ENDPOINTS, 2)), rng.normal(-1.0, 0.3, N_ENDPOINTS))
        for _ in terms
    )
    return problem, PanelParameters(terms, sharing, np.log([0.1, 0.2, 0.3]))


def _pairs(cells):
    return list(zip(cells.graphs.tolist(), cells.endpoints.tolist(), strict=True))


@pytest.mark.parametrize("learned", ["uniform", "depths"])
def test_the_evidence_is_that_of_a_joint_process_and_slopes_are_differences(panel, learned):
    problem, parameters = panel
    evaluate = PanelEvidence(problem)
    value, gradient = evaluate(parameters, learned)
    shared, noise = [each.matrix for each in parameters.sharing], np.exp(parameters.log_noise)
    kernels, cells = evaluate.kernels(parameters), problem.cells
    of_cells = noise[cells.endpoints]
    expected = naive.objective(kernels, shared, of_cells, _pairs(cells), cells.values)
    assert value == pytest.approx(expected + problem.prior(parameters, learned)[0], rel=1e-6)
    vector, step = problem.vector(parameters, learned), 1e-5
    assert len(vector) == len(gradient)
    assert len(vector) - len(problem.scale_bounds) == 3 * (learned == "depths")
    for k, shift in enumerate(step * np.eye(len(vector))):
        ahead, behind = (
            evaluate(problem.replaced(parameters, vector + move, learned), learned)[0]
            for move in (shift, -shift)
        )
        assert gradient[k] == pytest.approx((ahead - behind) / (2 * step), abs=1e-5, rel=1e-5)


def test_slopes_with_limits_weights_and_known_noise_are_differences(panel):
    problem, parameters = panel
    rng = np.random.default_rng(3)
    cells = problem.cells
    factors, known = rng.uniform(0.5, 2.0, (2, len(cells.values)))
    cells = cells._replace(factors=factors, known=0.1 * known)
    evaluate = PanelEvidence(replace(problem, cells=cells))
    kernels, shared = evaluate.kernels(parameters), [own.matrix for own in parameters.sharing]
    of_endpoints = np.exp(parameters.log_noise)
    noise = of_endpoints[cells.endpoints] * factors + 0.1 * known
    expected = naive.objective(kernels, shared, noise, _pairs(cells), cells.values)
    prior = problem.prior(parameters, "uniform")[0]
    assert evaluate(parameters, "uniform")[0] == pytest.approx(expected + prior, rel=1e-6)
    limits = np.zeros(len(factors), dtype=int)
    limits[[1, 4, 9]] = 1, -1, 1
    limited = replace(problem, cells=cells._replace(limits=limits))
    vector, step = problem.vector(parameters, "uniform"), 1e-4

    def value(at):
        return PanelEvidence(limited)(problem.replaced(parameters, at, "uniform"), "uniform")[0]

    gradient = PanelEvidence(limited)(parameters, "uniform")[1]
    for k, shift in enumerate(step * np.eye(len(vector))):
        slope = (value(vector + shift) - value(vector - shift)) / (2 * step)
        assert gradient[k] == pytest.approx(slope, abs=1e-4, rel=1e-4)
    # limits that hold for sure say nothing
    far = cells._replace(values=np.where(limits != 0, -30.0 * limits, cells.values), limits=limits)
    exact = np.flatnonzero(limits == 0)
    some = noise[exact], [_pairs(cells)[k] for k in exact], cells.values[exact]
    expected = naive.objective(kernels, shared, *some)
    found = PanelEvidence(replace(problem, cells=far))(parameters, "uniform")[0]
    constant = 0.5 * np.log(2.0 * np.pi) * len(limits[limits != 0])  # of the densities of sites
    assert found == pytest.approx(expected + prior - constant, abs=1e-3)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_posterior_and_gaps_are_those_of_a_joint_process(panel, n_jobs):
    problem, parameters = panel
    kernels = PanelEvidence(problem).kernels(parameters)
    old, new = np.arange(N - N_NEW), np.arange(N - N_NEW, N)
    cells = _cells(_table()[old])
    among = [kernel[np.ix_(old, old)] for kernel in kernels]
    noise = np.exp(parameters.log_noise)
    posterior = ExactPanel.fit(among, parameters.shared, cells.noise(noise), cells, n_jobs)
    rows = [kernel[np.ix_(new, old)] for kernel in kernels]
    shared = posterior.shared
    wanted = [(g, t) for g in new.tolist() for t in range(N_ENDPOINTS)]
    given = kernels, shared, noise, _pairs(cells), cells.values
    mean, covariance = naive.predict(*given, wanted)
    found = posterior.mean(rows), posterior.covariance(rows, n_jobs)
    np.testing.assert_allclose(found[0].ravel(), mean, atol=1e-8)
    for k in range(N_NEW):
        block = covariance[3 * k : 3 * k + 3, 3 * k : 3 * k + 3]
        np.testing.assert_allclose(found[1][k], block, atol=1e-7)
    # of a new graph some endpoints are known: as if they were among the measured cells
    measured = np.full((N_NEW, N_ENDPOINTS), np.nan)
    measured[1, 0], measured[2, :2] = 0.8, (-0.5, 0.2)
    gaps = given_siblings(*found, noise, measured)
    np.testing.assert_array_equal(gaps[0][0], found[0][0])
    for k in (1, 2):
        known = [(int(new[k]), t) for t in range(3) if not np.isnan(measured[k, t])]
        values = np.append(cells.values, [measured[k, t] for _, t in known])
        left = [(int(new[k]), t) for t in range(3) if np.isnan(measured[k, t])]
        more = (kernels, shared, noise, _pairs(cells) + known, values)
        mean, covariance = naive.predict(*more, left)
        places = [t for _, t in left]
        np.testing.assert_allclose(gaps[0][k, places], mean, atol=1e-7)
        np.testing.assert_allclose(gaps[1][k][np.ix_(places, places)], covariance, atol=1e-6)
        for cell in known:  # from the others, without its own measurement
            others = [j for j, own in enumerate(known) if own != cell]
            some = np.append(cells.values, values[len(cells.values) :][others])
            pairs = _pairs(cells) + [known[j] for j in others]
            mean, covariance = naive.predict(kernels, shared, noise, pairs, some, [cell])
            assert gaps[0][k, cell[1]] == pytest.approx(mean[0], abs=1e-7)
            assert gaps[1][k, cell[1], cell[1]] == pytest.approx(covariance[0, 0], abs=1e-6)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_leaving_out_is_fitting_again(panel, n_jobs):
    problem, parameters = panel
    kernels, cells = PanelEvidence(problem).kernels(parameters), problem.cells
    of_endpoints = np.exp(parameters.log_noise)
    posterior = ExactPanel.fit(kernels, parameters.shared, cells.noise(of_endpoints), cells)
    given = kernels, posterior.shared, of_endpoints
    pairs, parts = _pairs(cells), cells.graphs % 3  # parts of several graphs, too
    for groups in (cells.graphs, parts):
        blocks = posterior.left_out_blocks(groups, n_jobs)
        members = np.concatenate([own.members for own in blocks])
        assert sorted(members.tolist()) == list(range(len(cells.values)))
        for own in blocks:
            kept = np.setdiff1d(np.arange(len(pairs)), own.members)
            some, wanted = [pairs[k] for k in kept], [pairs[k] for k in own.members]
            mean, left = naive.predict(*given, some, cells.values[kept], wanted)
            noise = np.diag([of_endpoints[t] for _, t in wanted])
            np.testing.assert_allclose(own.mean, mean, atol=1e-6)
            np.testing.assert_allclose(own.covariance, left + noise, atol=1e-6)
            gap, variance = own.each_given_others(cells.values[own.members])
            for k, cell in enumerate(wanted):
                others = [j for j in range(len(pairs)) if pairs[j] != cell]
                some = [pairs[j] for j in others]
                mean, left = naive.predict(*given, some, cells.values[others], [cell])
                assert gap[k] == pytest.approx(mean[0], abs=1e-5)
                expected = left[0, 0] + of_endpoints[cell[1]]
                assert variance[k] == pytest.approx(expected, rel=1e-5)


def test_a_lone_endpoint_keeps_its_correlations(panel):
    problem, parameters = panel
    kernels, cells = PanelEvidence(problem).kernels(parameters), problem.cells
    noise = np.exp(parameters.log_noise)
    posterior = ExactPanel.fit(kernels, parameters.shared, cells.noise(noise), cells)
    block = max(posterior.left_out_blocks(cells.graphs), key=lambda own: len(own.members))
    endpoints = cells.endpoints[block.members]
    mean, variance, own_noise = np.full(N, 0.25), np.full(N, 0.6), np.full(N, 0.3)
    first = int(endpoints[0])
    found = with_lone(block, cells, {first: LoneEndpoint(mean, variance, own_noise, 1.0)})
    assert found.mean[0] == pytest.approx(0.25)
    np.testing.assert_array_equal(found.mean[1:], block.mean[1:])
    np.testing.assert_allclose(np.diagonal(found.covariance)[0], 0.9)
    np.testing.assert_allclose(found.covariance[1:, 1:], block.covariance[1:, 1:])
    before = block.covariance[0, 1] / np.sqrt(block.covariance[0, 0] - noise[endpoints[0]])
    assert found.covariance[0, 1] / np.sqrt(0.6) == pytest.approx(before)
    half = LoneEndpoint(mean, variance, own_noise, 0.5)
    found = with_lone(block, cells, {first: half})
    assert found.mean[0] == pytest.approx(0.5 * (0.25 + block.mean[0]))
    quiet = np.sqrt(block.covariance[0, 0] - noise[endpoints[0]])
    added = (0.5 * (np.sqrt(0.3) + np.sqrt(noise[endpoints[0]]))) ** 2
    expected = (0.5 * (np.sqrt(0.6) + quiet)) ** 2 + added
    assert found.covariance[0, 0] == pytest.approx(expected)
    same = with_lone(block, cells, {})
    np.testing.assert_array_equal(same.covariance, block.covariance)


def _drawn(shared, n=150, seed=0):
    """Endpoints of a process on numbers, with a known sharing and a little noise."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n, 2))
    squares = ((numbers[:, None] - numbers[None]) ** 2).sum(axis=2)
    kernel = np.exp(-2.0 * squares) + 1e-8 * np.eye(n)
    root = np.linalg.cholesky(np.array(shared) + 1e-9 * np.eye(len(shared)))
    drawn = np.linalg.cholesky(kernel) @ rng.normal(size=(n, len(shared))) @ root.T
    return numbers, drawn + 0.1 * rng.normal(size=drawn.shape)


def _searched(numbers, table):
    problem = _problem_of((NumbersTerm(numbers),), table)
    evaluate = PanelEvidence(problem)
    fit = Stage(problem, "uniform", problem.usual, evaluate, lambda what: None).run(200)
    return fit.parameters


def test_the_search_finds_which_endpoints_go_together():
    numbers, table = _drawn([[1.0, 0.95, 0.0], [0.95, 1.0, 0.0], [0.0, 0.0, 1.0]])
    found = _searched(numbers, table / table.std(axis=0)).sharing[0].matrix
    scale = np.sqrt(np.diagonal(found))
    correlation = found / np.outer(scale, scale)
    assert correlation[0, 1] > 0.8
    assert np.abs(correlation[2, :2]).max() < 0.5


def test_one_endpoint_is_the_process_of_a_single_model():
    numbers, table = _drawn([[1.0]], n=40)
    problem = _problem_of((NumbersTerm(numbers),), table)
    parameters = problem.usual
    amplitude = parameters.sharing[0].matrix[0, 0]
    kernel = PanelEvidence(problem).kernels(parameters)[0]
    covariance = amplitude * kernel + np.exp(parameters.log_noise[0]) * np.eye(40)
    posterior = ExactPanel.fit(
        [kernel],
        parameters.shared,
        problem.cells.noise(np.exp(parameters.log_noise)),
        problem.cells,
    )
    expected = amplitude * kernel @ np.linalg.solve(covariance, table[:, 0])
    np.testing.assert_allclose(posterior.mean([kernel])[:, 0], expected, atol=1e-7)


def test_of_many_cells_rounded_factors_predict_alike(panel):
    problem, parameters = panel
    kernels, cells = PanelEvidence(problem).kernels(parameters), problem.cells
    noise = cells.noise(np.exp(parameters.log_noise))
    exact = ExactPanel.fit(kernels, parameters.shared, noise, cells)
    small = [own.astype(np.float32) for own in kernels]
    rounded = ExactPanel.fit(small, parameters.shared, noise, cells)
    assert rounded.factor.dtype == np.float32
    np.testing.assert_allclose(rounded.mean(kernels), exact.mean(kernels), atol=1e-5)
    found, expected = rounded.covariance(kernels), exact.covariance(kernels)
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_covariances_in_blocks_are_those_at_once(monkeypatch):
    rng = np.random.default_rng(0)
    values = np.where(rng.random((12, 3)) < 0.4, np.nan, rng.normal(size=(12, 3)))
    cells = Cells.of(CellTable.plain(values))
    features = rng.normal(size=(20, 2))
    kernel = np.exp(-((features[:, None] - features) ** 2).sum(axis=2))
    between = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 1.0]])
    posterior = ExactPanel.fit(
        [kernel[:12, :12]], [between], np.full(len(cells.values), 0.1), cells
    )
    rows = [kernel[12:, :12]]
    at_once = posterior.covariance(rows)
    monkeypatch.setattr(panel_posterior, "_MOST_COVARIANCES", 1)
    monkeypatch.setattr(panel_posterior, "_FEWEST_TOGETHER", 3)
    np.testing.assert_allclose(posterior.covariance(rows), at_once, rtol=1e-12)
    assert posterior.covariance([rows[0][:0]]).shape == (0, 3, 3)
