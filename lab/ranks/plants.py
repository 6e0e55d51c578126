"""What makes one rank late: contexts around the training's steps on that rank."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing as mp
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch

from .trainings import Training

PROCESSORS_LEFT = 2 / 3
"""Of the GPU's multiprocessors, in `fewer_processors`."""
_NOTICEABLE = 1.15
_BEGIN_S = 10.0
"""The other process of `SharedGpu` loads libraries first."""


def none(training: Training, natural_s: float, said: dict[str, Any]) -> AbstractContextManager[None]:
    """No cause."""
    return contextlib.nullcontext()


@contextmanager
def busy_host(training: Training, delay_s: float, said: dict[str, Any]) -> Iterator[None]:
    """Python works before each block's forward: ``delay_s`` in all."""
    each_s = delay_s / len(training.blocks)

    def before(*_: object) -> None:
        _busy(each_s)

    handles = [block.register_forward_pre_hook(before) for block in training.blocks]
    said["what"] = f"{1e3 * each_s:.2f} ms of Python before each of {len(handles)} blocks"
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def sleep(training: Training, delay_s: float, said: dict[str, Any]) -> Iterator[None]:
    """The host sleeps before the backward pass; a pipeline's before its schedule."""
    training.before_backward = lambda: time.sleep(delay_s)
    said["what"] = f"{1e3 * delay_s:.2f} ms of sleep before the backward pass"
    yield


@contextmanager
def slow_input(training: Training, delay_s: float, said: dict[str, Any]) -> Iterator[None]:
    """The data set takes ``delay_s`` longer for each batch."""
    training.data.delay_s = delay_s
    said["what"] = f"{1e3 * delay_s:.2f} ms more for each batch in the data set"
    yield


@contextmanager
def garbage(training: Training, delay_s: float, said: dict[str, Any]) -> Iterator[None]:
    """Many live objects, and a full garbage collection in every second step, which takes twice ``delay_s``."""
    # Of the process's own objects there are more than a collection should visit.
    gc.collect()
    gc.freeze()
    kept: list[list[Any]] = [[] for _ in range(200_000)]
    began = time.perf_counter()
    gc.collect()
    took = time.perf_counter() - began
    kept += [[] for _ in range(min(20_000_000, int(200_000 * max(0.0, 2 * delay_s / took - 1))))]
    said["what"] = f"gc.collect() with {len(kept)} lists in every second step"
    steps = 0

    def collect() -> None:
        nonlocal steps
        steps += 1
        if steps % 2:
            gc.collect()

    training.before_update = collect
    try:
        yield
    finally:
        kept.clear()
        gc.unfreeze()


@contextmanager
def more_work(training: Training, delay_s: float, said: dict[str, Any]) -> Iterator[None]:
    """Matrix products that the other ranks do not have, in every step."""
    side = 4096 if training.device.type == "cuda" else 128
    factor = torch.randn(side, side, device=training.device)
    result = factor @ factor
    _wait(training.device)
    began = time.perf_counter()
    for _ in range(5):
        torch.mm(factor, factor, out=result)
    _wait(training.device)
    times = max(1, round(delay_s / ((time.perf_counter() - began) / 5)))

    def work() -> None:
        for _ in range(times):
            torch.mm(factor, factor, out=result)

    said["what"] = f"{times} FP32 products of {side}x{side} more in every step"
    training.before_update = work
    yield


@contextmanager
def fewer_processors(training: Training, delay_s: float, said: dict[str, Any]) -> Iterator[None]:
    """The rank's own kernels run on two thirds of the GPU's multiprocessors (a CUDA green context)."""
    if training.device.type != "cuda":
        raise RuntimeError("needs a GPU")
    count = torch.cuda.get_device_properties(training.device).multi_processor_count
    left = int(count * PROCESSORS_LEFT) // 8 * 8
    stream = _stream_of(left, training.device)
    whole_s = _product_s(training.device)
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        ratio = _product_s(training.device) / whole_s
        said["what"] = f"kernels on {left} of {count} multiprocessors: a matrix product takes {ratio:.2f} times as long"
        said["slower"] = round(ratio, 3)
        if ratio < _NOTICEABLE:
            raise RuntimeError(f"the green context does not slow the GPU down ({ratio:.2f})")
        yield
        torch.cuda.synchronize()


class SharedGpu:
    """Another process that computes on the GPU of one rank while `on` is set; to be started before CUDA is in use.

    The GPU gives both processes turns, so that kernels of the rank take longer at equal shapes, and its recording shows
    no reason.
    """

    def __init__(self, rank: int, device: str) -> None:
        context = mp.get_context("fork")
        self.on, self._busy = context.Event(), context.Event()
        self._process = context.Process(target=_compute, args=(rank, device, self.on, self._busy), daemon=True)

    def start(self) -> None:
        """Starts the process, which waits."""
        self._process.start()

    def stop(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.join()

    @contextmanager
    def __call__(self, training: Training, delay_s: float, said: dict[str, Any]) -> Iterator[None]:
        alone_s = _product_s(training.device)
        self.on.set()
        try:
            self._busy.wait(_BEGIN_S)
            ratio = _product_s(training.device) / alone_s
            said["what"] = f"another process computes on the GPU: a matrix product takes {ratio:.2f} times as long"
            said["slower"] = round(ratio, 3)
            yield
        finally:
            self.on.clear()


def _compute(rank: int, device: str, on: Any, busy: Any) -> None:
    on.wait()
    if device == "cuda":
        torch.cuda.set_device(rank)
    side = 4096 if device == "cuda" else 256
    factor = torch.randn(side, side, device=device, dtype=torch.bfloat16 if device == "cuda" else torch.float32)
    where = torch.device(device)
    while True:
        on.wait()
        began = time.perf_counter()
        for _ in range(8):
            torch.mm(factor, factor)
        _wait(where)
        busy.set()
        # A third of the GPU's time or so: turns are as long as the work that waits for them.
        time.sleep(2 * (time.perf_counter() - began))


def _stream_of(processors: int, device: torch.device) -> Any:
    """A stream whose kernels run on so many multiprocessors only."""
    try:
        from torch.cuda import green_contexts

        green: Any = green_contexts.GreenContext.create(num_sms=processors, device_id=device.index)
        _KEPT.append(green)
        return green.Stream()
    except Exception:
        return _stream_by_driver(processors, device)


_KEPT: list[Any] = []
"""Green contexts: a stream does not hold its own."""


def _stream_by_driver(processors: int, device: torch.device) -> Any:
    """The same without torch's help, which old versions lack."""
    from cuda.bindings import driver  # type: ignore[import-not-found]

    def done(result: Any) -> Any:
        if int(result[0]):
            raise RuntimeError(f"the driver refuses: {result[0]}")
        return result[1] if len(result) == 2 else result[1:]

    gpu = done(driver.cuDeviceGet(device.index))
    all_of_them = done(driver.cuDeviceGetDevResource(gpu, driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM))
    parts = done(driver.cuDevSmResourceSplitByCount(1, all_of_them, 0, processors))[0]
    description = done(driver.cuDevResourceGenerateDesc([parts[0]], 1))
    default = driver.CUgreenCtxCreate_flags.CU_GREEN_CTX_DEFAULT_STREAM
    green = done(driver.cuGreenCtxCreate(description, gpu, default))
    stream = done(driver.cuGreenCtxStreamCreate(green, driver.CUstream_flags.CU_STREAM_NON_BLOCKING, 0))
    _KEPT.append((green, stream))
    return torch.cuda.ExternalStream(int(stream), device=device)


def _product_s(device: torch.device) -> float:
    """Seconds of a matrix product on the current stream: the mean of thirty."""
    side = 4096 if device.type == "cuda" else 256
    factor = torch.randn(side, side, device=device, dtype=torch.bfloat16 if device.type == "cuda" else torch.float32)
    for _ in range(5):
        torch.mm(factor, factor)
    _wait(device)
    began = time.perf_counter()
    for _ in range(30):
        torch.mm(factor, factor)
    _wait(device)
    return (time.perf_counter() - began) / 30


def _busy(seconds: float) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


PLANTS: dict[str, Any] = {
    "": none,
    "sleep": sleep,
    "busy_host": busy_host,
    "slow_input": slow_input,
    "garbage": garbage,
    "more_work": more_work,
    "fewer_processors": fewer_processors,
}
"""`SharedGpu` is made by the parent of the ranks."""
