"""``treelens evaluate``: several models side by side, each learned anew in every outer fold."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treelens.cli import options
from treelens.cli.console import InputError, Output, command, percent
from treelens.cli.fit_evidence import evidence_settings

if TYPE_CHECKING:
    import numpy as np

    from treelens.cli.data import GraphData
    from treelens.estimators.svc import GraphSVC
    from treelens.estimators.weights import PairwiseWeights

EVIDENCE_KERNELS = {
    "evidence_uniform": "uniform",
    "evidence_depths": "depths",
    "evidence": "branches",
}
# Name -> forms, and for learned weights the same with uniform ones.
SVC_KERNELS: dict[str, tuple[tuple[str, ...], str | None]] = {
    "wl_subtree": (("subtree", "subtree-cosine"), None),
    "wl_oa": (("assignment", "tanimoto"), None),
    "wwl": (("exponential",), None),
    "wl_tanimoto": (("tanimoto-exponential",), None),
    "learned_wl_subtree": (("subtree", "subtree-cosine"), "wl_subtree"),
    "learned_wl_oa": (("assignment", "tanimoto"), "wl_oa"),
    "learned_wwl": (("exponential",), "wwl"),
    "learned_wl_tanimoto": (("tanimoto-exponential",), "wl_tanimoto"),
}
DEFAULT_KERNELS = "wl_subtree,wl_oa,wwl,learned_wl_oa,learned_wwl,auto,evidence_uniform,evidence"
DEFAULT_FOR_NUMBERS = ",".join(EVIDENCE_KERNELS)


def evaluate_cli(
    data: options.Data,
    target: options.Target = None,
    smiles: options.Smiles = None,
    atom_label: options.AtomLabel = None,
    bond_label: options.BondLabel = None,
    hydrogens: options.Hydrogens = None,
    standardize: options.Standardize = False,
    standardize_steps: options.StandardizeSteps = None,
    task: options.Task = "auto",
    transform: options.TargetTransform = None,
    kernels: Annotated[
        str | None,
        typer.Option(
            "--kernels",
            help="Which to compare: evidence (what 'treelens fit' does), evidence_depths, "
            "evidence_uniform; for classes also wl_subtree, wl_oa, wwl, the same with learned_ "
            "before it, auto (what 'treelens fit --method svc' does). The first is what the others "
            "are tested against.",
            show_default="all that the task has",
        ),
    ] = None,
    depth: options.Depth = "auto",
    folds: Annotated[int, typer.Option("--folds", help="Outer folds.", min=2)] = 10,
    repeats: Annotated[int, typer.Option("--repeats", help="Repetitions of them.", min=1)] = 1,
    edge_labels: options.EdgeLabels = None,
    max_invalid: options.MaxInvalid = 0.1,
    missing: options.Missing = "skip",
    duplicates: options.Duplicates = "merge",
    seed: options.Seed = 0,
    jobs: options.Jobs = -1,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Compare models on DATA by nested cross-validation, with tests of significance.

    All settings are chosen within the training part of each outer fold. What learns is tested
    against itself with uniform weights, the others against the first; auto learns only where that
    looks better, and the table says in how many folds. Numbers are scored by RMSE, R2, the negative
    log predictive density (NLPD) and the share within the 90 % interval.
    """
    with command(as_json, debug) as output:
        from treelens.cli.data import read_training_data
        from treelens.cli.evaluate_numbers import evaluate_numbers, show_numbers
        from treelens.cli.reading import Reading

        options.check_choice("--task", task, options.TASKS)
        known_plans = kernel_plans(
            _names(kernels or DEFAULT_KERNELS), depth, edge_labels, seed, jobs
        )
        rows = read_training_data(
            data, target, smiles, max_invalid, duplicates, output.note,
            Reading.asked(atom_label, hydrogens, bond_label, standardize, standardize_steps),
            task, missing=missing, transform=transform,
        )  # fmt: skip
        if rows.task == "regression":
            names = _names(kernels or DEFAULT_FOR_NUMBERS)
            plans = regression_plans(names, depth, seed, jobs)
            result = evaluate_numbers(rows, plans, folds, repeats, seed, output.progress)
            output.finish(result, show_numbers)
        else:
            result = evaluate_kernels(rows, known_plans, folds, repeats, seed, output.progress)
            output.finish(result, show_evaluation)


def _names(kernels: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in kernels.split(",")))


@dataclass(frozen=True)
class KernelPlan:
    """A row of the table: a classifier and, where weights are learned, how.

    A plan with a learner always learns: radius 0 is not among the radii, or the row would be that
    of uniform weights wherever the inner validation prefers those. Learning is tried at the form
    and depth that uniform weights choose in the same fold.
    """

    model: GraphSVC
    learner: PairwiseWeights | None = None

    def fit(self, graphs: Any, y: Any) -> GraphSVC:
        from sklearn.base import clone

        fitted = clone(self.model).fit(graphs, y)
        if self.learner is None:
            return fitted
        form, depth = fitted.choice_["form"], fitted.choice_["depth"]
        learned = clone(self.model).set_params(
            form=form, depth=depth, radius=self.radii(len(graphs)), learner=self.learner
        )
        return learned.fit(graphs, y)

    def radii(self, n_graphs: int) -> list[float]:
        """The radii to choose from."""
        from treelens.selection.search import radii_for

        assert self.learner is not None
        return list(radii_for(n_graphs))

    def has_learned(self, fitted: GraphSVC) -> bool:
        return bool(fitted.choice_["radius"] > 0)


@dataclass(frozen=True)
class EvidencePlan:
    """A row of the table: a Gaussian process, of classes or numbers."""

    model: Any

    def fit(self, graphs: Any, y: Any) -> Any:
        from sklearn.base import clone

        return clone(self.model).fit(graphs, y)

    def has_learned(self, fitted: Any) -> bool:
        return bool(fitted.weights != "uniform")


def regression_plans(names: list[str], depth: str, seed: int, jobs: int) -> dict[str, EvidencePlan]:
    """A plan for each name; only Gaussian processes predict numbers."""
    from treelens.estimators.evidence import GraphRegressor

    for name in names:
        if name not in EVIDENCE_KERNELS:
            raise InputError(
                f"--kernels {name}: it learns classes, and this is a regression. Use of "
                f"{', '.join(EVIDENCE_KERNELS)}, or --task classification."
            )
    return {name: _evidence_plan(GraphRegressor, name, depth, seed, jobs) for name in names}


def _evidence_plan(kind: Any, name: str, depth: str, seed: int, jobs: int) -> EvidencePlan:
    if "," in depth:
        raise InputError(
            f"--depth {depth}: {name} takes one depth. Give one, or name the kernels to compare "
            "with --kernels, without it."
        )
    settings = evidence_settings(depth, EVIDENCE_KERNELS[name], seed, jobs)
    return EvidencePlan(kind(**settings, progress=False))


def kernel_plans(
    names: list[str], depth: str, edge_labels: bool | None, seed: int, jobs: int
) -> dict[str, KernelPlan | EvidencePlan]:
    """A plan for each name: the published kernels, ``"auto"``, and by evidence."""
    from treelens.estimators.evidence import GraphClassifier
    from treelens.estimators.svc import GraphSVC
    from treelens.estimators.weights import PairwiseWeights

    known = [*SVC_KERNELS, "auto", *EVIDENCE_KERNELS]
    plans: dict[str, KernelPlan | EvidencePlan] = {}
    for name in dict.fromkeys(names):
        if name not in known:
            raise InputError(
                f"--kernels {name}: there is no such kernel. Known are {', '.join(known)}."
            )
        if name in EVIDENCE_KERNELS:
            plans[name] = _evidence_plan(GraphClassifier, name, depth, seed, jobs)
            continue
        model = GraphSVC(
            depth=options.parsed_numbers(depth, "--depth", int),
            edge_labels="auto" if edge_labels is None else edge_labels,
            scoring="accuracy", random_state=seed, n_jobs=jobs, progress=False,
        )  # fmt: skip
        if name == "auto":
            plans[name] = KernelPlan(model)
            continue
        forms, twin = SVC_KERNELS[name]
        model.set_params(form=list(forms), radius=0.0)
        learner = None if twin is None else PairwiseWeights(random_state=seed, tol=1e-3)
        plans[name] = KernelPlan(model, learner)
    return plans


def evaluate_kernels(
    data: GraphData,
    plans: dict[str, KernelPlan | EvidencePlan],
    n_folds: int = 10,
    n_repeats: int = 1,
    seed: int = 0,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Nested cross-validation: accuracy on outer folds, and paired tests, as plain data."""
    import numpy as np

    splits = _outer_splits(data.y, n_folds, n_repeats, seed)
    scores: dict[str, np.ndarray] = {}
    seconds: dict[str, float] = {}
    n_learned: dict[str, int] = {}
    for name, plan in plans.items():
        start = time.perf_counter()
        folds = [_run_fold(plan, data, *split) for split in splits]
        seconds[name] = time.perf_counter() - start
        scores[name] = np.array([accuracy for accuracy, _ in folds])
        n_learned[name] = sum(learned for _, learned in folds)
        progress(f"{name}: {percent(scores[name].mean())} in {seconds[name]:.0f} s")
    test_to_train = float(np.mean([len(test) / len(train) for train, test in splits]))
    return {
        "source": data.source,
        "n_graphs": len(data.graphs),
        "n_folds": n_folds,
        "n_repeats": n_repeats,
        "majority": _majority_on_folds(data.y, splits),
        "kernels": [
            {
                "kernel": name,
                "accuracy": float(x.mean()),
                "standard_deviation": float(x.std()),
                "scores": x.tolist(),
                "n_folds_learned": n_learned[name],
                "seconds": seconds[name],
            }
            for name, x in scores.items()
        ],
        "tests": paired_tests(scores, test_to_train),
    }


def _outer_splits(y: Any, n_folds: int, n_repeats: int, seed: int) -> list[Any]:
    import numpy as np
    from sklearn.model_selection import RepeatedStratifiedKFold

    classes, counts = np.unique(y, return_counts=True)
    rarest = int(counts.min())
    if rarest < n_folds:
        raise InputError(
            f"The class {classes[counts.argmin()].item()!r} has {rarest} members: with --folds "
            f"{n_folds} some folds would have none. Use --folds {max(2, rarest)}, or more of it."
        )
    splitter = RepeatedStratifiedKFold(n_splits=n_folds, n_repeats=n_repeats, random_state=seed)
    return list(splitter.split(y, y))


def _run_fold(
    plan: KernelPlan | EvidencePlan, data: GraphData, train: np.ndarray, test: np.ndarray
) -> tuple[float, bool]:
    """Accuracy on the test part, and whether the model that was chosen has learned weights."""
    assert data.y is not None
    fitted = plan.fit(data.graphs[train], data.y[train])
    accuracy = float((fitted.predict(data.graphs[test]) == data.y[test]).mean())
    return accuracy, plan.has_learned(fitted)


def _majority_on_folds(y: Any, splits: list[Any]) -> float:
    """Accuracy of the largest class of each training part on its test part."""
    import numpy as np

    classes, codes = np.unique(y, return_inverse=True)
    most = [np.bincount(codes[train], minlength=len(classes)).argmax() for train, _ in splits]
    hits = [np.mean(codes[test] == m) for m, (_, test) in zip(most, splits, strict=True)]
    return float(np.mean(hits))


def paired_tests(scores: dict[str, np.ndarray], test_to_train: float) -> list[dict[str, Any]]:
    """Every kernel against its rival on the same folds: corrected t-test, Holm over all tests."""
    from treelens.selection.gain import corrected_paired_test

    tests: list[dict[str, Any]] = []
    for name in scores:
        rival = _rival_of(name, list(scores))
        if rival is not None:
            difference = scores[name] - scores[rival]
            mean, error, p_better = corrected_paired_test(difference, test_to_train)
            # Equal differences on all folds have no spread to test against: no evidence.
            p_value = min(1.0, 2 * min(p_better, 1 - p_better)) if error > 0 else 1.0
            tests.append(
                {"kernel": name, "against": rival, "difference": mean, "standard_error": error,
                 "p_value": p_value}
            )  # fmt: skip
    adjusted = holm([test["p_value"] for test in tests])
    return [{**test, "p_holm": p} for test, p in zip(tests, adjusted, strict=True)]


def _rival_of(name: str, names: list[str]) -> str | None:
    twin = SVC_KERNELS[name][1] if name in SVC_KERNELS else None
    twin = "evidence_uniform" if name in EVIDENCE_KERNELS and name != "evidence_uniform" else twin
    rival = twin if twin in names else names[0]
    return None if rival == name else rival


def holm(p_values: list[float]) -> list[float]:
    """P-values adjusted for their number (Holm 1979).

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, position in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[position]))
        adjusted[position] = largest
    return adjusted


def show_evaluation(output: Output, result: dict[str, Any]) -> None:
    """For a person at a terminal."""
    tests = {test["kernel"]: test for test in result["tests"]}
    n_splits = result["n_folds"] * result["n_repeats"]
    rows = [["majority class", percent(result["majority"]), "", "", "", "", ""]]
    for row in result["kernels"]:
        test = tests.get(row["kernel"])
        accuracy = f"{percent(row['accuracy'])} ± {100 * row['standard_deviation']:.1f}"
        verdict = ["", "", ""]
        if test is not None:
            change = f"{100 * test['difference']:+.1f} ± {100 * test['standard_error']:.1f}"
            verdict = [change, test["against"], f"{test['p_holm']:.3f}"]
        learned = f"{row['n_folds_learned']} of {n_splits} folds"
        rows.append([row["kernel"], accuracy, learned, *verdict, f"{row['seconds']:.0f} s"])
    columns = ["kernel", "accuracy", "learned in", "difference", "against", "p (Holm)", "time"]
    title = (
        f"{result['source']}: {result['n_graphs']} graphs, {result['n_folds']} outer folds"
        + (f" x {result['n_repeats']}" if result["n_repeats"] > 1 else "")
        + ", settings chosen within each"
    )
    output.table(columns, rows, title)
    output.line("Differences in points; two-sided corrected resampled t-test (Nadeau and Bengio).")
