"""Rows of the result tables: the default model, its fixed choices and rivals on every set.

``python -m reproduction compare --part numbers`` makes one row per set, split and method. A run
that was stopped goes on where it was. Several runs may share the work: ``--worker 0/2`` and
``--worker 1/2`` take every other split.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from itertools import count
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from rdkit import Chem
from scipy import stats
from sklearn import metrics
from sklearn.base import clone
from sklearn.model_selection import GroupShuffleSplit, StratifiedGroupKFold

import treelens as tl
from reproduction.chemprop_rival import ChempropClassifier, ChempropRegressor
from reproduction.data import (
    TDC_SETS,
    StudyOptions,
    data_folder,
    load_assay,
    load_classes,
    load_molecules,
    read_tdc,
)
from reproduction.frozen import digest, source_of_library
from reproduction.protocol import N_OUTER, outer_split
from reproduction.rows import read_rows
from treelens.chem.baselines import (
    BoostingClassifier,
    BoostingRegressor,
    EcfpForestClassifier,
    EcfpForestRegressor,
)
from treelens.chem.parsing import molecules_behind, quiet
from treelens.chem.views import Ecfp
from treelens.evaluation.metrics import class_scores, number_scores
from treelens.evaluation.splits import ScaffoldKFold
from treelens.evaluation.statistics import bootstrap_interval
from treelens.evaluation.validation import codes_among, in_units, predicted_numbers
from treelens.graphs.content import structure_hashes
from treelens.maps import TargetMap

KEY = ("set", "kind", "split", "method")
LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # of the calibration curve
# Assays that served to choose settings. The other eighteen are run once, with frozen defaults.
OLD_ASSAYS = (
    "CHEMBL2835_Ki",
    "CHEMBL2047_EC50",
    "CHEMBL1862_Ki",
    "CHEMBL2034_Ki",
    "CHEMBL4005_Ki",
    "CHEMBL231_Ki",
    "CHEMBL218_EC50",
    "CHEMBL239_EC50",
    "CHEMBL219_Ki",
    "CHEMBL235_EC50",
    "CHEMBL204_Ki",
    "CHEMBL244_Ki",
)
NEW_ASSAYS = (
    "CHEMBL4616_EC50",
    "CHEMBL237_EC50",
    "CHEMBL262_Ki",
    "CHEMBL3979_EC50",
    "CHEMBL4203_Ki",
    "CHEMBL2971_Ki",
    "CHEMBL2147_Ki",
    "CHEMBL1871_Ki",
    "CHEMBL287_Ki",
    "CHEMBL4792_Ki",
    "CHEMBL238_Ki",
    "CHEMBL264_Ki",
    "CHEMBL228_Ki",
    "CHEMBL237_Ki",
    "CHEMBL236_Ki",
    "CHEMBL233_Ki",
    "CHEMBL214_Ki",
    "CHEMBL234_Ki",
)


# --- methods ----------------------------------------------------------------------------------

# Name -> (classifier, regressor, settings).
Method = tuple[type, type, dict[str, Any]]
_OURS = tl.GraphClassifier, tl.GraphRegressor
_ECFP4, _ECFP6 = ({"weights": "depths", "views": [Ecfp(radius)]} for radius in (2, 3))
_CHEMPROP = ChempropClassifier, ChempropRegressor
WEIGHTS = ("uniform", "depths", "branches")
METHODS: dict[str, Method] = {
    # What the default may choose, and what each of these choices gives.
    "auto": (*_OURS, {}),
    **{w: (*_OURS, {"weights": w, "descriptors": False}) for w in WEIGHTS},
    **{f"{w}_descriptors": (*_OURS, {"weights": w, "descriptors": True}) for w in WEIGHTS},
    "landmarks": (*_OURS, {"exact_size": 2000, "n_landmarks": 2000}),
    # Weisfeiler-Lehman patterns alone: neither paths nor descriptors.
    "patterns": (*_OURS, {"views": [tl.WLPatterns()], "descriptors": False}),
    # Graphs with attributes of nodes, by their labels alone.
    "auto_labels": (*_OURS, {"views": [tl.WLPatterns(attributes="ignore"), tl.Paths()]}),
    **{
        f"{w}_labels": (*_OURS, {"weights": w, "views": [tl.WLPatterns(attributes="ignore")]})
        for w in WEIGHTS
    },
    # The same kernel on circular fingerprints, with a weight for each radius.
    "ecfp4_gp": (*_OURS, _ECFP4),
    "ecfp6_gp": (*_OURS, _ECFP6),
    "ecfp6_gp_descriptors": (*_OURS, {**_ECFP6, "descriptors": "compact"}),
    # Tuned by inner folds.
    "forest": (EcfpForestClassifier, EcfpForestRegressor, {}),
    "boosting": (BoostingClassifier, BoostingRegressor, {}),
    # One network and an ensemble of five, where chemprop is installed.
    "chemprop": (*_CHEMPROP, {}),
    "chemprop_ensemble": (*_CHEMPROP, {"n_networks": 5}),
}
GRAPHS = ("auto", *WEIGHTS)
LABELS = tuple(f"{method}_labels" for method in GRAPHS)
MOLECULES = (
    *GRAPHS,
    *(f"{w}_descriptors" for w in WEIGHTS),
    "ecfp4_gp",
    "ecfp6_gp",
    "ecfp6_gp_descriptors",
    "forest",
    "boosting",
)
CHEMPROP = ("chemprop", "chemprop_ensemble") if find_spec("chemprop") else ()
TUNED = ("forest", "boosting")  # by inner folds of the first split of each set


# --- sets and splits --------------------------------------------------------------------------


class Data(NamedTuple):
    """Graphs with classes (codes) or numbers, and the test parts that were published with them."""

    graphs: tl.GraphCollection
    y: np.ndarray
    classes: bool
    test: np.ndarray | None = None  # (n_graphs,) flags
    cliff: np.ndarray | None = None
    folds: tuple[np.ndarray, ...] = ()  # positions of each test part
    score: str | None = None  # what a single test part is scored by, with an interval


Split = tuple[str, int, np.ndarray, np.ndarray]  # kind, number, training and test part


def load_whole_assay(name: str) -> Data:
    """Read all molecules of an assay."""
    found = load_assay(name)
    return Data(found.graphs, found.values, False, found.test, found.cliff)


def load_numbers(name: str) -> Data:
    """Read a set of molecules with numbers."""
    found = load_molecules(name)
    return Data(found.graphs, found.values, False)


def load_molecule_classes(name: str) -> Data:
    """Read a set of molecules of two classes."""
    return Data(*load_classes(name), True)


def load_tu(name: str) -> Data:
    """Read a TU set with its attributes."""
    graphs, y = tl.read_tudataset(data_folder() / "tu" / f"{name}.zip")
    return Data(graphs, np.unique(y, return_inverse=True)[1], True)


def load_tdc(name: str) -> Data:
    """Read a set of the TDC ADMET group: the published training part, then the test part.

    Two test molecules of solubility_aqsoldb, which RDKit cannot read, are left out.
    """
    parts = [read_tdc(name, part) for part in ("train_val", "test")]
    with quiet():
        parts = [part[[Chem.MolFromSmiles(x) is not None for x in part["Drug"]]] for part in parts]
    smiles = [text for part in parts for text in part["Drug"]]
    y = np.concatenate([part["Y"].to_numpy() for part in parts])
    classes = TDC_SETS[name] in ("roc_auc", "pr_auc")
    test = np.repeat([False, True], [len(part) for part in parts])
    y = y.astype(int) if classes else y.astype(float)
    return Data(tl.as_graph_collection(smiles), y, classes, test, score=TDC_SETS[name])


def load_errica(name: str) -> Data:
    """Read a TU set with the ten outer folds of Errica et al. (2020)."""
    folds = json.loads((data_folder() / "errica" / "outer_test_folds.json").read_text())[name]
    return load_tu(name)._replace(folds=tuple(np.sort(np.array(fold)) for fold in folds))


def molecule_keys(graphs: tl.GraphCollection) -> np.ndarray:
    """A number per graph that copies and stereoisomers of a molecule share."""
    smiles = [Chem.MolToSmiles(m, isomericSmiles=False) for m in molecules_behind(graphs)]
    return np.unique(smiles, return_inverse=True)[1]


def published_split(data: Data, n_repeats: int) -> Iterator[Split]:
    """The split that an assay comes with."""
    assert data.test is not None
    yield "published", 0, np.flatnonzero(~data.test), np.flatnonzero(data.test)


def published_folds(data: Data, n_repeats: int) -> Iterator[Split]:
    """The folds that a set comes with."""
    everything = np.arange(len(data.y))
    for number, test in enumerate(data.folds):
        yield "fold", number, np.setdiff1d(everything, test), test


def random_and_scaffold_splits(data: Data, n_repeats: int) -> Iterator[Split]:
    """Random splits, four fifths for training, and five folds of whole scaffolds.

    Copies of a molecule are never in both parts; classes have five stratified random folds.
    """
    keys = molecule_keys(data.graphs)
    if data.classes:
        folds: Any = StratifiedGroupKFold(5, shuffle=True, random_state=0)
    else:
        folds = GroupShuffleSplit(n_repeats, test_size=0.2, random_state=0)
    for number, (train, test) in enumerate(folds.split(data.y, data.y, keys)):
        yield "random", number, train, test
    scaffolds = ScaffoldKFold(5, random_state=0).split(data.graphs)
    for number, (train, test) in enumerate(scaffolds):
        yield "scaffold", number, train, test


def table2_splits(data: Data, n_repeats: int) -> Iterator[Split]:
    """The folds of Table 2, ten in every repetition."""
    for repetition in range(n_repeats):
        for fold in range(N_OUTER):
            yield "fold", N_OUTER * repetition + fold, *outer_split(data.y, repetition, fold, 0)


class Part(NamedTuple):
    """Sets of one kind, their splits, and the methods that are run on them."""

    sets: tuple[str, ...]
    load: Callable[[str], Data]
    splits: Callable[[Data, int], Iterator[Split]]
    methods: tuple[str, ...]
    n_repeats: int = 1
    # What a set has instead: fewer repetitions, other methods, one kind of splits, and of some
    # methods only the first splits of each kind.
    repeats_of: Mapping[str, int] = MappingProxyType({})
    methods_of: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    kinds_of: Mapping[str, str] = MappingProxyType({})
    most_of: Mapping[str, Mapping[str, int]] = MappingProxyType({})


PARTS = {
    "moleculeace": Part(OLD_ASSAYS + NEW_ASSAYS, load_whole_assay, published_split, MOLECULES),
    "numbers": Part(
        ("FreeSolv", "ESOL", "Lipophilicity"),
        load_numbers,
        random_and_scaffold_splits,
        MOLECULES + CHEMPROP,
        n_repeats=20,
        most_of=dict.fromkeys(("FreeSolv", "ESOL", "Lipophilicity"), dict.fromkeys(CHEMPROP, 5)),
    ),
    "classes": Part(
        ("PTC_MR", "BBBP", "Ames_Hansen2009", "HIV"),
        load_molecule_classes,
        random_and_scaffold_splits,
        MOLECULES + CHEMPROP,
        kinds_of={"HIV": "scaffold"},
        # A forest takes more than an hour to tune and fit to one fold, boosting half of one.
        methods_of={"HIV": ("auto", "uniform", "branches", "ecfp6_gp", "boosting")},
        most_of={"HIV": {"boosting": 1}},
    ),
    "table2": Part(
        ("MUTAG", "PTC_MR", "PTC_DGCNN", "ENZYMES", "PROTEINS", "NCI1", "DD"),
        load_tu,
        table2_splits,
        GRAPHS,
        n_repeats=10,
        repeats_of={"NCI1": 1, "DD": 1},
        methods_of={"ENZYMES": LABELS, "PROTEINS": LABELS},
    ),
    "attributes": Part(
        ("BZR", "ENZYMES", "PROTEINS", "Letter-med"),
        load_tu,
        table2_splits,
        GRAPHS,
        n_repeats=10,
        repeats_of={"Letter-med": 1},
        # Labels alone of the other two are in Table 2, on the same folds.
        methods_of={"BZR": GRAPHS + LABELS, "Letter-med": (*GRAPHS, "auto_labels")},
    ),
    "tdc": Part(
        tuple(TDC_SETS),
        load_tdc,
        published_split,
        ("auto", "patterns", "ecfp6_gp_descriptors", "boosting"),
    ),
    "errica": Part(
        ("ENZYMES", "PROTEINS", "IMDB-BINARY", "NCI1", "DD"),
        load_errica,
        published_folds,
        ("auto", "uniform"),
    ),
}


FIRST_KIND = "random"  # of splits, where there are several kinds: rivals are tuned on its first
# Sets that choices must not be made by.
ASIDE = {*NEW_ASSAYS, *TDC_SETS, "IMDB-BINARY"}


# --- rows -------------------------------------------------------------------------------------


def run(options: StudyOptions) -> None:
    """Make the rows of a part (of all parts) that are missing, until the seconds are over."""
    deadline = time.monotonic() + (options.seconds or float("inf"))
    warnings.filterwarnings("ignore", ".*training graphs are copies")
    tuned = read_rows(options.out / "rows" / "tuned.jsonl")
    settings = {(row["set"], row["method"]): row for row in tuned}
    for name in parts_of(options):
        with options.rows(f"compare_{name}", KEY, shared=True) as rows:
            for key, *arguments in works(PARTS[name], options):
                if time.monotonic() > deadline:
                    return
                given = settings.get((key["set"], key["method"]))
                rows.add(key, scores, key["method"], *arguments, given)


def run_tuning(options: StudyOptions) -> None:
    """Make the rows of the settings of rivals, which are those of the first split of each set."""
    rivals = [method for method in options.methods or TUNED if method in TUNED]
    with options.rows("tuned", ("set", "method"), shared=True) as rows:
        for name in parts_of(options):
            for key, data, train, _ in works(PARTS[name], replace(options, methods=rivals)):
                first = PARTS[name].kinds_of.get(key["set"], FIRST_KIND)
                if key["split"] == 0 and key["kind"] in (first, "published"):
                    place = {"set": key["set"], "method": key["method"]}
                    rows.add(place, tuned_settings, key["method"], data, train)


def tuned_settings(method: str, data: Data, train: np.ndarray) -> dict[str, Any]:
    """Tune a rival; return its settings, the processor seconds, and what is at an end."""
    model, start = make_model(method, data.classes), _cpu_seconds()
    model.fit(data.graphs[train], data.y[train])
    best = model.best_params_
    ends = [name for name, axis in model._axes.items() if _is_open_end(name, axis, best[name])]
    return {"best_params": best, "cpu_seconds": _cpu_seconds() - start, "at_an_end": ends}


def _is_open_end(name: str, axis: tuple[Any, ...], value: Any) -> bool:
    """Whether a longer axis might have had something better; all features are all there are."""
    return name != "columns" and value in (axis[0], axis[-1]) and value != 1


def parts_of(options: StudyOptions) -> list[str]:
    """Return the parts that are asked for."""
    if options.part is not None and options.part not in PARTS:
        raise ValueError(f"There is no part {options.part!r}: choose among {', '.join(PARTS)}.")
    return [options.part] if options.part else list(PARTS)


LANDMARKS = {"numbers": "Lipophilicity", "classes": "Ames_Hansen2009", "table2": "NCI1"}
N_LANDMARK_SPLITS = 10  # of a set, none of whole scaffolds


def run_landmarks(options: StudyOptions) -> None:
    """Make the rows of the default through landmarks, on splits that it was run on exactly."""
    with options.rows("landmarks", KEY) as rows:
        for part, name in LANDMARKS.items():
            own = replace(options, sets=[name], methods=["auto"])
            for key, *arguments in works(PARTS[part], own):
                if key["kind"] != "scaffold" and key["split"] < N_LANDMARK_SPLITS:
                    rows.add({**key, "method": "landmarks"}, scores, "landmarks", *arguments)


def works(
    part: Part, options: StudyOptions
) -> Iterator[tuple[dict[str, Any], Data, np.ndarray, np.ndarray]]:
    """Yield key, data, training and test part of every row: the first split of all sets first."""
    # Rivals are tuned by inner folds alone: nothing of ours can be chosen by them.
    may_use_all = source_of_library()["defaults"] or {*(options.methods or GRAPHS)} <= {*TUNED}
    sets = options.sets or [name for name in part.sets if may_use_all or name not in ASIDE]
    if not may_use_all and (new := [name for name in sets if name in ASIDE]):
        raise ValueError(
            f"{', '.join(new)} must not be used before the defaults are frozen: run this where "
            "src/ is that of reproduction/frozen.json (python -m reproduction freeze)."
        )
    for method in options.methods or ():
        if method not in METHODS:
            raise ValueError(f"There is no method {method!r}: choose among {', '.join(METHODS)}.")
    loaded = cache(part.load)

    @cache
    def splits(name: str) -> list[Split]:
        n_repeats = options.repeats or part.repeats_of.get(name, part.n_repeats)
        found = part.splits(loaded(name), n_repeats)
        kind = part.kinds_of.get(name)
        kept = [split for split in found if kind is None or split[0] == kind]
        return sorted(kept, key=lambda split: split[1])  # kinds in turn

    worker, n_workers = options.worker
    left = list(enumerate(sets))
    for number in count():
        left = [(place, name) for place, name in left if number < len(splits(name))]
        if not left:
            return
        for place, name in left:
            if (number + place) % n_workers != worker:
                continue
            kind, split, train, test = splits(name)[number]
            most = part.most_of.get(name, {})
            for method in part.methods_of.get(name, part.methods):
                # `auto` stands for `auto_labels`, too
                wanted = {method, method.removesuffix("_labels")} & {*(options.methods or [method])}
                if not wanted or split >= most.get(method, split + 1):
                    continue
                key = dict(zip(KEY, (name, kind, split, method), strict=True))
                yield key, loaded(name), train, test


def make_model(method: str, classes: bool) -> Any:
    """Return an estimator of a method, on one thread."""
    classifier, regressor, settings = METHODS[method]
    return (classifier if classes else regressor)(**settings, n_jobs=1, random_state=0)


@cache
def _compile(method: str, classes: bool) -> None:
    """Fit once to few molecules, so that no row counts the time of a compiler."""
    graphs = tl.as_graph_collection(["C" * n + end for n in range(1, 13) for end in "ON"])
    y = np.arange(len(graphs)) % 2 if classes else np.arange(len(graphs), dtype=float)
    model = make_model(method, classes).fit(graphs, y)
    model.predict(graphs)


def scores(
    method: str,
    data: Data,
    train: np.ndarray,
    test: np.ndarray,
    tuned: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Fit and score a method on one split; processor seconds are those of fit and prediction.

    ``tuned`` is the row of a rival's settings, whose tuning counts as part of every fit.
    """
    if method not in CHEMPROP:  # a program of its own
        _compile(method, data.classes)
    model = clone(make_model(method, data.classes))
    if tuned is not None:
        model.set_params(settings=tuned["best_params"])
    start = _cpu_seconds()
    model.fit(data.graphs[train], data.y[train])
    fitted = _cpu_seconds()
    if data.classes:
        probabilities, labels = (
            ask(data.graphs[test]) for ask in (model.predict_proba, model.predict)
        )
    else:
        mean, std, scale = predicted_numbers(model, data.graphs[test])
    predicted = _cpu_seconds()
    if data.classes:
        found = _class_row(model.classes_, data, test, probabilities, labels)
    else:
        found = _number_row(data, test, mean, std, scale)
    content = structure_hashes(data.graphs)
    return {
        **found,
        "cpu_seconds": fitted - start + (0.0 if tuned is None else tuned["cpu_seconds"]),
        "predict_cpu_seconds": predicted - fitted,
        "n_train": len(train),
        "n_test": len(test),
        "data": digest(content, data.y),
        "test_part": digest(content[test], data.y[test]),
        "settings": {name: _plain(value) for name, value in METHODS[method][2].items()},
        **_choices(model),
    }


def _plain(value: Any) -> Any:
    return value if isinstance(value, (str, int, float)) else repr(value)


def _cpu_seconds() -> float:
    """Processor seconds of this process and of programs that it ran."""
    return time.process_time() + sum(os.times()[2:4])


def _number_row(
    data: Data, test: np.ndarray, mean: np.ndarray, std: np.ndarray | None, scale: TargetMap | None
) -> dict[str, Any]:
    truth = data.y[test]
    found: dict[str, Any] = dict(number_scores(truth, mean, std, scale))
    if std is not None:
        away = np.abs((truth if scale is None else scale.forward(truth)) - mean) / std
        within = {f"{x:g}": float(np.mean(away <= stats.norm.ppf(0.5 + x / 2))) for x in LEVELS}
        found["calibration"] = within
    median = mean if scale is None else scale.inverse(mean)
    mean = in_units(mean, std, scale)
    found["spearman"] = float(stats.spearmanr(truth, median).statistic)
    if data.score is not None:
        found["interval"] = interval_of(data.score, truth, median)
    if data.cliff is not None:
        cliff = data.cliff[test]
        found["rmse_cliff"] = float(np.sqrt(np.mean((truth - mean)[cliff] ** 2)))
        found["n_cliff"] = int(cliff.sum())
    if data.test is not None:
        # One split has no spread: tests between methods need the errors of molecules.
        found["errors"] = _short(mean - truth)
    return found


SCORES: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "mae": metrics.mean_absolute_error,
    "spearman": lambda truth, found: float(stats.spearmanr(truth, found).statistic),
    "roc_auc": metrics.roc_auc_score,
    "pr_auc": metrics.average_precision_score,
}


def interval_of(score: str, truth: np.ndarray, found: np.ndarray) -> list[float] | None:
    """Return the 95 % bootstrap interval of a score over test parts drawn with replacement."""

    def of(at: np.ndarray) -> float | None:
        constant = len(np.unique(truth[at])) < 2
        return None if constant else SCORES[score](truth[at], found[at])

    interval = bootstrap_interval(of, len(truth))
    return None if interval is None else _short(np.array(interval))


def _short(values: np.ndarray) -> list[float]:
    """Four digits of each."""
    return [float(f"{value:.4g}") for value in values.tolist()]


def _class_row(
    classes: np.ndarray,
    data: Data,
    test: np.ndarray,
    probabilities: np.ndarray,
    labels: np.ndarray,
) -> dict[str, Any]:
    predicted = codes_among(labels, classes)
    codes, n_classes = codes_among(data.y[test], classes), len(classes)
    found = class_scores(codes, predicted, probabilities, 1 if n_classes == 2 else None)
    errors = ((probabilities - np.eye(n_classes)[codes]) ** 2).sum(axis=1)
    found["brier"] = float(errors.mean()) / (2 if n_classes == 2 else 1)
    if data.score is not None:
        found["interval"] = interval_of(data.score, codes, probabilities[:, 1])
    # `predict` may have a threshold that was tuned for a rare class
    found["accuracy_likeliest"] = float(np.mean(probabilities.argmax(axis=1) == codes))
    return found


def _choices(model: Any) -> dict[str, Any]:
    """What a fitted model chose."""
    if hasattr(model, "best_params_"):
        return {"best_params": model.best_params_}
    gain = model.learning_gain_
    return {
        "best_depth": model.best_depth_,
        "best_weights": model.best_weights_,
        "uses_descriptors": model.uses_descriptors_,
        "converged": model.converged_,
        "evidence": model.evidence_,
        "compared": gain.compared,
        "gain": [gain.difference, gain.standard_error],
    }
