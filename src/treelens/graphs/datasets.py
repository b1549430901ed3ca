"""``load_dataset``: known data sets, found or downloaded, and checked; ``make_synthetic``."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from treelens.errors import GraphDataError, GraphFileNotFoundError
from treelens.graphs.collection import Graph, GraphCollection
from treelens.graphs.foreign import from_treelens
from treelens.graphs.kinds import GraphRecipe, kind_of_facts
from treelens.graphs.tables import read_bytes, table_of_bytes
from treelens.graphs.tudataset import (
    PARTS,
    REQUIRED_PARTS,
    TextFiles,
    collection_from_text,
    read_text_files,
)

OFFICIAL_ARCHIVES = "https://www.chrsmrrs.com/graphkerneldatasets"
_DOWNLOAD_TIMEOUT_S = 60


def load_dataset(
    name: str,
    *,
    folder: str | Path | None = None,
    download: bool = True,
    recipe: GraphRecipe | None = None,
) -> tuple[GraphCollection, np.ndarray]:
    """Load a data set by its name.

    It is looked for in ``folder``, in the folder that the environment variable ``TREELENS_DATA``
    names, and in the cache (``TREELENS_CACHE``, else the platform's cache folder): ``NAME.zip``, a
    folder ``NAME`` or, for molecules, ``NAME.csv.gz``, directly or in the folders ``tu`` and
    ``smiles``. If it is in none of them, the official archive is downloaded into the cache. Every
    text file is checked against its pinned SHA-256; one that is not pinned is an error.

    Parameters
    ----------
    name : str
        One of the names that :func:`list_datasets` lists.
    folder : str or Path, optional
        Where to look first.
    download : bool, default=True
        Whether to fetch the official archive when no copy is found.
    recipe : GraphRecipe, optional
        How to read molecules; by default as :func:`treelens.read_smiles` does.

    Returns
    -------
    graphs : GraphCollection
    y : ndarray, shape (n_graphs,)
        The class codes, as the files have them. Molecules that cannot be parsed are left out of
        both, with a warning that names their rows.

    Examples
    --------
    >>> load_dataset("MUTAG")[0]  # doctest: +SKIP
    GraphCollection(188 graphs, 3371 nodes, 3721 edges, 7 node labels, 4 edge labels)
    """
    info = dataset_info(name)
    path = _locate(info, folder) or _download(info, folder, allowed=download)
    content, digests = _content(info, path)
    _require_pins(info, path, digests)
    if isinstance(content, bytes):
        table = table_of_bytes(path, content)
        return kind_of_facts(table.columns).read_labelled(table, "label", recipe)
    graphs, y = collection_from_text(content)
    if graphs.n_edges != info.n_edges:
        found = f"{content.places['A']} has {graphs.n_edges:,} edges; {name} has {info.n_edges:,}"
        raise _other_version(info, path, found)
    return graphs, y


def list_datasets(folder: str | Path | None = None) -> list[dict[str, Any]]:
    """Return the known data sets, one dict each, ready for ``pandas.DataFrame``.

    ``path`` is where the set was found on this machine, or None.

    Examples
    --------
    >>> [row["name"] for row in list_datasets() if row["kind"] == "tu"][:3]
    ['MUTAG', 'PTC_MR', 'PTC_DGCNN']
    """
    columns = ("name", "kind", "n_graphs", "description", "downloadable")
    return [
        {column: getattr(info, column) for column in columns} | {"path": _locate(info, folder)}
        for info in DATASETS.values()
    ]


def verify_dataset(name: str, *, folder: str | Path | None = None) -> list[dict[str, Any]]:
    """Compare every file of a data set on this machine with its pinned checksum.

    ``status`` is ``"ok"``, ``"mismatch"``, ``"missing"`` or ``"unpinned"``; ``expected`` and
    ``found`` are SHA-256 or None.
    """
    info = dataset_info(name)
    path = _locate(info, folder)
    if path is None:
        raise _not_here(info, folder, "Verifying reads local files only.")
    return [{**row, "path": path} for row in _compared(info, _content(info, path)[1])]


# --- known data sets ------------------------------------------------------------------------

# Of the text files; archives themselves are not pinned. Copies of DD_A.txt with the same edges in
# another order of lines are about, so for that file the number of edges is checked instead.
_SHA256 = dict(map(str.split, Path(__file__).with_name("sha256.txt").read_text().splitlines()))


@dataclass(frozen=True)
class DatasetInfo:
    """A known data set."""

    name: str
    n_graphs: int  # rows for a file of SMILES, of which some may not parse
    n_edges: int | None  # undirected edges in all graphs; None for a file of SMILES
    description: str
    downloadable: bool = False  # from the official archive

    @property
    def kind(self) -> str:
        return "smiles" if self.n_edges is None else "tu"

    @property
    def file_stem(self) -> str:
        """NAME in NAME.zip or NAME.csv.gz."""
        return self.name.removesuffix("_smiles")

    @property
    def sha256(self) -> dict[str, str]:
        """The checksums of its text files, by name."""
        files = [f"{self.file_stem}_{part}.txt" for part in PARTS]
        files = files if self.kind == "tu" else [f"{self.file_stem}.csv"]
        return {file: _SHA256[file] for file in files if file in _SHA256}


_official = partial(DatasetInfo, downloadable=True)
_ALL = (
    _official("MUTAG", 188, 3721, "nitroaromatic compounds, mutagenic or not; bond types"),
    _official("PTC_MR", 344, 5054, "compounds carcinogenic to male rats or not; bond types"),
    DatasetInfo("PTC_DGCNN", 344, 8931, "PTC_MR with explicit hydrogens"),
    _official("PROTEINS", 1113, 81044, "proteins as graphs of secondary structures, enzyme or not"),
    _official("NCI1", 4110, 132753, "compounds active against lung cancer cells or not"),
    _official("ENZYMES", 600, 37282, "enzymes of six classes as graphs of secondary structures"),
    _official("DD", 1178, 843046, "proteins as graphs of amino acids, enzyme or not"),
    _official("BZR", 405, 15535, "ligands of the benzodiazepine receptor; 3-D coordinates"),
    _official("Letter-med", 2250, 7213, "drawings of fifteen letters as points; 2-D coordinates"),
    DatasetInfo("PTC_MR_smiles", 344, None, "the molecules of PTC_MR as SMILES, in another order"),
    DatasetInfo("BBBP", 2039, None, "molecules that pass the blood-brain barrier or not"),
    DatasetInfo("Ames_Hansen2009", 6512, None, "molecules, mutagenic in the Ames test or not"),
    DatasetInfo("HIV", 41127, None, "molecules that stop HIV from replicating or not"),
)
DATASETS = {info.name: info for info in _ALL}


def dataset_info(name: str) -> DatasetInfo:
    """Return the entry of a known data set; the error suggests similar names."""
    if name in DATASETS:
        return DATASETS[name]
    folded = {known.casefold(): known for known in DATASETS}
    close = difflib.get_close_matches(str(name).casefold(), folded, n=3)
    hint = f" Did you mean {' or '.join(repr(folded[match]) for match in close)}?" if close else ""
    raise GraphDataError(
        f"There is no data set named {name!r}.{hint} Known are: {', '.join(DATASETS)}. To read "
        "another, use read_tudataset(path) or read_smiles(path)."
    )


# --- where the files are --------------------------------------------------------------------


def cache_folder() -> Path:
    """Return the folder of downloads: ``TREELENS_CACHE``, else the platform's cache folder."""
    import pooch

    chosen = os.environ.get("TREELENS_CACHE")
    return Path(chosen).expanduser() if chosen else Path(pooch.os_cache("treelens"))


def _folders(folder: str | Path | None) -> Iterator[Path]:
    if folder is not None:
        folder = Path(folder).expanduser()
        if not folder.is_dir():
            raise GraphFileNotFoundError(f"folder={str(folder)!r} is not a folder that exists.")
        yield folder
    if from_environment := os.environ.get("TREELENS_DATA"):
        yield Path(from_environment).expanduser()
    yield cache_folder()


def _locate(info: DatasetInfo, folder: str | Path | None) -> Path | None:
    stem = info.file_stem
    files = [f"{stem}.csv.gz", f"{stem}.csv"]
    if info.kind == "tu":  # a folder by its edge file, so that an empty one is passed over
        files = [f"{stem}.zip", f"{stem}/{stem}_A.txt", f"{stem}_A.txt"]
    places = (place for top in _folders(folder) for place in (top / info.kind, top))
    paths = (place / file for place in places for file in files)
    return next((path for path in paths if path.is_file()), None)


def _not_here(info: DatasetInfo, folder: str | Path | None, why: str) -> GraphFileNotFoundError:
    file = f"{info.file_stem}.zip" if info.kind == "tu" else f"{info.file_stem}.csv.gz"
    looked = ", ".join(str(place) for place in _folders(folder))
    unset = "" if os.environ.get("TREELENS_DATA") else " (TREELENS_DATA is not set)"
    source = f" from {OFFICIAL_ARCHIVES}/{file}" if info.downloadable else ""
    return GraphFileNotFoundError(
        f"{info.name} was not found in {looked}{unset}. {why} To put it there by hand, get {file}"
        f"{source} and place it in one of these folders, or in one that you name with folder=..."
    )


def _download(info: DatasetInfo, folder: str | Path | None, allowed: bool) -> Path:
    """Fetch the official archive into the cache: complete and checked, or not at all."""
    import pooch

    if not info.downloadable:
        raise _not_here(info, folder, "It has no official archive to download.")
    if not allowed:
        raise _not_here(info, folder, "It was not downloaded, since download=False.")

    def download(url: str, part: str, source: object) -> None:
        """Download to a file that pooch removes after an error, and keeps otherwise."""
        pooch.HTTPDownloader(timeout=_DOWNLOAD_TIMEOUT_S)(url, part, source)
        try:
            _require_pins(info, Path(part), _content(info, Path(part))[1])
        except GraphDataError as error:
            raise GraphDataError(f"What {url} served was not kept: {error}") from error

    file = f"{info.name}.zip"
    cache = pooch.create(cache_folder(), f"{OFFICIAL_ARCHIVES}/", registry={file: None})
    try:
        return Path(cache.fetch(file, downloader=download))
    except GraphDataError:
        raise
    except OSError as error:  # no network, no such page, no room, no right to write
        reason = f"Downloading {cache.get_url(file)} into {cache.path} failed: {error}."
        raise _not_here(info, folder, reason) from error


# --- checksums ------------------------------------------------------------------------------


def _content(info: DatasetInfo, path: Path) -> tuple[TextFiles | bytes, dict[str, str]]:
    """Return what was read, and the SHA-256 of every text file, unpacked, by file name."""
    if info.kind == "smiles":
        data = read_bytes(path)
        return data, {f"{info.file_stem}.csv": sha256(data).hexdigest()}
    files = read_text_files(path)
    parts = files.contents.items()
    return files, {f"{files.name}_{part}.txt": sha256(data).hexdigest() for part, data in parts}


def _compared(info: DatasetInfo, digests: dict[str, str]) -> list[dict[str, Any]]:
    """Return the state of every file that a data set has or should have."""
    rows = []
    for file in sorted({*info.sha256, *digests}):
        expected, found = info.sha256.get(file), digests.get(file)
        status = "unpinned" if expected is None else "missing" if found is None else "mismatch"
        status = "ok" if expected == found else status
        rows.append({"file": file, "status": status, "expected": expected, "found": found})
    return rows


def _require_pins(info: DatasetInfo, path: Path, digests: dict[str, str]) -> None:
    """Raise where a file of a known data set is another, is missing or was added."""
    required = {f"{info.file_stem}_{part}.txt" for part in REQUIRED_PARTS}
    for row in _compared(info, digests):
        if row["status"] == "ok" or (row["status"] == "unpinned" and row["file"] in required):
            continue
        expected, found = (row[key] or "(no such file)" for key in ("expected", "found"))
        raise _other_version(
            info,
            path,
            f"{row['file']} in {path} is not a file that {info.name} is known by: "
            f"expected SHA-256 {expected}, got {found}",
        )


def _other_version(info: DatasetInfo, path: Path, problem: str) -> GraphDataError:
    reader = "read_tudataset" if info.kind == "tu" else "read_smiles"
    return GraphDataError(
        f"{problem}. The copy is damaged or another version: delete it and fetch it again, or read "
        f"it as it is with treelens.{reader}({str(path)!r})."
    )


# --- synthetic graphs: the eight-substructure study -----------------------------------------
# Each of the eight small graphs is a star hung on a tail. The star has a centre and three leaves
# with the labels 0, 0, 1, 2; with a 0 in the centre it is the pattern 1-0(-2)-0 (a node labelled 0
# whose neighbours are exactly 0, 1 and 2), and the substructure is positive. The tail (1, 2, 3, 3,
# 3) does not matter for the class, but in training (substructures 1 to 4) it seems to: every test
# substructure (5 to 8) has its star from one class and its tail from the other.
# Under the plain Wasserstein Weisfeiler-Lehman kernel of depth 2 a test substructure is equally
# similar, by exactly 1/2, to one training substructure of each class: 5 to 2 and 4, 6 to 1 and 3, 7
# to 3 and 1, 8 to 4 and 2, also with depth 0. Only a kernel that gives the pattern more weight than
# the tails separates the classes.

PATTERN_CENTRE = 0
PATTERN_NEIGHBORS = (0, 1, 2)
TRAINING_SUBSTRUCTURES = (1, 2, 3, 4)
TEST_SUBSTRUCTURES = (5, 6, 7, 8)
NODE_LABELS = (0, 1, 2, 3)

# Labels of a star: its centre, two leaves, and the leaf that carries the tail.
_STARS = {0: (0, 1, 2, 0), 1: (1, 0, 2, 0), 2: (2, 0, 1, 0)}
# Labels and edges of a tail; its first node hangs on the star. The first nodes of tails 1 and 3,
# and of 2 and 4, are the same: that is what makes the ties exact.
_TAILS = {
    1: ((3, 2, 1, 3, 3), ((0, 1), (1, 2), (2, 3), (2, 4))),
    2: ((1, 3, 2, 3, 3), ((0, 1), (1, 2), (2, 3), (2, 4))),
    3: ((3, 2, 3, 3, 1), ((0, 1), (1, 2), (2, 3), (3, 4))),
    4: ((1, 3, 3, 3, 2), ((0, 1), (1, 2), (1, 3), (2, 3), (2, 4))),
}
# substructure: (label in the middle of its star, number of its tail)
_COMPOSITION = {
    1: (0, 1),
    2: (0, 2),
    3: (2, 3),
    4: (1, 4),
    5: (0, 4),
    6: (0, 3),
    7: (2, 1),
    8: (1, 2),
}


def _substructure(number: int) -> Graph:
    centre, tail = _COMPOSITION[number]
    tail_labels, tail_edges = _TAILS[tail]
    positive = centre == PATTERN_CENTRE
    planted = (0, 3, 1, 2) if positive else ()
    return Graph(
        _STARS[centre] + tail_labels,
        ((0, 1), (0, 2), (0, 3), (3, 4), *((u + 4, v + 4) for u, v in tail_edges)),
        name=f"substructure {number}",
        data={"substructure": number, "class": 1 if positive else -1, "planted": planted},
    )


SUBSTRUCTURES = {k: _substructure(k) for k in _COMPOSITION}
"""The eight substructures by number; ``data`` has ``"class"`` and the ``"planted"`` nodes: the
pattern's centre and then its neighbours labelled 0, 1 and 2."""


def make_synthetic(
    n_per_substructure: int = 20,
    substructures: Sequence[int] = tuple(SUBSTRUCTURES),
    noise_nodes: tuple[int, int] = (3, 6),
    noise_edges: tuple[int, int] = (1, 1),
    random_state: int | np.random.Generator | None = None,
    *,
    protect_pattern: bool = True,
) -> tuple[GraphCollection, np.ndarray]:
    """Return noisy copies of the eight substructures and their classes.

    Each copy gets some random nodes, one after another, each with a random label and one edge to a
    random node already there, then some random edges between nodes not joined before; its nodes are
    put in random order. Labels are drawn before places, so their counts do not depend on the class.

    Parameters
    ----------
    n_per_substructure : int
        Number of noisy copies of each.
    substructures : sequence of int
        Which of the eight.
    noise_nodes, noise_edges : (int, int)
        Fewest and most nodes added to a graph, and edges after those.
    random_state : int, Generator or None
        The same int gives the same graphs.
    protect_pattern : bool
        Whether to leave out noise that would change which nodes carry the pattern
        ``1-0(-2)-0``. Without it, a "positive" graph may lose it, and a negative one may get it.

    Returns
    -------
    graphs : GraphCollection
        The copies of each substructure together, in the order of ``substructures``. Their
        ``graph_data`` has ``"substructure"``, the number 1 to 8, and ``"planted"``: the pattern's
        nodes, its centre and then the neighbours labelled 0, 1 and 2, or ``()``.
    y : ndarray of int, shape (n_graphs,)
        +1 or -1.

    Examples
    --------
    >>> graphs, y = make_synthetic(random_state=0)
    >>> len(graphs), int(y.sum())
    (160, 0)
    >>> graph = graphs[0]
    >>> [graph.node_labels[node] for node in graph.data["planted"]]
    [0, 0, 1, 2]
    """
    if n_per_substructure < 1 or not set(substructures) <= set(SUBSTRUCTURES):
        raise GraphDataError(
            "n_per_substructure must be 1 or more and substructures of 1 to 8; they are "
            f"{n_per_substructure} and {substructures}."
        )
    for name, (fewest, most) in (("noise_nodes", noise_nodes), ("noise_edges", noise_edges)):
        if not 0 <= fewest <= most:
            raise GraphDataError(f"{name} must be (fewest, most), 0 or more; it is {fewest, most}.")
    rng = np.random.default_rng(random_state)
    numbers = [int(k) for k in substructures for _ in range(n_per_substructure)]
    copies = [
        _noisy(SUBSTRUCTURES[k], noise_nodes, noise_edges, protect_pattern, rng) for k in numbers
    ]
    return from_treelens(copies), np.array([SUBSTRUCTURES[k].data["class"] for k in numbers])


def _noisy(
    graph: Graph,
    noise_nodes: tuple[int, int],
    noise_edges: tuple[int, int],
    protect: bool,
    rng: np.random.Generator,
) -> Graph:
    """Return a copy with random nodes and edges, its nodes in random order."""
    labels = list(graph.node_labels)
    around: list[set[int]] = [set() for _ in labels]

    def join(u: int, v: int) -> None:
        around[u].add(v)
        around[v].add(u)

    def may_join(node: int, label: int) -> bool:
        """Whether a new neighbour leaves a node with the pattern, or without it, as before."""
        if not protect or labels[node] != PATTERN_CENTRE:
            return True
        before, wanted = [labels[other] for other in around[node]], list(PATTERN_NEIGHBORS)
        return (sorted(before) == wanted) == (sorted([*before, label]) == wanted)

    for u, v in graph.edges:
        join(u, v)
    for _ in range(rng.integers(noise_nodes[0], noise_nodes[1] + 1)):
        label = NODE_LABELS[rng.integers(len(NODE_LABELS))]
        hosts = [node for node in range(len(labels)) if may_join(node, label)]
        labels.append(label)  # with one edge, the new node cannot carry the pattern
        around.append(set())
        join(hosts[rng.integers(len(hosts))], len(labels) - 1)
    for _ in range(rng.integers(noise_edges[0], noise_edges[1] + 1)):
        free = [(u, v) for v in range(len(labels)) for u in range(v) if u not in around[v]]
        pairs = [(u, v) for u, v in free if may_join(u, labels[v]) and may_join(v, labels[u])]
        if not pairs:
            raise GraphDataError("No place is left for one more edge: lower noise_edges.")
        join(*pairs[rng.integers(len(pairs))])
    number = rng.permutation(len(labels)).tolist()
    edges = {tuple(sorted((number[u], number[v]))) for u, some in enumerate(around) for v in some}
    planted = tuple(number[node] for node in graph.data["planted"])
    facts = {"substructure": graph.data["substructure"], "planted": planted}
    ordered = tuple(label for _, label in sorted(zip(number, labels, strict=True)))
    return Graph(ordered, tuple(sorted(edges)), data=facts)
