"""The last result of each command that was tried on this machine, with which ``--continue`` goes on.

One file for each command and working folder, in ``$XDG_DATA_HOME/tb_dlprof/tries`` (by default below
``~/.local/share``).
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence
from pathlib import Path

from tb_dlprof_plugin.model.trial_result import TrialResult, decode_trial, encode_trial
from tb_dlprof_plugin.model.user_folders import data_folder
from tb_dlprof_plugin.model.visible import VisibleMessage
from tb_dlprof_plugin.model.whole_file import whole_file


class NothingKeptError(VisibleMessage):
    """There is no earlier result to go on with. The message says what to do."""


def keep(result: TrialResult, folder: str) -> None:
    """Keep the result of a trial that was started in ``folder``. Never raises."""
    with contextlib.suppress(OSError):
        path = _path(result.command, folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            file.write(_state_of(result.command, folder).encode() + b"\n" + encode_trial(result))


def kept(command: Sequence[str], folder: str) -> TrialResult:
    """The last result of this command in this folder.

    Raises:
        NothingKeptError: there is none, or the script has changed since.
    """
    try:
        state, _, content = _path(command, folder).read_bytes().partition(b"\n")
    except OSError:
        state, content = b"", b""
    result = decode_trial(content)
    if result is None:
        raise NothingKeptError(
            f"{' '.join(command)} was not tried in this folder before; leave --continue out to begin"
        )
    if state != _state_of(command, folder).encode():
        raise NothingKeptError("the script has changed since it was tried; leave --continue out to begin again")
    return result


def _path(command: Sequence[str], folder: str) -> Path:
    name = hashlib.sha256("\0".join((folder, *command)).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return data_folder() / "tries" / f"{name}.json"


def _state_of(command: Sequence[str], folder: str) -> str:
    """Of the Python files that the command names."""
    digest = hashlib.sha256()
    for word in command:
        if word.endswith(".py"):
            with contextlib.suppress(OSError):
                digest.update(Path(folder, word).read_bytes())
    return digest.hexdigest()
