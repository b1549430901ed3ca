"""Decisions: campaigns of suggestions, advice on held-out matched pairs, and their page."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr
from sklearn.ensemble import RandomForestRegressor

import treelens as tl
from reproduction.data import Assay, Molecules, StudyOptions, load_assay, load_molecules
from reproduction.pages import (
    Rows,
    common_rows,
    grouped,
    listed,
    markdown_table,
    mean_and_error,
    plus_minus,
    save_figure,
    sections,
    signed,
    write_page,
)
from treelens.chem.baselines import BASELINES
from treelens.chem.descriptors import COMPACT_DESCRIPTORS
from treelens.chem.ecfp import folded_counts, molecules_behind
from treelens.chem.identity import same_molecules
from treelens.chem.matched_pairs import Change, matched_pairs, substituent_text
from treelens.chem.parsing import parsed_smiles
from treelens.evaluation.metrics import NINETY
from treelens.gp.covariates import columns_of
from treelens.graphs.kinds import DESCRIPTOR_PREFIX

SETS = ("ESOL", "FreeSolv", "Lipophilicity", "CHEMBL204_Ki")
CHOICE_SETS = ("ESOL", "FreeSolv")  # what the default of suggest was chosen on
# The strategy with its settings, and the model whose predictions it is about.
METHODS: dict[str, tuple[str, dict[str, Any], Any]] = {
    "random": ("random", {}, None),
    "greedy": ("greedy", {}, tl.GraphRegressor),
    "expected_improvement": ("expected_improvement", {}, tl.GraphRegressor),
    "ecfp_gp": ("expected_improvement", {}, BASELINES["ecfp_gp"][1]),
    "ecfp_forest": ("greedy", {}, RandomForestRegressor),
}
# Tried on those two sets only.
CHOICES: dict[str, tuple[str, dict[str, Any], Any]] = {
    "best_only": ("expected_improvement", {"n_best": 1}, tl.GraphRegressor),
    "ucb": ("ucb", {}, tl.GraphRegressor),
    "thompson": ("thompson", {}, tl.GraphRegressor),
}
LARGEST = 2000  # molecules of a set, drawn at random from a larger one
N_START, N_BATCH, N_ROUNDS, N_REPEATS = 50, 20, 10, 10
N_CHOICES = 3  # repetitions of what was only tried
TOP = 0.02


def run_campaigns(options: StudyOptions) -> None:
    """Make the rows that are missing, repetition by repetition."""
    loaded = cache(load_set)
    with options.rows("campaign", ("set", "method", "seed")) as rows:
        for seed in range(options.repeats or N_REPEATS):
            for name in options.sets or SETS:
                more = CHOICES if name in CHOICE_SETS and seed < N_CHOICES else ()
                for method in options.methods or (*METHODS, *more):
                    key = {"set": name, "method": method, "seed": seed}
                    if key not in rows:
                        rows.add(key, campaign, loaded(name), method, seed, options.n_jobs)


def load_set(name: str) -> Molecules:
    """Load a set with each molecule once, the first; the same 2,000 of a larger one every time."""
    data = load_molecules(name)
    kept = np.unique(same_molecules(data.graphs).groups)
    if len(kept) > LARGEST:
        kept = np.sort(np.random.default_rng(0).choice(kept, LARGEST, replace=False))
    # Computed once, not in every round.
    names = [DESCRIPTOR_PREFIX + name for name in COMPACT_DESCRIPTORS]
    graphs = data.graphs[kept]
    graphs = graphs.with_data(columns_of(graphs, names))
    return Molecules(graphs, [data.smiles[k] for k in kept], data.values[kept])


def campaign(
    data: Molecules, method: str, seed: int, n_jobs: int, n_rounds: int = N_ROUNDS
) -> dict[str, Any]:
    """Measure 50 molecules, then batches of 20, with a new fit before each batch."""
    # Returns the share of the best 2 % of all molecules that is known after each batch.
    start = time.perf_counter()
    strategy, settings, model = {**METHODS, **CHOICES}[method]
    rng = np.random.default_rng(seed)
    n, values = len(data.values), data.values
    best = np.argsort(-values, kind="stable")[: max(1, round(TOP * n))]
    known = rng.permutation(n)[:N_START]
    found = [float(np.isin(best, known).mean())]
    for _ in range(n_rounds):
        rest = np.setdiff1d(np.arange(n), known)
        if strategy == "random":
            batch = rng.choice(rest, N_BATCH, replace=False)
        elif model is RandomForestRegressor:
            batch = rest[_forest(data, known, rest, n_jobs)]
        else:
            fitted = model(n_jobs=n_jobs, random_state=0).fit(data.graphs[known], values[known])
            seeded = int(rng.integers(2**31))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                table = tl.suggest(
                    fitted, data.graphs[rest], N_BATCH, strategy, random_state=seeded, **settings
                )
            batch = rest[table["index"].to_numpy()]
        known = np.concatenate([known, batch])
        found.append(float(np.isin(best, known).mean()))
    seconds = time.perf_counter() - start
    return {"found": found, "n": n, "n_best": len(best), "seconds": seconds}


def _forest(data: Molecules, known: np.ndarray, rest: np.ndarray, n_jobs: int) -> np.ndarray:
    """The largest predictions of a forest of 100 trees on ECFP4 counts, scikit-learn's default."""
    counts = _counts(tuple(data.smiles))
    counts = counts[:, counts[known].any(axis=0)]  # the others only take time
    trees = RandomForestRegressor(100, n_jobs=n_jobs, random_state=0)
    predicted = trees.fit(counts[known], data.values[known]).predict(counts[rest])
    return np.argsort(-predicted, kind="stable")[:N_BATCH]


@lru_cache(maxsize=1)
def _counts(smiles: tuple[str, ...]) -> np.ndarray:
    return folded_counts(parsed_smiles(smiles)).astype(np.float32)


ASSAYS = ("CHEMBL204_Ki", "CHEMBL231_Ki", "CHEMBL244_Ki")
ADVISERS = {"default": tl.GraphRegressor, "ecfp_gp_radii": BASELINES["ecfp_gp"][1]}


def run_advice(options: StudyOptions) -> None:
    """Make the rows that are missing: each assay on its published split."""
    with options.rows("advice", ("set", "method")) as rows:
        for name in options.sets or ASSAYS:
            keys = [{"set": name, "method": method} for method in options.methods or ADVISERS]
            if all(key in rows for key in keys):
                continue
            assay = load_assay(name)
            pairs = held_out_pairs(assay.graphs, assay.values, *assay.split)
            for key in keys:
                rows.add(key, _advice_scores, key["method"], assay, pairs, options)


def held_out_pairs(
    graphs: Any, values: np.ndarray, train: np.ndarray, test: np.ndarray
) -> dict[str, np.ndarray]:
    """Return pairs of test molecules, and the mean difference of training pairs of the change."""
    # Each pair counts once, with its smallest change; `expected` is NaN where no training pair
    # shows the change.
    molecules = molecules_behind(graphs)
    smallest: dict[tuple[int, int], Change] = {}
    for change, one, other in matched_pairs([molecules[k] for k in test]):
        size = len(substituent_text(change.before) + substituent_text(change.after))
        known = smallest.get((one, other))
        if one < other and (known is None or size < len(known.text) - 4):
            smallest[one, other] = change
    shown: dict[Change, list[float]] = {}
    wanted = set(smallest.values())
    known_values = values[train]
    for change, one, other in matched_pairs([molecules[k] for k in train]):
        if change in wanted:
            shown.setdefault(change, []).append(known_values[other] - known_values[one])
    one, other = np.array(list(smallest), dtype=int).reshape(-1, 2).T
    expected = [np.mean(shown[c]) if c in shown else np.nan for c in smallest.values()]
    return {"one": one, "other": other, "expected": np.array(expected)}


def _advice_scores(
    method: str, assay: Assay, pairs: dict[str, np.ndarray], options: StudyOptions
) -> dict[str, Any]:
    graphs, values, (train, test) = assay.graphs, assay.values, assay.split
    start = time.perf_counter()
    model = ADVISERS[method](n_jobs=options.n_jobs, random_state=0).fit(
        graphs[train], values[train]
    )
    mean, covariance = model.predict(graphs[test], return_cov=True, include_noise=False)
    one, other, expected = pairs["one"], pairs["other"], pairs["expected"]
    measured = values[test][other] - values[test][one]
    predicted = mean[other] - mean[one]
    own = np.diagonal(covariance)
    noise = 2.0 * model.noise_  # of two measurements
    apart = own[one] + own[other]
    joint = np.maximum(apart - 2.0 * covariance[one, other], 0.0)
    seen, large = ~np.isnan(expected), np.abs(measured) >= 0.5
    return {
        "n_pairs": len(measured),
        "n_train": len(train),
        "n_test": len(test),
        "correlation": _correlation(predicted, measured),
        "rank_correlation": float(spearmanr(predicted, measured).statistic),
        "rmse": float(np.sqrt(np.mean((predicted - measured) ** 2))),
        "rmse_of_none": float(np.sqrt(np.mean(measured**2))),  # no difference predicted
        "right_sign": float(np.mean(np.sign(predicted[large]) == np.sign(measured[large]))),
        "n_large": int(large.sum()),
        **_intervals("joint", predicted - measured, joint + noise),
        **_intervals("apart", predicted - measured, apart + noise),
        "n_supported": int(seen.sum()),
        "correlation_supported": _correlation(predicted[seen], measured[seen]),
        "correlation_pairs": _correlation(expected[seen], measured[seen]),
        "seconds": time.perf_counter() - start,
    }


def _correlation(one: np.ndarray, other: np.ndarray) -> float | None:
    return float(np.corrcoef(one, other)[0, 1]) if len(one) > 2 else None


def _intervals(name: str, error: np.ndarray, variance: np.ndarray) -> dict[str, float]:
    """Share of errors within 90 % intervals, and the mean width of these."""
    half = NINETY * np.sqrt(variance)
    return {
        f"coverage_{name}": float(np.mean(np.abs(error) <= half)),
        f"width_{name}": float(2.0 * half.mean()),
    }


OURS = "expected_improvement"
NAMES = {
    OURS: "treelens, expected improvement (default)",
    "greedy": "treelens, greedy",
    "ecfp_gp": "ECFP6 GP, expected improvement",
    "ecfp_forest": "ECFP4 random forest, greedy",
    "random": "random",
    "best_only": "treelens, expected improvement of the one best value",
    "ucb": "treelens, mean plus one standard deviation",
    "thompson": "treelens, Thompson sampling",
}
# Colours of Okabe and Ito, told apart by line style as well.
_STYLES = {
    OURS: ("#d55e00", "-"),
    "greedy": ("#0072b2", "--"),
    "ecfp_gp": ("#009e73", "-."),
    "ecfp_forest": ("#666666", ":"),
    "random": ("#aaaaaa", "-"),
}


def write(out: Path) -> Path | None:
    """Write ``decisions.md`` and the figure of campaigns."""
    makers = {"campaign": partial(_campaign_parts, out), "advice": _advice_parts}
    parts = sections(out, makers)
    title = "Which compounds next, and which change"
    return write_page(out, "decisions", title, parts) if parts else None


# --- campaigns --------------------------------------------------------------------------------


def _campaign_parts(out: Path, rows: Rows) -> list[str]:
    kept = [row for row in rows if row["method"] in METHODS]
    sets = [n for n in SETS if {r["method"] for r in kept if r["set"] == n} == set(METHODS)]
    kept = [row for row in kept if row["set"] in sets]
    if not kept:
        return []
    draw_campaigns(out / "figures", kept)
    first = {row["set"]: row for row in kept}
    sizes = [f"{n} ({first[n]['n']:,} molecules, {first[n]['n_best']} best)" for n in sets]
    header = ["method", *sets, "mean", "repetitions"]
    return [
        "## Campaigns",
        f"A campaign on molecules whose values are all known: {N_START} drawn at random are "
        f"measured, then ten batches of {N_BATCH} that [`suggest`](../guide/next-compounds.md) "
        "chooses, with a new fit before each batch. The score is the share of the best 2 % (the "
        f"highest values) that has been measured. Sets: {listed(sizes)}; larger sets were cut to "
        "2,000 at random, of the assay the published training part was used. Each repetition has "
        "another start, the same for all methods. The ECFP GP has the same kernel and the same "
        "acquisition; the forest has scikit-learn's default settings, not tuned.",
        "![Share of the best molecules found against the number measured](figures/campaigns.png)",
        "Share found, the mean over the ten batches (in percent, with standard errors):",
        markdown_table(header, _lines(kept, sets, _over_batches)),
        f"Share found after five batches ({N_START + 5 * N_BATCH} molecules measured):",
        markdown_table(header, _lines(kept, sets, lambda row: row["found"][5])),
        _difference_text(kept, sets),
        *_choice_parts(rows),
    ]


def _over_batches(row: Mapping[str, Any]) -> float:
    return float(np.mean(row["found"][1:]))


def _lines(rows: Rows, sets: list[str], score: Any, methods: Any = METHODS) -> list[list[str]]:
    cells = {
        key: [100 * score(row) for row in found]
        for key, found in grouped(rows, "set", "method").items()
    }
    means = {m: float(np.mean([np.mean(cells[name, m]) for name in sets])) for m in methods}
    lines = []
    for method in sorted(methods, key=lambda m: -means[m]):
        found = [cells[name, method] for name in sets]
        few, many = min(map(len, found)), max(map(len, found))
        texts = [plus_minus(*mean_and_error(values), 1) for values in found]
        repeats = f"{few}" if few == many else f"{few} to {many}"
        lines.append([NAMES[method], *texts, f"{means[method]:.1f}", repeats])
    return lines


def mean_differences(rows: Rows, sets: list[str], theirs: str) -> tuple[float, float | None]:
    """Return our share less that of another method, paired by start, as a mean over sets."""
    # The standard error is that of the mean over sets, whose repetitions are independent.
    found = {(r["set"], r["method"], r["seed"]): 100 * _over_batches(r) for r in rows}
    means, squares = [], []
    for name in sets:
        seeds = [seed for s, m, seed in found if (s, m) == (name, theirs)]
        apart = [
            found[name, OURS, seed] - found[name, theirs, seed]
            for seed in seeds
            if (name, OURS, seed) in found
        ]
        mean, error = mean_and_error(apart)
        means.append(mean)
        squares.append(np.nan if error is None else error**2)
    error = float(np.sqrt(np.sum(squares)) / len(sets))
    return float(np.mean(means)), None if np.isnan(error) else error


def _difference_text(rows: Rows, sets: list[str]) -> str:
    texts = []
    for theirs in ("greedy", "ecfp_gp", "ecfp_forest", "random"):
        mean, error = mean_differences(rows, sets, theirs)
        about = "" if error is None else f" ± {error:.1f}"
        texts.append(f"{signed(mean, 1)}{about} to {NAMES[theirs]}")
    others = [name for name in sets if name not in CHOICE_SETS]
    text = (
        "Differences of the default, in points of the share over the ten batches, paired by start "
        f"and averaged over the sets (with standard errors): {'; '.join(texts)}."
    )
    if others and len(others) < len(sets):
        apart = [mean_differences(rows, others, m) for m in ("greedy", "ecfp_gp")]
        shown = [signed(mean, 1) + ("" if e is None else f" ± {e:.1f}") for mean, e in apart]
        text += (
            f" On {listed(others)} alone, which the strategy was not chosen on: {shown[0]} to "
            f"greedy, {shown[1]} to the ECFP GP. Settings of the model itself were chosen on some "
            "of these, too: see [defaults](defaults.md)."
        )
    return text


def _choice_parts(rows: Rows) -> list[str]:
    tried = [m for m in CHOICES if any(row["method"] == m for row in rows)]
    if not tried:
        return []
    methods = (OURS, "greedy", *tried)
    kept = [r for r in rows if r["set"] in CHOICE_SETS and r["method"] in methods]
    kept = list(common_rows(kept, ["set"], ["seed"]))
    sets = [name for name in CHOICE_SETS if any(r["set"] == name for r in kept)]
    if len({(r["set"], r["method"]) for r in kept}) < len(sets) * len(methods):
        return []
    lines = _lines(kept, sets, _over_batches, methods)
    return [
        "### How the default was chosen",
        f"On {listed(sets)} only. The usual expected improvement looks "
        "for one value above the best measured so far; a batch of 20 is better spent on values "
        "that improve the 20 best, which is the default (`n_best`). There are too few repetitions "
        "to order methods that lie close together.",
        markdown_table(["method", *sets, "mean", "repetitions"], lines),
    ]


def draw_campaigns(folder: Path, rows: Rows) -> list[Path]:
    """Draw one panel a set: the share found against the number of molecules measured."""
    from matplotlib.figure import Figure

    by_set = grouped(rows, "set")
    figure = Figure(figsize=(0.6 + 2.6 * len(by_set), 3.2), layout="constrained")
    panels = figure.subplots(1, len(by_set), squeeze=False, sharey=True)[0]
    for panel, (name, found) in zip(panels, by_set.items(), strict=True):
        by_method = grouped(found, "method")
        for method, (color, line) in _STYLES.items():
            shares = 100 * np.array([row["found"] for row in by_method[method]])
            measured = N_START + N_BATCH * np.arange(shares.shape[1])
            error = shares.std(axis=0, ddof=min(1, len(shares) - 1)) / np.sqrt(len(shares))
            panel.errorbar(
                measured,
                shares.mean(axis=0),
                error,
                label=NAMES[method],
                color=color,
                ls=line,
                lw=1.6,
            )
        panel.set(title=name, xlabel="molecules measured")
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("best 2 % found, percent")
    panels[-1].legend(frameon=False, fontsize=7)
    return save_figure(figure, folder, "campaigns")


# --- advice -----------------------------------------------------------------------------------


def _advice_parts(rows: Rows) -> list[str]:
    names = {"default": "treelens", "ecfp_gp_radii": "ECFP6 GP"}
    header = [
        "assay",
        "method",
        "pairs",
        "correlation",
        "rank correlation",
        "RMSE",
        "RMSE of no difference",
        "right sign",
        "in 90 % interval",
        "width",
        "without covariance",
        "width",
    ]
    lines = [
        [
            row["set"],
            names[row["method"]],
            row["n_pairs"],
            f"{row['correlation']:.2f}",
            f"{row['rank_correlation']:.2f}",
            f"{row['rmse']:.2f}",
            f"{row['rmse_of_none']:.2f}",
            f"{100 * row['right_sign']:.0f} %",
            f"{100 * row['coverage_joint']:.1f} %",
            f"{row['width_joint']:.2f}",
            f"{100 * row['coverage_apart']:.1f} %",
            f"{row['width_apart']:.2f}",
        ]
        for row in rows
    ]
    ours = [row for row in rows if row["method"] == "default"]
    supported = [
        [
            row["set"],
            row["n_supported"],
            f"{row['correlation_supported']:.2f}",
            f"{row['correlation_pairs']:.2f}",
        ]
        for row in ours
    ]
    return [
        "## Advice on matched pairs",
        "Fitted to the published training part of an assay; all matched pairs (single cuts, at "
        "most ten heavy atoms changed) of which both molecules are in the test part. Predicted "
        "against measured differences of pK. *Right sign* is of pairs that differ by 0.5 or more. "
        "An interval contains the noise of two measurements; *without covariance* the two "
        "predictions are taken as independent, which makes it wider than needed.",
        markdown_table(header, lines),
        "Where the training part has pairs with the same change at the same kind of atom, their "
        "mean difference is the classical prediction of a matched-pair analysis. Correlation with "
        "the measured difference, on the held-out pairs that have one:",
        markdown_table(["assay", "pairs", "treelens", "mean of training pairs"], supported),
    ]
