"""The data sets that ``load_dataset`` knows, and what their text files must hash to."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from treelens.graphs.errors import GraphDataError


@dataclass(frozen=True)
class DatasetInfo:
    """What is known of a data set before any of its files is opened.

    Attributes
    ----------
    name : str
    kind : {"tu", "smiles"}
    n_graphs : int
        Number of graphs, or of rows for a file of SMILES (some of which may not parse).
    n_edges : int or None
        Undirected edges in all graphs of a TU set.
    description : str
    sha256 : mapping of str to str
        From the name of a text file, as it is inside the archive, to its SHA-256. The archive
        itself is not pinned: the same files packed anew are the same data.
    file_stem : str
        The file's name without its endings: ``NAME`` in ``NAME.zip`` or ``NAME.csv.gz``.
    downloadable : bool
        Whether the official archive is served under this name.
    """

    name: str
    kind: str
    n_graphs: int
    n_edges: int | None
    description: str
    sha256: Mapping[str, str] = field(repr=False)
    file_stem: str
    downloadable: bool


def _tu(
    name: str,
    n_graphs: int,
    n_edges: int,
    description: str,
    sha256: Mapping[str, str],
    downloadable: bool = True,
) -> DatasetInfo:
    pins = {f"{name}_{part}.txt": digest for part, digest in sha256.items()}
    return DatasetInfo(
        name, "tu", n_graphs, n_edges, description, MappingProxyType(pins), name, downloadable
    )


def _smiles(name: str, n_rows: int, description: str, sha256: str, stem: str) -> DatasetInfo:
    pins = MappingProxyType({f"{stem}.csv": sha256})
    return DatasetInfo(name, "smiles", n_rows, None, description, pins, stem, False)


_ALL = (
    _tu("MUTAG", 188, 3721, "nitroaromatic compounds, mutagenic or not; bond types", {
        "A": "d9656ca7493f3445d737c711710bb36fd432dddd1c0ea32e1d4713c86ebd28e2",
        "graph_indicator": "7d520a4d6c7961c0cdeabe076d8fe27e795b6d373485c9a2b744987e560a2056",
        "graph_labels": "a1518ea39ba3426bd42f57396b9c4baffe68e9adc718caeeab0119c6591a5f2c",
        "node_labels": "678f429965490e84dd27713017538c995fc05d1621beac910848b600015ee863",
        "edge_labels": "4669ce755075ff86c3240709345745886400908fa637a49310459b9c267b3e56",
    }),
    _tu("PTC_MR", 344, 5054, "compounds carcinogenic to male rats or not; bond types", {
        "A": "f79523ff94dfbef539e5602a8ac1931a50a2800f33fa1d30e5e31725289b5202",
        "graph_indicator": "d52754f3cbc54e29324f884b4c17200c16e06db0c499afae300b4fa1bb6d794b",
        "graph_labels": "64210accbe4c6c027535b1294e0da652b1f539667f7a2d4bf5121dcd8b00a224",
        "node_labels": "cc50d1e1c5f4c98b2100cf50c5ddd88ff28b419a9180d531046b75ce22983235",
        "edge_labels": "acee2f93b52175a329009dc837bea9db7c2a121c2ef0b1587b38bbe6fc9b8177",
    }),
    # Not served by the TU collection: the encoding that papers on deep graph networks use.
    _tu("PTC_DGCNN", 344, 8931, "PTC_MR with explicit hydrogens", {
        "A": "256f918220bb36bf48941cf72f8f773c97c965f354922aadde2f6f4285751563",
        "graph_indicator": "b59309aac129afbd62a23db75fd91acaddc9b3bb31d83372eb3e5d0fb3cb6123",
        "graph_labels": "ea61a41754c5f455a638ad168faa1a6b6e00ec6cb00cd4f46f0dd267a35da0fb",
        "node_labels": "0473f1d770ecf37c3fc62f13b347b934a338d2572dcfc17efe995a54b4b9071d",
    }, downloadable=False),
    _tu("PROTEINS", 1113, 81044, "proteins as graphs of secondary structures, enzyme or not", {
        "A": "4c4b33e272fc95cac6d27ed6d5d12b9a852c8610e91fff59f8f0dbdd5a20df67",
        "graph_indicator": "8d4ff1e852a5c28561e9bffb44cf9490bc552b13a3b6156dd12dc7f44e9afc4a",
        "graph_labels": "c0ef9810c440775252872318d0c8adc385588e14bc4c47a2c34aa96ee3c7cdcd",
        "node_labels": "f758e8ad3d6e3c026b50833d75f6f90735b94eb3345e4243707f495ca8afea8d",
    }),
    _tu("NCI1", 4110, 132753, "compounds active against lung cancer cells or not", {
        "A": "2c028eda59a5fe96e2265a63d9ac236901bd9a7dc658498be13cd704a703076d",
        "graph_indicator": "ffe5acfa754b057d5ce0dc725c5aadb631628161886cc040d38c719635257dc5",
        "graph_labels": "fae44681e70113f496256ae87eaac33b7836e3a97fe8e023933b84fde6a5c8a2",
        "node_labels": "dc0a22b6cbff0c939de00373e823977ba32b358f560e4288d7602f7b51407ee2",
    }),
    _tu("ENZYMES", 600, 37282, "enzymes of six classes as graphs of secondary structures", {
        "A": "5553c84f8f562f3e199dfd27192174f485e85c44c1357661098668937a739cbf",
        "graph_indicator": "95ba0fa47eba6f02e6b754a215dc66d5b49de3f45f57a128514301a8d7ed5f46",
        "graph_labels": "04743e08967e61e65cdacbb90f8df6ee53742b3d2e7b84675b85ebac70506856",
        "node_labels": "8263eb9b64efa231a5886343483ccfc0342f2407014763a8f738fd51c32ce770",
    }),
    # Copies of DD_A.txt with the same edges in another order of lines are about, so that file is
    # not pinned; the number of edges is checked instead.
    _tu("DD", 1178, 843046, "proteins as graphs of amino acids, enzyme or not", {
        "graph_indicator": "95aabe75f6537326a14e4efc0d006854c20769f3cfc4877b862803d21c51aff2",
        "graph_labels": "b9df6495feb673f79dea357cca30e08f8602e52d978c77b53ec2552d1cb2ab4e",
        "node_labels": "b0d10b05702c2d655d691b5a6f5585081993860013eeab801572202df1c5c108",
    }),
    _smiles(
        "PTC_MR_smiles", 344, "the molecules of PTC_MR as SMILES, in another order",
        "c2a19d2e95f0db45827b96f892f684f75955568c719ea23b1286fbf67e7d99e0", "PTC_MR",
    ),
    _smiles(
        "BBBP", 2039, "molecules that pass the blood-brain barrier or not",
        "c58373ac429a7420cf445d0bcdba8d0dad27b472b241eb3c7071c69477c71437", "BBBP",
    ),
    _smiles(
        "Ames_Hansen2009", 6512, "molecules, mutagenic in the Ames test or not",
        "82c41e80b6475c9b2a4fae38723c946fc5f42331f18b3c57bc50467b922fe39a", "Ames_Hansen2009",
    ),
    _smiles(
        "HIV", 41127, "molecules that stop HIV from replicating or not",
        "3b0b184792847a7cbaea8c4878da741838c659483d4820fc5cfe65f1a43386e7", "HIV",
    ),
)  # fmt: skip

DATASETS: Mapping[str, DatasetInfo] = MappingProxyType({info.name: info for info in _ALL})


def dataset_info(name: str) -> DatasetInfo:
    """What the registry knows of a data set; an unknown name is an error that helps."""
    if name in DATASETS:
        return DATASETS[name]
    folded = {known.casefold(): known for known in DATASETS}
    close = difflib.get_close_matches(str(name).casefold(), folded, n=3)
    hint = f" Did you mean {' or '.join(repr(folded[match]) for match in close)}?" if close else ""
    raise GraphDataError(
        f"There is no data set named {name!r}.{hint} Known are: {', '.join(DATASETS)}. To read "
        "another, use read_tudataset(path) or read_smiles(path)."
    )
