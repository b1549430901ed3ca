"""The web application: a page, its JSON interface, an OpenAPI page that works offline; a server.

FastAPI reads the annotations of the functions below when they are defined: this file must not
postpone their evaluation.
"""

import asyncio
import ipaddress
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from treelens import __version__
from treelens.report.render import asset, plain_summary, templates
from treelens.serve.answers import TooMuchError, Workbench
from treelens.storage.files import csv_text

_THREADS = 4  # that wait for the models; these answer one after the other
_MOST_CONNECTIONS = 800  # at once
_IDLE_SECONDS = 10
_LONGEST_NAME = 200
Output = Literal["json", "csv"]
# What OpenAPI says about a body that is a file.
_FILE = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


def make_app(workbench: Workbench, hosts: tuple[str, ...] = ()) -> Any:
    """Return the ASGI application; requests may use localhost, addresses and these names."""
    try:
        import uvicorn  # noqa: F401  # of server_of
        from fastapi import FastAPI
        from fastapi.exceptions import RequestValidationError
    except ImportError as error:
        raise ImportError("The page needs FastAPI: pip install fastapi uvicorn.") from error

    app = FastAPI(
        title="treelens",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        description="Predictions and compound cards of fitted models.",
    )
    app.exception_handler(RequestValidationError)(_invalid)
    _add_interface(app, workbench)
    _add_page(app, workbench)
    return Guard(app, ("localhost", *hosts), workbench.limits.bytes, workbench.limits.seconds)


async def _invalid(request: Any, error: Any) -> Any:
    """Answer a request of the wrong form in one sentence, without repeating what it sent."""
    from fastapi.responses import JSONResponse

    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"][1:])
    return JSONResponse(plain_summary({"detail": f"{place}: {first['msg']}"}), 422)


async def _answer(
    pool: ThreadPoolExecutor, seconds: float, work: Callable[..., Any], *given: Any
) -> Any:
    """Do the work in a thread within a time limit; errors become answers."""
    from fastapi import HTTPException

    try:
        future = pool.submit(work, *given, time.monotonic() + seconds)
        return await asyncio.wait_for(asyncio.wrap_future(future), seconds)
    except (asyncio.TimeoutError, TimeoutError):
        text = f"This took longer than {seconds:g} s. Send fewer molecules."
        raise HTTPException(503, text) from None
    except TooMuchError as error:
        raise HTTPException(413, str(error)) from None
    except ValueError as error:
        raise HTTPException(422, str(error)) from None


def _add_interface(app: Any, workbench: Workbench) -> None:
    """Add what other programs call."""
    from fastapi import Request
    from fastapi.responses import JSONResponse, Response
    from pydantic import BaseModel, Field, StringConstraints

    limits = workbench.limits
    pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="treelens")
    answer = partial(_answer, pool, limits.seconds)
    longest = limits.smiles + _LONGEST_NAME
    Smiles = Annotated[str, StringConstraints(min_length=1, max_length=longest)]
    Values = Annotated[dict[str, str], Field(description="Values of the models' covariates")]

    class Molecules(BaseModel):
        smiles: list[Smiles] = Field(
            min_length=1,
            max_length=limits.molecules,
            examples=[["CCO ethanol", "c1ccccc1"]],
            description="SMILES, each with a name after a blank where it has one",
        )
        covariates: Values = {}

    class Molecule(BaseModel):
        smiles: Smiles = Field(examples=["CCO"])
        previous: Smiles | None = Field(None, description="A molecule to compare with")
        covariates: Values = {}

    def response(frame: Any, output: str) -> Response:
        if output == "csv":
            return Response(csv_text(frame, index=False), media_type="text/csv; charset=utf-8")
        return JSONResponse(plain_summary({"rows": frame.to_dict("records")}))

    @app.get("/api/models")
    async def models() -> list[dict[str, Any]]:
        """What the models predict."""
        return workbench.facts()

    @app.post("/api/predict")
    async def predict(molecules: Molecules, output: Output = "json") -> Any:
        """Predict SMILES: the columns that 'treelens predict' writes, as JSON or CSV."""
        given = molecules.smiles, molecules.covariates
        return response(await answer(workbench.predict_smiles, *given), output)

    @app.post("/api/table", openapi_extra=_FILE)
    async def table(
        request: Request, format: Literal["csv", "smi", "sdf"], output: Output = "json"
    ) -> Any:
        """Predict a file: a CSV or TSV with a column of SMILES, a SMI or an SDF."""
        given = format, await request.body()
        return response(await answer(workbench.predict_file, *given), output)

    @app.post("/api/cards")
    async def cards(molecule: Molecule) -> list[dict[str, Any]]:
        """One card per model: prediction, atom map, neighbours, domain, groups, difference."""
        given = molecule.smiles, molecule.previous, molecule.covariates
        return await answer(workbench.cards, *given)


def _add_page(app: Any, workbench: Workbench) -> None:
    """Add the page for people, and one that shows the interface."""
    from fastapi.responses import HTMLResponse, Response

    def show(path: str, kind: str, text: str) -> None:
        async def shown() -> Response:
            return Response(text, media_type=kind)

        app.get(path, include_in_schema=False, response_class=HTMLResponse)(shown)

    pages = templates("serve")
    facts = {"models": workbench.facts(), "covariates": workbench.covariates}
    page = {"page": facts, "version": __version__, "limits": workbench.limits}
    show("/", "text/html", pages.get_template("page.html").render(**page))
    show("/docs", "text/html", pages.get_template("docs.html").render(schema=app.openapi()))
    show("/page.css", "text/css", asset("report", "report.css") + asset("serve", "page.css"))
    show("/page.js", "text/javascript", asset("serve", "page.js"))


def server_of(app: Any) -> Any:
    """Return uvicorn's server of an application; ``run(sockets=[...])`` answers requests."""
    import uvicorn

    return uvicorn.Server(
        uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="off",
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_keep_alive=_IDLE_SECONDS,
            ws="none",
        )
    )


# --- the outermost layer: who may ask, how much, and with which headers it answers ----------------


# Scripts and styles come from this server only; drawings have style attributes.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


class Guard:
    """Refuse requests of other sites and large ones; add the headers to every answer.

    The name in the Host header must be an address or one of ``hosts``: a page of another site whose
    name is made to point to this machine (DNS rebinding) sends its own name. A request with an
    Origin must come from the page itself.
    """

    def __init__(self, app: Any, hosts: Collection[str], largest_body: int, seconds: float) -> None:
        self.app, self.hosts = app, {name.casefold() for name in hosts}
        self.largest_body, self.seconds = largest_body, seconds
        self.too_large = f"The request is larger than {largest_body / 1e6:g} MB."

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":  # there are no web sockets here
            return

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", []), *own]}
            await send(message)

        if refusal := self._refusal(scope["headers"]):
            from fastapi.responses import JSONResponse

            answer = JSONResponse({"detail": refusal[1]}, refusal[0], {"connection": "close"})
            await answer(scope, receive, send_with_headers)
        else:
            await self.app(scope, self._bounded(receive), send_with_headers)

    def _refusal(self, headers: Any) -> tuple[int, str] | None:
        found = {name.decode("latin-1").lower(): text.decode("latin-1") for name, text in headers}
        host = found.get("host", "")
        if not self._is_known(host):
            return 421, "The Host header names another machine."
        origin = found.get("origin")
        if origin is not None and urlsplit(origin).netloc.casefold() != host.casefold():
            return 403, "The request comes from another site."
        length = found.get("content-length", "0")
        if not length.isascii() or not length.isdecimal() or int(length) > self.largest_body:
            return 413, self.too_large
        return None

    def _is_known(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
            return name in self.hosts or bool(ipaddress.ip_address(name))
        except ValueError:
            return False

    def _bounded(self, receive: Any) -> Any:
        """Count what arrives, which need not be what Content-Length promised."""
        n_bytes = 0

        async def counted() -> Any:
            nonlocal n_bytes
            from fastapi import HTTPException

            try:
                message = await asyncio.wait_for(receive(), self.seconds)
            except (asyncio.TimeoutError, TimeoutError):
                raise HTTPException(408, "The request did not arrive in time.") from None
            if message["type"] == "http.request":
                n_bytes += len(message.get("body", b""))
                if n_bytes > self.largest_body:
                    raise HTTPException(413, self.too_large)
            return message

        return counted
