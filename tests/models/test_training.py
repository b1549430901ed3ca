"""What a fitted model keeps of its training graphs."""

import numpy as np

from treelens.graphs.synthetic import make_random_graphs
from treelens.models import training
from treelens.models.training import TrainingGraphs
from treelens.patterns.histograms import PatternHistograms, usual_out_of_vocabulary
from treelens.patterns.vocabulary import PatternVocabulary


def test_the_usual_share_of_unseen_patterns_is_found_once(monkeypatch) -> None:
    graphs = make_random_graphs(12, n_labels=3, random_state=0)
    histograms = PatternHistograms.from_colors(*PatternVocabulary.fit(graphs, 2))
    kept = TrainingGraphs(histograms, np.zeros(12))
    expected, calls = usual_out_of_vocabulary(histograms), []
    monkeypatch.setattr(
        training, "usual_out_of_vocabulary", lambda given: calls.append(given) or expected
    )
    assert [kept.usual_out_of_vocabulary for _ in range(3)] == [expected] * 3
    assert calls == [histograms]
