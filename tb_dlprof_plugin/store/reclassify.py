"""Recomputes the verdicts of a stored profile with the current rules.

Verdicts are stored, because they are part of the tables; but rules are corrected from version to version, and old runs
must not keep old mistakes. All inputs of the rules are in the profile.
"""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np

from tb_dlprof_plugin.analysis.categories import time_categories
from tb_dlprof_plugin.analysis.kernel_table import build_kernels, launch_contexts
from tb_dlprof_plugin.analysis.op_table import eligibility_of
from tb_dlprof_plugin.model.profile import CallKind, Profile
from tb_dlprof_plugin.model.tree import parents
from tb_dlprof_plugin.store import event_file
from tb_dlprof_plugin.store.codec import ProfileError
from tb_dlprof_plugin.store.event_file import StoredProfile


def read_profiles(logdir: str | os.PathLike[str]) -> list[StoredProfile]:
    """All profiles under a logdir (or in one event file), by path, each with today's verdicts.

    Raises:
        ProfileError: the path does not exist, or one of our event files cannot be read.
    """
    return [StoredProfile(stored.path, renewed(stored.profile)) for stored in event_file.read_profiles(logdir)]


def renewed(profile: Profile) -> Profile:
    """The profile with verdicts, precisions, eligibility and time categories as a new analysis would give them.

    Raises:
        ProfileError: the tables point outside of each other: the profile is damaged.
    """
    try:
        return _renewed(profile)
    except (IndexError, ValueError) as error:
        raise ProfileError(f"the stored profile is damaged ({error}); record the run again") from None


def _renewed(profile: Profile) -> Profile:
    calls, ops, launches, iterations = profile.calls, profile.ops, profile.launches, profile.iterations
    capability = profile.system.compute_capability_of(iterations.gpu_ids)
    strings = list(profile.strings)
    kind = ops.kind[calls.op]
    contexts = launch_contexts(
        profile.kernels.name[launches.kernel],
        profile.kernels.kind[launches.kernel],
        launches.call,
        parents(calls.depth),
        kind == CallKind.OP,
        ops.name[calls.op],
        ops.dtypes[calls.op],
    )
    kernels, kernel_of_launch = build_kernels(contexts, strings, capability, _is_rocm(profile))
    tensor_core = kernels.tensor_core[kernel_of_launch] if len(launches) else np.zeros(0, dtype=np.int64)
    categories = time_categories(
        (calls, kind, ops.role[calls.op]),
        (launches, contexts.kind, tensor_core),
        (iterations.start_ns, iterations.stop_ns),
        iterations.gpu_ids,
    )
    return replace(
        profile,
        strings=strings,
        kernels=kernels,
        launches=replace(launches, kernel=kernel_of_launch),
        ops=replace(ops, tensor_core_eligible=eligibility_of(ops, strings, capability if len(launches) else None)),
        iterations=replace(iterations, category_ns=categories),
    )


def _is_rocm(profile: Profile) -> bool:
    return any(note.code == "rocm" for note in profile.notes)
