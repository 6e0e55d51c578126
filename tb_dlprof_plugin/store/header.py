"""The header in the summary metadata: enough to list a run without decoding its profile."""

from __future__ import annotations

from dataclasses import dataclass

from tb_dlprof_plugin.model.precision import observed_precision
from tb_dlprof_plugin.model.profile import SCHEMA_VERSION, Profile
from tb_dlprof_plugin.store.allowance import Allowance
from tb_dlprof_plugin.store.message import message_of, read_message, struct_of


@dataclass(frozen=True, slots=True)
class Header:
    """What a list of runs shows of one; ``world_size`` is that of the job, 0 where it is not recorded."""

    schema_version: int
    session: str
    rank: int
    model: str
    precision: str
    device: str
    created_unix_ns: int
    iterations: int
    average_iteration_ns: int
    world_size: int

    def encode(self) -> bytes:
        """The content of a summary's metadata."""
        return message_of(self)


def header_of(profile: Profile) -> Header:
    """The header of a profile."""
    count = len(profile.iterations)
    span = int(profile.iterations.duration_ns.sum()) if count else 0
    gpus = profile.system.gpus
    gpu = next((gpu.name for gpu in gpus if gpu.name), "") or "unknown GPU"
    device = gpu if profile.has_gpu else (profile.system.cpu_model or "CPU")
    return Header(
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


def parse_header(content: bytes) -> Header | None:
    """The header in a summary's plugin content, or None where it is not one."""
    allowance = Allowance(len(content))
    try:
        header = struct_of(Header, read_message(content, Header, allowance), allowance)
    except ValueError:  # any other writer's bytes
        return None
    return header if header.schema_version else None
