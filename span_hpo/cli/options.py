"""Define the options of all commands, and the frozen settings that hold their values.

Options are checked here, where they enter: a check raises an `ArgumentError` that names the option
as the user has typed it. The library raises the same error about its own arguments. Arguments that
an option sets are listed in `LIBRARY_ARGUMENTS`, so that the message names the option.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Any

import click

from span_hpo.estimators import AUTO, SCALES
from span_hpo.io import IMPUTE, Dialect
from span_hpo.kernels import LIBSVM_KERNELS
from span_hpo.loo import METHODS
from span_hpo.metrics import METRICS
from span_hpo.runtime import ArgumentError, real, thread_count, whole
from span_hpo.search import DEFAULT_BUDGETS, PRUNERS, SAMPLERS, SCHEDULERS
from span_hpo.solver import SOLVERS
from span_hpo.weighting import WEIGHTINGS

KERNEL_NAMES = (*LIBSVM_KERNELS, "ard")  # kernels whose models can be kept in files
MOST_REFITS = 1000  # largest number of rows for which refits are made by default
# Arguments of the library that options set; for example, --gamma sets the argument `gamma`.
LIBRARY_ARGUMENTS = frozenset(
    {
        *("target", "score", "group", "drop", "category"),  # columns of a table
        *("impute", "drop_rows", "classify", "encoding", "delimiter", "decimal"),
        *("scale", "scale_inside"),
        *("gamma", "degree", "coef0", "A", "B", "tau"),  # hyperparameters
        *("budgets", "storage", "folds"),
        *("threshold", "miss_cost", "ensemble"),
    }
)
_ARGUMENT = re.compile(f"`({'|'.join(sorted(LIBRARY_ARGUMENTS))})(?:='?(\\w+)'?)?`")
_WORDS = {"None": "none", "True": ""}  # values of arguments, as options write them


@dataclass(frozen=True)
class ReadingSettings:
    """How a text file writes its table, and which of its columns are not used."""

    drop: tuple[str, ...]
    encoding: str | None
    delimiter: str | None
    decimal: str | None

    @property
    def dialect(self) -> Dialect:
        """How a text file writes its table."""
        return Dialect(self.encoding, self.delimiter, self.decimal)


@dataclass(frozen=True)
class RowSettings(ReadingSettings):
    """File of the training rows, and the use of its columns."""

    file: Path
    target: str | None
    score: str | None
    group: str | None
    category: tuple[str, ...]
    impute: str | None
    drop_rows: bool
    classify: bool
    scale: str


@dataclass(frozen=True)
class ModelSettings:
    """Kernel, weighting and metric, with the hyperparameters that are given."""

    kernel: str
    share_gamma: tuple[str, ...]
    weighting: str | None
    metric: str
    costs: tuple[str, ...]
    gamma: float | None
    degree: int | None
    coef0: float | None
    balance: float | None
    A: float | None
    B: float | None
    tau: float | None
    solver: str


@dataclass(frozen=True)
class SearchSettings:
    """How hyperparameters are searched, and where the study and the model are kept."""

    loo_method: str
    trials: int
    timeout: float | None
    patience: int | None
    sampler: str | None
    pruner: str | None
    budgets: tuple[float, ...] | None
    storage: str | None
    resume: bool
    jobs: int | None
    seed: int | None
    refine: bool
    out: Path
    force: bool
    engine: str
    scheduler: str | None
    address: str | None
    cpus_per_trial: float | None

    def __post_init__(self) -> None:
        """Raise if an option is given that the engine does not support."""
        others: dict[str, dict[str, Any]] = {
            "ray": {"--pruner": self.pruner},
            "optuna": {
                "--scheduler": self.scheduler,
                "--address": self.address,
                "--cpus-per-trial": self.cpus_per_trial,
            },
        }
        for option, value in others[self.engine].items():
            if value is not None:
                raise ArgumentError(
                    option, f"must not be given for the engine {self.engine}, got {value!r}."
                )
        if self.engine == "ray" and self.sampler not in (None, "tpe", "random"):
            raise ArgumentError(
                "--sampler", f"must be tpe or random for the engine ray, got {self.sampler!r}."
            )


def at_least(least: int) -> Callable[[click.Context, click.Parameter, int | None], int | None]:
    """Return a callback of click that checks the lower limit of a whole number."""

    def check(_: click.Context, option: click.Parameter, value: int | None) -> int | None:
        return None if value is None else whole(option.opts[0], value, at_least=least)

    return check


def _threads(_: click.Context, option: click.Parameter, value: int | None) -> int | None:
    if value is not None:
        thread_count(option.opts[0], value)  # the engine counts cores
    return value


def _positive(_: click.Context, option: click.Parameter, value: float | None) -> float | None:
    return None if value is None else real(option.opts[0], value, above=0)


def _split_budgets(
    _: click.Context, option: click.Parameter, text: str | None
) -> tuple[float, ...] | None:
    """Return budgets: whole numbers are numbers of rows, and others are shares of all rows."""
    if text is None:
        return None
    try:
        return tuple(
            int(part) if re.fullmatch(r"\s*\d+\s*", part) else float(part)
            for part in text.split(",")
        )
    except ValueError:
        raise ArgumentError(
            option.opts[0], f"must be numbers that are separated by commas, got {text!r}."
        ) from None


def gathered(
    name: str, settings: type, *options: Callable[[Any], Any]
) -> Callable[[Any], Callable[..., Any]]:
    """Return a decorator that adds options to a command and passes their values as one argument."""

    def decorate(command: Any) -> Any:
        @wraps(command)
        def with_settings(**values: Any) -> Any:
            own = {field.name: values.pop(field.name) for field in fields(settings)}
            return command(**{name: settings(**own)}, **values)

        decorated: Any = with_settings
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


def option_of(argument: str) -> str:
    """Return the option that sets an argument of the library."""
    return "--" + argument.replace("_", "-")


def in_options(text: str) -> str:
    """Return a text with options instead of arguments: `scale=None` becomes --scale none."""
    return _ARGUMENT.sub(
        lambda found: f"{option_of(found[1])} {_WORDS.get(found[2], found[2] or '')}".strip(), text
    )


file_argument = click.argument("file", type=click.Path(path_type=Path))
json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
scale_inside_option = click.option(
    "--scale-inside",
    is_flag=True,
    help="Leave rows out of the scaling as well, with a refit for each row that defines it.",
)
refit_option = click.option(
    "--refit/--no-refit",
    default=None,
    help=f"Also refit without each row in turn.  [default: up to {MOST_REFITS} rows]",
)
_READING = (
    click.option(
        "--drop", metavar="COLUMN", multiple=True, help="Column that is not used. Can be repeated."
    ),
    click.option(
        "--encoding",
        metavar="NAME",
        help="Text encoding of a CSV file, such as latin-1.  [default: UTF-8]",
    ),
    click.option(
        "--delimiter",
        metavar="CHARACTER",
        help="Character between the cells of a CSV file; tab is written as a word.  [default: the "
        "comma, semicolon, tab or pipe of the first line]",
    ),
    click.option(
        "--decimal",
        metavar="CHARACTER",
        help="Character before the decimal places in a CSV file: point or comma.  [default: .]",
    ),
)
reading_options = gathered("reading_settings", ReadingSettings, *_READING)
row_options = gathered(
    "row_settings",
    RowSettings,
    file_argument,
    click.option(
        "--target", metavar="COLUMN", help="Column with the labels; required for a table."
    ),
    click.option(
        "--score",
        metavar="COLUMN",
        help="Column with a score in [0, 1] for each row, on which the cost of the row depends.",
    ),
    click.option(
        "--group",
        metavar="COLUMN",
        help="Column with the group of each row, which is not a feature; the error of every group "
        "is printed.",
    ),
    *_READING,
    click.option(
        "--category",
        metavar="COLUMN",
        multiple=True,
        help="Column of numbers that are categories. Can be repeated; text needs no option.",
    ),
    click.option(
        "--impute",
        type=click.Choice(IMPUTE),
        help="Fill in missing values, also in new rows: with the median or most frequent category, "
        "with the most frequent value, or as median with a feature that marks them.  [default: "
        "missing values are refused]",
    ),
    click.option(
        "--drop-rows",
        is_flag=True,
        help="Leave out training rows with missing values that are not filled in.",
    ),
    click.option(
        "--classify",
        is_flag=True,
        help="Accept a target that looks like a quantity, and more than 100 classes.",
    ),
    click.option(
        "--scale",
        type=click.Choice(SCALES),
        default="auto",
        show_default=True,
        help="How each feature is scaled before the fit; auto is minmax, and none for sparse "
        "features.",
    ),
)
model_options = gathered(
    "model_settings",
    ModelSettings,
    click.option(
        "--kernel",
        type=click.Choice(KERNEL_NAMES),
        default="rbf",
        show_default=True,
        help="Kernel of the support vector machine; ard has a width for each column.",
    ),
    click.option(
        "--share-gamma",
        metavar="COLUMNS",
        multiple=True,
        help="Columns that share a width with the kernel ard, such as red,green,blue or 'pixel_*'. "
        "Can be repeated.  [default: only the categories of a column do]",
    ),
    click.option(
        "--weighting",
        type=click.Choice(list(WEIGHTINGS)),
        help="Rule that gives each row its cost.  [default: uniform for metrics in which every row "
        "counts alike, such as error, and imbalance for others; class if costs are given; "
        "class*sigmoid with --score]",
    ),
    click.option(
        "--metric",
        type=click.Choice(list(METRICS)),
        default="error",
        show_default=True,
        help="Metric of the leave-one-out predictions; a search minimises its loss.",
    ),
    click.option(
        "--C",
        "costs",
        metavar="NUMBER|LABEL=NUMBER",
        multiple=True,
        help="Cost of an error; repeat the option with labels for one cost per class.",
    ),
    click.option("--gamma", type=float, help="Coefficient gamma of the kernels rbf, ard and poly."),
    click.option("--degree", type=int, help="Degree of the kernel poly.  [default: 3]"),
    click.option("--coef0", type=float, help="Constant term of the kernel poly.  [default: 1]"),
    click.option("--balance", type=float, help="Exponent of the weighting imbalance."),
    click.option("--A", "A", type=float, help="Steepness of the weighting sigmoid."),
    click.option("--B", "B", type=float, help="Score at the middle of the weighting sigmoid."),
    click.option("--tau", type=float, help="Exponent of the weightings power and confidence."),
    click.option(
        "--solver",
        type=click.Choice(list(SOLVERS)),
        default="auto",
        show_default=True,
        help="What computes the first fit: LIBSVM, or pairwise steps on the kernel matrix.",
    ),
)
search_options = gathered(
    "search_settings",
    SearchSettings,
    click.option(
        "--loo-method",
        type=click.Choice([AUTO, *METHODS]),
        default=AUTO,
        show_default=True,
        help="How the leave-one-out predictions of a trial are computed; auto chooses exact or "
        "span by the data and the metric.",
    ),
    click.option(
        "--trials",
        type=int,
        default=50,
        show_default=True,
        callback=at_least(1),
        help="Number of trials of the study, including earlier ones.",
    ),
    click.option(
        "--timeout",
        type=float,
        metavar="SECONDS",
        callback=_positive,
        help="End the search after this many seconds; the first trial is always finished.",
    ),
    click.option(
        "--patience",
        type=int,
        callback=at_least(1),
        help="End the search when so many finished trials have brought no lower loss, such as 40.  "
        "[default: no such end]",
    ),
    click.option(
        "--sampler",
        type=click.Choice(SAMPLERS),
        help="Sampler that suggests hyperparameters; Ray supports tpe and random.  [default: tpe; "
        "with the kernel ard none, but a search by gradients]",
    ),
    click.option(
        "--pruner",
        type=click.Choice(PRUNERS),
        help="Pruner of Optuna, which stops poor trials early; at least a quarter of the trials is "
        "complete.  [default: none]",
    ),
    click.option(
        "--budgets",
        metavar="NUMBERS",
        callback=_split_budgets,
        help="Numbers (100,400) or shares (0.25,1.0) of rows at which trials may be stopped.  "
        f"[default: {','.join(map(str, DEFAULT_BUDGETS))} with a pruner or scheduler]",
    ),
    click.option(
        "--storage",
        metavar="FILE|URL",
        help="File or database that keeps the trials.  [default: OUT.journal; with Ray the folder "
        "OUT.ray]",
    ),
    click.option("--resume", is_flag=True, help="Continue the study that is in the storage."),
    click.option(
        "--jobs",
        type=int,
        callback=_threads,
        help="Number of trials that run at a time, or -1 for all cores.  [default: 1 with Optuna, "
        "all cores with Ray]",
    ),
    click.option("--seed", type=int, callback=at_least(0), help="Random seed of the sampler."),
    click.option(
        "--refine",
        is_flag=True,
        help="Follow the gradient from the best point of the search, and keep the better one.",
    ),
    click.option(
        "--out",
        type=click.Path(path_type=Path),
        default="model",
        show_default=True,
        help="Path of the model without .json or .libsvm.",
    ),
    click.option(
        "--force", is_flag=True, help="Replace an existing model and start its study again."
    ),
    click.option(
        "--engine",
        type=click.Choice(["optuna", "ray"]),
        default="optuna",
        show_default=True,
        help="Framework that runs the trials.",
    ),
    click.option(
        "--scheduler",
        type=click.Choice(["none", *SCHEDULERS]),
        help="Scheduler of Ray Tune, which stops poor trials early.  [default: none]",
    ),
    click.option(
        "--address",
        help="Address of a cluster of Ray; auto joins the one that is running.  [default: local]",
    ),
    click.option(
        "--cpus-per-trial",
        type=float,
        callback=_positive,
        help="Number of cores that Ray reserves for a trial.  [default: 1]",
    ),
)
