"""Time and memory for many graphs: single steps, blocks and workers.

``python -m benchmarks.bench_scaling [PART ...]`` measures the parts (all without a name) and
keeps the numbers in ``docs/results/scaling.json``; ``python -m benchmarks scaling`` shows them
against their targets. Every part runs in a process of its own, whose peak memory is its own.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import treelens as tl
from benchmarks.rows import Row
from treelens.graphs.blocks import Block
from treelens.graphs.synthetic import make_random_graphs

RESULTS = Path(__file__).parent.parent / "docs" / "results" / "scaling.json"


# --- costs of single steps --------------------------------------------------------------------


def costs() -> dict[str, Any]:
    """What a molecule of HIV costs on one core, step by step."""
    from treelens.patterns.histograms import PatternHistograms
    from treelens.patterns.vocabulary import PatternVocabulary

    path = Path(os.environ["TREELENS_DATA"], "smiles", "HIV.csv.gz")
    milliseconds: dict[str, float] = {}

    def timed(step: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = work()
        milliseconds[step] = 1e3 * (time.perf_counter() - start) / len(graphs)
        return result

    def read() -> Any:
        return _quietly(lambda: tl.read_smiles(path, on_invalid="skip"))[0]

    graphs = read()  # warms up
    PatternHistograms.from_colors(*PatternVocabulary.fit(graphs[:50], 4, True))  # compiles
    timed("parse", read)
    vocabulary, colors = timed("vocabulary", lambda: PatternVocabulary.fit(graphs, 4, True))
    timed("histograms", lambda: PatternHistograms.from_colors(vocabulary, colors))
    return {"n_graphs": len(graphs), "milliseconds": milliseconds}


def process_costs() -> dict[str, Any]:
    """What a Gaussian process through landmarks costs on one core, in processor time."""
    from treelens.gp.sparse_evidence import LandmarkSums

    from treelens.gp.landmarks import LandmarkPosterior
    from treelens.gp.model import WeightedForest
    from treelens.kernels.mixture import MixtureKernel, MixtureScales
    from treelens.patterns.features import select_features
    from treelens.patterns.forest import PatternForest, usual_trees

    path = Path(os.environ["TREELENS_DATA"], "smiles", "HIV.csv.gz")
    graphs, y = _quietly(lambda: tl.read_smiles(path, on_invalid="skip"))
    n, m = 4096, 1000
    forest, colors = PatternForest.fit(graphs[:n], 4, usual_trees(graphs))
    weighted = WeightedForest(forest, np.zeros(forest.n_patterns), np.ones(len(forest.levels)))
    features = weighted.weighed(forest.count(colors))
    kernel = MixtureKernel(weighted.weights, MixtureScales(0.2, 1e-3, 1.0, 0.5))
    landmarks = np.arange(0, n, n // m)[:m]
    anchors = select_features(features, landmarks)
    among = kernel.matrix(anchors, anchors)  # compiles
    rows, of_kernel = _processor_time(lambda: kernel.matrix(features, anchors))
    targets, noise = np.asarray(y[:n], dtype=float)[:, None], np.full(n, 0.1)
    sums, of_sums = _processor_time(
        lambda: LandmarkSums.gather(among.copy(), [(slice(0, n), rows)], noise, targets)
    )
    posterior, _ = LandmarkPosterior.of_sums(
        sums, landmarks, among, [(slice(0, n), rows)], noise, targets
    )
    _, of_variance = _processor_time(lambda: posterior.reduction(rows))
    _, of_looking = _processor_time(lambda: weighted.look_at(graphs[n : 2 * n]))
    return {
        "n_graphs": n, "n_landmarks": m,
        "kernel_ns": 1e9 * of_kernel / (n * m), "sums_ns": 1e9 * of_sums / (n * m**2),
        "variance_ns": 1e9 * of_variance / (n * m**2), "look_ms": 1e3 * of_looking / n,
    }  # fmt: skip


def _processor_time(work: Callable[[], Any]) -> tuple[Any, float]:
    """What the work gives, and its seconds of processor time: other programs add nothing to it."""
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


# --- time and memory against the number of graphs -----------------------------------------------


@dataclass(frozen=True)
class MadePart:
    """Synthetic graphs that are made when they are needed; the class is a majority of labels."""

    number: int
    n_graphs: int

    def load(self) -> Block:
        graphs = make_random_graphs(self.n_graphs, random_state=self.number)
        graph_of = np.repeat(np.arange(len(graphs)), graphs.sizes)
        common = np.bincount(graph_of, graphs.node_codes == 0, minlength=len(graphs))
        return Block(graphs, (common / graphs.sizes > 0.65).astype(int))


# Of the sample that patterns and weights are learned on, and of what all graphs are seen through.
GROWTH = {"depth": 2, "exact_size": 12_000, "learning_size": 1000, "n_landmarks": 1000}


def growth(n_graphs: str = "20000") -> dict[str, Any]:
    """Fit and predict generated blocks of 5,000 graphs."""
    model = tl.GraphClassifier(**GROWTH, n_jobs=1, random_state=0, progress=False)
    few = tl.GraphClassifier(**{**GROWTH, "exact_size": 200, "n_landmarks": 50}, n_jobs=1)
    few.fit([MadePart(0, 200), MadePart(1, 200)]).predict_proba([MadePart(0, 200)])  # compiles
    parts = [MadePart(i, 5000) for i in range(int(n_graphs) // 5000)]
    start, before = time.perf_counter(), time.process_time()
    model.fit(parts)
    fitted, processor = time.perf_counter() - start, time.process_time() - before
    chances, of_predicting = _processor_time(lambda: model.predict_proba(parts))
    assert len(chances) == int(n_graphs)
    return {
        **GROWTH, "n_graphs": int(n_graphs), "seconds": fitted, "cpu_seconds": processor,
        "cpu_seconds_predicting": of_predicting, "peak_gb": _peak_gigabytes(),
    }  # fmt: skip


# --- workers ------------------------------------------------------------------------------------


def process_workers(n_parts: str, n_graphs: str, n_landmarks: str) -> dict[str, Any]:
    """The second reading of blocks, by two Dask workers and by two joblib processes.

    It is what workers do in a fit; the rest is done here, and does not grow with the graphs.
    """
    from treelens.gp.blocks import posterior_of_blocks, sample_of_blocks
    from treelens.gp.targets import Targets, class_columns

    parts = [MadePart(i, int(n_graphs)) for i in range(int(n_parts))]
    sample = sample_of_blocks(parts, 2 * int(n_landmarks), seed=0)
    settings = {"exact_size": 10, "learning_size": 300, "n_landmarks": int(n_landmarks)}
    model = tl.GraphClassifier(depth=3, n_jobs=1, random_state=0, **settings)
    model.fit(sample.graphs, sample.y)
    targets, own = (
        Targets(class_columns(codes, 2), np.zeros(1), 1.0, np.ones(len(codes)))
        for codes in (sample.all_targets, sample.y)
    )

    def conditioned(executor: Any) -> Any:
        return posterior_of_blocks(model.model_, parts, sample, targets, own, 1, executor)

    n_graphs_in_all = len(sample.all_targets)
    return {"n_graphs": n_graphs_in_all, "n_landmarks": int(n_landmarks)} | _raced(conditioned)


def _raced(work: Callable[[Any], Any]) -> dict[str, Any]:
    """Seconds of two Dask workers and of two joblib processes, the best of three after one."""
    from treelens.gp.dask_executor import DaskExecutor, client_or_local
    from treelens.gp.executors import JoblibExecutor

    with client_or_local(n_workers=2) as client:
        executors = {"dask": DaskExecutor(client), "joblib": JoblibExecutor(2)}
        seconds: dict[str, list[float]] = {name: [] for name in executors}
        for _ in range(4):  # the first round warms up
            for name, executor in executors.items():
                start = time.perf_counter()
                work(executor)
                seconds[name].append(time.perf_counter() - start)
    best = {name: min(times[1:]) for name, times in seconds.items()}
    return {"seconds": best, "ratio": best["dask"] / best["joblib"]}


# --- running and showing ------------------------------------------------------------------------

PARTS: dict[str, tuple[Callable[..., dict[str, Any]], tuple[str, ...]]] = {
    "costs": (costs, ()),
    "process-costs": (process_costs, ()),
    **{f"growth-{n}": (growth, (str(n),)) for n in (20_000, 40_000, 80_000, 160_000)},
    "workers-process": (process_workers, ("20", "4000", "1000")),
}


def measure(name: str) -> dict[str, Any]:
    """One part, kept in the results."""
    result = _in_a_process_of_its_own(name)
    _keep(name, result)
    return result


def _in_a_process_of_its_own(name: str, *options: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.bench_scaling", "--here", name, *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def _keep(name: str, result: dict[str, Any]) -> None:
    results = _results() | {name: result}
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    RESULTS.with_suffix(".md").write_text(as_markdown())


def rows() -> Iterator[Row]:
    """What was measured last, against the targets; nothing runs again."""
    results = _results()
    if found := results.get("costs"):
        steps = ", ".join(f"{step} {x:.3f}" for step, x in found["milliseconds"].items())
        yield Row("HIV, cost of a molecule on one core, depth 4, in ms", steps, "-", None)
    if found := results.get("process-costs"):
        yield Row(
            f"HIV, a Gaussian process through landmarks, processor time on one core "
            f"({found['n_graphs']:,} molecules, {found['n_landmarks']:,} landmarks)",
            f"refine and count {found['look_ms']:.3f} ms a molecule; kernel "
            f"{found['kernel_ns']:.0f} ns a landmark; sums {found['sums_ns']:.3f} ns, variances "
            f"{found['variance_ns']:.3f} ns a pair of landmarks", "-", None,
        )  # fmt: skip
    grown = sorted(
        (r for k, r in results.items() if k.startswith("growth-")), key=lambda r: r["n_graphs"]
    )
    if len(grown) > 1:
        yield _growth_row(grown)
    if found := results.get("workers-process"):
        yield Row(
            f"Dask, two workers, against joblib, two processes, {found['n_graphs']:,} graphs, "
            f"{found['n_landmarks']:,} landmarks",
            f"{found['ratio']:.2f} x ({found['seconds']['dask']:.1f} against "
            f"{found['seconds']['joblib']:.1f} s)", "at most 1.3 x", found["ratio"] <= 1.3,
        )  # fmt: skip


def _growth_row(grown: list[dict[str, Any]]) -> Row:
    n = np.array([r["n_graphs"] for r in grown])
    processor = np.array([r["cpu_seconds"] for r in grown])
    power = float(np.polyfit(np.log(n), np.log(processor), 1)[0])  # small: much does not grow
    each, fixed = np.polyfit(n, processor, 1)
    further = 1e3 * np.diff(processor) / np.diff(n)  # ms, from one size to the next
    predicting = np.polyfit(n, [r["cpu_seconds_predicting"] for r in grown], 1)[0]
    memory = ", ".join(f"{r['peak_gb']:.2f}" for r in grown)
    return Row(
        f"GraphClassifier, {n[0]:,} to {n[-1]:,} synthetic graphs in blocks of 5,000 "
        f"(depth {grown[0]['depth']}, a sample of {grown[0]['exact_size']:,}, "
        f"{grown[0]['n_landmarks']:,} landmarks, one thread)",
        f"processor time of a fit {', '.join(f'{x:.1f}' for x in processor)} s: {fixed:.1f} s and "
        f"{1e3 * each:.3f} ms a graph ({', '.join(f'{x:.3f}' for x in further)} from one size to "
        f"the next), in all with the power {power:.2f}; of predictions {1e3 * predicting:.3f} ms a "
        f"graph; peak memory {memory} GB",
        "power at most 1.1, memory set by block and sample",
        power <= 1.1 and grown[-1]["peak_gb"] < 1.2 * grown[0]["peak_gb"],
    )


def as_markdown() -> str:
    """The table of the results page."""
    lines = [
        "# Scaling: what was measured", "",
        "Written by `python -m benchmarks.bench_scaling`, on two cores with nothing else running;",
        "the growth with the number of graphs was measured in processor time while other work ran.",
        "",
        "| claim | measured | target | met |", "| --- | --- | --- | --- |",
    ]  # fmt: skip
    signs = {True: "yes", False: "no", None: "-"}
    lines += [f"| {r.claim} | {r.measured} | {r.target} | {signs[r.met]} |" for r in rows()]
    return "\n".join(lines) + "\n"


def _results() -> dict[str, Any]:
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def _quietly(work: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return work()


def _peak_gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--here"]:
        function, options = PARTS[arguments[1]]
        print(json.dumps(function(*options, *arguments[2:])))
        return
    for name in arguments or PARTS:
        print(name, measure(name), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
