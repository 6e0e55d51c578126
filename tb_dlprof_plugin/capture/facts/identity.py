"""Rank, world size and the session name that the profiles of one training run share."""

from __future__ import annotations

import os
import re
import secrets
import socket
import time

from tb_dlprof_plugin.capture.warn import probe

_SAFE = re.compile(r"[^A-Za-z0-9_-]+")


def rank_and_world_size() -> tuple[int, int]:
    """From torch.distributed if it is initialised, else from RANK and WORLD_SIZE, else (0, 1)."""
    ranks = probe(_distributed)
    if ranks is not None:
        return ranks
    return max(0, _environment("RANK", 0)), max(1, _environment("WORLD_SIZE", 1))


def new_session() -> str:
    """A name of this process that sorts by time, of ``[A-Za-z0-9_-]`` only."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{secrets.token_hex(2)}"


def shared_session(index: int, own: str) -> str:
    """One session name for all ranks of a distributed run: the first rank to ask writes it to the store.

    ``compare_set`` returns immediately whether or not the other ranks call it, so that profiling only some ranks cannot
    block. Outside torch.distributed, and if the store is not reachable, it is ``own``.

    Args:
        index: index of the handler in its process; each rank creates them in the same order.
        own: the name to use if this rank is the first.
    """
    return probe(lambda: _agree(f"tb_dlprof/session/{index}", own)) or own


def safe_session(text: str) -> str:
    """``text`` with what a tag cannot hold replaced by ``_``; a new name where nothing is left."""
    return _SAFE.sub("_", text).strip("_") or new_session()


def default_worker_name() -> str:
    """As torch names it: host name and process id."""
    return f"{socket.gethostname()}_{os.getpid()}"


def _distributed() -> tuple[int, int] | None:
    import torch.distributed as dist

    if not dist.is_available() or not dist.is_initialized():
        return None
    return dist.get_rank(), dist.get_world_size()


def _agree(key: str, own: str) -> str | None:
    ranks = _distributed()
    if ranks is None or ranks[1] < 2:
        return None
    from torch.distributed import distributed_c10d

    store = distributed_c10d._get_default_store()
    answer: bytes | str = store.compare_set(key, "", own)
    text = answer.decode() if isinstance(answer, bytes) else answer
    return text if text and not _SAFE.search(text) else None


def _environment(name: str, default: int) -> int:
    try:
        return int(os.environ.get(name, default))
    except ValueError:
        return default
