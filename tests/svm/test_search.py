"""The search: work shared between grid points gives what each would alone; its settings."""

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn import metrics
from sklearn.model_selection import (
    KFold,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    cross_val_predict,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC

import treelens as tl
from treelens.evaluation.statistics import corrected_t_test
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary
from treelens.svm import search as selection
from treelens.svm.model import (
    inner_splits,
    resolved,
)
from treelens.svm.search import (
    SCORES,
    Candidate,
    KernelSearch,
    SearchResult,
    grid,
    leading_settings,
    learning_gain,
    repetitions_for,
    staged_search,
)
from treelens.svm.solver import pairwise_hinge_loss

DEPTH = 3


@pytest.fixture(scope="module")
def data():
    return tl.make_synthetic(8, random_state=0)


@pytest.fixture(scope="module")
def splits(data):
    _, y = data
    return list(StratifiedKFold(4, shuffle=True, random_state=0).split(y, y))


def search_of(data: Any, splits: list, **options: Any) -> KernelSearch:
    graphs, y = data
    histograms = PatternHistograms.from_colors(*PatternVocabulary.fit(graphs, DEPTH))
    codes = np.unique(y, return_inverse=True)[1]
    settings = {
        "learner": tl.PairwiseWeights(random_state=0),
        "sample_weight": np.ones(len(y)),
        "score": SCORES["accuracy"],
        **options,
    }
    return KernelSearch(partial(histograms.select_depths, 0), codes, splits, **settings)


# --- shared work --------------------------------------------------------------------------------


class RelativeSVC(SVC):
    """A machine whose cost is relative to the mean diagonal, as the search's is."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> SVC:
        C, self.C = self.C, self.C / np.diagonal(X).mean()
        try:
            return super().fit(X, y)
        finally:
            self.C = C


def pipeline_of(candidate: Candidate) -> Any:
    """The same model from our own parts and scikit-learn's."""
    radius, depth, name, gamma, C = candidate
    weights = tl.PairwiseWeights(radius, random_state=0) if radius else "uniform"
    options = {"include_depth_zero": True, "weights": weights}
    kernel = {
        "wwl": lambda: tl.WassersteinWL(depth, gamma=gamma, **options),
        "laplacian": lambda: tl.WassersteinWL(depth, gamma=gamma, kernel="laplacian", **options),
        "wwl-linear": lambda: tl.WassersteinWL(depth, kernel="wwl-linear", **options),
        "tanimoto": lambda: tl.WLOptimalAssignment(depth, normalize="tanimoto", **options),
        "tanimoto-rbf": lambda: make_pipeline(
            tl.WLOptimalAssignment(depth, normalize="tanimoto", **options),
            FunctionTransformer(lambda kernel: np.exp(-gamma * (1 - kernel))),
        ),
        "wl-oa": lambda: tl.WLOptimalAssignment(depth, **options),
        "wl-subtree": lambda: tl.WLSubtree(depth, **options),
        "wl-subtree-cosine": lambda: tl.WLSubtree(depth, normalize="cosine", **options),
    }[name]()
    return make_pipeline(kernel, RelativeSVC(kernel="precomputed", C=C))


SHARED = [
    Candidate(0.0, 2, "wwl", 3.0, 10.0),
    Candidate(0.0, 1, "laplacian", 1.0, 1.0),
    Candidate(0.0, 2, "wwl-linear", None, 10.0),
    Candidate(0.0, 3, "tanimoto", None, 1.0),
    Candidate(0.0, 1, "wl-oa", None, 10.0),
    Candidate(0.0, 2, "wl-subtree", None, 1.0),
    Candidate(0.0, 2, "wl-subtree-cosine", None, 10.0),
    Candidate(1.0, 2, "wwl", 1.0, 10.0),
    Candidate(2.0, 1, "laplacian", 3.0, 1.0),
    Candidate(1.0, 2, "tanimoto", None, 1.0),
    Candidate(0.5, 1, "wl-subtree", None, 1.0),
    Candidate(0.0, 2, "tanimoto-rbf", 3.0, 1.0),
    Candidate(2.0, 1, "tanimoto-rbf", 1.0, 10.0),
]


def test_sharing_equals_a_pipeline_of_our_own_parts(data, splits):
    """All candidates in one search, each against scikit-learn's cross-validation on its own."""
    assert {candidate.kernel for candidate in SHARED} == set(selection.KERNELS)
    graphs, y = data
    result = search_of(data, splits, final=True).run(SHARED, race=False)
    for candidate in SHARED:
        pipeline = pipeline_of(candidate)
        alone = cross_val_predict(pipeline, graphs, y, cv=splits, method="decision_function")
        together = result.decisions[candidate][:, 0]
        np.testing.assert_allclose(together, alone, atol=0.02, err_msg=str(candidate))
    for candidate in (SHARED[0], SHARED[9]):
        scores = cross_val_score(pipeline_of(candidate), graphs, y, cv=splits)
        assert np.abs(result.decisions[candidate]).min() > 5e-3, "on the border scores may differ"
        np.testing.assert_array_equal(result.scores[candidate], scores)


def test_the_second_stage_tries_radii_at_leading_settings_only(data, splits):
    candidates = [
        Candidate(radius, depth, "wwl", gamma, 1.0)
        for radius in (0.0, 1.0)
        for depth in (1, 2)
        for gamma in (0.1, 1.0)
    ]
    result = staged_search(search_of(data, splits), candidates)
    uniform = search_of(data, splits).run([c for c in candidates if c.weight_radius == 0])
    leading = set(leading_settings(uniform))
    tried = {c._replace(weight_radius=0.0) for c in result.scores if c.weight_radius > 0}
    assert tried == leading
    assert 0 < len(leading) < 4  # some settings are left out, or this shows nothing
    assert result.winner() in result.scores


@pytest.mark.parametrize(
    ("solver", "expected"),
    [
        ("quasi-newton", {"max_iter": 40, "tol": 0.01}),
        (tl.QuasiNewton(max_iter=3, tol=0.5), {"max_iter": 3, "tol": 0.5}),
        (tl.StochasticGradient(n_steps=50), {"n_steps": 50, "tol": 0.01}),
    ],
)
def test_rough_weights_only_ever_stop_earlier(data, splits, solver, expected):
    learner = tl.PairwiseWeights(2.0, solver=solver)
    before = repr(learner)
    found = search_of(data, splits, learner=learner).learn(SHARED[7].base, splits[0][0], rough=True)
    assert expected.items() <= found.solver.get_params().items()
    assert found.radius == 1.0
    assert repr(learner) == before


# --- the race -------------------------------------------------------------------------------------


class ScriptedSearch(KernelSearch):
    """A search whose scores are given."""

    def __init__(self, script: dict[Candidate, list[float]], n_validation: int = 100) -> None:
        n_splits = len(next(iter(script.values())))
        everything = np.arange(n_validation * n_splits)
        self.splits = [
            (np.setdiff1d(everything, part), part) for part in np.split(everything, n_splits)
        ]
        self.codes = everything % 2
        self.script = {candidate: iter(scores) for candidate, scores in script.items()}
        self.score = lambda codes, decisions: float(decisions[0, 0])
        self.tick = lambda what: None

    def _outputs(self, base: Any, group: Any, train: Any, validation: Any) -> Iterator[Any]:
        for candidate in group:
            yield candidate, np.full((len(validation), 1), next(self.script[candidate]))


def n_scored(result: SearchResult) -> dict[Candidate, int]:
    return {candidate: len(scores) for candidate, scores in result.scores.items()}


A, B, C = (Candidate(0.0, depth, "tanimoto", None, 1.0) for depth in (1, 2, 3))


def test_who_falls_clearly_behind_leaves():
    search = ScriptedSearch({A: [0.9, 0.9, 0.9], B: [0.5, 0.9, 0.9], C: [0.88, 0.88, 0.88]})
    result = search.run([A, B, C])
    assert n_scored(result) == {A: 3, B: 1, C: 3}
    assert result.finished() == [A, C]
    assert result.best() == A
    assert set(result.decisions) == {A, C}
    search = ScriptedSearch({A: [0.80, 0.80, 0.80], B: [0.73, 0.95, 0.95]})
    assert search.run([A, B]).best() == B  # a bad first split is forgiven within the error


def test_the_leader_always_finishes():
    """Whatever the scores: someone is left, and it is someone who led after the last split."""
    rng = np.random.default_rng(0)
    candidates = [A._replace(depth=d) for d in range(8)]
    for _ in range(50):
        script = {c: rng.random(5).tolist() for c in candidates}
        result = ScriptedSearch(script, n_validation=10).run(candidates)
        assert result.finished()
        assert result.best() in result.decisions


def test_a_second_stage_races_against_the_first():
    search = ScriptedSearch({A: [0.9, 0.9], B: [0.2, 0.9], C: [0.95, 0.95]})
    result = search.run([A])
    result = search.run([B, C], result)
    assert n_scored(result) == {A: 2, B: 1, C: 2}
    assert result.best() == C


def test_repeated_folds_are_no_new_graphs():
    """The same 40 graphs, tested over and over: the error of a mean does not shrink."""
    scores = {A: [0.9] * 9, B: [0.82] * 9}
    once = ScriptedSearch(scores, n_validation=40)
    assert n_scored(once.run([A, B]))[B] < 9  # after enough different graphs
    again = ScriptedSearch(scores, n_validation=40)
    again.splits = again.splits[:1] * 9
    assert n_scored(again.run([A, B])) == {A: 9, B: 9}


# --- held-out decisions -----------------------------------------------------------------------


def test_decisions_are_means_over_repetitions_and_nan_where_never_held_out(data):
    _, y = data
    splits = list(ShuffleSplit(3, test_size=0.3, random_state=1).split(y))
    candidate = SHARED[0]
    decisions = search_of(data, splits).run([candidate]).decisions[candidate][:, 0]
    singles = np.full((3, len(y)), np.nan)
    for row, split in zip(singles, splits, strict=True):
        alone = search_of(data, [split]).run([candidate]).decisions[candidate][:, 0]
        row[split[1]] = alone[split[1]]
        assert np.isnan(np.delete(alone, split[1])).all()
    held_out = ~np.isnan(singles).all(axis=0)
    assert 0 < held_out.sum() < len(y)
    np.testing.assert_array_equal(np.isnan(decisions), ~held_out)
    np.testing.assert_allclose(decisions[held_out], np.nanmean(singles[:, held_out], axis=0))


# --- scores ---------------------------------------------------------------------------------------


def test_scores_are_those_of_scikit_learn(rng):
    codes, decisions = rng.integers(2, size=50), rng.normal(size=(50, 1))
    guessed = (decisions[:, 0] > 0).astype(int)
    assert SCORES["accuracy"](codes, decisions) == metrics.accuracy_score(codes, guessed)
    expected = metrics.balanced_accuracy_score(codes, guessed)
    assert SCORES["balanced_accuracy"](codes, decisions) == expected
    expected = metrics.roc_auc_score(codes, decisions[:, 0])
    assert SCORES["roc_auc"](codes, decisions) == pytest.approx(expected)
    expected = metrics.hinge_loss(codes, decisions[:, 0])
    assert pairwise_hinge_loss(codes, decisions) == pytest.approx(expected)
    codes, decisions = rng.integers(3, size=60), rng.normal(size=(60, 3))
    expected = metrics.accuracy_score(codes, decisions.argmax(axis=1))
    assert SCORES["accuracy"](codes, decisions) == expected
    areas = [metrics.roc_auc_score(codes == k, decisions[:, k]) for k in range(3)]
    assert SCORES["roc_auc"](codes, decisions) == pytest.approx(np.mean(areas))
    for one_class in (np.arange(5.0)[:, None], np.eye(5)[:, :3]):
        assert SCORES["roc_auc"](np.zeros(5, int), one_class) == 0.5


def test_the_pairwise_loss_counts_the_pairs_of_a_graphs_class(rng):
    codes, outputs = rng.integers(4, size=40), rng.normal(size=(40, 6))
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    losses = [
        max(0.0, 1.0 - (value if code == second else -value))
        for code, row in zip(codes, outputs, strict=True)
        for (first, second), value in zip(pairs, row, strict=True)
        if code in (first, second)
    ]
    assert pairwise_hinge_loss(codes, outputs) == pytest.approx(np.mean(losses))


# --- grids ----------------------------------------------------------------------------------------


def test_grid():
    candidates = grid(["wwl", "tanimoto"], [1, 2], [0, 1.0], [1.0, 3.0], [1, 10])
    assert len(candidates) == len(set(candidates)) == 2 * 2 * (2 + 1) * 2
    assert {c.gamma for c in candidates if c.kernel == "tanimoto"} == {None}
    assert all(type(c.weight_radius) is float and type(c.C) is float for c in candidates)
    assert len(grid(["tanimoto", "tanimoto"], [1, 1], [0, 0.0], [1.0], [1, 1.0])) == 1


# --- results ------------------------------------------------------------------------------------


def test_of_equals_the_lower_loss_and_then_the_simplest():
    scores = {C: [0.9], B: [0.9], A: [0.9]}
    assert SearchResult(1, 0.2, scores, {A: [0.5], B: [0.4], C: [0.4]}).best() == B
    assert SearchResult(1, 0.2, scores, {A: [0.4], B: [0.4], C: [0.4]}).best() == A
    assert (
        SearchResult(1, 0.2, scores, {A: [0.4], B: [0.4], C: [0.4]}).best(lambda c: c.depth > 1)
        == B
    )
    assert SearchResult(2, 0.2, scores, {}).best() is None
    third = {A: [0.1, 0.2, 0.3], B: [0.3, 0.2, 0.1]}  # means that differ in the last bits
    assert sum(third[A]) != sum(third[B])
    for scores in (third, dict(reversed(third.items()))):
        assert SearchResult(3, 0.2, scores, {A: [1.0], B: [1.0]}).best() == A


# --- did learning help? ---------------------------------------------------------------------------


UNIFORM = Candidate(0.0, 2, "tanimoto", None, 1.0)
LEARNED = UNIFORM._replace(weight_radius=1.0)


def result_of(scores: dict[Candidate, list[float]]) -> SearchResult:
    return SearchResult(4, 0.25, scores, {c: [1.0] * len(x) for c, x in scores.items()})


def test_the_best_of_both_kinds_are_compared():
    weaker, stronger = LEARNED, LEARNED._replace(weight_radius=3.0)
    scores = {
        UNIFORM: [0.5, 0.6, 0.7, 0.8],
        UNIFORM._replace(depth=1): [0.4, 0.4, 0.4, 0.4],
        weaker: [0.5, 0.5, 0.5, 0.5],
        stronger: [0.6, 0.8, 0.8, 0.8],
    }
    gain = learning_gain(result_of(scores))
    assert gain is not None
    assert gain["difference"] == pytest.approx(0.1)
    assert (gain["uniform_score"], gain["learned_score"]) == pytest.approx((0.65, 0.75))
    assert gain["learned_candidate"] == stronger._asdict()
    assert gain["uniform_candidate"] == UNIFORM._asdict()
    test = corrected_t_test([0.6, 0.8, 0.8, 0.8], [0.5, 0.6, 0.7, 0.8], 0.25)
    expected = (test.difference, test.standard_error, test.p_value)
    assert (gain["difference"], gain["standard_error"], gain["p_value"]) == pytest.approx(expected)
    left_the_race = {UNIFORM: [0.5] * 4, LEARNED: [0.1, 0.1]}
    for scores in ({UNIFORM: [0.5] * 4}, {LEARNED: [0.5] * 4}, left_the_race):
        assert learning_gain(result_of(scores)) is None


def test_a_single_split_has_no_p_value_and_can_be_saved(data, tmp_path):
    cv = StratifiedShuffleSplit(1, test_size=0.5, random_state=0)
    model = tl.GraphSVC("wwl", 2, [0, 1.0], gamma=1.0, C=10.0, cv=cv, random_state=0).fit(*data)
    assert model.learning_gain_["p_value"] is None
    model.save(tmp_path / "model.treelens")
    assert tl.load(tmp_path / "model.treelens").learning_gain_ == model.learning_gain_


# --- settings -------------------------------------------------------------------------------------

AB = np.array(["a", "b"])
BALANCED = np.array([0, 1] * 10)
RARE = np.array([0] * 19 + [1])
RARE_OF_THREE = np.array([0] * 20 + [1] * 20 + [2])


def test_folds_hold_every_class_and_every_graph_as_often_as_repeated() -> None:
    splits = inner_splits(5, BALANCED, AB, seed=0)
    assert len(splits) == 5 * repetitions_for(len(BALANCED))
    held_out = np.concatenate([validation for _, validation in splits])
    assert set(np.bincount(held_out)) == {repetitions_for(len(BALANCED))}
    assert all(len(set(BALANCED[validation])) == 2 for _, validation in splits)
    first, same, other = (inner_splits(2, BALANCED, AB, seed) for seed in (0, 0, 1))
    assert all((a[1] == b[1]).all() for a, b in zip(first, same, strict=True))
    assert any((a[1] != b[1]).any() for a, b in zip(first, other, strict=True))


def test_a_small_class_makes_fewer_folds_and_a_single_one_none() -> None:
    codes = np.array([0] * 10 + [1] * 3)
    with pytest.warns(UserWarning, match=r"Class 'b' has 3 members.*with 3 folds"):
        splits = inner_splits(5, codes, AB, seed=0)
    assert all(1 in codes[validation] for _, validation in splits)
    with pytest.raises(ValueError, match="Class 'b' has one member"):
        inner_splits(5, RARE, AB, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        inner_splits(3, codes, AB, seed=0)  # just enough


def test_a_splitter_of_the_users_is_taken_as_it_is() -> None:
    found = inner_splits(KFold(2), BALANCED, AB, seed=0)
    for ours, theirs in zip(found, KFold(2).split(BALANCED, BALANCED), strict=True):
        assert all((a == b).all() for a, b in zip(ours, theirs, strict=True))


class Splits:
    def __init__(self, *splits):
        self.splits = splits

    def split(self, X, y):
        return self.splits


@pytest.mark.parametrize(
    "cv",
    [
        Splits(),
        Splits(([0, 2], [1])),  # one class to learn from
        Splits(([0, 1], [2, 3]), ([0, 1], [])),
        PredefinedSplit([0, -1] * 10),
        Splits(([0, 1], [2, 4])),  # one class is never held out
    ],
)
def test_splits_that_no_machine_could_be_fitted_to(cv) -> None:
    with pytest.raises(ValueError, match="use StratifiedKFold"):
        inner_splits(cv, BALANCED, AB, seed=0)


@pytest.mark.parametrize(
    ("codes", "scoring", "class_weight"),
    [
        (BALANCED, "accuracy", None),
        (np.arange(100) // 75, "accuracy", None),  # 25 % is not rare
        (np.arange(100) // 76, "roc_auc", "balanced"),
        (RARE, "roc_auc", "balanced"),
        (np.arange(60) % 6, "accuracy", None),  # every class has its even share
        (np.append(np.arange(60) % 6, [5] * 60), "accuracy", None),
        (np.append(np.arange(60) % 6, [5] * 60 + [4] * 61), "balanced_accuracy", "balanced"),
        (RARE_OF_THREE, "balanced_accuracy", "balanced"),
    ],
)
def test_a_rare_class_changes_score_and_weights(codes, scoring, class_weight) -> None:
    assert resolved("auto", "auto", codes) == (scoring, class_weight)


def test_what_was_asked_for_stays() -> None:
    for ignoring in ("accuracy", "roc_auc"):
        assert resolved(ignoring, "auto", RARE) == (ignoring, None)
    assert resolved("balanced_accuracy", "auto", RARE) == ("balanced_accuracy", "balanced")
    assert resolved("auto", None, RARE) == ("roc_auc", None)
    own = {"a": 1.0, "b": 5.0}
    assert resolved("auto", own, RARE)[1] is own
