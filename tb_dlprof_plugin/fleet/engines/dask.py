"""Applies the function on a Dask cluster: one that the user has, or one of this machine's processes.

A cluster that was not made here is never closed, restarted or scaled, and nothing is uploaded to it; of its tasks only
our own are cancelled. `Client.get_executor` is no full executor (dask/distributed issue 3695), so that Dask's own
`as_completed` collects the results.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tb_dlprof_plugin.fleet.engines.engine import EngineError, Failure, R, T
from tb_dlprof_plugin.version import __version__

RETRIES = 2
"""Of a task that raises because its machine does: a disk, a connection."""
_CONNECT_S = 20


class Dask:
    """See `Engine`.

    Args:
        cluster: a ``distributed.Client``; the address of a scheduler ("tcp://host:8786") or the path of a scheduler
            file; None: the client that is active in this process, else a cluster of this machine's processes.
        workers: of a cluster that is made here.
        needs: what a worker must be able to import: "fsspec", "s3fs" ...
        sees: paths that a worker must be able to open.
    """

    def __init__(
        self,
        cluster: Any = None,
        workers: int | None = None,
        needs: Sequence[str] = (),
        sees: Sequence[str] = (),
    ) -> None:
        self._cluster, self._workers, self._needs, self._sees = cluster, workers, tuple(needs), tuple(sees)

    def map_unordered(self, function: Callable[[T], R], items: Sequence[T]) -> Iterator[tuple[T, R | Failure]]:
        """As they come."""
        with contextlib.ExitStack() as ours:
            client = _client(self._cluster, self._workers, ours)
            _check(client, self._needs, self._sees)
            yield from _through(client, function, items)


def _through(client: Any, function: Callable[[T], R], items: Sequence[T]) -> Iterator[tuple[T, R | Failure]]:
    from distributed import as_completed

    # New names each time: a cluster keeps results by name, and inputs may have changed.
    name = f"tb-dlprof-{uuid.uuid4().hex[:12]}"
    keys = [f"{name}-{number}" for number in range(len(items))]
    futures = client.map(function, items, key=keys, retries=RETRIES, pure=False)
    item_of = dict(zip(keys, items, strict=True))
    try:
        for future in as_completed(futures):
            yield item_of[future.key], _result(future)
            future.release()
    finally:
        # Also when the caller stops early: the tasks that are left are ours.
        with contextlib.suppress(Exception):
            client.cancel([future for future in futures if not future.done()])


def _result(future: Any) -> Any:
    from distributed import CancelledError, KilledWorker

    try:
        # A result that is lost with its worker before it is fetched is computed again, and waited for here.
        return future.result()
    except KilledWorker:
        return Failure("every worker that tried it died (out of memory, or killed)", died=True)
    except CancelledError:
        return Failure("its task was cancelled, or the scheduler was lost", died=True)
    except Exception as error:
        return Failure.of(error)


def _client(cluster: Any, workers: int | None, ours: contextlib.ExitStack) -> Any:
    try:
        import distributed
    except ModuleNotFoundError:
        raise EngineError("Dask is not installed; run pip install distributed.") from None
    if isinstance(cluster, distributed.Client):
        return cluster
    if cluster is None:
        with contextlib.suppress(ValueError):
            return distributed.get_client()
        made = distributed.LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None)
        return ours.enter_context(distributed.Client(ours.enter_context(made)))
    address = cluster if isinstance(cluster, str) else os.fspath(cluster)
    options = {"scheduler_file": address} if "://" not in address and Path(address).is_file() else {"address": address}
    try:
        return ours.enter_context(distributed.Client(timeout=_CONNECT_S, set_as_default=False, **options))
    except (OSError, TimeoutError, ValueError) as error:
        raise EngineError(f"no Dask scheduler answers at {address} ({error}); check the address.") from None


def _check(client: Any, needs: tuple[str, ...], sees: tuple[str, ...]) -> None:
    """Raises EngineError if a worker lacks something."""
    answers = client.run(_worker_has, needs, sees, on_error="return")
    if not answers:
        raise EngineError("the Dask cluster has no workers yet; start some.")
    for worker, answer in answers.items():
        if isinstance(answer, BaseException):
            raise EngineError(
                f"the worker {worker} cannot run tb_dlprof_plugin ({type(answer).__name__}: {answer}); install "
                f"version {__version__} there."
            )
        version, lacking, unseen = answer
        if version != __version__:
            raise EngineError(
                f"the worker {worker} has tb_dlprof_plugin {version}, and this is {__version__}; install one version."
            )
        if lacking:
            raise EngineError(f"the worker {worker} lacks {', '.join(lacking)}; install it there.")
        if unseen:
            raise EngineError(
                f"the worker {worker} does not see {unseen[0]}: it needs a file system that all machines share, or an "
                "address such as s3://bucket/folder."
            )


def _worker_has(needs: tuple[str, ...], sees: tuple[str, ...]) -> tuple[str, list[str], list[str]]:
    """In a worker: our version there, which packages are missing, and which paths."""
    import importlib.util

    lacking = [name for name in needs if importlib.util.find_spec(name) is None]
    return __version__, lacking, [path for path in sees if not os.path.exists(path)]
