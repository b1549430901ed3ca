"""Two hundred requests at once, bad ones among them, against a real server."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from serve.conftest import CHAINS, ENDS


def asked(address, path, body):
    request = urllib.request.Request(address + path, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_two_hundred_requests(address, models):
    smiles = [chain + end for chain in CHAINS for end in ENDS]
    good = [("/api/cards", {"smiles": smiles[k % len(smiles)]}) for k in range(80)]
    tables = [("/api/predict", {"smiles": smiles[k : k + 8]}) for k in range(40)]
    bad = [
        ("/api/cards", {"smiles": "C1CC"}),
        ("/api/cards", {}),
        ("/api/predict", {"smiles": ["C"] * 100}),
        ("/api/nothing", {}),
    ] * 20
    mixed = [request for group in zip(good, (tables * 2), bad, strict=True) for request in group]
    mixed = mixed[:200]
    with ThreadPoolExecutor(50) as pool:
        answers = list(
            pool.map(lambda one: asked(address, one[0], json.dumps(one[1]).encode()), mixed)
        )
    expected = dict(zip(smiles, models["logS"].predict(smiles).tolist(), strict=True))
    n_good = 0
    for (path, body), (status, text) in zip(mixed, answers, strict=True):
        if (path, body) in bad:
            assert status in (404, 422)
            continue
        assert status == 200, text
        n_good += 1
        found = json.loads(text)
        if path == "/api/cards":
            assert abs(found[0]["predicted"] - expected[body["smiles"]]) < 1e-9
        else:
            for row, one in zip(found["rows"], body["smiles"], strict=True):
                assert abs(row["logS_prediction"] - expected[one]) < 1e-9
    assert n_good > 120
    assert asked(address, "/api/cards", b'{"smiles": "CCO"}')[0] == 200
