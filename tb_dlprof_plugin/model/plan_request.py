"""The request of a plan: a configuration of the training. What is not given is as recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, get_args

from tb_dlprof_plugin.model.request import Option, Request, byte_count, counts_by_name, names, request_of

AUTO = ("auto",)
"""In place of modules to checkpoint: none where the configuration fits, else the cheapest set that does."""
OFFLOADED_OPTIMIZER = "optimizer"
"""The word for the optimizer's states among names of offloaded modules."""
TENSOR_PARALLEL: Literal["tp"] = "tp"
OptimizerName = Literal[
    "sgd", "momentum", "adam", "adamw", "adam_fused", "adamw_fused", "adam_loop", "adamw_loop", "adamw_8bit"
]
Sharding = Literal["ddp", "zero1", "zero2", "zero3", "fsdp2"]
Share = Literal[Sharding, "tp"]
SHARES: tuple[Share, ...] = get_args(Share)
"""How GPUs share the work: the data-parallel ways, and tensor parallelism."""
_AS_RECORDED = "as recorded"


class PlanError(ValueError):
    """The question cannot be answered for this run; the message says why and what to do."""


@dataclass(frozen=True, kw_only=True)
class PlanRequest(Request):
    """Another configuration: what is left out is as recorded."""

    batch_size: Annotated[
        int | None,
        Option("Samples of a forward pass; those of the run by default.", label="Batch", key="batch", of_run=True),
    ] = None
    sequence_length: Annotated[int | None, Option("Tokens of a sample.", label="Tokens", key="length", of_run=True)] = (
        None
    )
    image_size: Annotated[
        int | None,
        Option("The first side of an image; the other grows alike.", label="Image side", key="side", of_run=True),
    ] = None
    precision: Annotated[
        Literal["fp16", "bf16", "fp8"] | None,
        Option(
            "Autocast to FP16 or BF16, of an FP32 run; fp8 for matrix products, the rest BF16.",
            label="Precision",
            key="autocast",
            choices={
                "": _AS_RECORDED,
                "bf16": "BF16 (autocast)",
                "fp16": "FP16 (autocast)",
                "fp8": "FP8 (matrix products)",
            },
        ),
    ] = None
    optimizer: Annotated[
        OptimizerName | None,
        Option(
            "Without a suffix the default implementation on a GPU, which is foreach.",
            label="Optimizer",
            choices={"": _AS_RECORDED},
        ),
    ] = None
    checkpoint: Annotated[
        Sequence[str],
        Option(
            "Modules under activation checkpointing, with commas between; auto chooses the cheapest that fit.",
            read=names,
            metavar="none|auto|MODULES",
            label="Checkpoints",
            choices={"": "none", "auto": "the cheapest that fit"},
            of_run=True,
        ),
    ] = ()
    layers: Annotated[
        Mapping[str, int],
        Option("N more modules like MODULE; can be repeated.", read=counts_by_name, metavar="MODULE=N", repeats=True),
    ] = field(default_factory=dict)
    accumulate: Annotated[int, Option("Forward and backward passes of an optimizer step.")] = 1
    offload: Annotated[
        Sequence[str],
        Option(
            "What goes to the CPU, with commas between: optimizer for its states, modules for their activations.",
            read=names,
            metavar="none|optimizer|MODULES",
            label="On the CPU",
            choices={"": "nothing", OFFLOADED_OPTIMIZER: "optimizer states"},
            of_run=True,
        ),
    ] = ()
    relu: Annotated[
        Literal["inplace", "behind_pool"] | None,
        Option(
            "ReLUs that write to their input, or behind their max pooling.",
            label="ReLU",
            choices={"": _AS_RECORDED, "inplace": "in place", "behind_pool": "behind max pooling"},
        ),
    ] = None
    shard: Annotated[
        Share | None,
        Option(
            "How GPUs share the work, tp by tensor parallelism; each runs the batch size.",
            label="Shared by",
            choices={"": "one GPU"},
        ),
    ] = None
    gpus: Annotated[int, Option("Number of GPUs.", label="GPUs", needs="shard", first=2)] = 1
    set_to_none: Annotated[bool | None, Option("As given to zero_grad.")] = None
    expandable_segments: Annotated[bool | None, Option("Of PyTorch's allocator.")] = None
    gpu: Annotated[
        str | None,
        Option(
            "GPU, in words of CUDA's name; that of the run by default.",
            metavar="NAME",
            label="GPU",
            choices={"": "the run's own"},
        ),
    ] = None
    memory_bytes: Annotated[
        int | None,
        Option("Memory of a GPU that is not named, such as 24GiB.", read=byte_count, flag="memory", metavar="SIZE"),
    ] = None


PARTS = ("batches", "gpus", "checkpoints", "shards", "stages", "gpus_needed", "deepest")
"""What a plan can answer besides its configuration, each with many replays; fields of `pages.plan.PlanPage`."""


def _parts(text: str) -> tuple[str, ...]:
    found = names(text)
    if "all" in found:
        return PARTS
    for part in found:
        if part not in PARTS:
            raise ValueError(f"takes all, or some of {', '.join(PARTS)}, with commas between, not {part!r}.")
    return found


@dataclass(frozen=True, kw_only=True)
class PlanQuestion(PlanRequest):
    """A configuration, and what else is asked around it."""

    also: Annotated[
        Sequence[str],
        Option(
            f"What else to answer, with commas between: {', '.join(PARTS)}, or all.", read=_parts, metavar="all|PARTS"
        ),
    ] = ()

    @property
    def configuration(self) -> PlanRequest:
        """Without what else is asked."""
        return request_of(PlanRequest, self)
