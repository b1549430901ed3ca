"""The classes that a model file may have objects of."""

from __future__ import annotations

from treelens.gp.covariates import CovariateColumn, CovariateTable, FittedCovariates
from treelens.gp.landmarks import LandmarkPosterior
from treelens.gp.leave_one_out import LearningGain, LeftOutClasses, LeftOutNumbers
from treelens.gp.model import EvidenceRecord, FittedGP, WeightedForest
from treelens.gp.posterior import MeanPosterior
from treelens.graphs.recipe import GraphRecipe, TableRecord
from treelens.kernels.mixture import CovariateScales, MixtureScales
from treelens.kernels.weighted import WeightedKernel
from treelens.models.thresholds import Threshold
from treelens.models.training import TrainingGraphs
from treelens.pairwise.learn import LearnedWeights
from treelens.pairwise.objective import Margins
from treelens.patterns.cells import AttributeCells
from treelens.patterns.features import PatternExtractor
from treelens.patterns.forest import PatternForest
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.refinement import PatternLevel
from treelens.patterns.vocabulary import PatternVocabulary
from treelens.svm.model import Choice, FittedSVM, LinearOnKernel
from treelens.svm.search import Candidate, SearchResult
from treelens.svm.solver import SVM

MODEL_CLASSES: tuple[type, ...] = (
    AttributeCells, Candidate, Choice, CovariateColumn, CovariateScales, CovariateTable,
    EvidenceRecord,
    FittedCovariates, FittedGP, FittedSVM, GraphRecipe, LandmarkPosterior, LearnedWeights,
    LearningGain, LeftOutClasses, LeftOutNumbers, LinearOnKernel, Margins, MeanPosterior,
    MixtureScales, PatternExtractor, PatternForest, PatternHistograms, PatternLevel,
    PatternVocabulary, SearchResult, SVM, TableRecord, Threshold, TrainingGraphs, WeightedForest,
    WeightedKernel,
)  # fmt: skip
