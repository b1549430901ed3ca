"""``treelens serve`` as people start it."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request

from cli.conftest import refused, run
from serve.conftest import fitted, table_text


def test_serve_answers_until_it_is_stopped(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text(table_text())
    model = fitted(table, "logS")
    command = [sys.executable, "-m", "treelens.cli.main", "serve", tmp_path / "logS0.treelens",
               "--port", "0"]  # fmt: skip
    with subprocess.Popen(
        [str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        line = process.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/", line).group()
        body = json.dumps({"smiles": ["CCCO"]}).encode()
        asked = urllib.request.Request(
            f"{address}api/predict", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(asked, timeout=60) as answer:
            rows = json.load(answer)["rows"]
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert abs(rows[0]["prediction"] - model.predict(["CCCO"])[0]) < 1e-9
    assert process.returncode in (0, 130)
    assert "Traceback" not in errors


def test_serve_refuses(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text(table_text())
    fitted(table, "logS")
    model = tmp_path / "logS0.treelens"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused(run("serve", model, "--port", taken.getsockname()[1]), "--port")
    refused(run("serve", model, "--port", 0, "--host", "192.0.2.1"), "--host")
    refused(run("serve", table), "model")
    refused(run("serve", model, model), "both predict")
