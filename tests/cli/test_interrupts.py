import json
import re
import signal

import pexpect

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
