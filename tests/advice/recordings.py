"""Small recordings for the cases of rules, put into an empty `TraceBuilder`; times in microseconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tb_dlprof_plugin.model.run_facts import RunFacts

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
GEMM = "ampere_sgemm_128x64_nn"
STEPS = 4
HTOD, DTOH = "Memcpy HtoD ({} -> Device)", "Memcpy DtoH (Device -> {})"


def nothing(trace: Any) -> None:
    """Adds nothing."""


def launches(*phases: tuple[int, float, float, dict[str, Any]], steps: int = STEPS) -> Callable[[Any], None]:
    """Steps with phases of (number, us of the CPU per launch, us of the GPU, options).

    Options: ``name`` of the ops, ``pause`` before the phase in us, ``wait`` for the GPU after it.
    """

    def events(trace: Any) -> None:
        trace.gpu()
        clock, free = 0.0, 0.0
        for step in range(steps):
            begin = clock
            for number, cpu, gpu, options in phases:
                clock += options.get("pause", 0)
                for _ in range(number):
                    free = max(free, clock + cpu / 2 + 5)
                    trace.op(options.get("name", "aten::add"), clock + 1, cpu - 2)
                    trace.launch(ADD, clock + cpu / 2, free, gpu)
                    free, clock = free + gpu, clock + cpu
                if options.get("wait"):
                    trace.runtime(clock, max(free - clock, 0) + 1, name="cudaStreamSynchronize")
                    clock = max(free, clock) + 1
            trace.step(step, begin, clock - begin)

    return events


MATRIX, VECTOR = [512, 512], [512]
ADAMW = (
    ("aten::_foreach_mul_", 1), ("aten::_foreach_lerp_", 2), ("aten::_foreach_mul_", 1), ("aten::_foreach_addcmul_", 3),
    ("aten::_foreach_sqrt", 1), ("aten::_foreach_div_", 1), ("aten::_foreach_add_", 1), ("aten::_foreach_addcdiv_", 3),
)  # fmt: skip
"""Ops of AdamW's step over lists, each with the number of lists that it takes."""
FUSED = [("aten::_fused_adamw_", [[MATRIX]], ["TensorList"], 900)]


def over_lists(ops: Any = ADAMW, microseconds: float = 100) -> list[tuple[str, Any, Any, float]]:
    """Ops over lists: 100 us for each pass over the parameters."""
    return [
        (name, [[MATRIX, VECTOR]] * lists + [[]], ["TensorList"] * lists + ["Scalar"], microseconds * (lists + 1))
        for name, lists in ops
    ]


def one_by_one(parameters: int, microseconds: float) -> list[tuple[str, Any, Any, float]]:
    """Ops on one tensor each."""
    return [
        (name, [VECTOR] * inputs, ["float"] * inputs, microseconds)
        for _ in range(parameters)
        for name, inputs in (("aten::lerp_", 2), ("aten::addcmul_", 3), ("aten::addcdiv_", 3))
    ]


def optimizing(
    ops: Sequence[tuple[str, Any, Any, float]], name: str = "AdamW", cpu: float = 20
) -> Callable[[Any], None]:
    """Four steps of 5 ms of kernels and an optimizer's step: ops as (name, inputs, types, us)."""

    def events(trace: Any) -> None:
        trace.gpu()
        clock, free = 0.0, 0.0
        for step in range(STEPS):
            begin = clock
            for _ in range(5):
                free = max(free, clock + 8)
                trace.op("aten::mm", clock, 20)
                trace.launch(ADD, clock + 5, free, 1000)
                free, clock = free + 1000, clock + 20
            start = clock
            for op, dims, types, microseconds in ops:
                free = max(free, clock + 8)
                trace.op(op, clock + 1, cpu - 2, dims=dims, types=types)
                trace.launch(ADD, clock + 3, free, microseconds)
                free, clock = free + microseconds, clock + cpu
            trace.annotation(f"Optimizer.step#{name}.step", start, clock - start)
            trace.runtime(clock, max(free - clock, 0) + 1, name="cudaStreamSynchronize")
            clock = max(free, clock) + 1
            trace.step(step, begin, clock - begin)

    return events


def zeroing(passes: int = 1, zeroed: bool = True, added: bool = True) -> Callable[[Any], None]:
    """Four steps: ``zero_grad`` with a kernel of 300 us, ``passes`` times 2 ms of kernels and the accumulation of two
    gradients at 150 us each; ``added`` leaves the latter's kernels out."""

    def events(trace: Any) -> None:
        trace.gpu()
        free = 0.0
        for step in range(STEPS):
            at = free + 10
            clock, free = at + 40.0, at + 20.0
            trace.annotation("Optimizer.zero_grad#SGD.zero_grad", at, 30)
            if zeroed:
                trace.op("aten::_foreach_zero_", at + 5, 20, dims=[[MATRIX, VECTOR]], types=["TensorList"])
                trace.launch(ADD, at + 8, free, 300)
                free += 300
            for _ in range(passes):
                trace.op("aten::mm", clock, 20)
                trace.launch(ADD, clock + 5, free, 2000)
                free, clock = free + 2000, clock + 30
                for shape in (MATRIX, VECTOR):
                    trace.backward("torch::autograd::AccumulateGrad", clock, 20, step)
                    trace.op("torch::autograd::AccumulateGrad", clock + 1, 18, tid=2, dims=[shape], types=["float"])
                    if added:
                        trace.op("aten::add_", clock + 2, 16, tid=2, dims=[shape, shape, []])
                        trace.launch(ADD, clock + 4, free, 150, tid=2)
                        free += 150
                    clock += 30
            trace.runtime(clock, free - clock + 1, name="cudaStreamSynchronize")
            trace.step(step, at, free + 5 - at)

    return events


def filled(*kernels: tuple[str, int, float, dict[str, Any]]) -> Callable[[Any], None]:
    """Four steps: kernels as (op, blocks, us, options) one after another on 132 multiprocessors.

    Without blocks an op launches nothing. Options: ``stream``, ``beside`` for a kernel that begins with the one before,
    ``dims`` and ``types``.
    """

    def events(trace: Any) -> None:
        trace.gpu()
        clock = 0.0
        for step in range(STEPS):
            begin = clock
            at, free = clock, clock + 20
            start = free
            for op, blocks, microseconds, options in kernels:
                trace.op(op, at + 1, 8, dims=options.get("dims"), types=options.get("types"))
                if not blocks:
                    at += 10
                    continue
                start = start if options.get("beside") else free
                trace.launch(
                    ADD, at + 2, start, microseconds, stream=options.get("stream", 7), grid=[blocks, 1, 1],
                    block=[1024, 1, 1], registers_per_thread=40, shared_memory=1024,
                )  # fmt: skip
                free, at = max(free, start + microseconds), at + 10
            clock = max(free, at) + 10
            trace.runtime(at + 1, clock - at - 2, name="cudaStreamSynchronize")
            trace.step(step, begin, clock - begin)

    return events


def loop(each: Callable[[Any, float], None], waits: bool = True) -> Callable[[Any], None]:
    """Three steps of 1000 us: a kernel of 300, then what ``each`` adds, then CPU work and a kernel of 400 at 600.

    A wait for the first kernel costs the GPU 290 us of the step; without it the second kernel would be launched when
    the first one still runs.
    """

    def events(trace: Any) -> None:
        trace.rest["baseTimeNanoseconds"] = 1_700_000_000_000_000_000
        trace.gpu()
        for number in range(3):
            at = 1000.0 * number
            trace.step(number, at, 1000)
            trace.op("aten::mul", at + 5, 20, dims=[[8, 8]], types=["float"])
            trace.launch(ADD, at + 10, at + 20, 300)
            each(trace, at)
            later = 580.0 if waits else 280.0
            for op in range(5):
                trace.op("aten::add", at + 350 + 45 * op if waits else at + 60 + 40 * op, 38)
            trace.op("aten::mul", at + later, 20, dims=[[8, 8]], types=["float"])
            trace.launch(ADD, at + later + 5, at + max(later + 20, 330), 400)

    return events


def copy(
    trace: Any, at: float, name: str, *, size: int, gpu: float, dur: float, until: float | None, dims: Any = None
) -> None:
    """``aten::to`` with the copy of ``dur`` us that its call starts; the CPU waits for it where ``until`` is given."""
    end = until if until is not None else at + 14
    trace.op("aten::to", at, end - at + 6, dims=dims or [[8, 3]], types=["float"])
    trace.op("aten::_to_copy", at + 1, end - at + 4, dims=dims or [[8, 3]], types=["float"])
    trace.op("aten::copy_", at + 2, end - at + 2, dims=dims or [[8, 3]], types=["float"])
    trace.launch(name, at + 4, gpu, dur, bytes=size)
    if until is not None:
        trace.runtime(at + 8, until - at - 8, name="cudaStreamSynchronize")


def item(trace: Any, at: float) -> None:
    """A value of the GPU is read, for which the CPU waits."""
    trace.op("aten::item", at + 50, 276)
    trace.op("aten::_local_scalar_dense", at + 51, 274)
    trace.launch(DTOH.format("Pinned"), at + 53, at + 321, 2, bytes=4)
    trace.runtime(at + 56, 268, name="cudaStreamSynchronize")


def loading(iterator: str, microseconds: float) -> Callable[[Any], None]:
    """Three steps of 1000 us that wait for a batch, then run a kernel of 150."""

    def events(trace: Any) -> None:
        trace.gpu()
        for number in range(3):
            at = 1000.0 * number
            trace.step(number, at, 1000)
            trace.annotation(f"enumerate(DataLoader)#_{iterator}DataLoaderIter.__next__", at, microseconds)
            trace.op("aten::mul", at + microseconds + 10, 20)
            trace.launch(ADD, at + microseconds + 15, at + microseconds + 20, 150)

    return events


def loading_behind_work(trace: Any) -> None:
    """A step whose GPU works while a batch is loaded."""
    trace.gpu()
    trace.step(0, 0, 1000)
    trace.op("aten::mul", 0, 10)
    trace.launch(ADD, 2, 10, 980)
    trace.loader(100, 400)


def epochs(trace: Any) -> None:
    """Two steps, each an epoch: 80 us in which workers stop, 300 in which they start, 100 for the first batch."""
    trace.gpu()
    name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    for number in range(2):
        at = 1000.0 * number
        trace.step(number, at, 1000)
        trace.op("aten::empty", at + 10, 2)
        trace.op("aten::random_", at + 13, 2)
        trace.op("aten::item", at + 16, 2)
        trace.annotation(name, at + 313, 100)
        trace.op("aten::mul", at + 420, 20)
        trace.launch(ADD, at + 425, at + 430, 200)
        trace.annotation(name, at + 880, 80)


def steps(*lengths: float, first: int = 10, extra: dict[int, str] | None = None) -> Callable[[Any], None]:
    """A CPU recording of steps of these lengths (us); the ops of a step take its first half."""

    def events(trace: Any) -> None:
        at = 0.0
        for index, length in enumerate(lengths):
            trace.step(first + index, at, length)
            trace.op("aten::linear", at + 1, length / 2)
            if name := (extra or {}).get(index):
                trace.op(name, at + 1 + length / 2, length / 4)
            at += length

    return events


def unknown_gpu(trace: Any) -> None:
    """Nothing is known of the GPU but its compute capability, so that there is no forecast."""
    trace.rest["deviceProperties"][0]["name"] = "a GPU of unknown rates"


def fp32_while_launching(trace: Any) -> None:
    """FP32 matrix kernels take 10 % of the step, the CPU all of it: nothing on the GPU can shorten it."""
    trace.gpu()
    trace.step(0, 0, 1000)
    trace.op("aten::mm", 0, 990, dims=[[8, 8], [8, 8]], types=["float", "float"])
    trace.launch("ampere_sgemm_128x64_nn", 500, 510, 100)


ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def ranks(*options: dict[str, Any], **shared: Any) -> Callable[[Any], list[Any]]:
    """Makes the views of ranks, the first of which is looked at. `rank` has the options of each."""
    return lambda trace: [rank(trace, number, **shared, **given) for number, given in enumerate(options)]


def rank(
    empty: Any,
    number: int,
    *,
    work: float,
    own: float = 100,
    exchanges: int = 1,
    hidden: float = 0,
    ddp: bool = False,
    **facts: Any,
) -> Any:
    """The view of one rank: three steps of 1000 us with ``work`` us of kernels, then ``exchanges`` collectives.

    Collectives follow each other, take ``own`` us each and end with the step; all but ``hidden`` us of the first lie
    behind the kernels. ``ddp``: each after a forward pass of DistributedDataParallel.
    """
    trace = type(empty)(empty.folder)
    trace.gpu(id=number)
    for index in range(3):
        at = 1000 * index
        trace.step(4 + index, at, 1000)
        trace.op("aten::linear", at + 1, 20)
        begin = at + 1000 - exchanges * own
        trace.launch(GEMM, at + 5, begin + hidden - work, work, device=number)
        trace.optimizer(at + 300, 20)
        trace.runtime(at + 330, 665, name="cudaStreamSynchronize")
        for exchange in range(exchanges):
            call = at + 100 + 10 * exchange
            if ddp:
                trace.event("DistributedDataParallel.forward", "user_annotation", call - 1.5, 1)
            trace.op("c10d::allreduce_", call, 8)
            trace.event("nccl:all_reduce", "user_annotation", call + 1, 6, Input_Dims=[[1000]], Input_type=["float"])
            trace.launch(ALL_REDUCE, call + 2, begin + exchange * own, own, device=number, stream=17)
    return trace.view(rank=number, session="s", facts=RunFacts(rank=number, world_size=2, **facts))
