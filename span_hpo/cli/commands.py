"""The command line: ``span-hpo tune rows.csv --target label`` and its sisters."""

import csv
import io
import json
import os
import re
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import click
import numpy as np

from span_hpo import __version__, bounds
from span_hpo.cli.demo import run_demo
from span_hpo.cli.search_engines import Engine, OptunaEngine, RayEngine, local_folder
from span_hpo.errors import SolverError
from span_hpo.estimators import SCALES, SpanSVC, fitted_scaler
from span_hpo.io import (
    Predictor,
    Samples,
    Table,
    category_text,
    file_format,
    libsvm_entries,
    read_libsvm,
    read_samples,
    read_table,
    write_text,
)
from span_hpo.kernels import LIBSVM_KERNELS, is_held
from span_hpo.loo import METHODS
from span_hpo.metrics import METRICS
from span_hpo.objective import Evaluation, SpanObjective
from span_hpo.runtime import Array, real, whole
from span_hpo.search import DEFAULT_BUDGETS, PRUNERS, SAMPLERS, SCHEDULERS
from span_hpo.solver import DualSolution, PairwiseSolution, is_wrong
from span_hpo.weighting import ClassCosts, PowerScore, SigmoidScore, UniformCost

_MOST_SUPPORT = 2000  # support vectors, up to which their matrix is factored for an estimate
WEIGHTINGS = ("class", "uniform", "sigmoid", "power", "class*sigmoid", "class*power")
_MOST_REFITS = 1000  # rows up to which brute force is done unasked
_MOST_SUSPECTS = 10
_WRONG_INPUT, _FAILED, _INTERRUPTED = 2, 1, 130
# What the options are called in Python, where the command line has another name.
_ARGUMENTS = {
    "n_trials": "--trials",
    "n_jobs": "--jobs",
    "scores": "--score",
    "groups": "--group",
    "random_state": "--seed",
    "per_class": "--C",
    "A": "--A",
    "B": "--B",
}


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line, and end the process with its exit code.

    0 if all went well, 1 if a computation failed, 2 for wrong input, 130 after Ctrl-C; of what went
    wrong the last line on standard error tells.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    warnings.showwarning = _show_warning
    if os.environ.get("SPAN_HPO_TRACEBACK"):  # for whoever looks for a defect in the program
        cli.main(given, prog_name="span-hpo", standalone_mode=False)
        sys.exit(0)
    try:
        cli.main(given, prog_name="span-hpo", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(_WRONG_INPUT)
    except click.ClickException as error:
        _end(error.format_message(), _WRONG_INPUT)
    except click.Abort as error:  # click's name for Ctrl-C, which is its cause
        _end(f"Interrupted. {error.__cause__ or ''}", _INTERRUPTED)
    except BrokenPipeError:  # whoever read our output has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(_FAILED)
    except (ValueError, TypeError, OSError, ImportError) as error:
        _end(_in_options(_reason(error)), _WRONG_INPUT)
    except (SolverError, MemoryError) as error:
        _end(_reason(error) or "There is not enough memory.", _FAILED)
    sys.exit(0)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="span-hpo")
def cli() -> None:
    """Tune weighted support vector machines: one fit per trial, no folds.

    FILE is a CSV file with a line of names (.csv, .tsv), a Parquet file (.parquet), or in LIBSVM's
    format (any other name); .gz and .bz2 are unpacked.
    """


def _options(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return several options as one decorator."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


_file = click.argument("file", type=click.Path(path_type=Path))
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for machines.")
_rows = _options(
    _file,
    click.option("--target", metavar="COLUMN", help="Column with the labels; for tables."),
    click.option("--score", metavar="COLUMN", help="Score in [0, 1] of each row, for its cost."),
    click.option("--group", metavar="COLUMN", help="Group of each row: errors are shown for each."),
    click.option("--drop", metavar="COLUMN", multiple=True, help="Column not to use. Repeatable."),
    click.option(
        "--category",
        metavar="COLUMN",
        multiple=True,
        help="Numbers that are categories. Repeatable; columns of text are categories anyway.",
    ),
    click.option(
        "--scale",
        type=click.Choice(["minmax", "standard", "none"]),
        default="minmax",
        show_default=True,
        help="What is done to each feature.",
    ),
)
_model = _options(
    click.option(
        "--kernel", type=click.Choice(list(LIBSVM_KERNELS)), default="rbf", show_default=True
    ),
    click.option(
        "--weighting",
        type=click.Choice(WEIGHTINGS),
        help="What a row's cost depends on.  [default: class; with --score class*sigmoid]",
    ),
    click.option("--metric", type=click.Choice(list(METRICS)), default="error", show_default=True),
    click.option(
        "--C",
        "costs",
        metavar="NUMBER|LABEL=NUMBER",
        multiple=True,
        help="Cost of an error; repeat it for one of each class.",
    ),
    click.option("--gamma", type=float, help="Of the kernels rbf and poly."),
    click.option("--degree", type=int, help="Of the kernel poly.  [default: 3]"),
    click.option("--coef0", type=float, help="Of the kernel poly.  [default: 1]"),
    click.option("--A", "steepness", type=float, help="Of the weighting sigmoid."),
    click.option("--B", "middle", type=float, help="Of the weighting sigmoid."),
    click.option("--tau", type=float, help="Of the weighting power."),
)
_refit = click.option(
    "--refit/--no-refit",
    default=None,
    help=f"Also one fit for each row.  [default: up to {_MOST_REFITS} rows]",
)


@cli.command()
@_rows
@_model
@click.option("--loo-method", type=click.Choice(list(METHODS)), default="span", show_default=True)
@click.option("--trials", type=int, default=50, show_default=True, help="Of the study in all.")
@click.option("--timeout", type=float, metavar="SECONDS", help="No trial begins after it.")
@click.option("--sampler", type=click.Choice(SAMPLERS), default="tpe", show_default=True)
@click.option("--pruner", type=click.Choice(PRUNERS), help="Of Optuna.  [default: none]")
@click.option(
    "--budgets",
    metavar="NUMBERS",
    help="Rows (100,400) or shares of them (0.25,1.0) at which trials may end.  "
    "[default: 0.125,0.25,0.5,1.0 with a pruner or scheduler]",
)
@click.option(
    "--storage",
    metavar="FILE|URL",
    help="Where trials are kept.  [default: OUT.journal; a folder OUT.ray]",
)
@click.option("--resume", is_flag=True, help="Go on with the study that the storage has.")
@click.option(
    "--jobs", type=int, help="Trials at a time.  [default: 1 with Optuna, all cores with Ray]"
)
@click.option("--seed", type=int, help="Of the sampler.")
@click.option("--out", type=click.Path(path_type=Path), default="model", show_default=True)
@click.option("--force", is_flag=True, help="Replace a model and begin a study anew.")
@click.option("--engine", type=click.Choice(["optuna", "ray"]), default="optuna", show_default=True)
@click.option(
    "--scheduler", type=click.Choice(["none", *SCHEDULERS]), help="Of Ray.  [default: none]"
)
@click.option("--address", help="Cluster of Ray; auto joins a running one.  [default: local]")
@click.option("--cpus-per-trial", type=float, help="Cores of a trial of Ray.  [default: 1]")
@_json
def tune(
    file: Path,
    loo_method: str,
    resume: bool,
    force: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Choose hyperparameters for FILE and save the model.

    The model is OUT.json, for `span-hpo predict` and Python, and OUT.libsvm, for LIBSVM's programs;
    every trial is kept as soon as it is finished. Hyperparameters that you give are not searched.
    """
    start = time.perf_counter()
    out = _model_path(settings.pop("out"))
    targets = {kind: out.with_name(out.name + f".{kind}") for kind in ("json", "libsvm")}
    _check_outputs(list(targets.values()), [file], force or resume)
    samples = _samples(file, settings)
    kernel, weighting = _kernel(settings), _weighting(settings, samples.y)
    engine = _engine(out, settings)
    if "://" not in engine.place:
        others = [file, *targets.values()]
        _check_outputs([Path(engine.place)], others, True, folders=engine.in_folder)
    if resume and engine.in_folder:
        click.echo("Note: a resumed run of Ray keeps its trials, search and scheduler.", err=True)
    engine.begin(resume=resume, force=force)
    model = SpanSVC(
        kernel,
        weighting,
        metric=settings["metric"],
        loo_method=loo_method,
        scale=_scale(settings),
        search=engine.chosen,
    )
    with _told_how_to_resume(engine, settings["trials"]):
        model.fit(samples.X, samples.y, scores=samples.scores, groups=samples.groups)
    predictor = model.as_predictor(samples.columns)
    predictor.save(targets["json"])
    predictor.save_libsvm(targets["libsvm"])
    evaluation = model.objective_.evaluate(model.best_params_, loo_method="exact")
    searched = bool(model.objective_.space)
    result = {
        "file": str(file),
        **_shape(samples),
        "metric": settings["metric"],
        "trials": engine.finished() if searched else 0,
        "best_params": model.best_params_,
        "best_loss": model.best_loss_,
        "loo_error": model.loo_error_,
        "loo_error_bounds": list(model.loo_bounds_),
        "exact_error": evaluation.loo.error,
        "n_support": evaluation.n_support,
        "n_in_bound": evaluation.n_in_bound,
        "suspects": _places(model.suspects_, samples),
        "groups": _group_errors(evaluation, samples),
        "seconds": time.perf_counter() - start,
        "model": str(targets["json"]),
        "libsvm": str(targets["libsvm"]),
        "storage": engine.place if searched else None,
    }
    if as_json:
        _print_json(result)
    else:
        _print_tuned(result, "lines" if samples.lines is not None else "rows")


@cli.command()
@click.argument("model", type=click.Path(path_type=Path))
@_file
@click.option("--out", type=click.Path(path_type=Path), help="CSV file.  [default: print it]")
@click.option("--proba", is_flag=True, help="Also the probability of every class.")
@click.option("--values", is_flag=True, help="Also the decision values.")
@click.option(
    "--features",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Also write the encoded, scaled rows in LIBSVM's format, for its svm-predict.",
)
@click.option("--force", is_flag=True, help="Replace files.")
@_json
def predict(
    model: Path,
    file: Path,
    out: Path | None,
    proba: bool,
    values: bool,
    features: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Predict the rows of FILE with MODEL, which `tune` (or LIBSVM) has written.

    If FILE has labels, the error is told, too.
    """
    _check_outputs([path for path in (out, features) if path is not None], [model, file], force)
    predictor, rows, truth = _loaded(model, file)
    decisions = predictor.decision_function(rows)
    if not np.isfinite(decisions).all():
        raise ValueError(f"{file} must hold numbers of the size of the training rows, got others.")
    columns: dict[str, list[Any]] = {"prediction": predictor.labels_of(decisions).tolist()}
    labels = predictor.labels.tolist()
    if proba:
        for label, column in zip(labels, predictor.probabilities_of(decisions).T, strict=True):
            columns[f"probability of {label}"] = column.tolist()
    if values:
        decisions = decisions[:, None] if decisions.ndim == 1 else decisions
        pairs = [(a, b) for i, a in enumerate(labels) for b in labels[i + 1 :]]
        for (first, second), column in zip(pairs, decisions.T, strict=True):
            columns[f"value of {second} against {first}"] = column.tolist()
    error = None
    if truth is not None:
        error = float(np.mean([a != b for a, b in zip(truth, columns["prediction"], strict=True)]))
    if features is not None:
        _write_features(predictor, rows, truth, features)
    if out is not None:
        write_text(out, _as_csv(columns))
    if as_json:
        told = columns if out is None else {"out": str(out)}
        _print_json({"rows": len(columns["prediction"]), "error": error, **told})
    elif out is None:
        click.echo(_as_csv(columns), nl=False)
    if error is not None and not as_json:
        click.echo(f"error {error:.4f} of {len(columns['prediction'])} rows", err=True)


@cli.command()
@_rows
@_model
@_refit
@_json
def loo(file: Path, refit: bool | None, as_json: bool, **settings: Any) -> None:
    """Show every leave-one-out estimate and bound of one set of hyperparameters.

    Those that are not given get default values, which are shown.
    """
    samples, objective, params = _one_point(file, settings)
    objective.evaluate(params, loo_method="exact")  # kernel matrix and compiled code are there now
    rows = []
    for method in METHODS:
        if method == "refit" and not _wants_refits(refit, samples):
            continue
        evaluation = objective.evaluate(params, loo_method=method, complete=True)
        low, high = evaluation.loo.error_bounds
        rows.append(
            {
                "estimate": method,
                "loss": evaluation.loss,
                "error": evaluation.loo.error,
                "at_least": low,
                "at_most": high,
                "undefined": evaluation.loo.n_undefined,
                "refitted": evaluation.loo.n_refit,
                "seconds": evaluation.seconds,
            }
        )
    rows += _bounds(objective.solution(params))
    _print_point(
        {
            "file": str(file),
            **_shape(samples),
            "metric": settings["metric"],
            "params": _all_params(params, settings),
            "n_support": evaluation.n_support,
            "n_in_bound": evaluation.n_in_bound,
            "groups": _group_errors(evaluation, samples),
            "estimates": rows,
        },
        as_json,
    )


@cli.command()
@_rows
@_model
@_refit
@click.option(
    "--folds",
    type=int,
    help="Of cross-validation.  [default: 5, or as many as the smallest class has rows]",
)
@_json
def compare(
    file: Path, refit: bool | None, folds: int | None, as_json: bool, **settings: Any
) -> None:
    """Compare what the estimates of one set of hyperparameters say, and what they cost.

    All of them use the same kernel matrix, which is there before. Hyperparameters that are not
    given get default values, which are shown.
    """
    samples, objective, params = _one_point(file, settings)
    objective.evaluate(params, loo_method="exact")  # kernel matrix and compiled code are there now
    rows = []
    for title, method in (("span-rule", "span"), ("exact", "exact"), ("refit", "refit")):
        if method == "refit" and not _wants_refits(refit, samples):
            continue
        evaluation = objective.evaluate(params, loo_method=method, certify=False)
        rows.append({"estimate": title, "loss": evaluation.loss, "seconds": evaluation.seconds})
    fewest = min(_shape(samples)["classes"].values())
    if folds is not None or fewest > 1:
        found = objective.cross_validate(params, min(5, fewest) if folds is None else folds)
        title = f"{found.folds}-fold"
        rows.insert(2, {"estimate": title, "loss": found.loss, "seconds": found.seconds})
    _print_point(
        {
            "file": str(file),
            **_shape(samples),
            "metric": settings["metric"],
            "params": _all_params(params, settings),
            "estimates": rows,
        },
        as_json,
    )


@cli.command()
@click.option("--trials", type=int, default=150, show_default=True)
@click.option("--picture", type=click.Path(path_type=Path), default="demo.png", show_default=True)
@click.option("--no-picture", is_flag=True, help="Draw none; without it matplotlib is needed.")
def demo(trials: int, picture: Path, no_picture: bool) -> None:
    """Tune an SVM on real data; print a table and draw a picture."""
    trials = whole("trials", trials, at_least=1)
    if not no_picture:
        _check_outputs([picture], [], True)
        if picture.suffix not in (".png", ".pdf", ".svg"):
            raise ValueError(f"`picture` must be a .png, .pdf or .svg file, got {str(picture)!r}.")
    run_demo(None if no_picture else picture, trials=trials, progress_bar=sys.stderr.isatty())


# What the options mean.


def _samples(file: Path, settings: dict[str, Any]) -> Samples:
    return read_samples(
        file, **{name: settings[name] for name in ("target", "score", "group", "drop", "category")}
    )


def _scale(settings: dict[str, Any]) -> str | None:
    scale: str = settings["scale"]
    return scale if scale in SCALES else None


def _kernel(settings: dict[str, Any]) -> Any:
    """Return the kernel with the values that were given; the others are searched."""
    name = settings["kernel"]
    for option in ("gamma", "degree", "coef0"):
        if settings[option] is not None and option not in LIBSVM_KERNELS[name].parameter_names():
            raise ValueError(
                f"`{option}` must not be given for the kernel {name}, got {settings[option]!r}."
            )
    kind = LIBSVM_KERNELS[name]
    return kind(
        **{
            option: settings[option]
            for option in kind.parameter_names()
            if settings[option] is not None
        }
    )


def _weighting(settings: dict[str, Any], labels: Array) -> Any:
    """Return the weighting with the values that were given; the others are searched."""
    name = settings["weighting"] or ("class*sigmoid" if settings["score"] else "class")
    parts = name.split("*")
    shape = {"sigmoid": {"A": "steepness", "B": "middle"}, "power": {"tau": "tau"}}
    used = {option for part in parts for option in shape.get(part, {}).values()}
    for option, value in (("steepness", "A"), ("middle", "B"), ("tau", "tau")):
        if settings[option] is not None and option not in used:
            raise ValueError(
                f"`{value}` must not be given for the weighting {name}, got {settings[option]!r}."
            )
    if settings["score"] and not used:
        raise ValueError(
            f"`score` must go with a weighting that uses it, one of {list(WEIGHTINGS[2:])}, got "
            f"{name!r}."
        )
    if used and not settings["score"]:
        raise ValueError(f"`score` must name a column for the weighting {name}, got none.")
    costs = _costs(settings["costs"], labels if "class" in parts else None)
    classes = ClassCosts(*costs) if "class" in parts else None
    if name == "uniform":
        return UniformCost(*costs)
    if classes is not None and len(parts) == 1:
        return classes
    own = {
        parameter: settings[option]
        for parameter, option in shape[parts[-1]].items()
        if settings[option] is not None
    }
    kind = {"sigmoid": SigmoidScore, "power": PowerScore}[parts[-1]]
    if classes is not None:
        return classes * kind(C=1.0, **own)
    return kind(**({"C": costs[0]} if costs else {}), **own)


def _costs(given: Sequence[str], labels: Array | None) -> tuple[Any, ...]:
    """Return the cost of all classes or of each one, if any was given."""
    if not given:
        return ()
    pairs = [text.rpartition("=") for text in given]
    for (_, _, number), text in zip(pairs, given, strict=True):
        try:
            float(number)
        except ValueError:
            raise ValueError(
                f"`costs` must be a number, or a label and a number as in good=2.5, got {text!r}."
            ) from None
    if not any(equals for _, equals, _ in pairs):
        if len(given) > 1:
            raise ValueError(f"`costs` must be one number, or LABEL=NUMBER, got {list(given)}.")
        return (real("costs", float(given[0]), above=0),)
    if labels is None:
        raise ValueError(
            f"`costs` must be one number for a weighting without classes, got {', '.join(given)}."
        )
    known = {str(label): label for label in np.unique(labels).tolist()}
    named = {label: float(number) for label, _, number in pairs}
    if set(named) != set(known) or len(named) < len(given):
        raise ValueError(
            f"`costs` must name each of the labels {list(known)} once, got {', '.join(given)}."
        )
    return ({known[label]: real("costs", cost, above=0) for label, cost in named.items()},)


def _budgets(text: str) -> tuple[float, ...]:
    try:
        return tuple(
            int(part) if re.fullmatch(r"\s*\d+\s*", part) else float(part)
            for part in text.split(",")
        )
    except ValueError:
        raise ValueError(
            f"`budgets` must be numbers with commas between them, got {text!r}."
        ) from None


def _one_point(
    file: Path, settings: dict[str, Any]
) -> tuple[Samples, SpanObjective, dict[str, Any]]:
    """Return the rows, their objective, and a value for all that was not given."""
    samples = _samples(file, settings)
    scaler = fitted_scaler(_scale(settings), samples.X)
    objective = SpanObjective(
        samples.X if scaler is None else scaler.transform(samples.X),
        samples.y,
        kernel=_kernel(settings),
        weighting=_weighting(settings, samples.y),
        metric=settings["metric"],
        scores=samples.scores,
        groups=samples.groups,
    )
    return samples, objective, objective.defaults()[0] if objective.space else {}


def _wants_refits(refit: bool | None, samples: Samples) -> bool:
    return len(samples.y) <= _MOST_REFITS if refit is None else refit


def _model_path(out: Path) -> Path:
    """Return the path of the model without its suffix."""
    out = out.with_suffix("") if out.suffix in (".json", ".libsvm") else out
    if out.name in ("", ".."):
        raise ValueError(f"`out` must name a file, got {str(out)!r}.")
    return out


def _check_outputs(
    outputs: Sequence[Path], others: Sequence[Path], may_replace: bool, *, folders: bool = False
) -> None:
    """Raise if a file could not be written, or would replace one unasked or one that is read."""
    for index, path in enumerate(outputs):
        if any(_is_same(path, other) for other in [*others, *outputs[:index]]):
            raise ValueError(f"{path} must be another file: it is read, or written already.")
        if path.exists() and not may_replace:
            raise ValueError(f"{path} exists already: --force replaces it, --out names another.")
        if not path.parent.is_dir():
            raise ValueError(f"{path} must be in a folder that exists.")
        if not os.access(path.parent, os.W_OK):
            raise ValueError(f"{path} must be in a folder where files can be written.")
        if path.exists() and path.is_dir() != folders:
            wanted, got = ("folder", "file") if folders else ("file", "folder")
            raise ValueError(f"{path} must be a {wanted}, got a {got}.")


def _is_same(path: Path, other: Path) -> bool:
    return path.resolve() == other.resolve()


# The study.


def _engine(out: Path, settings: dict[str, Any]) -> Engine:
    """Return the engine that the options ask for."""
    by_ray = settings["engine"] == "ray"
    for option, of_ray in (
        ("scheduler", True),
        ("address", True),
        ("cpus_per_trial", True),
        ("pruner", False),
    ):
        if settings[option] is not None and of_ray != by_ray:
            raise ValueError(
                f"`{option}` must not be given for the engine {settings['engine']}, got "
                f"{settings[option]!r}."
            )
    jobs, seed, timeout = settings["jobs"], settings["seed"], settings["timeout"]
    common: dict[str, Any] = {
        "name": out.name,
        "trials": whole("trials", settings["trials"], at_least=1),
        "timeout": None if timeout is None else real("timeout", timeout, above=0),
        "seed": None if seed is None else whole("seed", seed, at_least=0),
        "progress_bar": sys.stderr.isatty(),
    }
    jobs = None if jobs is None else whole("jobs", jobs, at_least=1)
    if by_ray:
        return _ray_engine(out, settings, common | {"jobs": jobs})
    pruner = settings["pruner"] or "none"
    default = (1.0,) if pruner == "none" else DEFAULT_BUDGETS
    return OptunaEngine(
        place=settings["storage"] or str(out.with_name(out.name + ".journal")),
        sampler=settings["sampler"],
        pruner=pruner,
        budgets=default if settings["budgets"] is None else _budgets(settings["budgets"]),
        jobs=jobs or 1,
        **common,
    )


def _ray_engine(out: Path, settings: dict[str, Any], common: dict[str, Any]) -> RayEngine:
    if settings["sampler"] not in ("tpe", "random"):
        raise ValueError(
            f"`sampler` must be tpe or random for the engine ray, got {settings['sampler']!r}."
        )
    scheduler = settings["scheduler"] or "none"
    cpus = 1.0 if settings["cpus_per_trial"] is None else settings["cpus_per_trial"]
    return RayEngine(
        place=local_folder(settings["storage"] or str(out.with_name(out.name + ".ray"))),
        search="random" if settings["sampler"] == "random" else None,
        scheduler=None if scheduler == "none" else scheduler,
        budgets=None if settings["budgets"] is None else _budgets(settings["budgets"]),
        address=settings["address"] or "local",
        cpus_per_trial=real("cpus_per_trial", cpus, above=0),
        **common,
    )


@contextmanager
def _told_how_to_resume(engine: Engine, trials: int) -> Iterator[None]:
    """On Ctrl-C say what is kept, and how to go on or to stop here."""
    try:
        yield
    except KeyboardInterrupt:
        done = engine.finished()
        if not done:
            raise KeyboardInterrupt("No trial has finished: nothing is kept.") from None
        command = [part for part in sys.argv[1:] if part not in ("--resume", "--force")]
        again = shlex.join(["span-hpo", *command, "--resume"])
        message = f"{done} of {trials} trials are kept in {engine.place}. Go on with: {again}"
        if isinstance(engine, OptunaEngine):
            message += f" (or save the best of them: {again} --trials {done})"
        raise KeyboardInterrupt(message) from None


# Files and words.


def _bounds(solution: DualSolution | PairwiseSolution) -> list[dict[str, Any]]:
    """Return what the classical bounds say of a fit: of several classes, the support vectors."""
    share = solution.n_support / len(solution.decision_values)
    told: list[dict[str, Any]] = [{"estimate": "support vectors / rows", "at_most": share}]
    if isinstance(solution, PairwiseSolution):
        return told
    estimates = {"xi-alpha": bounds.xi_alpha, "Jaakkola-Haussler": bounds.jaakkola_haussler}
    if solution.n_support <= _MOST_SUPPORT:
        estimates["Opper-Winther"] = bounds.opper_winther
    if is_held(solution.problem.K):  # the ball needs the whole matrix
        estimates["span bound"] = bounds.span_bound
    for title, estimate in estimates.items():
        start = time.perf_counter()
        try:
            error = estimate(solution)
        except SolverError as reason:
            click.echo(f"Note: {title} cannot be computed. {reason}", err=True)
            continue
        seconds = time.perf_counter() - start
        told.append({"estimate": title, "error": error, "seconds": seconds})
    return told


def _loaded(model: Path, file: Path) -> tuple[Predictor, Any, list[Any] | None]:
    """Return the model, the rows to predict, and their labels if there are any."""
    is_ours = model.suffix.lower() == ".json"
    predictor = Predictor.load(model) if is_ours else Predictor.load_libsvm(model)
    if file_format(file) != "libsvm":
        table = read_table(file)
        if predictor.columns is None:
            predictor.features(table)  # raises
        assert predictor.columns is not None
        return predictor, predictor.columns.encoded(table), _known_labels(table, predictor)
    if predictor.columns is not None:
        names = [column.name for column in predictor.columns.features]
        raise ValueError(
            f"`file` must be a table with the columns {', '.join(names[:20])}, as the model was "
            f"tuned from one, got {file} in LIBSVM's format."
        )
    wanted = predictor.support_vectors.shape[1]
    X, y = read_libsvm(file, wanted)
    if X.shape[1] > wanted and is_ours:
        click.echo(
            f"Note: features {wanted + 1} to {X.shape[1]} of {file} are left out, which no "
            "training row has.",
            err=True,
        )
        X = X[:, :wanted]
    elif X.shape[1] > wanted:  # which a support vector of LIBSVM need not have
        predictor = predictor.widened(X.shape[1])
    known = set(predictor.labels.tolist())
    return predictor, X, y.tolist() if set(y.tolist()) <= known else None


def _known_labels(table: Table, predictor: Predictor) -> list[Any] | None:
    """Return the labels of a table if it has those of the model in every row."""
    assert predictor.columns is not None
    target = predictor.columns.target
    if target not in table.columns:
        return None
    by_text = {category_text(label): label for label in predictor.labels.tolist()}
    try:
        texts = table.texts(target)
    except ValueError:  # some are missing: these rows are to be predicted
        return None
    return [by_text[text] for text in texts] if set(texts) <= set(by_text) else None


def _write_features(predictor: Predictor, rows: Any, truth: list[Any] | None, path: Path) -> None:
    """Write rows as LIBSVM's programs want them for the model in their format."""
    codes = predictor.libsvm_labels
    by_label = dict(zip(predictor.labels.tolist(), codes.tolist(), strict=True))
    entries = list(libsvm_entries(predictor.features(rows)))
    labels = [0] * len(entries) if truth is None else [by_label[label] for label in truth]
    lines = [" ".join([str(label), *row]) for label, row in zip(labels, entries, strict=True)]
    write_text(path, "\n".join(lines) + "\n")


def _as_csv(columns: dict[str, list[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def _shape(samples: Samples) -> dict[str, Any]:
    classes, counts = np.unique(samples.y, return_counts=True)
    return {
        "rows": len(samples.y),
        "features": samples.X.shape[1],
        "classes": {str(label): int(n) for label, n in zip(classes.tolist(), counts, strict=True)},
    }


def _places(rows: Array, samples: Samples) -> list[int]:
    """Return where rows are: their lines in a text file, else their numbers from 1."""
    return [row + 1 if samples.lines is None else samples.lines[row] for row in rows.tolist()]


def _group_errors(evaluation: Evaluation, samples: Samples) -> dict[str, dict[str, Any]] | None:
    """Return rows and leave-one-out error of every group."""
    if samples.groups is None:
        return None
    wrong = is_wrong(evaluation.loo.y, evaluation.loo.decision_values)
    return {
        str(group): {
            "rows": int((samples.groups == group).sum()),
            "error": float(wrong[samples.groups == group].mean()),
        }
        for group in sorted(set(samples.groups.tolist()))
    }


def _all_params(params: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Return the hyperparameters of a point, those that were given too."""
    given = {
        {"steepness": "A", "middle": "B"}.get(name, name): settings[name]
        for name in ("gamma", "degree", "coef0", "steepness", "middle", "tau")
        if settings[name] is not None
    }
    if settings["costs"]:
        given["C"] = " ".join(settings["costs"])
    return {**given, **params}


def _print_json(result: dict[str, Any]) -> None:
    click.echo(json.dumps(result, allow_nan=False))


def _print_tuned(result: dict[str, Any], places: str) -> None:
    low, high = result["loo_error_bounds"]
    suspects = result["suspects"]
    shown = ", ".join(str(place) for place in suspects[:_MOST_SUSPECTS])
    more = len(suspects) - _MOST_SUSPECTS
    lines = {
        "rows": _shown_shape(result),
        "trials": f"{result['trials']} in {result['seconds']:.1f} s",
        "chosen": _shown_params(result["best_params"]) or "nothing was searched",
        "loss": f"{_loss_name(result['metric'])} = {result['best_loss']:.4f} (optimistic: it was "
        "selected)",
        "LOO error": f"{result['loo_error']:.4f} by the search's estimate, which proves that the "
        f"exact one is between {low:.4f} and {high:.4f}",
        "exact": f"{result['exact_error']:.4f}, proven along dual paths",
        "support": f"{result['n_support']} support vectors, {result['n_in_bound']} in-bound",
        "suspects": f"{places} {shown}" + (f" and {more} more" if more > 0 else "")
        if suspects
        else "none",
        "model": f"{result['model']}, {result['libsvm']}",
    }
    if result["storage"] is not None:
        lines["study"] = result["storage"]
    for name, text in lines.items():
        click.echo(f"{name:<10} {text}")
    _print_groups(result["groups"])


def _print_point(result: dict[str, Any], as_json: bool) -> None:
    """Print the estimates of one set of hyperparameters."""
    if as_json:
        _print_json(result)
        return
    click.echo(f"{'rows':<10} {_shown_shape(result)}")
    click.echo(f"{'point':<10} {_shown_params(result['params'])}")
    if "n_support" in result:
        click.echo(
            f"{'support':<10} {result['n_support']} support vectors, "
            f"{result['n_in_bound']} in-bound"
        )
    rows = result["estimates"]
    names = [name for name in rows[0] if name != "estimate"]
    titles = {"loss": _loss_name(result["metric"]), "at_least": "at least", "at_most": "at most"}
    width = max(len(row["estimate"]) for row in rows)
    heads = [titles.get(name, name) for name in names]
    if result["metric"] == "error" and "error" in names:
        names.remove("loss")
        heads.remove("error")
    widths = [max(10, len(head) + 2) for head in heads]
    click.echo()
    click.echo(" " * width + "".join(f"{h:>{w}}" for h, w in zip(heads, widths, strict=True)))
    for row in rows:
        cells = [_cell(row.get(name)) for name in names]
        line = "".join(f"{cell:>{w}}" for cell, w in zip(cells, widths, strict=True))
        click.echo(f"{row['estimate']:<{width}}{line}")
    _print_groups(result.get("groups"))


def _loss_name(metric: str) -> str:
    """Return what is minimised, where that is one minus the metric."""
    return f"1 - {metric}" if metric in ("auc", "average_precision", "f1", "mcc") else metric


def _print_groups(groups: dict[str, dict[str, Any]] | None) -> None:
    if not groups:
        return
    width = max(10, *(len(name) for name in groups))
    click.echo(f"\n{'group':<{width}} {'rows':>8} {'LOO error':>10}")
    for name, found in groups.items():
        click.echo(f"{name:<{width}} {found['rows']:>8} {found['error']:>10.4f}")


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.4f}"


def _shown_shape(result: dict[str, Any]) -> str:
    classes = ", ".join(f"{count} of {label}" for label, count in result["classes"].items())
    return f"{result['rows']} ({classes}), {result['features']} features"


def _shown_params(params: dict[str, Any]) -> str:
    return ", ".join(
        f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in params.items()
    )


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    """Tell a warning in one line."""
    click.echo(f"Warning: {_one_line(str(message))}", err=True)


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}."
    return str(error)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _in_options(text: str) -> str:
    """Return a message about arguments in the words of the command line."""
    names = dict(_ARGUMENTS)
    for command in cli.commands.values():
        for option in command.params:
            if isinstance(option, click.Option) and option.name is not None:
                names[option.name] = option.opts[0]
    return re.sub(r"`(\w+)`", lambda found: names.get(found[1], found[0]), text)


def _end(message: str, code: int) -> NoReturn:
    """End the process with a message of one line."""
    click.echo(f"span-hpo: {_one_line(message)}", err=True)
    sys.exit(code)
