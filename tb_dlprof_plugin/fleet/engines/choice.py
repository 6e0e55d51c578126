"""The engine that a command's options or an argument of the Python API name."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any

from tb_dlprof_plugin.fleet.engines.dask import Dask
from tb_dlprof_plugin.fleet.engines.engine import Engine, EngineError, Here
from tb_dlprof_plugin.fleet.engines.processes import InExecutor, Processes

NAMES = ("processes", "dask", "here")


def engine_for(
    engine: Any = None,
    *,
    workers: int | None = None,
    scheduler: Any = None,
    needs: Sequence[str] = (),
    sees: Sequence[str] = (),
) -> Engine:
    """An engine.

    Args:
        engine: one of `NAMES`; a number of processes; a scheduler's address; a ``distributed.Client``; a
            ``concurrent.futures.Executor``; None: Dask where a scheduler is given or a client is active in this
            process, else processes.
        workers: of processes, and of a Dask cluster that is made here.
        scheduler: a Dask scheduler's address or file.
        needs: what a Dask worker must be able to import.
        sees: paths that a Dask worker must be able to open.

    Raises:
        EngineError: there is no such engine.
    """
    if isinstance(engine, Executor):
        return InExecutor(engine, workers)
    if isinstance(engine, int):
        return Here() if engine <= 1 else Processes(engine)
    if engine is None:
        engine = "dask" if scheduler is not None or _dask_is_active() else "processes"
    if engine == "here":
        return Here()
    if engine == "processes":
        return Processes(workers)
    if engine == "dask":
        return Dask(scheduler, workers, needs, sees)
    if isinstance(engine, str) and "://" not in engine and not engine.endswith(".json"):
        raise EngineError(f"there is no engine {engine!r}; name one of {', '.join(NAMES)}.")
    return Dask(engine, workers, needs, sees)


def _dask_is_active() -> bool:
    """Whether this process has a Dask client, which only one that imported Dask can have."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return False
    try:
        distributed.get_client()
    except ValueError:
        return False
    return True
