"""Selects calls by name: each distinct op is tested once, not each call."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tb_dlprof_plugin.model.profile import Bools, CallKind
from tb_dlprof_plugin.profile_view import ProfileView


def calls_named(view: ProfileView, kind: CallKind, test: Callable[[str], bool]) -> Bools:
    """Per row of `Profile.calls` whether it is of this kind and its name passes the test."""
    profile = view.profile
    return ((profile.ops.kind == kind) & profile.ops_named(test))[profile.calls.op]


def launching_calls(view: ProfileView) -> Bools:
    """Per row of `Profile.calls` whether it launched a recorded GPU activity."""
    result = np.zeros(len(view.profile.calls), dtype=np.bool_)
    call = view.profile.launches.call
    result[call[call >= 0]] = True
    return result
