"""Old names of parameters, kernels and attributes: each error tells the new one."""

import inspect

import pytest
from sklearn.base import clone

import treelens as tl
from treelens.kernels.table import KERNELS, RENAMED_KERNELS


@pytest.mark.parametrize(
    ("make", "old", "new"),
    [
        (tl.GraphSVC, "form", "kernel"),
        (tl.GraphSVC, "radius", "weight_radius"),
        (tl.StreamingGraphClassifier, "n_weight_graphs", "learning_size"),
        (tl.WassersteinWL, "form", "kernel"),
    ],
)
def test_old_parameters(make, old, new):
    with pytest.raises(TypeError, match=f"{make.__name__}: .*'{old}' is called '{new}' now"):
        make(**{old: 1})
    with pytest.raises(TypeError, match=f"'{old}' is called '{new}' now"):
        make().set_params(**{old: 1})
    assert old not in make().get_params()
    assert new in inspect.signature(make).parameters


def test_all_old_parameters_are_named_at_once():
    old = {"gamma": 1, "n_components": 5, "n_weight_graphs": 9}
    for make in (tl.StreamingGraphClassifier, tl.StreamingGraphClassifier().set_params):
        with pytest.raises(TypeError) as caught:
            make(**old)
        message = str(caught.value)
        assert all(f"the parameter {name!r} is " in message for name in old)
        assert message.endswith(" Leave out gamma, n_components.")
    with pytest.raises(TypeError, match=r"'form' is called 'kernel' now\.$"):
        tl.GraphSVC(form="wwl")


def test_other_parameters_that_do_not_exist_are_errors_as_usual():
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        tl.GraphSVC(nonsense=1)
    with pytest.raises(ValueError, match="Invalid parameter 'nonsense'"):
        tl.GraphSVC().set_params(nonsense=1)


@pytest.mark.parametrize("old", RENAMED_KERNELS)
def test_old_kernels(old):
    graphs, y = tl.make_synthetic(n_per_substructure=1, random_state=0)
    new = RENAMED_KERNELS[old]
    assert new in KERNELS
    for given in (old, [old], ("wwl", old)):
        with pytest.raises(ValueError, match=f"'{old}' is called '{new}' now"):
            tl.GraphSVC(given).fit(graphs, y)


@pytest.mark.parametrize(
    ("old", "told"),
    [("random-bins", "is called 'random-binning' now"),
     ("random-features", "is gone, .* use 'random-binning'"),
     ("random-fourier", "is gone, .* use 'random-binning'")],
)  # fmt: skip
def test_old_approximations(old, told):
    graphs, y = tl.make_synthetic(n_per_substructure=1, random_state=0)
    with pytest.raises(ValueError, match=f"approximation='{old}' {told}"):
        tl.GraphSVC(approximation=old).fit(graphs, y)


@pytest.mark.parametrize(
    ("old", "new"),
    [("choice_", "best_params_"), ("search_", "cv_results_"), ("support_", "support_vectors_"),
     ("unseen_share", "out_of_vocabulary")],
)  # fmt: skip
def test_old_attributes(old, new):
    model = tl.GraphSVC()
    assert not hasattr(model, old)
    with pytest.raises(AttributeError, match=f"{old}.*is called '{new}' now"):
        getattr(model, old)
    with pytest.raises(AttributeError, match="'GraphSVC' object has no attribute 'nonsense'"):
        _ = model.nonsense


@pytest.mark.parametrize("make", [tl.GraphSVC, tl.StreamingGraphClassifier])
def test_what_a_model_cannot_show_says_why(make, tmp_path):
    """An error within a view is not taken for a name that is not there."""
    graphs, y = tl.make_synthetic(n_per_substructure=2, random_state=0)
    settings = {"weight_radius": 0, "gamma": 1.0, "C": 1.0} if make is tl.GraphSVC else {}
    make(depth=1, **settings).fit(graphs, y).save(tmp_path / "m.treelens")
    loaded = tl.load(tmp_path / "m.treelens")
    with pytest.raises(AttributeError, match="does not hold its training graphs"):
        _ = loaded.fragments_
    assert not hasattr(loaded, "fragments_")


def test_clones_have_the_same_parameters():
    model = tl.GraphSVC("tanimoto", 2, [0.0, 1.0], C=3.0)
    assert clone(model).get_params() == model.get_params()
    assert "kernel='tanimoto'" in repr(model)
