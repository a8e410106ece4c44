"""Print results as text or JSON on standard output, and messages on standard error."""

import json
from collections.abc import Sequence
from typing import Any

import click

from span_hpo.metrics import loss_name
from span_hpo.runtime import counted

_MOST_COLUMNS = 20  # largest number of columns whose relevance is printed
_MOST_PARAMS = 12  # largest number of hyperparameters that are printed
_MOST_SUSPECTS = 10  # largest number of suspects that are printed
_TITLES = {"at_least": "at least", "at_most": "at most"}


def print_json(result: dict[str, Any]) -> None:
    """Print a result as JSON, for other programs."""
    click.echo(json.dumps(result, allow_nan=False))


def print_note(text: str) -> None:
    """Print a note for the user, which is not part of the result."""
    click.echo(f"Note: {text}", err=True)


def print_warning(text: str) -> None:
    """Print a warning in one line."""
    click.echo(f"Warning: {_one_line(text)}", err=True)


def print_failure(message: str) -> None:
    """Print in one line why a command has failed."""
    click.echo(f"span-hpo: {_one_line(message)}", err=True)


def print_predictions(text: str) -> None:
    """Print predictions that are given as CSV."""
    click.echo(text, nl=False)


def print_error_rate(error: float, n_rows: int) -> None:
    """Print the error of predictions on standard error, apart from the predictions."""
    click.echo(f"The error on {n_rows} rows is {error:.4f}.", err=True)


def print_tuned(result: dict[str, Any], places: str) -> None:
    """Print the result of a search; `places` is "lines" or "rows", by which suspects are named."""
    is_searched = result["search"] is not None
    inside = result["scale_inside"] and result["scaling_rows"] > 0
    searched = f" by method {result['loo_method']}" if is_searched else ""
    lines = {"honest": _shown_honest(result)} if is_searched else {}
    lines |= {
        "rows": _shown_shape(result),
        "scaling": _shown_scaling(result),
        "trials": _shown_trials(result) + _shown_end(result),
        **_shown_refinement(result),
        "chosen": _shown_params(result["best_params"]) or "nothing was searched",
        **_shown_widths(result),
        "loss": f"{loss_name(result['metric'])} = {result['best_loss']:.4f}"
        + (" (optimistic, because it was selected)" if is_searched else ""),
        **_shown_threshold(result),
        "LOO error": f"{result['loo_error']:.4f}"
        + (", scaled without each row" if inside else searched)
        + _shown_bounds(result["loo_error_bounds"]),
        "exact": f"{result['exact_error']:.4f}, proven along dual paths"
        + (" and by refits" if inside else "")
        + (" for the best model by itself" if result["ensemble"] else ""),
        "support": _shown_support(result),
        "suspects": _shown_suspects(result, places),
        "model": ", ".join(filter(None, [result["model"], result["libsvm"]])),
    }
    if result["storage"] is not None:
        lines["study"] = result["storage"]
    for name, text in lines.items():
        click.echo(f"{name:<10} {text}")
        if name == "chosen":
            _print_legend(result["legend"], result["best_params"])
            _print_ensemble(result["ensemble"])
    _print_relevance(result["feature_relevance"])
    _print_groups(result["groups"])


def _print_relevance(relevance: dict[str, float] | None) -> None:
    """Print the most relevant columns, one to a line."""
    if relevance is None:
        return
    width = max(10, *(len(name) for name in relevance))
    click.echo(f"\n{'column':<{width}} relevance (width times variance)")
    for name, value in list(relevance.items())[:_MOST_COLUMNS]:
        click.echo(f"{name:<{width}} {value:9.4f}")
    more = len(relevance) - _MOST_COLUMNS
    if more > 0:
        click.echo(f"and {counted(more, 'column')} with less, which --json lists")


def _shown_trials(result: dict[str, Any]) -> str:
    """Return the number and the time of trials, or of the evaluations of a search by gradients."""
    text, found = f"{result['trials']} in {result['seconds']:.1f} s", result["gradient_search"]
    return text if found is None else f"{text}, along the gradient of {found['metric']}"


def _shown_widths(result: dict[str, Any]) -> dict[str, str]:
    """Return the line that says whether the widths of columns differ, and why."""
    params = result["best_params"]
    widths = [value for name, value in params.items() if name.startswith("gamma_")]
    if result["feature_relevance"] is None or len(widths) < 2:
        return {}
    kept = "they differ" if len(set(widths)) > 1 else "all equal"
    searches = (result[name] or {} for name in ("refinement", "gradient_search"))
    found = next(filter(None, (search.get("differing_widths") for search in searches)), None)
    if found is None:
        return {"widths": kept}
    gain = f"differing ones gain {found['gain']:.4f}, with standard error"
    return {"widths": f"{kept}: {gain} {found['standard_error']:.4f}"}


def _shown_refinement(result: dict[str, Any]) -> dict[str, str]:
    """Return the line about gradient steps after the search, if there were any."""
    found = result["refinement"]
    if found is None:
        return {}
    name, count = loss_name(result["metric"]), counted(found["evaluations"], "evaluation")
    text = f"{name} = {found['loss_before']:.4f} before, {found['loss_after']:.4f} after {count} "
    text += f"along the gradient of {found['metric']}"
    return {"refined": text + ("" if found["is_kept"] else "; the point before is kept")}


def _shown_bounds(bounds: list[float] | None) -> str:
    """Return what is proven of the error, which is nothing for an ensemble."""
    if bounds is None:
        return " for the ensemble (optimistic); nothing is proven of an ensemble"
    return f"; the exact error is proven to be between {bounds[0]:.4f} and {bounds[1]:.4f}"


def _print_ensemble(members: list[dict[str, Any]] | None) -> None:
    """Print the members of an ensemble, one to a line, after the best hyperparameters."""
    for member in members or []:
        click.echo(
            f"{'member':<10} weight {member['weight']:.1f}, {_shown_params(member['params'])}"
        )


def _shown_threshold(result: dict[str, Any]) -> dict[str, str]:
    """Return the line about a threshold, if there is one."""
    if result["threshold_loss"] is None:
        return {}
    name = loss_name(result["loss_at_threshold"])
    text = f"{result['threshold']:.4g}; there {name} = {result['threshold_loss']:.4f}"
    return {"threshold": f"{text} by leave-one-out (optimistic, because it was chosen by it)"}


def print_point(result: dict[str, Any]) -> None:
    """Print the estimates of one set of hyperparameters as a table."""
    click.echo(f"{'rows':<10} {_shown_shape(result)}")
    click.echo(f"{'scaling':<10} {_shown_scaling(result)}")
    click.echo(f"{'point':<10} {_shown_params(result['params'])}")
    _print_legend(result["legend"], result["params"])
    if "n_support" in result:
        click.echo(f"{'support':<10} {_shown_support(result)}")
    click.echo()
    _print_estimates(result["estimates"], result["metric"])
    _print_groups(result.get("groups"))


def _print_legend(legend: dict[str, str], params: dict[str, Any]) -> None:
    """Print what the names of parameters stand for, if they do not say it themselves."""
    shown = [f"{name} is the {text}" for name, text in legend.items() if name in params]
    if shown:
        click.echo(f"{'legend':<10} {', '.join(shown)}")


def _print_estimates(estimates: Sequence[dict[str, Any]], metric: str) -> None:
    """Print a line for each estimate, with the columns of the first estimate."""
    names = [name for name in estimates[0] if name != "estimate"]
    if metric == "error" and "error" in names:
        names.remove("loss")  # the loss is the error itself
    titles = {"loss": loss_name(metric), **_TITLES}
    heads = [titles.get(name, name) for name in names]
    widths = [max(10, len(head) + 2) for head in heads]
    first = max(len(estimate["estimate"]) for estimate in estimates)
    click.echo(" " * first + _cells(heads, widths))
    for estimate in estimates:
        cells = _cells([_cell(estimate.get(name)) for name in names], widths)
        remark = f"  {estimate['remark']}" if estimate.get("remark") else ""
        click.echo(f"{estimate['estimate']:<{first}}{cells}{remark}")


def _print_groups(groups: dict[str, dict[str, Any]] | None) -> None:
    if not groups:
        return
    width = max(10, *(len(name) for name in groups))
    click.echo(f"\n{'group':<{width}} {'rows':>8} {'LOO error':>10}")
    for name, found in groups.items():
        click.echo(f"{name:<{width}} {found['rows']:>8} {found['error']:>10.4f}")


def _cells(texts: Sequence[str], widths: Sequence[int]) -> str:
    return "".join(f"{text:>{width}}" for text, width in zip(texts, widths, strict=True))


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.4f}"


def _shown_shape(result: dict[str, Any]) -> str:
    classes = ", ".join(f"{count} of {label}" for label, count in result["classes"].items())
    return f"{result['rows']} ({classes}), {counted(result['features'], 'feature')}"


def _shown_scaling(result: dict[str, Any]) -> str:
    """Return the scaling, and how many rows alone define its ranges."""
    text, count = result["scaling"] or "none", result["scaling_rows"]
    if text == "minmax":
        share = 100 * result["scaling_share"]
        text += f"; {counted(count, 'row')} ({share:.0f} %) with the only minimum or maximum"
    if count and result.get("scale_inside"):
        text += f"; {counted(count, 'refit')} with a scaling of the other rows"
    return text


def _shown_honest(result: dict[str, Any]) -> str:
    """Return the honest estimate with its interval, or why there is none."""
    name, note = loss_name(result["metric"]), result["honest_note"]
    if result["honest_error"] is None:
        return str(note)
    low, high = result["honest_interval"]
    text = f"{name} = {result['honest_error']:.4f}, corrected for the search"
    text += f" (90 % interval: {low:.4f} to {high:.4f})"
    return f"{text}; {note}" if note else text


def _shown_end(result: dict[str, Any]) -> str:
    """Return why a search has ended before its last trial, if it did."""
    if not result["settled"]:
        return ""
    return f"; the search has settled, with no lower loss in the last {result['patience']}"


def _shown_support(result: dict[str, Any]) -> str:
    return f"{result['n_support']} support vectors, {result['n_in_bound']} in-bound"


def _shown_suspects(result: dict[str, Any], places: str) -> str:
    """Return the rows whose labels are probably wrong, and how many wrong labels are expected."""
    suspects, in_all = result["suspects"], f"{result['expected_label_errors']:.1f}"
    if not suspects:
        return f"none (expected wrong labels: {in_all} in all rows)"
    expected = f"{sum(result['suspect_probabilities']):.1f}"
    shown = ", ".join(str(place) for place in suspects[:_MOST_SUSPECTS])
    more = len(suspects) - _MOST_SUSPECTS
    shown += f" and {more} more" if more > 0 else ""
    return f"{places} {shown} (expected wrong labels: {expected} among these, {in_all} in all rows)"


def _shown_params(params: dict[str, Any]) -> str:
    shown = [
        f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in params.items()
    ]
    more = len(shown) - _MOST_PARAMS
    if more > 0:
        shown[_MOST_PARAMS:] = [f"and {more} more, which --json lists"]
    return ", ".join(shown)


def _one_line(text: str) -> str:
    return " ".join(text.split())
