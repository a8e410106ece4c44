"""Ctrl-C in a process, from its first instruction on."""

import os
import signal
import subprocess
import sys
import time

import pytest

from span_hpo import ctrl_c
from tests.processes import ENVIRONMENT


def press():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.05)  # the handler runs before


@pytest.fixture(autouse=True)
def _handler():
    """Give every test the handler of Python, and restore the one of pytest."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("argv", "orig", "expected"),
    [
        (["/usr/bin/span-hpo", "tune"], [], True),
        (["span-hpo.exe"], [], True),
        (["/site-packages/span_hpo/__main__.py"], [], True),
        (["-m"], ["python", "-X", "dev", "-m", "span_hpo", "tune"], True),
        (["-m"], ["python", "-m", "pytest", "span_hpo"], False),
        (["-m"], ["python", "-m", "pytest"], False),
        (["train.py"], ["python", "train.py", "span-hpo"], False),
        (["other/__main__.py"], [], False),
        ([""], ["python"], False),
        ([], [], False),
    ],
)
def test_only_the_command_line_is_recognised(argv, orig, expected, monkeypatch):
    """A program that imports the package keeps its own way to handle Ctrl-C."""
    monkeypatch.setattr(sys, "argv", argv)
    monkeypatch.setattr(sys, "orig_argv", orig)
    assert ctrl_c.is_command() is expected


def test_an_import_leaves_the_handler_alone():
    """A program that imports the package has the handler of Python afterwards."""
    code = "import signal, span_hpo; print(signal.getsignal(2) is signal.default_int_handler)"
    heeds = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    found = subprocess.run(
        [sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, **heeds
    )
    assert found.stdout.strip() == "True"


def test_an_armed_process_ends_with_one_line():
    """The exit code is 130, and nothing else is printed, even in the middle of an import."""
    code = (
        "import os, signal, sys; sys.argv = ['span-hpo']\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'span_hpo.bounds': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "import span_hpo\n"
    )
    heeds = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    found = subprocess.run(
        [sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, **heeds
    )
    assert (found.returncode, found.stderr) == (130, "span-hpo: Interrupted.\n")


def test_handlers_of_others_are_left_alone():
    """A job in the background ignores Ctrl-C, and goes on to do so."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctrl_c.arm()
    with ctrl_c.RaisedOnce():
        press()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert not ctrl_c.is_armed()


def test_the_first_press_raises_and_the_second_ends():
    """While an interrupt is handled, the next one ends the process; later, all is as before."""
    with ctrl_c.RaisedOnce():
        with pytest.raises(KeyboardInterrupt):
            press()
        assert ctrl_c.is_armed()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_armed_process_ignores_the_end():
    """Only an armed process ignores Ctrl-C when everything is done."""
    ctrl_c.ignore()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    ctrl_c.arm()
    ctrl_c.ignore()
    press()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


@pytest.mark.parametrize(("error", "code"), [("KeyboardInterrupt", 130), ("ValueError", 0)])
def test_an_interrupt_that_cannot_be_raised_ends_the_process(error, code):
    """In a finaliser, where Python can only print an error, an interrupt still ends the process."""
    program = (
        "import sys; from span_hpo import ctrl_c; sys.unraisablehook = ctrl_c.end_unraisable\n"
        "class Odd:\n"
        f"    def __del__(self): raise {error}\n"
        "odd = Odd(); del odd\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], env=ENVIRONMENT, capture_output=True, text=True
    )
    assert found.returncode == code
    assert ("Traceback" in found.stderr) == (code == 0)
