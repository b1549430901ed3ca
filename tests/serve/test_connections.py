"""Slow, many and large requests through real sockets: they cannot keep others from an answer.

Sockets have a time limit, after which a test fails; none asserts how long something took.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from http.client import HTTPConnection

import pytest

from serve.conftest import LIMITS, serving, workbench_of
from treelens.serve import answers
from treelens.serve.answers import Deadline, Turns
from treelens.serve.app import make_app

PATIENCE = 30.0  # seconds, until a test gives up
HALF = b"POST /api/table?format=smi HTTP/1.1\r\nHost: localhost\r\nContent-"


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


def request(body: bytes, path: str = "/api/table?format=smi", length: int | None = None) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {length or len(body)}\r\n\r\n"
    return head.encode() + body


def everything(open_socket: socket.socket) -> bytes:
    """What comes until the other side closes."""
    parts = []
    with suppress(ConnectionResetError):
        while part := open_socket.recv(65_536):
            parts.append(part)
    return b"".join(parts)


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def until(condition) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "This does not come."
        time.sleep(0.01)


def asked(port: int, body: bytes, path: str = "/api/table?format=smi") -> int:
    with connected(port) as own:
        with suppress(BrokenPipeError, ConnectionResetError):  # refused before all was sent
            own.sendall(request(body, path))
        return status_of(everything(own))


@pytest.mark.parametrize("sent", [b"", HALF, request(b"CCO", length=100)])
def test_a_request_that_stops_half_way_is_closed(models, sent):
    bench = workbench_of(models["logS"], limits=replace(LIMITS, seconds=0.3))
    with serving(make_app(bench)) as port, connected(port) as own:
        own.sendall(sent)
        answer = everything(own)
    assert status_of(answer) == 408
    assert "did not arrive" in json.loads(answer.partition(b"\r\n\r\n")[2])["detail"]


@pytest.mark.parametrize("sent", [HALF, request(b"", length=1000)])
def test_the_time_limit_is_that_of_the_whole_request(models, sent):
    """One byte after the other, each well within the limit."""
    bench, gaps = workbench_of(models["logS"], limits=replace(LIMITS, seconds=0.5)), 100
    with serving(make_app(bench)) as port, connected(port) as own:
        own.sendall(sent)
        with suppress(BrokenPipeError, ConnectionResetError):
            while gaps:
                own.sendall(b"a")
                time.sleep(0.05)
                gaps -= 1
    assert gaps > 0  # it was closed before all was sent


def test_a_connection_that_is_kept_open_has_a_clock_for_each_request(models):
    bench = workbench_of(models["logS"], limits=replace(LIMITS, seconds=0.5))
    with serving(make_app(bench)) as port:
        kept = HTTPConnection("localhost", port, timeout=PATIENCE)
        for _ in range(5):
            kept.request("GET", "/api/models")
            answer = kept.getresponse()
            assert (answer.status, answer.read()[:1]) == (200, b"[")
            time.sleep(0.2)
        kept.sock.sendall(HALF)
        assert everything(kept.sock) == b""  # closed, though idle ones may stay for longer
        kept.close()


def test_half_requests_make_room_for_whole_ones(models):
    bench = workbench_of(models["logS"], limits=replace(LIMITS, connections=5))
    with serving(make_app(bench)) as port, ExitStack() as stack:
        waiting = [stack.enter_context(connected(port)) for _ in range(5)]
        for own in waiting:
            own.sendall(HALF)
        for _ in range(3):
            assert asked(port, b"CCCO") == 200
        assert status_of(everything(waiting[0])) == 503
        waiting[-1].sendall(b"Length: 4\r\nConnection: close\r\n\r\nCCCO")  # was not the oldest
        assert status_of(everything(waiting[-1])) == 200


def test_bodies_have_a_common_limit_and_small_ones_are_always_read(models):
    limits = replace(LIMITS, bytes=1_000_000, bytes_at_once=300_000, smiles=10**6)
    body = b"CCO " + b"x" * 200_000  # a molecule with a long name
    app = make_app(workbench_of(models["logS"], limits=limits))
    with serving(app) as port, ExitStack() as stack:
        two = [stack.enter_context(connected(port)) for _ in range(2)]
        for own in two:
            own.sendall(request(body)[:-1])
        until(lambda: app.n_held > 250_000)  # both have been read
        assert asked(port, body) == 503
        assert asked(port, b"CCO " + b"x" * 60_000) == 200
        for own in two:
            own.sendall(b"x")
            assert status_of(everything(own)) == 200
        assert asked(port, body) == 200  # there is room again


def test_those_with_the_fewest_turns_are_next():
    turns, order = Turns(), []

    def take(n_before: int) -> None:
        with turns.turn(n_before):
            order.append(n_before)

    with ThreadPoolExecutor(10) as pool:
        with turns.turn(0):
            for n_before in (3, 1, 2, 0, 1):
                pool.submit(take, n_before)
            until(lambda: len(turns._waiting) == 5)
            with pytest.raises(TimeoutError), turns.turn(0, Deadline(0.01)):
                pass
        pool.shutdown()
    assert order == [0, 1, 1, 2, 3]
    with pytest.raises(ZeroDivisionError), turns.turn(0):
        raise ZeroDivisionError
    with turns.turn(0):  # which an error has given back
        pass


def test_a_small_request_waits_for_one_turn_of_large_ones(models, monkeypatch):
    """Each turn of the models needs a permit: the small answer comes after the first of many."""
    permits, predicted, begun = threading.Semaphore(0), answers.predict_molecules, []

    def with_permit(models, table, molecules):
        begun.append(len(table.rows))
        permits.acquire()
        return predicted(models, table, molecules)

    monkeypatch.setattr(answers, "_CHUNK", 10)
    monkeypatch.setattr(answers, "predict_molecules", with_permit)
    bench = workbench_of(models["logS"])
    large = json.dumps({"smiles": ["CCCO"] * 60}).encode()
    with serving(make_app(bench)) as port, ThreadPoolExecutor(10) as pool:
        try:
            others = [pool.submit(asked, port, large, "/api/predict") for _ in range(6)]
            until(lambda: begun and len(bench._turns._waiting) == 5)
            small = pool.submit(asked, port, b'{"smiles": ["CCO"]}', "/api/predict")
            until(lambda: len(bench._turns._waiting) == 6)
            permits.release(2)  # the turn that has begun, and the next
            assert small.result(PATIENCE) == 200
            assert begun[:2] == [10, 1]
            assert not any(other.done() for other in others)
        finally:
            permits.release(1000)
        assert [other.result(PATIENCE) for other in others] == [200] * 6
