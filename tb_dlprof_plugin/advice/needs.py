"""What a rule needs a recording to have, and whether one has it."""

from __future__ import annotations

from enum import Enum

from tb_dlprof_plugin.model.profile import CallKind, Profile, Role


class Need(Enum):
    """Something that not every format records. The value ends the sentence "this recording has no ..."."""

    CUDA_CALLS = "calls of CUDA: when work was launched, and for what the CPU waited, does not show"
    SHAPES = "shapes of ops' inputs"
    INPUT_PIPELINE = "input pipeline of its own: what loads the batches does not show"


def unmet(needs: tuple[Need, ...], profile: Profile) -> str:
    """The reason why a rule does not apply to a profile; "" where the profile has all that the rule needs."""
    missing = next((need for need in needs if not _has(need, profile)), None)
    return "" if missing is None else f"Not applicable: this recording has no {missing.value}."


def _has(need: Need, profile: Profile) -> bool:
    if need is Need.CUDA_CALLS:
        # Without a GPU there is nothing to launch, which rules say themselves.
        return not profile.has_gpu or bool((profile.ops.kind == CallKind.RUNTIME).any())
    if need is Need.SHAPES:
        return bool((profile.ops.shapes > 0).any())
    return bool((profile.ops.role == Role.DATALOADER).any())
