"""The recording of a framework's callback: begun and ended by its hooks, none of which raises into the training."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from tb_dlprof_plugin.capture.schedule import DEFAULT
from tb_dlprof_plugin.capture.session import ProfileSession, profile
from tb_dlprof_plugin.capture.warn import warn


class CallbackSession:
    """What the callbacks of all frameworks share."""

    def __init__(self, logdir: str | os.PathLike[str], options: dict[str, Any]) -> None:
        super().__init__()
        self._logdir, self._options = logdir, options
        self.session: ProfileSession | None = None
        """The recording, once the training has begun."""

    def _facts(self, *args: Any, **kwargs: Any) -> Mapping[str, Any]:
        """Options of `profile` that the framework knows; the user's come before them."""
        raise NotImplementedError

    def _begin(self, *args: Any, **kwargs: Any) -> None:
        """The training begins; arguments are those of `_facts`."""
        try:
            # As in a loop that calls `step`: the first step is not recorded and discarded.
            given = {"schedule": DEFAULT, **self._facts(*args, **kwargs), **self._options}
            self.session = profile(self._logdir, **given)
            self.session.start()
        except Exception as error:
            warn(f"The training is not recorded: {type(error).__name__}: {error}.")

    def _step(self) -> None:
        """A step is over."""
        if self.session is not None:
            self.session.step()

    def _end(self, wait: bool | None = None) -> None:
        """The training ends."""
        session, self.session = self.session, None
        if session is not None:
            session.stop(wait)
