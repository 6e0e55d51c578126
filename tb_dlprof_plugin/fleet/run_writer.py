"""Writes runs: each profile with the facts of its rank, so that answers about a job open no profile."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tb_dlprof_plugin.model import addresses
from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.store.codec import encode
from tb_dlprof_plugin.store.event_file import event_file_content, own_event_file_name, write_profile
from tb_dlprof_plugin.store.run_files import event_files_in, remove_all

if TYPE_CHECKING:
    from tb_dlprof_plugin.profile_view import ProfileView


def write_run(directory: str | os.PathLike[str], profile: Profile) -> Path:
    """`write_profile` with the facts of the rank.

    Raises:
        OSError: the directory cannot be written.
    """
    blob = encode(profile)
    return write_profile(directory, profile, facts=facts_beside(profile, blob), blob=blob)


def write_run_to(address: str, profile: Profile) -> str:
    """`write_run` at a remote address; the address of the event file.

    Raises:
        AddressError: it cannot be written.
    """
    blob, now_ns = encode(profile), time.time_ns()
    written = addresses.join(address, own_event_file_name(now_ns))
    addresses.write(written, event_file_content(profile, now_ns, facts_beside(profile, blob), blob))
    return written


def write_runs(directory: Path, profiles: Sequence[Profile]) -> list[Path]:
    """`write_run` of all profiles, or of none.

    Raises:
        OSError: the directory cannot be written; what was written of them is removed again.
    """
    written: list[Path] = []
    try:
        for profile in profiles:
            written.append(write_run(directory, profile))
    except BaseException:
        remove_all([file for file in event_files_in(directory) if file.path in written])
        raise
    return written


def as_read(blob: bytes) -> ProfileView:
    """An encoded profile as it will be read: one that was just made differs from it where verdicts depend on what is
    stored."""
    from tb_dlprof_plugin.profile_view import ProfileView
    from tb_dlprof_plugin.store.reclassify import opened

    return ProfileView(opened(blob))


def facts_beside(profile: Profile, blob: bytes) -> bytes | None:
    """The facts to store with an encoded profile; None of one that is alone, or where they cannot be made of it."""
    if not _may_communicate(profile):
        return None
    # What is recorded must not be lost for the sake of a faster page.
    with contextlib.suppress(Exception):
        from tb_dlprof_plugin.fleet.stored_facts import facts_to_store

        return facts_to_store(as_read(blob))
    return None


def _may_communicate(profile: Profile) -> bool:
    of_job = (profile.facts.world_size or 1) > 1
    of_gpu = profile.kernels_where(family="communication")
    return of_job or bool(of_gpu.any() or profile.ops_named(lambda name: name.startswith("gloo:")).any())
