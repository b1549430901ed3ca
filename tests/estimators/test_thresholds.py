"""Rare classes with GraphClassifier: ranked and predicted, with a warning where none is."""

import warnings

import numpy as np
import pytest
from sklearn.metrics import matthews_corrcoef, recall_score, roc_auc_score

import treelens as tl
from estimators.test_rare_classes import rare_data
from treelens.models.thresholds import choose_threshold


@pytest.fixture(scope="module")
def rare():
    return rare_data((300, 30)), rare_data((300, 30), seed=1)


@pytest.fixture(scope="module")
def fitted(rare):
    return tl.GraphClassifier(depth=1, weights="uniform", random_state=0).fit(*rare[0])


def test_a_rare_class_is_ranked_and_named_out_of_the_box(fitted, rare):
    graphs, y = rare[1]
    assert roc_auc_score(y, fitted.decision_function(graphs)) > 0.7
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = tl.GraphClassifier(depth=1, weights="uniform", threshold=0.5, random_state=0).fit(
            *rare[0]
        )
    np.testing.assert_array_equal(plain.predict_proba(graphs), fitted.predict_proba(graphs))
    named, hardly = fitted.predict(graphs), plain.predict(graphs)
    assert recall_score(y, hardly) < 0.1  # what naming the likelier class gives
    assert matthews_corrcoef(y, named) > max(0.2, matthews_corrcoef(y, hardly))
    assert recall_score(y, named) > 0.3


def test_the_threshold_is_that_of_the_left_out_predictions(fitted):
    expected = choose_threshold("auto", fitted.loo_.probabilities, fitted.train_codes_)
    assert fitted.threshold_ == expected
    named = expected.name(fitted.loo_.probabilities)
    assert fitted.loo_.predictions.tolist() == fitted.classes_[named].tolist()
    assert fitted.loo_.accuracy == np.mean(named == fitted.train_codes_)


@pytest.mark.parametrize("first", [False, True])
def test_recall_as_asked_for_whichever_class_is_rare(first, rare):
    graphs, y = rare[0]
    names = np.where(y == 1, "a" if first else "z", "m")
    model = tl.GraphClassifier(depth=1, weights="uniform", threshold="recall=0.9")
    model.fit(graphs, names)
    found = recall_score(names, model.loo_.predictions, pos_label="a" if first else "z")
    assert 0.9 <= found <= 0.95
    assert model.classes_[model.threshold_.code] == ("a" if first else "z")


def test_common_classes_are_named_as_they_were():
    graphs, y = rare_data((60, 60))
    model = tl.GraphClassifier(depth=1, weights="uniform").fit(graphs, y)
    assert model.threshold_ is None
    assert (model.predict(graphs) == (model.decision_function(graphs) > 0)).all()


def test_a_model_that_predicts_one_class_warns(rare):
    with pytest.warns(UserWarning, match="predicts the class 0 for every held-out graph"):
        model = tl.GraphClassifier(depth=0, weights="uniform", threshold=0.9).fit(*rare[0])
    assert "does not distinguish classes" in model._html_repr()
    alarms = [item["text"] for item in model.summary()["checks"] if item["level"] == "alarm"]
    assert any("put into the same class" in text for text in alarms)
