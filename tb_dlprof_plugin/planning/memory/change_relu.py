"""The step with ReLUs that write to their input, and with a ReLU behind the max pooling that it stands before.

In place: the result of a ReLU, which its backward pass needs, lies where its input did, so one of both is there less
while it runs; what is kept is the same. Not where the op that made the input needs it for its own backward pass.

Swapped: max pooling keeps its input, which is then the one of the ReLU, and the ReLU its result, which is as small as
that of the pooling; in the backward pass the gradient of the ReLU is as small. What is kept until the backward pass is
the same (the pooling's input and indices, a small result); what is there for a moment less is one large tensor in each
pass. From `derivatives.yaml` of torch: `threshold_backward(grad, result, 0)`, and for max pooling `self, ..., indices`.
"""

from __future__ import annotations

from dataclasses import replace

from tb_dlprof_plugin.planning.memory.allocator import rounded
from tb_dlprof_plugin.planning.memory.event_places import Places, Rewrite, places
from tb_dlprof_plugin.planning.memory.step_program import StepProgram
from tb_dlprof_plugin.profile_view import ProfileView

_RELU, _RELU_BACKWARD = ("aten::relu", "aten::clamp_min"), "aten::threshold_backward"
_POOL, _POOL_BACKWARD = "aten::max_pool2d_with_indices", "aten::max_pool2d_with_indices_backward"
_KEEP_THEIR_RESULT = ("aten::sigmoid", "aten::tanh", "aten::exp", "aten::sqrt", "aten::_softmax", "aten::_log_softmax")
"""Ops whose backward pass needs the result, so that nothing may be written to it."""


def with_inplace_relu(view: ProfileView, program: StepProgram) -> StepProgram:
    """The program with every ReLU in place that can be; unchanged where all are."""
    where, rewrite = places(program), Rewrite(program)
    ends = list(where.freed)
    for slot in sorted(_of(view, program, where, _RELU), key=where.made.__getitem__):
        source = _source(program, where, slot)
        if source is None or _name(view, program, source) in (*_KEEP_THEIR_RESULT, *_RELU):
            continue
        later = slot if where.freed[slot] > ends[source] else source
        rewrite.drop(where.made[slot])
        rewrite.drop(where.freed[slot])
        if later == slot:
            if ends[source] == where.freed[source]:
                rewrite.drop(where.freed[source])
            rewrite.put(where.freed[slot], [-source - 1])
            ends[source] = where.freed[slot]
    return rewrite.changed()


def with_relu_behind_pool(view: ProfileView, program: StepProgram) -> StepProgram:
    """The program with every ReLU behind the max pooling that reads it; unchanged where there is none."""
    where, rewrite = places(program), Rewrite(program)
    for pooled in _of(view, program, where, (_POOL,)):
        reads = {rounded(4 * count) for count in program.slots[pooled].reads}
        relu = [
            slot
            for slot in _of(view, program, where, _RELU)
            if where.made[slot] < where.made[pooled] < where.freed[slot] and rounded(program.slots[slot].bytes) in reads
        ]
        # The pooling makes its result before the indices.
        if not relu or program.slots[pooled].bytes >= program.slots[relu[-1]].bytes or not _is_first(program, pooled):
            continue
        source = _source(program, where, relu[-1])
        if source is not None:
            _swap(view, program, where, rewrite, relu[-1], pooled, source)
    return rewrite.changed()


def _swap(
    view: ProfileView, program: StepProgram, where: Places, rewrite: Rewrite, relu: int, pooled: int, source: int
) -> None:
    rewrite.drop(where.made[relu])
    rewrite.drop(where.freed[source])
    rewrite.replace(where.freed[relu], -source - 1)
    small = rewrite.copy(pooled)
    indices = program.events[where.made[pooled] + 1]
    behind = where.made[pooled] + (2 if indices > 0 else 1)
    rewrite.put(behind, [small + 1, -pooled - 1])
    rewrite.replace(where.freed[pooled], -small - 1)
    size = rounded(program.slots[relu].bytes)
    backward = [
        (slot, _name(view, program, slot))
        for slot, one in enumerate(program.slots)
        if where.made[slot] >= program.backward_at and rounded(one.bytes) == size
    ]
    of_pool = next((slot for slot, name in backward if name == _POOL_BACKWARD), None)
    of_relu = next((slot for slot, name in backward if name == _RELU_BACKWARD), None)
    if of_pool is None or of_relu is None or where.made[of_relu] < where.made[of_pool]:
        return
    # First the small gradient of the ReLU, then that of the pooling, which the op before both reads.
    rewrite.slots[of_relu] = replace(rewrite.slots[of_relu], bytes=program.slots[pooled].bytes)
    rewrite.drop(where.made[of_relu])
    rewrite.put(where.made[of_pool], [of_relu + 1])
    first, last = where.freed[of_pool], where.freed[of_relu]
    rewrite.replace(first, -of_relu - 1)
    rewrite.replace(last, -of_pool - 1)


def _is_first(program: StepProgram, pooled: int) -> bool:
    """Whether a slot is the first that its call made."""
    return not any(one.call == program.slots[pooled].call for one in program.slots[:pooled])


def _of(view: ProfileView, program: StepProgram, where: Places, names: tuple[str, ...]) -> list[int]:
    """Slots of the forward pass that ops of these names made and that are freed."""
    return [
        slot
        for slot in range(len(program.slots))
        if where.made[slot] < program.backward_at
        and where.freed[slot] > where.made[slot]
        and _name(view, program, slot) in names
    ]


def _source(program: StepProgram, where: Places, slot: int) -> int | None:
    """The slot that an elementwise op reads: the last one of its size that is there."""
    size = rounded(program.slots[slot].bytes)
    found = [
        other
        for other, one in enumerate(program.slots)
        if where.made[other] < where.made[slot] < where.freed[other] and rounded(one.bytes) == size
    ]
    return max(found, key=lambda other: where.made[other], default=None)


def _name(view: ProfileView, program: StepProgram, slot: int) -> str:
    call = program.slots[slot].call
    profile = view.profile
    return profile.strings[int(profile.ops.name[profile.calls.op[call]])] if call >= 0 else ""
