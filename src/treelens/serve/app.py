"""The web application: a page, its JSON interface, an OpenAPI page that works offline; a server.

FastAPI reads the annotations of the functions below when they are defined: this file must not
postpone their evaluation.
"""

import asyncio
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib import resources
from typing import Annotated, Any, Literal

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template

from treelens import __version__
from treelens.report.formats import plain_summary
from treelens.report.render import report_asset
from treelens.serve.answers import TooMuchError, Workbench
from treelens.serve.guard import Guard
from treelens.storage.files import csv_text

_THREADS = 4  # that wait for the models; these answer one after the other
_MOST_WAITING = 400
_MOST_CONNECTIONS = 1000
_IDLE_SECONDS = 10
_LONGEST_NAME = 200
Output = Literal["json", "csv"]
# What OpenAPI says about a body that is a file.
_FILE = {"requestBody": {"required": True, "content": {
    "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}}  # fmt: skip


def make_app(workbench: Workbench, hosts: tuple[str, ...] = ()) -> Any:
    """Return the ASGI application of some models.

    Parameters
    ----------
    workbench : Workbench
    hosts : tuple of str
        Names of this machine that requests may use, beside localhost and addresses.
    """
    try:
        from fastapi import FastAPI
        from fastapi.exceptions import RequestValidationError
    except ImportError as error:
        raise ImportError("The page needs FastAPI: pip install fastapi uvicorn.") from error

    app = FastAPI(
        title="treelens", version=__version__, docs_url=None, redoc_url=None,
        description="Predictions and compound cards of fitted models.",
    )  # fmt: skip
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


class _Queue:
    """Work done in threads within a time limit; errors become answers."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.n_waiting = seconds, 0
        self.pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="treelens")

    async def answer(self, work: Callable[..., Any], *given: Any) -> Any:
        from fastapi import HTTPException

        if self.n_waiting >= _MOST_WAITING:
            raise HTTPException(503, "Too many requests are waiting. Try again later.")
        self.n_waiting += 1
        try:
            future = self.pool.submit(work, *given, time.monotonic() + self.seconds)
            return await asyncio.wait_for(asyncio.wrap_future(future), self.seconds)
        except (asyncio.TimeoutError, TimeoutError):
            text = f"This took longer than {self.seconds:g} s. Send fewer molecules."
            raise HTTPException(503, text) from None
        except TooMuchError as error:
            raise HTTPException(413, str(error)) from None
        except ValueError as error:
            raise HTTPException(422, str(error)) from None
        finally:
            self.n_waiting -= 1


def _add_interface(app: Any, workbench: Workbench) -> None:
    """Add what other programs call."""
    from fastapi import Request
    from fastapi.responses import JSONResponse, Response
    from pydantic import BaseModel, Field, StringConstraints

    limits, queue = workbench.limits, _Queue(workbench.limits.seconds)
    longest = limits.smiles + _LONGEST_NAME
    Smiles = Annotated[str, StringConstraints(min_length=1, max_length=longest)]
    Values = Annotated[dict[str, str], Field(description="Values of the models' covariates")]

    class Molecules(BaseModel):
        smiles: list[Smiles] = Field(
            min_length=1, max_length=limits.molecules, examples=[["CCO ethanol", "c1ccccc1"]],
            description="SMILES, each with a name after a blank where it has one",
        )  # fmt: skip
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
        return response(await queue.answer(workbench.predict_smiles, *given), output)

    @app.post("/api/table", openapi_extra=_FILE)
    async def table(
        request: Request, format: Literal["csv", "smi", "sdf"], output: Output = "json"
    ) -> Any:
        """Predict a file: a CSV or TSV with a column of SMILES, a SMI or an SDF."""
        given = format, await request.body()
        return response(await queue.answer(workbench.predict_file, *given), output)

    @app.post("/api/cards")
    async def cards(molecule: Molecule) -> list[dict[str, Any]]:
        """One card per model: prediction, atom map, neighbours, domain, groups, difference."""
        given = molecule.smiles, molecule.previous, molecule.covariates
        return await queue.answer(workbench.cards, *given)


def _add_page(app: Any, workbench: Workbench) -> None:
    """Add the page for people, and one that shows the interface."""
    from fastapi.responses import HTMLResponse, Response

    def show(path: str, kind: str, text: Callable[[], str]) -> None:
        async def shown() -> Response:
            return Response(text(), media_type=kind)

        app.get(path, include_in_schema=False, response_class=HTMLResponse)(shown)

    facts = {"models": workbench.facts(), "covariates": workbench.covariates}
    page = {"page": facts, "version": __version__, "limits": workbench.limits}
    show("/", "text/html", lambda: _template("page.html").render(**page))
    show("/docs", "text/html", lambda: _template("docs.html").render(schema=app.openapi()))
    show("/page.css", "text/css", lambda: report_asset("report.css") + _asset("page.css"))
    show("/page.js", "text/javascript", lambda: _asset("page.js"))


@lru_cache(maxsize=2)
def _template(name: str) -> Template:
    return Environment(
        loader=FunctionLoader(_asset), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    ).get_template(name)  # fmt: skip


def _asset(name: str) -> str:
    return resources.files("treelens.serve").joinpath("templates", name).read_text("utf-8")


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; an ``OSError`` where that is not possible."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)


def server_of(app: Any) -> Any:
    """Return uvicorn's server of an application; ``run(sockets=[...])`` answers requests."""
    try:
        import uvicorn
    except ImportError as error:
        raise ImportError("The page needs uvicorn: pip install uvicorn.") from error

    return uvicorn.Server(uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, lifespan="off",
        limit_concurrency=_MOST_CONNECTIONS, timeout_keep_alive=_IDLE_SECONDS, ws="none",
    ))  # fmt: skip
