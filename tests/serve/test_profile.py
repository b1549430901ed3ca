"""The page with a profile: molecules by the probability that all conditions hold."""

from __future__ import annotations

import pytest

import treelens as tl
from serve.conftest import LIMITS, serving
from treelens.chem.predicted_rows import name_models, with_profile
from treelens.serve.answers import Workbench

SMILES = ["CCCCO", "CCCC(=O)O", "CCCCc1ccccc1", "CCN"]


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    path = tmp_path_factory.mktemp("profile") / "profile.json"
    path.write_text('{"logS": "> 0.5", "Kd (nM)": "1 to 300"}')
    return path


@pytest.fixture(scope="module")
def bench(panel, profile):
    models = name_models([profile.with_name("panel.treelens")], [panel])
    return Workbench(with_profile(models, profile), LIMITS)


def test_answers_have_the_probabilities_of_profile_table(bench, panel, profile):
    expected = tl.profile_table(panel, SMILES, tl.Profile.read(profile)).set_index("smiles")
    rows = bench.predict_smiles(SMILES, {}).set_index("smiles")
    for name in ("probability_of_profile", "profile_share", "logS_in_profile"):
        found = rows[name].astype(float)
        assert found.to_dict() == pytest.approx(expected[name].to_dict())
    wanted = {fact["name"]: fact["wanted"] for fact in bench.facts()}
    assert wanted["logS"] == {"text": "> 0.5", "column": "logS_in_profile"}
    assert wanted["acid"] is None
    assert bench.profile["wanted"] == "logS > 0.5, Kd (nM) 1 to 300"


def test_a_profile_gives_one_model_cells(models, tmp_path):
    path = tmp_path / "one.json"
    path.write_text('{"logS": "> 0"}')
    bench = Workbench(with_profile(name_models([path], [models["logS"]]), path), LIMITS)
    assert bench.as_cells
    assert bench.predict_smiles(["CCO"], {})["probability_of_profile"].between(0, 1).all()
    two = name_models([path, path], [models["logS"], models["acid"]])
    with pytest.raises(ValueError, match="one MODEL"):
        with_profile(two, path)


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_ranks_molecules_and_shows_every_endpoint(browser, bench, width):
    from treelens.serve.app import make_app

    chances = bench.predict_smiles(SMILES, {}).set_index("smiles")["probability_of_profile"]
    with serving(make_app(bench)) as port:
        page = browser.new_page(viewport={"width": width, "height": 900})
        problems = []
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(f"http://127.0.0.1:{port}")
        page.fill("#smiles", "\n".join([*SMILES, "C1CC broken"]))
        page.click("#predict")
        page.wait_for_selector(".compound")
        rows = page.locator("#table tbody tr")
        shown = [rows.nth(k).locator("th").inner_text() for k in range(len(SMILES))]
        assert shown == chances.sort_values(ascending=False).index.tolist()
        best = rows.first.locator("td")
        assert best.count() == 4  # the profile and three endpoints
        assert best.first.locator("strong").inner_text() == f"{100 * chances.max():.0f} %"
        for k in range(4):
            box = best.nth(k).bounding_box()
            assert box["width"] > 20
            assert box["x"] + box["width"] <= width
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.fill("#edit", "CCCCN")
        page.wait_for_selector("#edited:not([hidden]) td.profile")
        assert problems == []
        page.close()
