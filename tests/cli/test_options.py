import dataclasses

import click
import pytest

from span_hpo.cli.commands import cli
from span_hpo.cli.options import (
    LIBRARY_ARGUMENTS,
    ModelSettings,
    RowSettings,
    SearchSettings,
    in_options,
    option_of,
)
from span_hpo.estimators import SCALES
from span_hpo.search import PRUNERS, SAMPLERS, SCHEDULERS
from tests.cli.program import call

OPTIONS = [
    pytest.param(option, id=f"{name} {option.opts[0]}")
    for name, command in cli.commands.items()
    for option in command.params
    if isinstance(option, click.Option)
]


@pytest.mark.parametrize("option", OPTIONS)
def test_help_is_a_phrase_of_its_own(option):
    """Every option has a help text that needs no other text to be understood."""
    text, _, default = option.help.partition("  [default: ")
    assert text[0].isupper()
    assert text.endswith(".")
    assert len(text.split()) >= 3
    assert text.split()[0] != "Of"
    assert not default or default.endswith("]")


@pytest.mark.parametrize("settings", [RowSettings, ModelSettings, SearchSettings])
def test_settings_are_the_options_and_stay(settings):
    """Settings hold what the options of `tune` give, and cannot be changed."""
    names = {option.name for option in cli.commands["tune"].params}
    assert {field.name for field in dataclasses.fields(settings)} <= names
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.__new__(settings).other = 1


def test_arguments_of_the_library_have_options():
    """What a message of the library is said to be about is an option of some command."""
    known = {name for parameter in OPTIONS for name in parameter.values[0].opts}
    assert {option_of(argument) for argument in LIBRARY_ARGUMENTS} <= known


def test_choices_are_the_names_of_the_adapters():
    """Samplers, pruners and schedulers are offered by the names that the adapters know."""
    choices = {
        option.name: tuple(option.type.choices)
        for option in cli.commands["tune"].params
        if isinstance(option.type, click.Choice)
    }
    assert choices["sampler"] == SAMPLERS
    assert choices["pruner"] == PRUNERS
    assert choices["scale"] == SCALES
    assert choices["scheduler"] == ("none", *SCHEDULERS)


def test_arguments_are_written_as_options():
    """Arguments of the library become options, with their values; other code stays as it is."""
    text = "`scale_inside=True`, `scale=None`, `scale='minmax'` and `drop_rows`, but `tol=1`."
    expected = "--scale-inside, --scale none, --scale minmax and --drop-rows, but `tol=1`."
    assert in_options(text) == expected


TUNE = ("tune", "rows.csv", "--target", "label")
OF_ANOTHER_ENGINE = {
    "--scheduler": ("optuna", "asha"),
    "--address": ("optuna", "auto"),
    "--cpus-per-trial": ("optuna", "2"),
    "--pruner": ("ray", "median"),
}


@pytest.mark.parametrize("option", OF_ANOTHER_ENGINE)
def test_options_of_another_engine(option, capsys):
    """An option that the engine would ignore is refused."""
    engine, value = OF_ANOTHER_ENGINE[option]
    error = call(*TUNE, "--engine", engine, option, value, capsys=capsys, code=2)
    assert f"{option} must not be given for the engine {engine}" in error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--engine", "ray", "--sampler", "gp"), "--sampler must be tpe or random for the engine"),
        (("--engine", "ray", "--cpus-per-trial", 0), "--cpus-per-trial must be a finite number"),
        (("--seed", -1), "--seed must be a whole number of at least 0, got -1."),
        (("--budgets", ""), "--budgets must be numbers that are separated by commas, got ''."),
    ],
)
def test_wrong_values_are_named(options, message, capsys):
    """A value is checked where it enters, and the message names its option."""
    assert message in call(*TUNE, *options, capsys=capsys, code=2)
