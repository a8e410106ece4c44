"""Record which process works on a trial, and find trials whose processes are gone.

In a storage without a heartbeat, such as a journal, the trial of a killed process stays RUNNING for
ever, and samplers go on counting it as pending.
"""

import functools
import os
import socket
import warnings
from pathlib import Path
from typing import Any

from optuna import Study
from optuna.trial import BaseTrial, FrozenTrial, TrialState

_ATTRIBUTE = "worker"
FAILURE = "failure"  # attribute with the message of a fit that has failed
# Entries of the attribute: the number of the draw, or else the position of the starting point.
_DRAW, _START = "draw", "start"
_PROC = Path("/proc")


def sign(trial: BaseTrial, **details: Any) -> None:
    """Record in a trial which process works on it, unless that has been done.

    Parameters
    ----------
    trial
        Trial that this process has asked for.
    details
        Further entries of the record, such as the number of the draw (see `draw_of`).
    """
    if not _is_this_process(trial.user_attrs.get(_ATTRIBUTE)):
        trial.set_user_attr(_ATTRIBUTE, {**this_process(), **details})


def is_signed(trial: FrozenTrial) -> bool:
    """Return whether a process has recorded that it works, or has worked, on a trial."""
    return _ATTRIBUTE in trial.user_attrs


def is_abandoned(trial: FrozenTrial) -> bool:
    """Return whether it is certain that the process of a trial is gone."""
    return is_gone(trial.user_attrs.get(_ATTRIBUTE))


def is_own(trial: FrozenTrial) -> bool:
    """Return whether this process has signed a trial."""
    return _is_this_process(trial.user_attrs.get(_ATTRIBUTE))


def is_claimed(trial: FrozenTrial) -> bool:
    """Return whether a search has claimed a trial before its parameters were drawn."""
    worker = trial.user_attrs.get(_ATTRIBUTE)
    return isinstance(worker, dict) and _DRAW in worker


def is_interrupted(trial: FrozenTrial) -> bool:
    """Return whether a trial has failed because its process has ended, and not because of a fit."""
    has_failed = trial.state == TrialState.FAIL
    return has_failed and is_signed(trial) and FAILURE not in trial.user_attrs


def draw_of(trial: FrozenTrial) -> int | None:
    """Return the number of the draw of a trial, or None if its parameters were not drawn.

    A trial that no search has signed has its own number.
    """
    found: int | None = trial.number
    if is_claimed(trial):
        found = trial.user_attrs[_ATTRIBUTE][_DRAW]
    return found


def abandoned_trials(study: Study, *, fail: bool = False) -> list[FrozenTrial]:
    """Return the trials that are RUNNING although their process is known to be gone.

    Parameters
    ----------
    study
        Study of Optuna.
    fail
        Mark the trials as failed, so that samplers no longer wait for them. A storage with a
        heartbeat does that itself and may also retry them.

    Returns
    -------
    The trials as they were found. Processes of other machines and containers, and of systems
    without ``/proc``, cannot be judged, and their trials are left out.

    Examples
    --------
    >>> from span_hpo.integrations.optuna import abandoned_trials, new_study
    >>> study = new_study()
    >>> trial = study.ask()  # a running trial of this process
    >>> abandoned_trials(study, fail=True)
    []
    """
    running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    found = [trial for trial in running if is_abandoned(trial)]
    if fail:
        for trial in found:
            study.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)
    return found


def warn_of_abandoned(study: Study) -> None:
    """Warn if processes of this machine have left trials behind."""
    numbers = [trial.number for trial in abandoned_trials(study)]
    if numbers:
        warnings.warn(
            f"Trials {numbers} of the study {study.study_name!r} are still RUNNING, but their "
            "processes are gone. Unless a heartbeat of the storage takes care of them, call "
            "abandoned_trials(study, fail=True).",
            stacklevel=2,
        )


def start_of(trial: FrozenTrial) -> int | None:
    """Return which of the starting points of a search a trial has, or None."""
    found: int | None = None
    if is_claimed(trial):
        found = trial.user_attrs[_ATTRIBUTE].get(_START)
    return found


def _is_this_process(worker: Any) -> bool:
    own = this_process()
    return isinstance(worker, dict) and all(worker.get(name) == own[name] for name in own)


def this_process() -> dict[str, Any]:
    """Return what distinguishes this process from all others."""
    return _identity(os.getpid())


@functools.cache  # cached by process, because a fork has another identity
def _identity(pid: int) -> dict[str, Any]:
    host, place = socket.gethostname(), _place()
    return {"host": host, "place": place, "pid": pid, "started": _started(pid)}


def is_gone(worker: Any) -> bool:
    """Return whether it is certain that a process, as `this_process` describes it, has ended."""
    if not isinstance(worker, dict) or not isinstance(worker.get("pid"), int):
        return False  # the attribute was written by another program
    place, started = worker.get("place"), worker.get("started")
    if place is None or started is None or worker.get("host") != socket.gethostname():
        return False
    return bool(place == _place() and _started(worker["pid"]) != started)


def _place() -> str | None:
    """Return an identifier of this boot and of the namespace of its process numbers."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink(_PROC / 'self/ns/pid')}"
    except OSError:
        return None


def _started(pid: int) -> int | None:
    """Return the start of a process in clock ticks since the boot, or None if it has ended."""
    try:
        # The name in parentheses may hold any text; the state and other fields follow it.
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    state, ticks = fields[0], int(fields[19])
    return None if state in "ZX" else ticks
