import json
import random
import re
import signal
import subprocess
import time

import pexpect
import pytest

from span_hpo.cli.interrupts import gentle_ctrl_c
from tests.cli.program import (
    ENVIRONMENT,
    NOT_FEATURES,
    PROGRAM,
    heeds_ctrl_c,
    run,
    started,
    wait_for_trials,
)


def test_ctrl_c_in_a_terminal(tmp_path):
    """A terminal shows a progress bar; Ctrl-C keeps the trials and prints how to go on."""
    command = [*PROGRAM[1:], "tune", "rows.csv", "--target", "label", *NOT_FEATURES]
    terminal = pexpect.spawn(
        PROGRAM[0],
        [*command, "--seed", "0", "--trials", "100000"],
        cwd=str(tmp_path),
        env=ENVIRONMENT,
        dimensions=(40, 300),
        timeout=120,
        encoding="utf-8",
        codec_errors="replace",
        preexec_fn=heeds_ctrl_c,
    )
    terminal.expect(r"\d+/100000 ")
    wait_for_trials(tmp_path / "model.journal")
    terminal.sendintr()
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 130, terminal.before[-3000:]
    last = terminal.before.strip().splitlines()[-1]
    assert "Traceback" not in terminal.before
    done, again, best = re.search(
        r"Interrupted. (\d+) of 100000 trials are kept in model.journal. "
        r"Continue with: span-hpo (.+? --resume) \(or save the best trial with: span-hpo (.+)\)",
        last,
    ).groups()
    assert int(done) >= 5
    assert again.endswith("--trials 100000 --resume")
    found = json.loads(run(*best.split(), "--json", folder=tmp_path))
    assert found["trials"] == int(done)


def test_ctrl_c_with_threads(tmp_path):
    """Ctrl-C also ends a search in several threads, with the same message."""
    command = ("tune", "rows.csv", "--target", "label", "--trials", "100000", "--jobs", "2")
    with started(*command, folder=tmp_path) as process:
        wait_for_trials(tmp_path / "model.journal")
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in error
    assert re.search(r"Interrupted. \d+ of 100000 trials are kept", error)


def interrupted_at(seconds, again, folder):
    """Press Ctrl-C so long after the start of a search, perhaps twice; return how it ends."""
    command = [*PROGRAM, "tune", "rows.csv", "--target", "label", "--trials", "9999", "--force"]
    with subprocess.Popen(
        command,
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heeds_ctrl_c,
    ) as process:
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        if again is not None:
            time.sleep(again)
            process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
    return process.returncode, error


def is_before_the_first_instruction(error):
    """Return whether Python itself was starting, of which it prints a traceback."""
    files = set(re.findall(r'File "[^"]*span_hpo/([^"]+)"', error))
    return not files or (files <= {"__init__.py", "ctrl_c.py"} and "import ctrl_c" in error)


@pytest.mark.slow
@pytest.mark.parametrize("longest", [0.4, 4.0])
def test_ctrl_c_at_any_moment(longest, tmp_path):
    """From its first instruction on, a search ends with one line and 130, also if pressed twice."""
    moments, ends = random.Random(0), 0
    for _ in range(20):
        again = moments.uniform(0, 0.5) if moments.random() < 0.5 else None
        code, error = interrupted_at(moments.uniform(0, longest), again, tmp_path)
        if code != 130:
            assert is_before_the_first_instruction(error), error
            continue
        ends += 1
        assert len([line for line in error.splitlines() if line.strip()]) == 1, error
        assert "Interrupted." in error
    assert ends > 5


def test_presses_are_counted():
    """The first press is noted, and the second one interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with gentle_ctrl_c() as was_pressed:
            assert not was_pressed()
            signal.raise_signal(signal.SIGINT)
            assert was_pressed()
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
