"""Old names of parameters of the learner: each error tells the new one."""

import pytest

import treelens as tl


def test_old_parameters_are_named():
    with pytest.raises(TypeError, match=r"'tol' is a setting of the solver now.*\(tol=\.\.\.\)\.$"):
        tl.PairwiseWeights(tol=1e-3)


def test_other_parameters_that_do_not_exist_are_errors_as_usual():
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        tl.GraphSVC(nonsense=1)
    with pytest.raises(ValueError, match="Invalid parameter 'nonsense'"):
        tl.GraphSVC().set_params(nonsense=1)


def test_what_a_loaded_model_cannot_show_says_why(tmp_path):
    graphs, y = tl.make_synthetic(n_per_substructure=2, random_state=0)
    tl.GraphSVC("wwl", 1, 0, gamma=1.0, C=1.0).fit(graphs, y).save(tmp_path / "m.treelens")
    loaded = tl.load(tmp_path / "m.treelens")
    with pytest.raises(AttributeError, match="does not hold its training graphs"):
        _ = loaded.fragments_
    assert not hasattr(loaded, "fragments_")
