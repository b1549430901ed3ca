"""Commands that look into a model, decide with it (``suggest``, ``advise``), or serve it."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from treelens.cli import options
from treelens.cli.console import Output, command, percent, shortened
from treelens.cli.endpoints import (
    check_of_panel,
    read_measured,
    show_endpoint_facts,
    with_value,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from treelens.models.fitted import HasModel

_LOCAL = "127.0.0.1"
_OF_EACH = 5  # fragments of each of several endpoints
_SHOWN = 24  # rows of a long table
_LONGEST = 14  # characters of a molecule: a line has 80
_MOST_TARGETS = 4  # of several that a line has room for


@command
def explain_cli(
    output: Output,
    model: options.ModelPath,
    data: options.Data,
    out: options.Out = Path("report.html"),
    target: options.Truth = None,
    endpoint: options.Endpoint = None,
    smiles: options.Smiles = None,
    sheet: options.Sheet = None,
    max_atoms: options.MaxAtoms = 5000,
    jobs: options.Jobs = -1,
) -> None:
    """Explain the predictions of a MODEL on DATA in one HTML file."""
    loaded: Any = options.load_model(model, jobs, [data], [out])
    reading = {"smiles": smiles, "sheet": sheet, "max_atoms": max_atoms}
    graphs, y, endpoint = _read(output, data, loaded, (target, endpoint), reading)
    if endpoint is None:
        loaded.report(out, graphs, y)
    else:
        graphs, y = with_value(graphs, y, endpoint)
        loaded.endpoint(endpoint).report(out, graphs, y)
    output.finish({"n_graphs": len(graphs)}, lambda *_: None, out, "Report")


def _read(
    output: Output,
    data: str,
    model: Any,
    named: tuple[str | None, str | None],
    reading: dict[str, Any],
) -> tuple[Any, Any, str | None]:
    """Return the graphs of DATA, what was measured of them and the endpoint of a panel, if any.

    ``named`` are --target and --endpoint.
    """
    target, endpoint = named
    if model.model_.endpoint_names:
        check_of_panel(model, target, endpoint)
        return *read_measured(output, data, model, reading), endpoint
    model.model_.endpoint(endpoint)  # or an error
    table = options.read_for_model(output, data, model, target, **reading)
    return table.graphs, None if target is None else table.targets, None


@command
def fragments_cli(
    output: Output,
    model: options.ModelPath,
    data: options.Data,
    top: Annotated[
        int | None,
        options.option("At most so many, of each endpoint.", min=1, default="40; of several 5"),
    ] = None,
    target: options.Truth = None,
    endpoint: options.Endpoint = None,
    out: Annotated[
        Path | None,
        options.option("Write the table: .csv, or .xlsx with drawings.", "--out", "--csv", "-o"),
    ] = None,
    smiles: options.Smiles = None,
    sheet: options.Sheet = None,
    max_atoms: options.MaxAtoms = 5000,
    jobs: options.Jobs = -1,
) -> None:
    """Print the fragments of DATA that change predictions most.

    Best with the data that the MODEL was fitted to: each graph is then explained by the others.
    """
    from treelens.explain.fragments import N_FRAGMENTS
    from treelens.graphs.kinds import noun_of

    loaded = options.load_model(model, jobs, [data], [out])
    reading = {"smiles": smiles, "sheet": sheet, "max_atoms": max_atoms}
    graphs, y, endpoint = _read(output, data, loaded, (target, endpoint), reading)
    several = bool(loaded.model_.endpoint_names) and endpoint is None
    n = top or (_OF_EACH if several else N_FRAGMENTS)
    found = loaded.fragments(graphs, y, endpoint=endpoint, n_fragments=n)
    table = found.drop(columns="drawing")
    result: dict[str, Any] = {
        "model": str(model),
        "noun": noun_of(graphs.recipe),
        "n_graphs": len(graphs),
        "fragments": [{"rank": k, **row} for k, row in table.to_dict("index").items()],
        **{str(name): value for name, value in table.attrs.items()},
    }
    show = _show_of_each if several else _show_fragments
    output.finish(result, show, out, table=found, index=True)


def _show_of_each(output: Output, result: dict[str, Any]) -> None:
    """Print the fragments of each endpoint."""
    for name in result["size"]:
        own = [row for row in result["fragments"] if row["endpoint"] == name]
        found = {key: result[key][name] for key in ("size", "toward")}
        if not own:
            output.line(f"{name}: no fragment has an effect beyond two standard errors.")
            continue
        own = [{**row, "rank": rank} for rank, row in enumerate(own, start=1)]
        _show_table(output, {**result, **found, "fragments": own}, f"{name}: fragments")
    explain_fragments(output, result)


def _show_fragments(output: Output, result: dict[str, Any]) -> None:
    if result["none"]:
        output.line(result["none"])
    if not result["fragments"]:
        return
    _show_table(output, result, "Fragments")
    explain_fragments(output, result)
    if "effect" in result["size"]:
        size, node = result["size"], "atom" if result["noun"] == "molecules" else "node"
        output.line(
            f"Size: the mean {node}, whatever it is, adds {size['per_node']:+.4f}; "
            f"{size['mean_nodes']:.1f} {node}s, the mean, add {size['effect']:+.3f}."
        )


def _show_table(output: Output, result: dict[str, Any], what: str) -> None:
    rows = [
        [
            row["rank"],
            str(row.get("class_label", "")),
            row["name"] or row["pattern"],
            row.get("smarts") or "",
            f"{row['effect']:+.3f} ± {row['error']:.3f}",
            row["support"],
        ]
        for row in result["fragments"]
    ]
    toward = f" (for {result['toward']})" if result["toward"] is not None else ""
    columns = ["", "class", "fragment", "SMARTS", f"effect{toward}", result["noun"]]
    title = f"{what} and their effects (± standard error), each beyond those above it"
    used = [k for k, cells in enumerate(zip(*rows, strict=True)) if any(x != "" for x in cells)]
    rows = [[row[k] for k in used] for row in rows]
    output.table([columns[k] for k in used], rows, title, cut=["fragment", "SMARTS"])


def explain_fragments(output: Output, result: dict[str, Any]) -> None:
    """Say how fragments are ordered, and what "(some)" after the name of a group means."""
    sizes = [abs(row["effect"]) for row in result["fragments"]]
    if sizes != sorted(sizes, reverse=True):
        node = "atoms" if result["noun"] == "molecules" else "nodes"
        output.line(
            "Ordered by how large and consistent an effect is and how many "
            f"{node} and {result['noun']} have it, not by its size alone."
        )
    if any("(some)" in row["name"] for row in result["fragments"]):
        output.line("(some): most molecules with this group do not have the fragment.")


@command
def patterns_cli(
    output: Output,
    model: options.ModelPath,
    top: Annotated[int, options.option("How many to print.", min=0)] = 20,
    sort: Annotated[
        Literal["auto", "weight", "difference", "support"],
        options.option(
            "difference: between classes, or between graphs with and without it; auto: weight "
            "where weights were learned, else difference.",
        ),
    ] = "auto",
    out: options.CsvOut = None,
) -> None:
    """Print the patterns of a MODEL with weights and classes."""
    from treelens.estimators.fit_report import pattern_summary

    loaded = options.load_model(model, writes=[out])
    result = {
        "model": str(model),
        "method": loaded.model_.method,
        **pattern_summary(loaded, top, sort),
    }
    if not output.as_json:
        output.line(f"Fitted to: {loaded.recipe_ or 'graphs from another source'}")
    table = None if out is None else loaded.patterns_
    output.finish(result, show_patterns, out, "All patterns", table, index=True)


def show_patterns(output: Output, result: dict[str, Any]) -> None:
    """Print a table; a pattern reads root(neighbour(...),...), with the bond before a neighbour."""
    patterns = result["patterns"]
    first = patterns[0] if patterns else {}
    side = {"class": "class"}
    if "mean_with" in first:
        side = {"mean with it": "mean_with", "mean without": "mean_without"}
    # a label may read the same in another tree, and be another pattern
    tree = ["tree"] if len({row["tree"] for row in patterns}) > 1 else []
    rows = [
        [
            row["pattern"],
            *(row[name] for name in tree),
            row["depth"],
            float(row["weight"]),
            row["support"],
            *(row[x] if x != "class" else str(row[x]) for x in side.values()),
            float(row["difference"]),
        ]
        for row in patterns
    ]
    title = f"Patterns: {len(rows)} of {result['n_patterns']}"
    title += "" if result["learned"] else " (weights are uniform)"
    columns = ["pattern", *tree, "depth", "weight", result["noun"], *side, result["compared"]]
    output.table(columns, rows, title)


@command
def info_cli(output: Output, model: options.ModelPath) -> None:
    """Show what a MODEL was fitted to, and how."""
    from treelens.estimators.fit_report import model_facts

    facts = model_facts(options.load_model(model))
    output.finish({"model": str(model), "bytes": model.stat().st_size, **facts}, _show_info)


def covariate_list(facts: dict[str, Any]) -> str:
    """Return covariates and descriptors in words."""
    from treelens.errors import first_few

    names = [name for name in facts["names"] if not name.startswith("rdkit:")]
    n_descriptors = len(facts["names"]) - len(names)
    words = [first_few(names)] if names else []
    words += [f"{n_descriptors} descriptors of the molecules"] if n_descriptors else []
    return " and ".join(words)


def _show_info(output: Output, result: dict[str, Any]) -> None:
    table = (result["recipe"] or {}).get("table") or {}
    target = result.get("target") or {}
    output.facts(
        {
            "kind": result["kind"],
            "predicts": result.get("target_in_words") or result["task"],
            "learned as": None if target.get("reported") else target.get("scale"),
            "classes": result.get("classes"),
        },
        f"{result['model']} ({result['bytes']:,} bytes)",
    )
    output.facts(
        {
            "file": table.get("source"),
            "molecules in column": table.get("smiles"),
            "rows named by": table.get("ids"),
            **(table.get("counts") or {}),
            "read from": result["recipe_in_words"],
            "training data": result["training_data"],
        },
        "Fitted to",
    )
    for title, key in (("Kernel", "kernel"), ("Sizes", "sizes"), ("Weight of levels", "levels")):
        output.facts(result.get(key) or {}, title)
    if "endpoints" in result:
        show_endpoint_facts(output, result)
    if result.get("learning"):
        output.line(result["learning"])
    if len(views := result.get("views") or {}) > 1:
        shares = ", ".join(f"{name} {100 * share:.0f} %" for name, share in views.items())
        output.line(f"Shares of the variance that the views explain: {shares}.")
    if facts := result.get("covariates"):
        output.line(
            f"Beside the structure: {covariate_list(facts)}. Their part of the fitted values has a "
            f"standard deviation of {facts['spread']:.3g}, that of structure "
            f"{facts['spread_of_structure']:.3g}."
        )


# --- suggest and advise ---------------------------------------------------------------------------


@command
def suggest_cli(
    output: Output,
    model: options.ModelPath,
    pool: options.Data,
    n: Annotated[int, options.option("How many to choose.", min=1)] = 24,
    strategy: Annotated[
        str,
        options.option(
            "expected_improvement, ucb (see --exploration), thompson, greedy or uncertainty.",
        ),
    ] = "expected_improvement",
    minimize: options.Minimize = False,
    where: Annotated[
        str | None,
        options.option(
            "Such as 'MW < 500 and price <= 5': descriptors or columns.",
            metavar="CONDITION",
        ),
    ] = None,
    wanted: options.Wanted = None,
    profile: options.ProfileFile = None,
    exploration: Annotated[
        float, options.option("Standard deviations that ucb adds.", min=0.0)
    ] = 1.0,
    out: options.CsvOut = None,
    smiles: options.Smiles = None,
    sheet: options.Sheet = None,
    ids: options.Ids = None,
    max_atoms: options.MaxAtoms = 5000,
    seed: Annotated[int, options.option("Of thompson.", min=0)] = 0,
    jobs: options.Jobs = -1,
) -> None:
    """Choose candidates of DATA to measure next.

    One line a choice, the first choice first: position in DATA (from 0), name, prediction with its
    90 % interval, the probability of a measurement better than all so far, whether it is in the
    domain of applicability, and the nearest measured compound with its value. Candidates that the
    MODEL was fitted to are left out. With --profile, which a MODEL of several endpoints needs: the
    probability that all its conditions hold, and that of each.
    """
    from treelens.decisions.suggest import suggest

    loaded = options.load_model(model, jobs, [pool], [out])
    table = options.read_data(
        pool, smiles=smiles, sheet=sheet, names=ids, max_atoms=max_atoms, model=loaded
    )
    output.note(*table.notes)
    found = suggest(
        loaded,
        table,
        n,
        strategy,
        not minimize,
        where=where,
        wanted=wanted,
        exploration=exploration,
        random_state=seed,
        profile=options.read_profile(profile),
    )
    result: dict[str, Any] = {
        "model": str(model),
        "pool": pool,
        "n_candidates": len(table.graphs),
        "n_meeting_condition": found.attrs["n_candidates"],
        "wanted": found.attrs["wanted"],
        "strategy": strategy,
        "minimize": minimize,
        "profile": None if profile is None else str(profile),
        "suggestions": found.to_dict("records"),
    }
    output.finish(result, _show_suggestions, out, table=found)


def _show_suggestions(output: Output, result: dict[str, Any]) -> None:
    in_profile = result["profile"] is not None
    rows = [_suggested(row, in_profile) for row in result["suggestions"]]
    n_met, n_all = result["n_meeting_condition"], result["n_candidates"]
    title = f"{len(rows)} of {n_met} candidates"
    title += "" if n_met == n_all else f" that meet the condition ({n_all} in all)"
    if in_profile:
        title += f", by the probability of {result['profile']}"
    elif result["wanted"] is not None:
        title += f", looking for class {result['wanted']}"
    elif result["strategy"] != "uncertainty":  # which looks for neither
        small = result["minimize"]
        title += f", {'small' if small else 'large'} values wanted"
        title += "" if small else " (--minimize: small)"
    _show_first(output, result, rows, title)


def _suggested(row: dict[str, Any], in_profile: bool) -> dict[str, str]:
    """Return what is printed of a suggestion."""
    molecule = row.get("name") or row.get("smiles") or f"index {row['index']}"
    shown = {"molecule": shortened(str(molecule), _LONGEST)}
    near = row.get("nearest_name") or row.get("nearest_smiles") or ""
    if in_profile:
        shown["profile"] = percent(row["probability_of_profile"])
        each = {name: x for name, x in row.items() if name.endswith("_in_profile")}
        shown |= {name.removesuffix("_in_profile"): percent(x) for name, x in each.items()}
        shown["nearest"] = shortened(str(near), _LONGEST)
        return shown
    if "prediction" in row:
        interval = f"{row['lower_90']:.3g} to {row['upper_90']:.3g}"
        shown["prediction (90 %)"] = f"{row['prediction']:.3g} ({interval})"
        shown["better"] = percent(row["probability_better"])
    else:
        shown["class"] = shortened(str(row["class"]), _LONGEST)
        shown["probability"] = percent(row["probability"])
    shown["domain"] = "yes" if row["in_domain"] else "no"
    value = row["nearest_value"]
    value = f"{value:.3g}" if isinstance(value, float) else value
    value = f"{row.get('nearest_limit', '')}{value}"
    shown["nearest (value)"] = f"{shortened(str(near), _LONGEST - 3)} ({value})".lstrip()
    return shown


@command
def advise_cli(
    output: Output,
    model: options.ModelPath,
    lead: Annotated[str, options.argument("LEAD", "A SMILES, or a file that begins with it.")],
    n: Annotated[int, options.option("How many changes.", min=1)] = 50,
    minimize: options.Minimize = False,
    wanted: options.Wanted = None,
    profile: options.ProfileFile = None,
    endpoint: Annotated[
        str | None,
        options.option("Of several targets without a profile: the one to make better."),
    ] = None,
    everything: Annotated[
        bool, options.option("Changes that rather hurt, too.", "--all", default="those that help")
    ] = False,
    scans: Annotated[
        bool, options.option("Usual changes that no pair shows.", "--scans/--no-scans")
    ] = True,
    training: Annotated[
        str | None,
        options.option(
            "The table that the model was fitted to.",
            metavar="FILE",
            default="the molecules that the model keeps",
        ),
    ] = None,
    min_pairs: Annotated[int, options.option("Pairs that must show a change.", min=1)] = 1,
    largest: Annotated[
        int, options.option("Heavy atoms of a substituent.", "--largest-change", min=1)
    ] = 10,
    out: options.CsvOut = None,
    html: Annotated[Path | None, options.option("Write a page with drawings.")] = None,
    max_atoms: options.MaxAtoms = 5000,
    jobs: options.Jobs = -1,
) -> None:
    """Propose changes of a LEAD that would help.

    Substituents are replaced as matched pairs of the training molecules do, where the atoms within
    two bonds are the same; scans put F, Cl, methyl, OMe, OH or CN on aromatic CH, N in its place,
    and methyl on other carbon and nitrogen. Each line: the change, the new molecule, the
    probability of being better than the lead, the predicted difference with its standard deviation,
    the mean measured difference of the pairs and their number, whether the new molecule is in the
    domain of applicability, and the change of logP. With --profile: how much more probable the
    profile becomes, and what each target does.
    """
    from treelens.decisions.advise import advise

    reads = [lead] if training is None else [lead, training]
    loaded = options.load_model(model, jobs, reads, [out, html])
    known = None
    if training is not None:
        known = options.read_for_model(output, training, loaded, learn=True, max_atoms=max_atoms)
    output.progress("Looking for changes in the training molecules ...")
    table = advise(
        loaded,
        _lead_of(output, lead, loaded, max_atoms),
        n,
        not minimize,
        wanted=wanted,
        min_pairs=min_pairs,
        largest_change=largest,
        training=known,
        profile=options.read_profile(profile),
        endpoint=endpoint,
        scans=scans,
        only_better=not everything,
    )
    about = {"model": str(model), "profile": None if profile is None else str(profile)}
    _finish_advice(output, about, table, out, html)


def _finish_advice(
    output: Output, about: dict[str, Any], table: pd.DataFrame, out: Path | None, html: Path | None
) -> None:
    """Print the advice, and write the files that were asked for."""
    from treelens.decisions.advice_page import write_advice

    more = {str(name): value for name, value in table.attrs.items()}
    result = {**about, **more, "advice": table.to_dict("records")}
    if html is not None:
        result["html"] = str(write_advice(table, html))
    output.finish(result, _show_advice, out, table=table)


def _lead_of(output: Output, lead: str, model: HasModel, max_atoms: int) -> str:
    """Return the SMILES of LEAD, which may be a file."""
    from treelens.models.predictions import smiles_of

    graphs = options.read_data(lead, model=model, max_atoms=max_atoms).graphs
    texts = graphs.graph_data.get("smiles_given", smiles_of(graphs))  # advise makes standard forms
    if texts is None:
        raise ValueError(f"{lead} has no molecule: expected a SMILES, or a file with one.")
    if len(texts) > 1:
        output.note(f"{lead} has {len(texts)} molecules: only the first is looked at.")
    return texts[0]


def _show_advice(output: Output, result: dict[str, Any]) -> None:
    lead = result["lead"]
    known = "" if lead["name"] is None else f", training molecule {lead['name']}"
    output.line(f"Lead {lead['smiles']}{known}")
    for end in lead["endpoints"]:
        output.line(f"  {end['text']}")
    if "probability_of_profile" in lead:
        output.line(f"  {result['profile']}: {percent(lead['probability_of_profile'])}")
    if not result["advice"]:
        output.line(f"None of {result['n_tried']} changes is predicted to help (--all: show them).")
        return
    several = len(lead["endpoints"]) > 1
    rows = [_advised(row, lead, several) for row in result["advice"]]
    title = f"{len(rows)} of {result['n_tried']} changes, by {result['ranked_by']}"
    if result["wanted"] is not None:
        title += f", towards class {result['wanted']} (differences of the decision value)"
    _show_first(output, result, rows, title, cut=("change", "molecule"))
    if any("(!)" in row.get("mean of pairs", "") for row in rows[:_SHOWN]):
        output.line("(!) The pairs were measured to differ the other way than predicted.")
    if several and "out" not in result and "html" not in result:
        output.line("--out FILE and --html FILE have every target with its difference.")
    if "html" in result:
        output.line(f"The page: {result['html']}")


def _advised(row: dict[str, Any], lead: dict[str, Any], several: bool) -> dict[str, str]:
    """Return what is printed of a change."""
    shown = {"change": row["change"], "molecule": row["smiles"]}
    if not several:
        against = row["pair_mean"] * row["difference"] < 0
        pairs = f"{row['pair_mean']:+.3g} of {row['n_pairs']}{' (!)' * against}"
        if "profile_gain" in row:
            shown["profile"] = f"{100 * row['profile_gain']:+.1f} %"
        return shown | {
            "better": percent(row["probability_better"]),
            "difference": f"{row['difference']:+.3g} ± {row['std']:.2g}",
            "mean of pairs": pairs if row["source"] == "pairs" else row["source"],
            "domain": "yes" if row["in_domain"] else "no",
            "logP": f"{row['logp_change']:+.2f}",
        }
    if "profile_gain" in row:
        shown["profile"] = f"{100 * row['profile_gain']:+.1f} %"
    names = [end["endpoint"] for end in lead["endpoints"]]
    wanted = [name for name in names if f"{name}_probability_better" in row] or names
    for name in wanted[:_MOST_TARGETS]:
        chance = row.get(f"{name}_probability_better")
        if chance is None:
            words = f"{100 * row[f'{name}_probability_higher']:.0f} % higher"
        else:
            words = f"{100 * chance:.0f} % better"
        shown[name] = f"{row[f'{name}_difference']:+.2g} ({words})"
    shown["pairs"] = str(row["n_pairs"]) if row["source"] == "pairs" else row["source"]
    return shown | {"domain": "yes" if row["in_domain"] else "no"}


def _show_first(
    output: Output,
    result: dict[str, Any],
    rows: list[dict[str, Any]],
    title: str,
    cut: Sequence[str] = (),
) -> None:
    columns = list(rows[0]) if rows else []
    output.table(columns, [list(row.values()) for row in rows[:_SHOWN]], title, cut)
    if len(rows) > _SHOWN and "out" not in result:
        output.line(f"The first {_SHOWN} of {len(rows)}; --out FILE writes all.")


# --- serve ----------------------------------------------------------------------------------------


@command
def serve_cli(
    output: Output,
    models: Annotated[
        list[Path], options.argument("MODEL", "Models of molecules, one for each target.")
    ],
    port: Annotated[int, options.option("0: any that is free.", min=0, max=65535)] = 8765,
    host: Annotated[
        str, options.option("The address; 0.0.0.0 lets colleagues in, without a password.")
    ] = _LOCAL,
    max_molecules: Annotated[int, options.option("Most molecules of a request.", min=1)] = 5000,
    seconds: Annotated[float, options.option("Longest time of a request.", min=1.0)] = 60.0,
    profile: options.ProfileFile = None,
    jobs: options.Jobs = 1,
) -> None:
    """Open a local page to predict and explain with MODELs.

    Paste SMILES or upload a table: the page shows predictions, the atoms that raise or lower them,
    the nearest training molecules, whether a molecule is in the domain, and what an edit changes.
    With --profile, molecules are ranked by the probability that all its conditions hold. It loads
    nothing from the network. Programs get the same as JSON (see /docs). Ctrl-C stops it.
    """
    from treelens.serve.answers import Limits, Workbench
    from treelens.serve.app import make_app, server_of

    loaded = options.load_models(models, jobs, profile)
    workbench = Workbench(loaded, Limits(max_molecules, seconds=seconds))
    try:
        names = () if host == _LOCAL else (host, socket.gethostname(), socket.getfqdn())
        server = server_of(make_app(workbench, names))
        door = socket.create_server((host, port))
    except OSError as error:
        raise ValueError(
            f"Cannot listen on --host {host} --port {port}: {error.strerror}. Choose another port "
            "(0: any that is free), or an address of this machine."
        ) from None
    if host != _LOCAL:
        output.note(f"Listening on {host}: others in the network can use the page.")
    output.progress("Preparing the models ...")
    workbench.warm_up()
    url = f"http://{_LOCAL if host == '0.0.0.0' else host}:{door.getsockname()[1]}/"
    output.finish({"url": url}, lambda *_: output.line(f"Open {url} in a browser. Ctrl-C stops."))
    server.run(sockets=[door])
