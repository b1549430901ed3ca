"""treelens: Weisfeiler-Lehman graph kernels that learn which subtree patterns matter.

The public names below are imported when they are first used, so that ``import treelens``
itself costs a few milliseconds and compiles nothing.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

# Public name -> the module that defines it.
_PUBLIC = {
    "Graph": "treelens.graphs.collection",
    "GraphCollection": "treelens.graphs.collection",
    "as_graph_collection": "treelens.graphs.convert",
    "load": "treelens.estimators.files",
    "load_dataset": "treelens.graphs.datasets",
    "make_synthetic": "treelens.graphs.synthetic",
    "read_smiles": "treelens.graphs.molecules",
    "read_tudataset": "treelens.graphs.tudataset",
    "GraphClassifier": "treelens.estimators.evidence",
    "GraphRegressor": "treelens.estimators.evidence",
    "GraphSVC": "treelens.estimators.svc",
    "PairwiseWeights": "treelens.estimators.weights",
    "CollectionBlocks": "treelens.graphs.blocks",
    "SmilesBlocks": "treelens.graphs.blocks",
    "TUBlocks": "treelens.graphs.tu_blocks",
    "StreamingGraphClassifier": "treelens.estimators.streaming",
    "fit_distributed": "treelens.scale.dask_executor",
    "gram_to_disk": "treelens.scale.gram",
    "PatternHistograms": "treelens.patterns.histograms",
    "PatternVocabulary": "treelens.patterns.vocabulary",
    "RandomWalk": "treelens.estimators.walks",
    "ShortestPath": "treelens.estimators.walks",
    "WLOptimalAssignment": "treelens.estimators.kernels",
    "WLSubtree": "treelens.estimators.kernels",
    "WassersteinWL": "treelens.estimators.kernels",
}

__all__ = [*sorted(_PUBLIC), "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'treelens' has no attribute {name!r}")
    value = getattr(importlib.import_module(_PUBLIC[name]), name)
    globals()[name] = value  # the next access is an ordinary one
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
