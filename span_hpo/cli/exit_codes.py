"""End a command with its exit code, and with one line on standard error if it has failed."""

import contextlib
import errno
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from span_hpo.cli.commands import cli
from span_hpo.cli.options import in_options
from span_hpo.cli.output import print_failure, print_warning
from span_hpo.ctrl_c import INTERRUPTED, RaisedOnce, end_unraisable, ignore, is_armed
from span_hpo.errors import SolverError
from span_hpo.runtime import ArgumentError

_FAILED, _WRONG_INPUT = 1, 2
# Failures of the machine, which no other input would prevent.
_OF_THE_MACHINE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOMEM}


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line, and end the process with its exit code.

    The exit code is 0 on success, 1 if a computation failed or the disk is full, 2 if the input was
    wrong, and 130 after Ctrl-C. The last line on standard error says what went wrong.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    warnings.showwarning = _show_warning
    if is_armed():
        sys.unraisablehook = end_unraisable
    if os.environ.get("SPAN_HPO_TRACEBACK"):  # shows where an error was raised
        cli.main(given, prog_name="span-hpo", standalone_mode=False)
        sys.exit(0)
    try:
        with RaisedOnce():
            cli.main(given, prog_name="span-hpo", standalone_mode=False)
            sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(_WRONG_INPUT)
    except click.ClickException as error:
        _end(error.format_message(), _WRONG_INPUT)
    except KeyboardInterrupt as error:
        _end(f"Interrupted. {error}", INTERRUPTED)
    except click.Abort as error:  # click raises this after Ctrl-C, which is its cause
        _end(f"Interrupted. {error.__cause__ or ''}", INTERRUPTED)
    except BrokenPipeError:  # the program that reads the output has ended
        _drop_output()
        sys.exit(_FAILED)
    except OSError as error:
        _drop_output()  # it may be what cannot be written
        _end(message_of(error), _FAILED if error.errno in _OF_THE_MACHINE else _WRONG_INPUT)
    except (ValueError, TypeError, ImportError) as error:
        _end(message_of(error), _WRONG_INPUT)
    except (SolverError, MemoryError) as error:
        _end(message_of(error) or "There is not enough memory.", _FAILED)
    ignore()
    sys.exit(0)


def message_of(error: BaseException) -> str:
    """Return the message of an error, with the names of options instead of arguments."""
    if isinstance(error, ArgumentError):
        is_option = error.argument.startswith("--")
        text = error.message(error.argument) if is_option else str(error)
        return in_options(text)
    if isinstance(error, OSError) and error.strerror:
        place = "" if error.filename is None else f"{error.filename}: "
        return f"{place}{error.strerror.removesuffix('.')}."
    return str(error)


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    """Print a warning, with the names of options instead of arguments."""
    print_warning(in_options(str(message)))


def _end(message: str, code: int) -> NoReturn:
    """Print a message in one line, and end the process."""
    is_command = is_armed()
    ignore()
    print_failure(message)
    if code == INTERRUPTED and is_command:
        os._exit(code)  # threads may be in the middle of a trial, and nobody waits for them
    sys.exit(code)


def _drop_output() -> None:
    """Let Python write what is left of the output to nowhere, instead of failing again."""
    with contextlib.suppress(OSError, ValueError):  # a stream that is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
