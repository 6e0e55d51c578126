"""What a rule needs a recording to have, and whether one has it."""

from __future__ import annotations

from enum import Enum

from tb_dlprof_plugin.model.profile import CallKind, Profile, Role
from tb_dlprof_plugin.model.remedies import remedies_for, sentence


class Need(Enum):
    """Something that not every format records. The value ends the sentence "this recording has no ..."."""

    CUDA_CALLS = "calls of CUDA: when work was launched, and for what the CPU waited, does not show"
    SHAPES = "shapes of ops' inputs"
    INPUT_PIPELINE = "input pipeline of its own: what loads the batches does not show"
    MEMORY = "events of the framework's allocator"
    PROCESS = "facts of the training process, which the hook reads in it"


def unmet(needs: tuple[Need, ...], profile: Profile) -> str:
    """The reason why a rule does not apply to a profile; "" where the profile has all that the rule needs."""
    missing = next((need for need in needs if not _has(need, profile)), None)
    if missing is None:
        return ""
    remedies = remedies_for(profile.source)
    remedy = {Need.SHAPES: remedies.shapes, Need.MEMORY: remedies.memory}.get(missing, "")
    return sentence(f"Not applicable: this recording has no {missing.value}", remedy)


def _has(need: Need, profile: Profile) -> bool:
    if need is Need.CUDA_CALLS:
        # Without a GPU there is nothing to launch, which rules say themselves.
        return not profile.has_gpu or bool((profile.ops.kind == CallKind.RUNTIME).any())
    if need is Need.SHAPES:
        return bool((profile.ops.shapes > 0).any())
    if need is Need.MEMORY:
        return len(profile.memory) > 0
    if need is Need.PROCESS:
        # Where PyTorch's profiler recorded without the hook, the rules say which fact they miss.
        return profile.source.format == "kineto"
    return bool((profile.ops.role == Role.DATALOADER).any())
