"""What a call of the CUDA runtime, the CUDA driver or HIP does, read from its name.

One table for the three interfaces: a name without its interface's prefix (``cuda``, ``cu``, ``hip``) and without the
endings that exporters and headers append (``_v7000`` and ``_v2`` for versions, ``_ptsz`` and ``_ptds`` for per-thread
default streams) means the same in each of them. Nsight Systems writes ``cudaLaunchKernel_v7000`` where Kineto writes
``cudaLaunchKernel``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache

import numpy as np

from tb_dlprof_plugin.model.profile import Ints


class CudaCall(IntEnum):
    """What a call does. `OTHER` is any call that the table has no row for, and any name that is no such call's."""

    OTHER = 0
    LAUNCH = 1
    GRAPH_LAUNCH = 2
    MEMCPY = 3
    """Returns when the copy is done."""
    MEMCPY_ASYNC = 4
    """Queues the copy; copies between GPUs do so under every name."""
    MEMSET = 5
    """Returns when memory of the host is set; that of a GPU is set later."""
    MEMSET_ASYNC = 6
    STREAM_SYNCHRONIZE = 7
    DEVICE_SYNCHRONIZE = 8
    EVENT_SYNCHRONIZE = 9
    EVENT_RECORD = 10
    STREAM_WAIT_EVENT = 11
    MALLOC = 12
    """Allocates memory of a GPU, or managed memory."""
    MALLOC_ASYNC = 13
    HOST_MALLOC = 14
    """Allocates pinned memory of the host."""
    FREE = 15
    """Frees what `MALLOC` allocates, after all work of the device."""
    FREE_ASYNC = 16
    HOST_FREE = 17
    MEMORY_CREATE = 18
    """Allocates physical memory that is mapped later, as PyTorch's expandable segments do."""
    MEMORY_MAP = 19
    MEMORY_SET_ACCESS = 20
    MEMORY_UNMAP = 21
    MEMORY_RELEASE = 22
    CODE_LOAD = 23
    """Loads a module or library of kernels, or finds a kernel in it, which may load it."""
    PROFILER_START = 24
    PROFILER_STOP = 25


SYNCHRONIZES = (CudaCall.STREAM_SYNCHRONIZE, CudaCall.DEVICE_SYNCHRONIZE, CudaCall.EVENT_SYNCHRONIZE)
"""Calls whose purpose is to wait."""
LAUNCHES_KERNELS = (CudaCall.LAUNCH, CudaCall.GRAPH_LAUNCH)
COPIES = (CudaCall.MEMCPY, CudaCall.MEMCPY_ASYNC)
SETS = (CudaCall.MEMSET, CudaCall.MEMSET_ASYNC)

_PREFIX = re.compile(r"(?:cuda|cu|hip)(?=[A-Z])")
_ENDINGS = re.compile(r"(?:_v\d+|_ptsz|_ptds)+\Z")
_TABLE = tuple(
    (re.compile(pattern), meaning)
    for pattern, meaning in (
        (r"GraphLaunch", CudaCall.GRAPH_LAUNCH),
        # cudaLaunch and cuLaunchGrid are those of CUDA 6 and before.
        (r"(?:Ext)?(?:Module)?Launch(?:(?:Kernel|Cooperative|MultiKernel)\w*|Grid(?:Async)?|ByPtr)?", CudaCall.LAUNCH),
        # "Memory copies between device memories" do not wait: CUDA Runtime API, "API synchronization behavior".
        (r"Memcpy(?:\w*Async|\w*Peer|[AD]to[AD])", CudaCall.MEMCPY_ASYNC),
        (r"Memcpy\w*", CudaCall.MEMCPY),
        (r"Memset\w*Async", CudaCall.MEMSET_ASYNC),
        (r"Memset\w*", CudaCall.MEMSET),
        (r"StreamSynchronize", CudaCall.STREAM_SYNCHRONIZE),
        (r"(?:Device|Thread|Ctx)Synchronize", CudaCall.DEVICE_SYNCHRONIZE),
        (r"EventSynchronize", CudaCall.EVENT_SYNCHRONIZE),
        (r"EventRecord(?:WithFlags)?", CudaCall.EVENT_RECORD),
        (r"StreamWaitEvent", CudaCall.STREAM_WAIT_EVENT),
        (r"Malloc(?:Managed|Pitch|Array|3D|3DArray|MipmappedArray)?|ExtMallocWithFlags", CudaCall.MALLOC),
        (r"MemAlloc(?:Managed|Pitch)?", CudaCall.MALLOC),
        (r"(?:Malloc(?:FromPool)?|MemAlloc(?:FromPool)?)Async", CudaCall.MALLOC_ASYNC),
        (r"HostAlloc|MallocHost|HostMalloc|MemHostAlloc|MemAllocHost", CudaCall.HOST_MALLOC),
        (r"Free(?:Array|MipmappedArray)?|MemFree", CudaCall.FREE),
        (r"(?:Free|MemFree)Async", CudaCall.FREE_ASYNC),
        (r"FreeHost|HostFree|MemFreeHost", CudaCall.HOST_FREE),
        (r"MemCreate", CudaCall.MEMORY_CREATE),
        (r"MemMap(?:ArrayAsync)?", CudaCall.MEMORY_MAP),
        (r"MemSetAccess", CudaCall.MEMORY_SET_ACCESS),
        (r"MemUnmap", CudaCall.MEMORY_UNMAP),
        (r"MemRelease", CudaCall.MEMORY_RELEASE),
        (r"(?:Module|Library)Load\w*|ModuleGetFunction|LibraryGetKernel", CudaCall.CODE_LOAD),
        (r"ProfilerStart", CudaCall.PROFILER_START),
        (r"ProfilerStop", CudaCall.PROFILER_STOP),
    )
)


@lru_cache(maxsize=4096)
def cuda_call(name: str) -> CudaCall:
    """What the call of this name does.

    Args:
        name: as a trace has it, such as "cudaMemcpyAsync_v3020" or "hipModuleLaunchKernel".
    """
    prefix = _PREFIX.match(name)
    if prefix is None:
        return CudaCall.OTHER
    plain = _ENDINGS.sub("", name[prefix.end() :])
    return next((meaning for pattern, meaning in _TABLE if pattern.fullmatch(plain)), CudaCall.OTHER)


def cuda_call_column(strings: list[str], names: Iterable[int]) -> Ints:
    """Per entry of ``strings`` its `CudaCall`, for the entries that ``names`` lists; 0 for all others."""
    result = np.zeros(len(strings), dtype=np.int64)
    for index in set(names):
        result[index] = cuda_call(strings[index])
    return result
