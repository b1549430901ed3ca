"""Classes of molecules from rows made before ``compare``: sets that it has not run, and more."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from reproduction.pages import (
    Rows,
    common_rows,
    grouped,
    holm_of,
    markdown_table,
    mean_and_error,
    p_text,
    plus_minus,
    sections,
)
from treelens.evaluation.statistics import PairedTest, corrected_t_test, size_ratio

HIV_SCORES = {
    "roc_auc": "ROC AUC",
    "pr_auc": "PR AUC",
    "mcc": "MCC",
    "recall": "recall",
    "precision": "precision",
}
RARE_SCORES = {**HIV_SCORES, "balanced_accuracy": "balanced accuracy", "accuracy": "accuracy"}
SVC_NAMES = {
    "graph_classifier": "`GraphSVC`",
    "uniform": "`GraphSVC`, uniform weights",
    "ecfp4_tanimoto_svm": "ECFP4 bits, Tanimoto SVM",
    "ecfp4_count_tanimoto_svm": "ECFP4 counts, Tanimoto SVM",
    "ecfp4_random_forest": "ECFP4 bits, random forest",
}


def earlier_parts(out: Path) -> list[str]:
    """Return the sections of earlier rows."""
    makers = {"hiv": _hiv_parts, "rare": _rare_parts, "molecules": _svc_parts}
    return sections(out, makers)


def hiv_tests(rows: Rows) -> dict[str, PairedTest]:
    """Return the differences to the forest by score, with corrected tests."""
    ours, theirs = (
        {r["fold"]: r for r in rows if r["method"] == m} for m in ("treelens", "ecfp_forest")
    )
    folds = sorted(ours.keys() & theirs.keys())
    sizes = ([ours[f][key] for f in folds] for key in ("n", "n_train"))
    ratio = size_ratio(*sizes)
    return {
        score: corrected_t_test(*([m[f][score] for f in folds] for m in (ours, theirs)), ratio)
        for score in HIV_SCORES
    }


def _hiv_parts(rows: Rows) -> list[str]:
    names = {"treelens": "treelens", "ecfp_forest": "ECFP4 counts, forest of 500 trees"}
    kept, tests = common_rows(rows, [], ["fold"]), hiv_tests(rows)
    lines = [
        [
            names[m],
            *(plus_minus(*mean_and_error([r[s] for r in found]), 3) for s in HIV_SCORES),
            f"{np.mean([r['seconds'] for r in found]):.0f}",
        ]
        for m, found in grouped(kept, "method").items()
    ]
    shown = [plus_minus(test.difference, test.standard_error, 3) for test in tests.values()]
    lines.append(["difference", *shown, ""])
    lines.append(["p (Holm)", *map(p_text, holm_of(tests).values()), ""])
    return [
        "## HIV",
        "Rows made before the defaults were frozen. All readable molecules of HIV in five folds of "
        "whole scaffolds: `GraphClassifier()` as it then was, and a forest of 500 trees, else with "
        "scikit-learn's defaults, on ECFP4 counts folded to 2,048. "
        "Means over folds, ± the standard error; the difference is paired, over five folds only, "
        "with the corrected resampled t-test (Nadeau and Bengio), two-sided, and Holm's correction "
        "for five scores. "
        "MCC, recall and precision are of the predicted classes: the forest predicts the likelier "
        "class, ours uses a threshold tuned for rare classes, so these three do not compare the "
        "models. The figures flatter us: how weights of a rare class are learned was decided among "
        "nine variants on random splits of these molecules and with a look at the first fold, and "
        "how landmarks are drawn with a look at all folds.",
        markdown_table(["model", *HIV_SCORES.values(), "seconds"], lines),
    ]


def _rare_parts(rows: Rows) -> list[str]:
    names = {
        "default": "treelens",
        "named at 0.5": "treelens, the likelier class",
        "recall=0.9": "treelens, `threshold='recall=0.9'`",
        "ecfp_forest": "ECFP4 forest",
    }
    lines = [
        [
            name,
            f"{found[0]['n']:,}",
            f"{100 * found[0]['n_positive'] / found[0]['n']:.1f} %",
            names[method],
            *(f"{np.mean([r[s] for r in found]):.3f}" for s in RARE_SCORES),
        ]
        for (name, method), found in grouped(rows, "set", "method").items()
    ]
    return [
        "## Rare classes",
        "Molecules drawn from two sets, three stratified folds, mean scores of the rare class. By "
        "default the threshold has the largest leave-one-out Matthews correlation on the training "
        "molecules; *the likelier class* is the same model at a probability of 0.5; the forest has "
        "the same rule for its threshold as ours. That weights are learned with more of the rare "
        "class than its share was decided on these same folds, the rest on other splits of the "
        "same sets: our lines flatter a little.",
        markdown_table(["set", "molecules", "positive", "model", *RARE_SCORES.values()], lines),
    ]


def _svc_parts(rows: Rows) -> list[str]:
    cells = {
        key: plus_minus(*mean_and_error([r["roc_auc"] for r in found]), 3)
        for key, found in grouped(rows, "method", "dataset", "split").items()
    }
    places = list(dict.fromkeys(key[1:] for key in cells))
    lines = [
        [title, *(cells.get((method, *place), "") for place in places)]
        for method, title in SVC_NAMES.items()
    ]
    learned = [r["choice"]["weight_radius"] > 0 for r in rows if r["method"] == "graph_classifier"]
    return [
        "## The paper's system on molecules",
        "`GraphSVC` with kernel, depth, γ, C and radius chosen by ROC AUC in a cross-validation on "
        "the training part (a smaller grid on Ames), beside fingerprint models that choose C. ROC "
        "AUC, ± the standard error over five folds. Copies of a molecule may lie in two random "
        "folds here. Rows of an earlier study; `panel` runs `GraphSVC` on its own folds now. The "
        "default grid was settled on other random folds of these molecules, so the "
        f"leads are a little flattered. Learned weights were chosen in {sum(learned)} of "
        f"{len(learned)} folds.",
        markdown_table(["ROC AUC", *(f"{name}, {split}" for name, split in places)], lines),
    ]
