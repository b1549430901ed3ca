"""Connections of the server: how long a request may take to arrive, and how many may be open."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from treelens.serve.answers import Limits
from treelens.serve.app import HEADERS


class BoundedConnection(asyncio.Protocol):
    """A connection whose requests, headers and body together, arrive in time or not at all.

    The clock runs from the first byte of a request (the first from when the connection is made) to
    its last one. Above the largest number of connections the one that has waited longest for
    something to answer is closed: requests that never become whole cannot keep others out.
    """

    limits: Limits
    # Of uvicorn's protocol, which makes a class of this one, and of h11, its parser.
    conn: Any
    cycle: Any
    connections: set[Any]
    transport: Any
    loop: asyncio.AbstractEventLoop
    _clock: asyncio.TimerHandle | None = None
    _waits_since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._start_clock()
        if len(self.connections) > self.limits.connections:
            waiting = (each for each in self.connections if each._waits)  # this one does
            oldest = min(waiting, key=lambda each: each._waits_since)
            oldest.refuse("503 Service Unavailable", "There are too many connections: try again.")

    def handle_events(self) -> None:
        super().handle_events()  # type: ignore[misc]
        state = repr(self.conn.their_state)
        begun = state == "IDLE" and self.conn.trailing_data[0]  # headers, not yet whole
        if not begun and state != "SEND_BODY":
            self._stop_clock()
        elif self._clock is None:
            self._start_clock()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        super().connection_lost(exc)

    def refuse(self, status: str, detail: str) -> None:
        """Close the connection, with an answer where none has begun."""
        if self.transport.is_closing():
            return
        if self.cycle is None or not self.cycle.response_started:
            body = json.dumps({"detail": detail})
            own = {"content-type": "application/json", "content-length": str(len(body))}
            lines = [f"{name}: {value}" for name, value in {**HEADERS, **own}.items()]
            text = "\r\n".join([f"HTTP/1.1 {status}", *lines, "connection: close", "", body])
            self.transport.write(text.encode("ascii"))
        self.transport.close()

    @property
    def _waits(self) -> bool:
        """Whether no request is being answered: it is idle, or a request is not whole."""
        cycle = self.cycle
        return cycle is None or cycle.response_complete or cycle.more_body

    def _start_clock(self) -> None:
        seconds, self._waits_since = self.limits.seconds, self.loop.time()
        late = "408 Request Timeout", f"The request did not arrive within {seconds:g} s."
        self._clock = self.loop.call_later(seconds, self.refuse, *late)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
        self._clock = None


def connections_within(limits: Limits) -> Any:
    """Return the class of uvicorn's connections that keep the limits."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    return type("Connection", (BoundedConnection, H11Protocol), {"limits": limits})
