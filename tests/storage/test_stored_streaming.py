"""Model files of the classifier that reads blocks: they come back deciding and explaining alike."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

import treelens as tl
from treelens.cli.main import app
from treelens.estimators.streaming import StreamingGraphClassifier
from treelens.graphs.blocks import CollectionBlocks
from treelens.storage.archive import Contents, ModelFileError, read_archive, write_archive


@pytest.fixture(scope="module")
def made():
    return tl.make_synthetic(n_per_substructure=8, random_state=0)


@pytest.fixture(scope="module", params=[0.0, 3.0], ids=["uniform", "learned"])
def model(made, request):
    graphs, y = made
    classes = np.where(np.asarray(y) > 0, "yes", "no")
    model = StreamingGraphClassifier(
        depth=2, weight_radius=request.param, n_components=64, gamma=2.0, random_state=0
    )
    return model.fit(CollectionBlocks(graphs, classes, block_size=20))


@pytest.fixture
def path(model, tmp_path):
    path = tmp_path / "model.treelens"
    model.save(path)
    return path


def test_it_comes_back_as_it_was(model, path, made):
    loaded, graphs = tl.load(path), made[0]
    assert isinstance(loaded, StreamingGraphClassifier)
    np.testing.assert_array_equal(loaded.decision_function(graphs), model.decision_function(graphs))
    np.testing.assert_array_equal(loaded.predict(graphs), model.predict(graphs))
    np.testing.assert_array_equal(loaded.weights_, model.weights_)
    np.testing.assert_array_equal(loaded.pattern_support_, model.pattern_support_)
    assert (loaded.alpha_, loaded.n_graphs_) == (model.alpha_, model.n_graphs_)
    assert loaded.get_params()["gamma"] == 2.0
    ours, theirs = (m.explain(graphs[3]).node_contributions for m in (loaded, model))
    np.testing.assert_array_equal(ours, theirs)


def test_commands_say_that_they_cannot_use_it(path):
    result = CliRunner().invoke(app, ["patterns", str(path)])
    assert result.exit_code != 0
    assert "StreamingGraphClassifier" in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d, a: a.update(weights=a["weights"][:-1]), "'weights' should have shape"),
        (lambda d, a: a.update(coefficients=a["coefficients"][:, :-1]), "'coefficients' should"),
        (lambda d, a: d["feature_map"].pop("gamma"), "'gamma' in 'feature_map' should be a number"),
        (lambda d, a: d.update(first_depth=9), "'first_depth' should be 0 to 2, not 9"),
        (
            lambda d, a: a.update(pattern_support=a["pattern_support"] - 10**9),
            "'pattern_support' should hold",
        ),
    ],
)
def test_an_altered_file_is_refused(path, change, message):
    data, arrays, _ = read_archive(path)
    change(data, arrays)
    write_archive(path, Contents(data, arrays), tl.__version__)
    with pytest.raises(ModelFileError, match=message):
        tl.load(path)
