"""The models that are evaluated side by side."""

from __future__ import annotations

from treelens.cli.evaluate_models import model_names, rival_of


def test_names_of_models():
    assert model_names(None, None) == ["evidence", "evidence_uniform"]
    assert model_names("auto, wwl,wwl", None) == ["svc", "wwl"]
    assert model_names("evidence", "all")[1:] == ["ecfp_forest", "ecfp_gp", "ecfp_svm"]


def test_what_learns_is_tested_against_itself_without():
    names = ["wl_oa", "wwl", "learned_wwl", "evidence", "evidence_uniform"]
    assert [rival_of(name, names) for name in names] == [
        None, "wl_oa", "wwl", "evidence_uniform", "wl_oa",
    ]  # fmt: skip


def test_covariates_are_tested_against_covariates():
    with_them = ["evidence+covariates", "evidence_uniform+covariates"]
    names = [*with_them, "evidence", "evidence_uniform", "ecfp_forest"]
    assert [rival_of(name, names) for name in names] == [
        "evidence", "evidence+covariates", "evidence_uniform", "evidence", "evidence",
    ]  # fmt: skip
    for name in names:  # the only pair of which one has none is a model and itself without
        rival = str(rival_of(name, names))
        apart = name.endswith("+covariates") != rival.endswith("+covariates")
        assert not apart or name.removesuffix("+covariates") == rival
    alone = ["evidence_uniform+covariates", "evidence_uniform", "ecfp_forest"]
    assert [rival_of(name, alone) for name in alone] == [
        "evidence_uniform", None, "evidence_uniform",
    ]  # fmt: skip
