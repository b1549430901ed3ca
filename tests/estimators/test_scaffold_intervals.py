"""Intervals for new scaffolds: groups left out in closed form, and what they widen."""

import numpy as np
import pandas as pd
import pytest

import treelens as tl
from treelens.chem.scaffolds import murcko_scaffolds
from treelens.gp.posterior import ExactPosterior, left_out_groups

pytest.importorskip("rdkit")

RINGS = [
    "c1ccccc1",
    "C1CCCCC1",
    "c1ccncc1",
    "C1CCNCC1",
    "c1ccsc1",
    "c1ccoc1",
    "C1CCOC1",
    "C1CCCC1",
    "c1ccc2ccccc2c1",
    "C1CC1",
    "c1cnccn1",
    "C1COCCN1",
]
TAILS = ["C", "CC", "CO", "CN", "CCO"]
SMILES = [tail + ring for ring in RINGS for tail in TAILS] + ["CCO", "CCCC", "CCN"]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    shift = np.repeat(rng.normal(scale=2.0, size=len(RINGS)), len(TAILS))  # of a scaffold
    values = np.array([len(s) for s in SMILES], dtype=float) + 0.2 * rng.normal(size=len(SMILES))
    values[: len(shift)] += shift
    return SMILES, values


@pytest.fixture(scope="module")
def model(data):
    return tl.GraphRegressor(depth=2, descriptors=False).fit(*data)


def scaffolds():
    from rdkit import Chem

    return np.array(murcko_scaffolds([Chem.MolFromSmiles(s) for s in SMILES]))


def test_leaving_scaffolds_out_is_conditioning_on_the_others(data, model):
    _, values = data
    groups, found = scaffolds(), model.left_out_scaffolds_
    assert found.n_groups == len(np.unique(groups)) - 1 == len(RINGS)
    fitted = model.model_
    kernel = fitted.kernel.matrix(fitted.basis_graphs, fitted.basis_graphs)
    one_by_one = [np.array([k]) for k in np.flatnonzero(groups == "")]
    for out in [*(np.flatnonzero(groups == g) for g in np.unique(groups)[1:4]), *one_by_one]:
        rest = np.setdiff1d(np.arange(len(groups)), out)
        noise = np.full(len(rest), fitted.noise)
        targets = (values[rest, None] - fitted.target_offset) / fitted.target_scale
        refit = ExactPosterior.fit(kernel[np.ix_(rest, rest)].copy(), noise, targets)
        rows = kernel[np.ix_(out, rest)]
        mean = fitted.target_offset + fitted.target_scale * rows @ refit.coefficients
        np.testing.assert_allclose(found.predictions[out], mean[:, 0], atol=1e-6)
        variance = fitted.variances(refit.reduction(rows))
        np.testing.assert_allclose(found.std[out] ** 2, variance, rtol=1e-5)


def test_nine_of_ten_left_out_values_are_within_widened_intervals(data, model):
    _, values = data
    found = left_out_groups(model.model_, scaffolds())
    reach = np.abs(values - found.predictions) / (1.6448536 * found.std)
    reach = reach[scaffolds() != ""]
    assert found.coverage == pytest.approx(np.mean(reach <= 1.0))
    assert found.factor > 1.0  # values are shifted by scaffold
    assert np.mean(reach <= found.factor * (1 + 1e-9)) == pytest.approx(0.9, abs=1 / len(reach))


def test_predictions_are_widened(model):
    new = ["Cc1ccc[nH]1", "CCC1CCCN1"]
    factor = model.left_out_scaffolds_.factor
    mean, std = model.predict(new, return_std=True)
    same, wider = model.predict(new, return_std=True, intervals="scaffold")
    np.testing.assert_array_equal(mean, same)
    np.testing.assert_allclose(wider, factor * std)
    _, cov = model.predict(new, return_cov=True, intervals="scaffold")
    np.testing.assert_allclose(np.sqrt(np.diagonal(cov)), wider)
    table = model.predict_table(new, intervals="scaffold")
    np.testing.assert_allclose(table["std"], wider)
    np.testing.assert_allclose(table["upper_90"] - table["lower_90"], 2 * 1.6448536 * wider)
    with pytest.raises(ValueError, match="intervals"):
        model.predict(new, return_std=True, intervals="x")


def test_models_from_files_and_models_that_have_no_scaffolds(data, model, tmp_path):
    model.save(tmp_path / "m.treelens")
    loaded = tl.load(tmp_path / "m.treelens")
    factor = model.left_out_scaffolds_.factor
    assert loaded.left_out_scaffolds_.factor == pytest.approx(factor)
    section = loaded.summary(["CCO"])["new_scaffolds"]
    assert section["factor"] == pytest.approx(factor)
    assert "New scaffolds" in loaded.report(tmp_path / "r.html").read_text()
    model.save(tmp_path / "m.treelens", training_data=False)
    bare = tl.load(tmp_path / "m.treelens")
    with pytest.raises(ValueError, match="training molecules"):
        bare.predict(["CCO"], return_std=True, intervals="scaffold")
    assert bare.summary(["CCO"])["new_scaffolds"] is None
    few = tl.GraphRegressor(depth=1).fit(data[0][:20], data[1][:20])
    with pytest.raises(ValueError, match="scaffolds"):
        few.predict(["CCO"], return_std=True, intervals="scaffold")
    few.fit(*data)  # another fit: nothing of the old one is used
    assert few.left_out_scaffolds_.n_groups == len(RINGS)


def test_the_command_line(model, tmp_path):
    from cli.conftest import run

    path, new, out = (tmp_path / name for name in ("m.treelens", "new.csv", "out.csv"))
    model.save(path)
    new.write_text("smiles\nCc1ccc[nH]1\nbad\nCCO\n")
    assert run("predict", path, new, "-o", out, "--intervals", "scaffold").code == 0
    expected = model.predict_table(["Cc1ccc[nH]1", "CCO"], intervals="scaffold")["std"]
    np.testing.assert_allclose(pd.read_csv(out)["std"][[0, 2]], expected, rtol=1e-5)
