"""The models that ``treelens evaluate`` can put side by side, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from treelens.cli import options
from treelens.cli.console import InputError
from treelens.cli.fit_evidence import evidence_settings

if TYPE_CHECKING:
    from collections.abc import Callable

EVIDENCE = {"evidence": "branches", "evidence_depths": "depths", "evidence_uniform": "uniform"}
# Name -> kernels, and for learned weights the same with uniform ones.
SVC_KERNELS: dict[str, tuple[tuple[str, ...], str | None]] = {
    "wl_subtree": (("wl-subtree", "wl-subtree-cosine"), None),
    "wl_oa": (("wl-oa", "tanimoto"), None),
    "wwl": (("wwl",), None),
    "wl_tanimoto": (("tanimoto-rbf",), None),
    "learned_wl_subtree": (("wl-subtree", "wl-subtree-cosine"), "wl_subtree"),
    "learned_wl_oa": (("wl-oa", "tanimoto"), "wl_oa"),
    "learned_wwl": (("wwl",), "wwl"),
    "learned_wl_tanimoto": (("tanimoto-rbf",), "wl_tanimoto"),
}
BASELINE_NAMES = ("ecfp_forest", "ecfp_gp", "ecfp_svm")
KNOWN = (*EVIDENCE, "svc", *SVC_KERNELS, *BASELINE_NAMES)
DEFAULT = "evidence,evidence_uniform"
WITH_COVARIATES = "+covariates"  # after the name of a model that takes them
# Tanimoto kernels of more training molecules than this take more memory than most people have.
_MOST_COMPARED = 12_000


def model_names(models: str | None, baselines: str | None) -> list[str]:
    """Names from the two options, each once; ``--baselines all`` means all of them."""
    asked = (models or DEFAULT).split(",")
    if baselines is not None:
        asked += list(BASELINE_NAMES) if baselines == "all" else baselines.split(",")
    names = list(dict.fromkeys(name.strip() for name in asked))
    names = ["svc" if name == "auto" else name for name in names]  # what it used to be called
    for name in names:
        if name not in KNOWN:
            raise InputError(
                f"--models {name}: there is no such model. Known are {', '.join(KNOWN)}."
            )
    return names


def models_for(
    names: list[str],
    task: str,
    depth: str,
    edge_labels: bool | None,
    seed: int,
    jobs: int,
) -> dict[str, Any]:
    """An estimator for each name, not yet fitted."""
    options.check_jobs(jobs)
    made: dict[str, Any] = {}
    for name in names:
        if name in EVIDENCE:
            made[name] = _evidence_model(name, task, depth, seed, jobs)
        elif name in BASELINE_NAMES:
            made[name] = _baseline(name, task, seed, jobs)
        elif task == "regression":
            raise InputError(
                f"--models {name}: it learns classes, and this is a regression. Use of "
                f"{', '.join(EVIDENCE)}, or --task classification."
            )
        else:
            made[name] = _svc_model(name, depth, edge_labels, seed, jobs)
    return made


def beside_structure(models: dict[str, Any], covariates: list[str]) -> dict[str, Any]:
    """Models that learn by evidence take covariates, and stand beside themselves without any."""
    from treelens.cli.covariates import always_with

    plain = {name: model for name, model in models.items() if name in EVIDENCE}
    both = {
        f"{name}{WITH_COVARIATES}": always_with(model, covariates) for name, model in plain.items()
    }
    return {**both, **models}


def _evidence_model(name: str, task: str, depth: str, seed: int, jobs: int) -> Any:
    from treelens.estimators.evidence import GraphClassifier, GraphRegressor

    if "," in depth:
        raise InputError(
            f"--depth {depth}: {name} takes one depth. Give one, or name the models to compare "
            "with --models, without it."
        )
    kind = GraphRegressor if task == "regression" else GraphClassifier
    return kind(**evidence_settings(depth, EVIDENCE[name], seed, jobs), progress=False)


def _baseline(name: str, task: str, seed: int, jobs: int) -> Any:
    from treelens.estimators.baselines import BASELINES

    kind = BASELINES[name][task == "regression"]
    if kind is None:
        raise InputError(f"--models {name}: it learns classes, and this is a regression.")
    return kind(n_jobs=jobs, random_state=seed)


def _svc_model(name: str, depth: str, edge_labels: bool | None, seed: int, jobs: int) -> Any:
    from treelens.estimators.published import LearnedKernelSVC
    from treelens.estimators.svc import GraphSVC
    from treelens.estimators.weights import PairwiseWeights
    from treelens.pairwise.settings import QuasiNewton

    model = GraphSVC(
        depth=options.parsed_numbers(depth, "--depth", int),
        edge_labels="auto" if edge_labels is None else edge_labels,
        scoring="auto", random_state=seed, n_jobs=jobs, progress=False,
    )  # fmt: skip
    if name == "svc":
        return model
    kernels, twin = SVC_KERNELS[name]
    model.set_params(kernel=list(kernels), weight_radius=0.0)
    if twin is None:
        return model
    return LearnedKernelSVC(model, PairwiseWeights(solver=QuasiNewton(tol=1e-3), random_state=seed))


def drop_impossible(
    names: list[str], asked: str | None, task: str, n_train: int, molecular: bool,
    note: Callable[[str], None],
) -> list[str]:  # fmt: skip
    """Names without the baselines of ``--baselines all`` that cannot run here, with a note each."""
    if asked != "all":
        return names
    kept = []
    for name in names:
        if name == "ecfp_svm" and task == "regression":
            continue  # there is none of numbers: nothing to say
        if name in BASELINE_NAMES and not molecular:
            note(f"{name} is left out: these graphs were not read from molecules.")
        elif name in ("ecfp_gp", "ecfp_svm") and n_train > _MOST_COMPARED:
            note(f"{name} is left out: it compares all pairs, and {n_train:,} molecules are many.")
        else:
            kept.append(name)
    return kept


def rival_of(name: str, names: list[str]) -> str | None:
    """What a model is tested against: itself with uniform weights, else the first of the table.

    With covariates, what learns is tested against itself without them, uniform weights against the
    first other model that has them, too; models without any are tested among themselves.
    """
    base = name.removesuffix(WITH_COVARIATES)
    alike = [other for other in names if other.endswith(WITH_COVARIATES) == (base != name)]
    learns = base in EVIDENCE and base != "evidence_uniform"
    if base != name:
        others = [other for other in alike if other != name]
        return base if learns or not others else others[0]
    twin = SVC_KERNELS[name][1] if name in SVC_KERNELS else None
    twin = "evidence_uniform" if learns else twin
    rival = twin if twin in alike else alike[0]
    return None if rival == name else rival
