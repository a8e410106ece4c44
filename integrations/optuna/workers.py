"""Which process works on a trial, and whether it still does.

A journal has no heartbeat: the trial of a process that was killed stays RUNNING for ever, and
samplers go on counting it as pending.
"""

import os
import socket
import warnings
from typing import Any

from optuna import Study
from optuna.trial import BaseTrial, FrozenTrial, TrialState

_ATTRIBUTE = "worker"


def sign(trial: BaseTrial) -> None:
    """Write into a trial which process works on it."""
    trial.set_user_attr(_ATTRIBUTE, {"host": socket.gethostname(), "pid": os.getpid()})


def abandoned_trials(study: Study, *, fail: bool = False) -> list[FrozenTrial]:
    """Return the trials that are RUNNING although their process, of this machine, is gone.

    Parameters
    ----------
    study
        The study.
    fail
        Tell the study that they have failed, so that samplers no longer wait for them. Not needed
        with a storage that has a heartbeat, which does that itself and may also retry them.

    Returns
    -------
    The trials as they were found. Those of other machines cannot be judged and are left out.
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
            stacklevel=4,
        )


def _is_gone(worker: Any) -> bool:
    if not isinstance(worker, dict) or worker.get("host") != socket.gethostname():
        return False
    try:
        os.kill(worker["pid"], 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False  # another user's process
    return False
