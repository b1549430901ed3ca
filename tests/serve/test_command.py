"""``treelens serve`` as people start it, and two hundred requests at once."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from cli.conftest import refused, run
from serve.conftest import CHAINS, ENDS, fitted, table_text


def asked(address, path, body):
    request = urllib.request.Request(address + path, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_serve_answers_until_it_is_stopped_or_refuses(tmp_path):
    table, model = tmp_path / "table.csv", tmp_path / "logS0.treelens"
    table.write_text(table_text())
    expected = fitted(table, "logS").predict(["CCCO"])[0]
    command = [sys.executable, "-m", "treelens.cli.main", "serve", str(model), "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        line = process.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/", line).group()
        rows = json.loads(asked(address, "api/predict", b'{"smiles": ["CCCO"]}')[1])["rows"]
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert abs(rows[0]["prediction"] - expected) < 1e-9
    assert process.returncode in (0, 130)
    assert "Traceback" not in errors
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused(run("serve", model, "--port", taken.getsockname()[1]), "--port")
    refused(run("serve", model, "--port", 0, "--host", "192.0.2.1"), "--host")
    refused(run("serve", table), "model")
    refused(run("serve", model, model), "both predict")
    for seconds in ("nan", "inf", "1e9"):
        refused(run("serve", model, "--seconds", seconds), "seconds")


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
    bodies = [json.dumps(body).encode() for _, body in mixed]
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(asked, [address] * 200, [path for path, _ in mixed], bodies))
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
