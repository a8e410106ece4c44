"""Define the commands, such as ``span-hpo tune rows.csv --target label``."""

import sys
import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from span_hpo import __version__
from span_hpo.cli.decisions import DecisionSettings, decision_options
from span_hpo.cli.demo import run_demo
from span_hpo.cli.estimates import comparison, loo_result, one_point
from span_hpo.cli.files import (
    ModelFiles,
    check_outputs,
    check_picture,
    csv_text,
    read_task,
    samples_of,
    write_features,
)
from span_hpo.cli.hyperparameters import kernel_of, weighting_of
from span_hpo.cli.options import (
    ModelSettings,
    ReadingSettings,
    RowSettings,
    SearchSettings,
    at_least,
    file_argument,
    json_option,
    model_options,
    reading_options,
    refit_option,
    row_options,
    scale_inside_option,
    search_options,
)
from span_hpo.cli.output import (
    print_error_rate,
    print_json,
    print_note,
    print_point,
    print_predictions,
    print_tuned,
)
from span_hpo.cli.results import error_rate, prediction_columns, tuned_result
from span_hpo.cli.search_engines import Engine, engine_of, resume_hint
from span_hpo.estimators import SpanSVC, exact_evaluation
from span_hpo.io import Samples, write_text
from span_hpo.kernels import ARD
from span_hpo.objective import SpanObjective


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="span-hpo")
def cli() -> None:
    """Tune weighted support vector machines with one fit per trial and no folds.

    FILE is a CSV file whose first line names the columns (.csv, .tsv), a Parquet file (.parquet),
    or a file in LIBSVM's format (any other name). Files ending in .gz or .bz2 are decompressed;
    SPAN_HPO_UNPACK_LIMIT in the environment sets the largest number of bytes that they unpack to.
    """


@cli.command()
@row_options
@model_options
@scale_inside_option
@search_options
@decision_options
@json_option
def tune(
    row_settings: RowSettings,
    model_settings: ModelSettings,
    search_settings: SearchSettings,
    decision_settings: DecisionSettings,
    scale_inside: bool,
    as_json: bool,
) -> None:
    """Choose hyperparameters for FILE and save the model.

    The model is written to OUT.json, for `span-hpo predict` and Python, and to OUT.libsvm, for
    LIBSVM's programs, which have no ensembles. Every trial is kept as soon as it is finished.
    Hyperparameters that you give are not searched.
    """
    start = time.perf_counter()
    file, saved = row_settings.file, ModelFiles.at(search_settings.out)
    may_replace = search_settings.force or search_settings.resume
    check_outputs([saved.json, saved.libsvm], [file], may_replace=may_replace)
    samples = samples_of(row_settings)
    kernel = kernel_of(model_settings, samples)
    weighting = weighting_of(model_settings, row_settings.score, samples.y, row_settings.group)
    engine = engine_of(
        search_settings,
        saved.stem,
        progress_bar=sys.stderr.isatty(),
        by_gradients=isinstance(kernel, ARD) and kernel.gamma is None,
    )
    if search_settings.resume or _is_searched(samples, kernel, weighting):
        _check_storage(engine, [file, saved.json, saved.libsvm])
    model = SpanSVC(
        kernel,
        weighting,
        metric=model_settings.metric,
        loo_method=search_settings.loo_method,
        solver=model_settings.solver,
        scale=row_settings.scale,
        scale_inside=scale_inside,
        search=engine.candidates if decision_settings.ensemble else engine.chosen,
        refine=search_settings.refine,
        ensemble=decision_settings.ensemble,
        threshold=decision_settings.threshold,
        miss_cost=decision_settings.miss_costs(samples.y),
    )
    with resume_hint(engine):  # also if the model cannot be written
        model.fit(samples.X, samples.y, scores=samples.scores, groups=samples.groups)
        saved.write(model.as_predictor(samples.columns), samples.numbering)
    exact = exact_evaluation(model, model.scale_rows_[: None if scale_inside else 0])
    seconds = time.perf_counter() - start
    result = tuned_result(file, samples, model, exact, saved, engine, seconds)
    if as_json:
        print_json(result)
    else:
        print_tuned(result, "lines" if samples.lines is not None else "rows")


def _is_searched(samples: Samples, kernel: Any, weighting: Any) -> bool:
    """Return whether some hyperparameter has no fixed value."""
    # Which hyperparameters there are does not depend on the features, but for widths of each.
    if isinstance(kernel, ARD):
        kernel = ARD(kernel.gamma)
    objective = SpanObjective(
        np.arange(len(samples.y), dtype=float)[:, None],
        samples.y,
        kernel=kernel,
        weighting=weighting,
        scores=samples.scores,
        groups=samples.groups,
    )
    return bool(objective.space)


def _check_storage(engine: Engine, others: list[Path]) -> None:
    """Raise before any fit if the trials cannot be kept, or would be mixed with other trials."""
    if engine.place is not None and "://" not in engine.place:
        check_outputs([Path(engine.place)], others, may_replace=True, folders=engine.in_folder)
    if engine.settings.resume and engine.in_folder:
        print_note(
            "a resumed run of Ray keeps its number of trials, its search, its scheduler and its "
            "patience."
        )
    engine.prepare()


@cli.command()
@click.argument("model", type=click.Path(path_type=Path))
@file_argument
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="CSV file for the predictions.  [default: print them]",
)
@click.option("--proba", is_flag=True, help="Add the probability of every class.")
@click.option("--values", is_flag=True, help="Add the decision values.")
@click.option(
    "--features",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Also write the encoded, scaled rows in LIBSVM's format, for its svm-predict.",
)
@click.option("--force", is_flag=True, help="Replace files that exist already.")
@reading_options
@json_option
def predict(
    model: Path,
    file: Path,
    reading_settings: ReadingSettings,
    out: Path | None,
    proba: bool,
    values: bool,
    features: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Predict the labels of FILE with MODEL.

    MODEL is a file that `tune` or LIBSVM has written. If FILE has labels, the error is also
    printed.
    """
    outputs = [path for path in (out, features) if path is not None]
    check_outputs(outputs, [model, file], may_replace=force)
    task = read_task(model, file, reading_settings)
    decisions = task.predictor.decision_function(task.X)
    if not np.isfinite(decisions).all():
        raise ValueError(
            f"{file} must hold numbers like those of the training rows, got much larger ones."
        )
    columns = prediction_columns(task.predictor, decisions, with_proba=proba, with_values=values)
    predictions = columns["prediction"]
    error = error_rate(task, predictions)
    if features is not None:
        write_features(task, features)
    if out is not None:
        write_text(out, csv_text(columns))
    if as_json:
        found: dict[str, Any] = dict(columns) if out is None else {"out": str(out)}
        print_json({"rows": len(predictions), "error": error, **found})
        return
    if out is None:
        print_predictions(csv_text(columns))
    if error is not None:
        print_error_rate(error, len(predictions))


@cli.command()
@row_options
@model_options
@refit_option
@click.option(
    "--stopping",
    is_flag=True,
    help="Also show the exact method of Franc, Laskov and Müller, which may take long.",
)
@json_option
def loo(
    row_settings: RowSettings,
    model_settings: ModelSettings,
    refit: bool | None,
    stopping: bool,
    as_json: bool,
) -> None:
    """Show all leave-one-out estimates and bounds.

    They are computed at one set of hyperparameters. Hyperparameters that are not given get default
    values, which are printed. Upper bounds stand under "at most".
    """
    result = loo_result(one_point(row_settings, model_settings), refit, stopping=stopping)
    (print_json if as_json else print_point)(result)


@cli.command()
@row_options
@model_options
@refit_option
@click.option(
    "--folds",
    type=int,
    help="Number of folds of the cross-validation.  [default: 5, or fewer if a class has fewer "
    "rows]",
)
@json_option
def compare(
    row_settings: RowSettings,
    model_settings: ModelSettings,
    refit: bool | None,
    folds: int | None,
    as_json: bool,
) -> None:
    """Compare the losses and running times of estimates.

    They are computed at one set of hyperparameters, on a kernel matrix that is computed before the
    estimates are timed. Hyperparameters that are not given get default values, which are printed.
    """
    result = comparison(one_point(row_settings, model_settings), refit, folds)
    (print_json if as_json else print_point)(result)


@cli.command()
@click.option(
    "--trials",
    type=int,
    default=150,
    show_default=True,
    callback=at_least(1),
    help="Number of trials.",
)
@click.option(
    "--picture",
    type=click.Path(path_type=Path),
    default="demo.png",
    show_default=True,
    help="File of the picture: .png, .pdf or .svg.",
)
@click.option(
    "--no-picture", is_flag=True, help="Draw no picture, so that matplotlib is not needed."
)
def demo(trials: int, picture: Path, no_picture: bool) -> None:
    """Tune an SVM on real data, print a table and draw a picture."""
    if not no_picture:
        check_picture(picture)
    run_demo(None if no_picture else picture, trials=trials, progress_bar=sys.stderr.isatty())
