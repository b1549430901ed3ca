"""The web application: answers, limits, and requests that are not welcome."""

from __future__ import annotations

import io
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pandas as pd
import pytest

from serve.conftest import EVIL, LIMITS
from treelens.serve.app import _THREADS, HEADERS, make_app

testclient = pytest.importorskip("fastapi.testclient")


@pytest.fixture(scope="module")
def client(workbench):
    return testclient.TestClient(make_app(workbench), base_url="http://127.0.0.1:8765")


def post(client, path, data, **options):
    kind = {"json": data} if isinstance(data, dict) else {"content": data}
    if not isinstance(data, dict) and "table" not in path:
        kind["headers"] = {"Content-Type": "application/json"}
    return client.post(path, **kind, **options)


def test_json_and_csv_are_the_same_table(client, workbench):
    asked = {"smiles": ["CCCO =1+1", "CCN", "C1CC"]}
    rows = post(client, "/api/predict", asked).json()["rows"]
    answer = post(client, "/api/predict?output=csv", asked)
    assert answer.headers["content-type"].startswith("text/csv")
    table = pd.read_csv(io.StringIO(answer.text))
    expected = [row["logS_prediction"] for row in rows[:2]]
    assert table["logS_prediction"].tolist()[:2] == pytest.approx(expected, rel=1e-5)
    assert table["name"][0] == "'=1+1"  # no formula for a spreadsheet
    assert rows[2]["logS_prediction"] is None
    assert "parse" in rows[2]["problem"]
    same = post(client, "/api/table?format=smi", b"CCCO =1+1\nCCN\nC1CC\n").json()["rows"]
    assert same == rows


def test_models_and_cards(client):
    names = [model["name"] for model in client.get("/api/models").json()]
    assert names == ["logS", "Kd (nM)", "acid"]
    cards = post(client, "/api/cards", {"smiles": "CCCO", "previous": "CCO"}).json()
    assert [card["model"]["name"] for card in cards] == names
    assert set(cards[0]["difference"]) == {"predicted", "std"}
    # A molecule before that cannot be read has no difference.
    cards = post(client, "/api/cards", {"smiles": "CCCO", "previous": "C1"}).json()
    assert cards[0]["difference"] is None


def test_openapi_and_its_page_need_no_network(client):
    schema = client.get("/openapi.json").json()
    assert set(schema["paths"]) == {"/api/models", "/api/predict", "/api/table", "/api/cards"}
    for path in ("/", "/docs"):
        page = client.get(path).text
        assert "//" not in page.replace("http://www.w3.org", "").replace("// ", "")
        assert EVIL not in page
    for path in schema["paths"]:
        assert path in client.get("/docs").text


@pytest.mark.parametrize("path", ["/", "/docs", "/page.js", "/api/models", "/no/such/page"])
def test_headers(client, path):
    found = client.get(path).headers
    for name, value in HEADERS.items():
        assert found[name] == value


@pytest.mark.parametrize(
    ("path", "data", "status"),
    [
        ("predict", {"smiles": []}, 422),
        ("predict", {"smiles": "CCO"}, 422),
        ("predict", {"smiles": [1]}, 422),
        ("predict", {"smiles": ["C"] * 61}, 422),
        ("predict", {"smiles": ["C" * 201]}, 413),
        ("predict", {"smiles": ["C" * 5000]}, 422),
        ("predict", b"{", 422),
        ("predict", b'{"smiles": [NaN]}', 422),
        ("predict", b'{"smiles": ["\\ud800"]}', 422),  # half of a character
        ("predict", b"[" * 10_000, 400),
        ("predict?output=pickle", {"smiles": ["C"]}, 422),
        ("cards", {"smiles": "C1CC"}, 422),
        ("cards", {"smiles": ""}, 422),
        ("cards", {"smiles": "   "}, 422),
        ("table?format=csv", b"", 422),
        ("table?format=csv", b"a,b\n1,2\n", 422),
        ("table?format=xlsx", b"PK", 422),
        ("table?format=../../etc/passwd", b"CCO", 422),
        ("table?format=sdf", b"nothing", 200),  # a row that cannot be read
        ("table?format=smi", b"C" * 30_000, 413),
    ],
)
def test_bad_requests(client, path, data, status):
    answer = post(client, f"/api/{path}", data)
    assert answer.status_code == status, answer.text
    if status != 200:
        assert isinstance(answer.json()["detail"], str)
        assert "Traceback" not in answer.text


def test_a_body_that_is_longer_than_it_says(client):
    parts = (b"CCO\n" * 250 for _ in range(30))
    assert client.post("/api/table?format=smi", content=parts).status_code == 413


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example:8765"}, 421),
        ({"Host": ""}, 421),
        ({"Host": "localhost:8765"}, 200),
        ({"Host": "[::1]:8765"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:8765"}, 200),
        ({"Origin": "http://127.0.0.1:9999"}, 403),
    ],
)
def test_requests_of_other_sites(client, headers, status):
    answer = post(client, "/api/predict", {"smiles": ["CCO"]}, headers=headers)
    assert answer.status_code == status


def test_names_of_the_machine_are_taken_only_where_told(workbench):
    client = testclient.TestClient(make_app(workbench, ("lab.example",)), "http://lab.example")
    assert client.get("/").status_code == 200


def test_too_long(workbench, monkeypatch):
    monkeypatch.setattr(workbench, "limits", LIMITS.__class__(seconds=0.05))
    monkeypatch.setattr(workbench, "cards", lambda *given, **more: time.sleep(0.5))
    client = testclient.TestClient(make_app(workbench), "http://127.0.0.1")
    answer = post(client, "/api/cards", {"smiles": "CCO"})
    assert answer.status_code == 503
    assert "longer" in answer.json()["detail"]
    assert "retry-after" not in answer.headers


def test_a_card_that_waited_for_others_is_to_be_asked_for_again(workbench, monkeypatch):
    monkeypatch.setattr(workbench, "limits", LIMITS.__class__(seconds=0.2))
    client = testclient.TestClient(make_app(workbench), "http://127.0.0.1")
    with workbench._turns.turn(0):  # another request is being answered
        answer = post(client, "/api/cards", {"smiles": "CCO"})
    assert answer.status_code == 503
    assert answer.json()["detail"] == "Other requests are being answered: try again later."
    assert int(answer.headers["retry-after"]) > 0


def test_a_card_that_waited_for_a_thread_is_to_be_asked_for_again(workbench, monkeypatch):
    begun, end = threading.Semaphore(0), threading.Event()

    def slow(*_, **more):
        begun.release()
        end.wait(30)
        return []

    monkeypatch.setattr(workbench, "limits", LIMITS.__class__(seconds=2.0))
    monkeypatch.setattr(workbench, "cards", slow)
    client = testclient.TestClient(make_app(workbench), "http://127.0.0.1")
    with ThreadPoolExecutor(_THREADS + 1) as askers:
        ask = partial(post, client, "/api/cards", {"smiles": "CCO"})
        answers = [askers.submit(ask) for _ in range(_THREADS)]
        for _ in answers:
            assert begun.acquire(timeout=30)
        late = ask()
        end.set()
    assert {answer.result().status_code for answer in answers} == {503}
    assert not any("retry-after" in answer.result().headers for answer in answers)
    assert int(late.headers["retry-after"]) > 0


def test_no_path_of_a_request_is_opened(client, tmp_path, monkeypatch):
    secret = tmp_path / "secret.csv"
    secret.write_text("smiles\nCCO\n")
    opened = []
    honest = open

    def watched(file, *more, **options):
        opened.append(str(file))
        return honest(file, *more, **options)

    monkeypatch.setattr("builtins.open", watched)
    monkeypatch.setattr("io.open", watched)
    for text in (str(secret), f"file://{secret}", "../" * 9 + "etc/passwd"):
        post(client, "/api/predict", {"smiles": [text]})
        post(client, "/api/cards", {"smiles": text, "previous": text})
        post(client, "/api/table?format=csv", text.encode())
        client.get(f"/{text}")
    assert not [name for name in opened if "secret" in name or "passwd" in name]


def test_hostile_text_is_data(client):
    rows = post(client, "/api/predict", {"smiles": [f"CCO {EVIL}", EVIL]}).json()["rows"]
    assert rows[0]["name"] == EVIL
    cards = post(client, "/api/cards", {"smiles": f"CCCC(=O)O {EVIL}"}).json()
    assert all("<script" not in json.dumps(card["svg"]) for card in cards)
