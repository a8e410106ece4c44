"""End a command with its exit code, and with one line on standard error if it has failed."""

import os
import sys
import warnings
from collections.abc import Sequence
from typing import NoReturn

import click

from span_hpo.cli.commands import cli
from span_hpo.cli.options import LIBRARY_ARGUMENTS
from span_hpo.cli.output import print_failure, print_warning
from span_hpo.errors import SolverError
from span_hpo.runtime import ArgumentError

_FAILED, _WRONG_INPUT, _INTERRUPTED = 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line, and end the process with its exit code.

    The exit code is 0 on success, 1 if a computation failed, 2 if the input was wrong, and 130
    after Ctrl-C. The last line on standard error says what went wrong.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    warnings.showwarning = print_warning
    if os.environ.get("SPAN_HPO_TRACEBACK"):  # shows where an error was raised
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
    except click.Abort as error:  # click raises this after Ctrl-C, which is its cause
        _end(f"Interrupted. {error.__cause__ or ''}", _INTERRUPTED)
    except BrokenPipeError:  # the program that reads the output has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(_FAILED)
    except (ValueError, TypeError, OSError, ImportError) as error:
        _end(message_of(error), _WRONG_INPUT)
    except (SolverError, MemoryError) as error:
        _end(message_of(error) or "There is not enough memory.", _FAILED)
    sys.exit(0)


def message_of(error: BaseException) -> str:
    """Return the message of an error, with the name of the option instead of the argument."""
    if isinstance(error, ArgumentError):
        if error.argument in LIBRARY_ARGUMENTS:
            return error.message(f"--{error.argument}")
        if error.argument.startswith("--"):
            return error.message(error.argument)
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}."
    return str(error)


def _end(message: str, code: int) -> NoReturn:
    """Print a message in one line, and end the process."""
    print_failure(message)
    sys.exit(code)
