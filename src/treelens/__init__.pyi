# The public names and where they are defined; `__init__.py` imports them from here, on first use.
from .chem.blocks import SmilesBlocks as SmilesBlocks
from .chem.molecule_table import MoleculeTable as MoleculeTable
from .chem.table_reader import read_smiles as read_smiles
from .chem.table_reader import read_table as read_table
from .decisions.advise import advise as advise
from .decisions.suggest import suggest as suggest
from .estimators.base import load as load
from .estimators.evidence import GraphClassifier as GraphClassifier
from .estimators.evidence import GraphRegressor as GraphRegressor
from .estimators.kernels import WassersteinWL as WassersteinWL
from .estimators.kernels import WLOptimalAssignment as WLOptimalAssignment
from .estimators.kernels import WLSubtree as WLSubtree
from .estimators.panel import GraphPanel as GraphPanel
from .estimators.svc import GraphSVC as GraphSVC
from .estimators.walks import RandomWalk as RandomWalk
from .estimators.walks import ShortestPath as ShortestPath
from .gp.executors import fit_distributed as fit_distributed
from .graphs.blocks import CollectionBlocks as CollectionBlocks
from .graphs.collection import Graph as Graph
from .graphs.collection import GraphCollection as GraphCollection
from .graphs.convert import as_graph_collection as as_graph_collection
from .graphs.datasets import load_dataset as load_dataset
from .graphs.datasets import make_synthetic as make_synthetic
from .graphs.tudataset import read_tudataset as read_tudataset
from .pairwise.learn import PairwiseWeights as PairwiseWeights
from .pairwise.solvers import ProjectedGradient as ProjectedGradient
from .pairwise.solvers import QuasiNewton as QuasiNewton
from .pairwise.solvers import StochasticGradient as StochasticGradient
from .patterns.histograms import PatternHistograms as PatternHistograms
from .patterns.vocabulary import PatternVocabulary as PatternVocabulary
from .targets import Targets as Targets
from .views import Paths as Paths
from .views import Table as Table
from .views import View as View
from .views import WLPatterns as WLPatterns

__version__: str
