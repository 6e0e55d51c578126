"""The header in the summary metadata: enough to list a run without decoding its profile."""

from __future__ import annotations

from typing import Any

from tb_dlprof_plugin.model.precision import observed_precision
from tb_dlprof_plugin.model.profile import SCHEMA_VERSION, Profile
from tb_dlprof_plugin.store import dlprof_pb2 as pb


def header_of(profile: Profile) -> Any:
    """The header message of a profile."""
    count = len(profile.iterations)
    span = int(profile.iterations.duration_ns.sum()) if count else 0
    gpus = profile.system.gpus
    gpu = next((gpu.name for gpu in gpus if gpu.name), "") or "unknown GPU"
    device = gpu if profile.has_gpu else (profile.system.cpu_model or "CPU")
    return pb.Header(
        schema_version=SCHEMA_VERSION,
        session=profile.source.session,
        rank=profile.source.rank,
        model=profile.facts.model or "",
        precision=observed_precision(profile),
        device=device,
        created_unix_ns=profile.source.created_unix_ns,
        iterations=count,
        average_iteration_ns=span // count if count else 0,
        world_size=max(profile.facts.world_size or 0, 0),
    )


def parse_header(content: bytes) -> Any | None:
    """The header message in a summary's plugin content, or None where it is not one."""
    try:
        header = pb.Header.FromString(content)
    except Exception:  # any other writer's bytes: the upb and the pure Python runtimes raise different errors
        return None
    return header if header.schema_version else None
