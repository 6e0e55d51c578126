"""The step of a deeper model, and of one whose ReLUs write to their input or stand behind their max pooling.

Deeper: copies of a module in front of it, each with its parameters, states and gradients. The copies run before the
module in the forward pass and after it in the backward pass. What the module frees of its neighbours', such as its
input and the gradient of its output, each copy frees of the copy or module in that place.

ReLU in place: the result of a ReLU, which its backward pass needs, lies where its input did, so one of both is there
less while it runs; what is kept is the same. Not where the op that made the input needs it for its own backward pass.

ReLU behind its pooling: max pooling keeps its input, which is then the one of the ReLU, and the ReLU its result, which
is as small as that of the pooling; in the backward pass the gradient of the ReLU is as small. What is kept until the
backward pass is the same (the pooling's input and indices, a small result); what is there for a moment less is one
large tensor in each pass. From `derivatives.yaml` of torch: `threshold_backward(grad, result, 0)`, and for max pooling
`self, ..., indices`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from tb_dlprof_plugin.planning.memory.allocator import rounded
from tb_dlprof_plugin.planning.memory.step_program import EventEdits, Places, StepProgram, inside, module_events, places
from tb_dlprof_plugin.profile_view import ProfileView


def with_layers(program: StepProgram, module: str, count: int) -> StepProgram:
    """The program with ``count`` more modules like one that is there.

    Raises:
        UnknownModule: the module made nothing in the forward pass.
    """
    if count <= 0:
        return program
    where, edits = places(program), EventEdits(program)
    own = module_events(program, where, module)
    copies = [{slot: edits.copy(slot) for slot in sorted(own.slots)} for _ in range(count)]
    # The module itself comes behind its copies.
    order: list[Mapping[int, int]] = [*copies, {slot: slot for slot in own.slots}]
    forward = range(own.forward_first, own.forward_last + 1)
    backward = range(own.backward_first, own.backward_last + 1)
    made, freed = where.made, where.freed

    def left(within: range, freed_in: range) -> list[int]:
        return sorted(
            (slot for slot in own.slots if made[slot] in within and freed[slot] in freed_in), key=freed.__getitem__
        )

    def taken(within: range, made_in: range) -> list[int]:
        frees = [-program.events[index] - 1 for index in within if program.events[index] < 0]
        return [slot for slot in frees if slot not in own.slots and made[slot] in made_in]

    before = range(own.forward_first)
    left_forward = left(forward, range(own.forward_last + 1, program.backward_at))
    left_kept = left(forward, range(program.backward_at, own.backward_first))
    left_behind = left(backward, range(own.backward_last + 1, len(program.events)))
    inputs = _paired(program, taken(forward, before), left_forward)
    # The module behind may not keep what the module itself keeps of the one before it, or the other way round.
    kept = _paired(program, taken(backward, before), [*left_kept, *_without(left_forward, inputs)])
    inputs |= _paired(program, taken(forward, before), _without(left_kept, kept), inputs)
    handed = {**inputs, **kept}
    gradients = _paired(program, taken(backward, range(program.backward_at, own.backward_first)), left_behind)

    for number, new in enumerate(copies):
        theirs = {slot: order[number - 1][mine] if number else slot for slot, mine in inputs.items()}
        edits.put(own.forward_first, _within(program, forward, {**theirs, **new}))
        if number:
            edits.put(own.forward_first, _frees(left_forward, handed, order[number - 1]))
    edits.put(own.forward_last + 1, _frees(left_forward, handed, copies[-1]))
    end = own.backward_last + 1
    edits.put(end, _frees(left_kept, handed, copies[-1]))
    for number in reversed(range(count)):
        new, behind = copies[number], order[number + 1]
        theirs = {slot: order[number - 1][mine] if number else slot for slot, mine in kept.items()}
        theirs |= {slot: behind[mine] for slot, mine in gradients.items()}
        edits.put(end, _within(program, backward, {**theirs, **new}))
        rest = [slot for slot in own.slots if made[slot] in forward and freed[slot] > own.backward_last]
        edits.put(end, [-new[slot] - 1 for slot in rest] + _frees(left_behind, gradients, new))
        if number:
            edits.put(end, _frees(left_kept, handed, order[number - 1]))
    # What the module frees of the one before it is now the last copy's, what that one frees of the module the first's.
    for slot, mine in handed.items():
        edits.replace(freed[slot], -copies[-1][mine] - 1)
    for mine in gradients.values():
        edits.replace(freed[mine], -copies[0][mine] - 1)
    for slot in where.carried & own.slots:
        edits.put(freed[slot], [-new[slot] - 1 for new in copies])
    held = [storage for storage in program.held if inside(storage.module, module)] if module else []
    states = [state for state in program.states if inside(state.module, module)] if module else []
    return edits.changed([*program.held, *held * count], [*program.states, *states * count])


def _paired(
    program: StepProgram, taken: Sequence[int], left: Sequence[int], known: Collection[int] = ()
) -> dict[int, int]:
    """Which of what a module leaves stands in the place of what it takes, but what is ``known``: the next one of the
    same size."""
    partners: dict[int, int] = {}
    for slot in taken:
        if slot in known:
            continue
        size = rounded(program.slots[slot].bytes)
        same = (mine for mine in left if mine not in partners.values() and rounded(program.slots[mine].bytes) == size)
        mine = next(same, None)
        if mine is not None:
            partners[slot] = mine
    return partners


def _without(left: Sequence[int], paired: Mapping[int, int]) -> list[int]:
    taken = set(paired.values())
    return [slot for slot in left if slot not in taken]


def _frees(left: Sequence[int], paired: Mapping[int, int], new: Mapping[int, int]) -> list[int]:
    """Frees of what a copy leaves and no neighbour takes at a place of its own."""
    return [-new[slot] - 1 for slot in _without(left, paired)]


def _within(program: StepProgram, events: range, new: Mapping[int, int]) -> list[int]:
    """The events of a stretch that concern slots with a copy, of the copies."""
    of_copies = []
    for index in events:
        event = program.events[index]
        copied = new.get(abs(event) - 1)
        if copied is not None:
            of_copies.append(copied + 1 if event > 0 else -copied - 1)
    return of_copies


_RELU, _RELU_BACKWARD = ("aten::relu", "aten::clamp_min"), "aten::threshold_backward"
_POOL, _POOL_BACKWARD = "aten::max_pool2d_with_indices", "aten::max_pool2d_with_indices_backward"
_KEEP_THEIR_RESULT = ("aten::sigmoid", "aten::tanh", "aten::exp", "aten::sqrt", "aten::_softmax", "aten::_log_softmax")
"""Ops whose backward pass needs the result, so that nothing may be written to it."""


def with_inplace_relu(view: ProfileView, program: StepProgram) -> StepProgram:
    """The program with every ReLU in place that can be; unchanged where all are."""
    where, edits = places(program), EventEdits(program)
    ends = list(where.freed)
    for slot in sorted(_of(view, program, where, _RELU), key=where.made.__getitem__):
        source = _source(program, where, slot)
        if source is None or _name(view, program, source) in (*_KEEP_THEIR_RESULT, *_RELU):
            continue
        later = slot if where.freed[slot] > ends[source] else source
        edits.drop(where.made[slot])
        edits.drop(where.freed[slot])
        if later == slot:
            if ends[source] == where.freed[source]:
                edits.drop(where.freed[source])
            edits.put(where.freed[slot], [-source - 1])
            ends[source] = where.freed[slot]
    return edits.changed()


def with_relu_behind_pool(view: ProfileView, program: StepProgram) -> StepProgram:
    """The program with every ReLU behind the max pooling that reads it; unchanged where there is none."""
    where, edits = places(program), EventEdits(program)
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
            _swap(view, program, where, edits, relu[-1], pooled, source)
    return edits.changed()


def _swap(
    view: ProfileView, program: StepProgram, where: Places, edits: EventEdits, relu: int, pooled: int, source: int
) -> None:
    edits.drop(where.made[relu])
    edits.drop(where.freed[source])
    edits.replace(where.freed[relu], -source - 1)
    small = edits.copy(pooled)
    indices = program.events[where.made[pooled] + 1]
    behind = where.made[pooled] + (2 if indices > 0 else 1)
    edits.put(behind, [small + 1, -pooled - 1])
    edits.replace(where.freed[pooled], -small - 1)
    size = rounded(program.slots[relu].bytes)
    backward = [
        (slot, _name(view, program, slot))
        for slot, allocation in enumerate(program.slots)
        if where.made[slot] >= program.backward_at and rounded(allocation.bytes) == size
    ]
    of_pool = next((slot for slot, name in backward if name == _POOL_BACKWARD), None)
    of_relu = next((slot for slot, name in backward if name == _RELU_BACKWARD), None)
    if of_pool is None or of_relu is None or where.made[of_relu] < where.made[of_pool]:
        return
    # First the small gradient of the ReLU, then that of the pooling, which the op before both reads.
    edits.slots[of_relu] = replace(edits.slots[of_relu], bytes=program.slots[pooled].bytes)
    edits.drop(where.made[of_relu])
    edits.put(where.made[of_pool], [of_relu + 1])
    first, last = where.freed[of_pool], where.freed[of_relu]
    edits.replace(first, -of_relu - 1)
    edits.replace(last, -of_pool - 1)


def _is_first(program: StepProgram, pooled: int) -> bool:
    """Whether a slot is the first that its call made."""
    return not any(allocation.call == program.slots[pooled].call for allocation in program.slots[:pooled])


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
    there = [
        other
        for other, allocation in enumerate(program.slots)
        if where.made[other] < where.made[slot] < where.freed[other] and rounded(allocation.bytes) == size
    ]
    return max(there, key=lambda other: where.made[other], default=None)


def _name(view: ProfileView, program: StepProgram, slot: int) -> str:
    return view.profile.call_name(program.slots[slot].call)
