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
_PROC = Path("/proc")


def sign(trial: BaseTrial) -> None:
    """Record in a trial which process works on it."""
    trial.set_user_attr(_ATTRIBUTE, _identity(os.getpid()))


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
    found = [trial for trial in running if _is_gone(trial.user_attrs.get(_ATTRIBUTE))]
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


@functools.cache  # cached by process, because a fork has another identity
def _identity(pid: int) -> dict[str, Any]:
    """Return what distinguishes this process from all others."""
    host, place = socket.gethostname(), _place()
    return {"host": host, "place": place, "pid": pid, "started": _started(pid)}


def _is_gone(worker: Any) -> bool:
    """Return whether it is certain that a process has ended."""
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
