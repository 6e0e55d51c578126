"""The jobs that are recorded: parallelism, model, planted cause and the rank that has it.

A job with a cause names the even job (``twin``) that it becomes when the cause is repaired. Those that are held out
have other models, sizes and ranks: rules are written without a look at them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

BARE = "bare"
"""Folder of the jobs as torch.profiler alone records them."""


@dataclass(frozen=True)
class Size:
    """Of a model and its batch on each rank; ``length`` is the sequence's, or an image's side."""

    width: int
    layers: int
    batch: int
    length: int


@dataclass(frozen=True)
class Subject:
    """A job.

    Attributes:
        parallelism: "single" (one rank), "ddp", "fsdp", "fsdp1", "hsdp", "tensor", "pipeline" or "experts".
        cause: "" where even; else as the product names causes, or what is wrong with the whole job.
        rank: that has the cause; None where all have it.
        plant: in `plants`; "" where the cause is in how the job is built (``options``).
        share: of the natural step, by which the plant delays its rank. delay_ms: instead, the delay itself.
        set_apart: recorded only when it is asked for by name or `--trial`.
        reads_loss: the training reads its loss after every step, so that the CPU cannot run ahead.
        environment: of the processes; jobs with another one get processes of their own.
        hosts: that the ranks believe to be on (Linux, as root): each block of ranks has a host's name of its own.
        steps: that are recorded.
        bare: whether torch.profiler alone records it too, in a window of its own. shapes: whether with shapes.
    """

    name: str
    parallelism: str
    size: Size
    model: str = "transformer"
    cause: str = ""
    rank: int | None = None
    plant: str = ""
    share: float = 0.35
    delay_ms: float | None = None
    twin: str = ""
    held_out: bool = False
    set_apart: bool = False
    reads_loss: bool = True
    ranks: int = 2
    options: dict[str, Any] = field(default_factory=dict)
    environment: tuple[tuple[str, str], ...] = ()
    hosts: int = 1
    steps: int = 3
    bare: bool = False
    shapes: bool = False


_A = Size(width=1024, layers=8, batch=16, length=1024)
_IMAGES = Size(width=192, layers=8, batch=48, length=128)
_STAGES = Size(width=1024, layers=8, batch=32, length=1024)
_TENSOR = Size(width=2048, layers=4, batch=16, length=1024)
_EXPERTS = Size(width=1024, layers=4, batch=12, length=1024)
_SHARDED = Size(width=1536, layers=6, batch=8, length=1024)
_LANGUAGE = Size(width=2048, layers=8, batch=8, length=2048)
_VISION = Size(width=1024, layers=12, batch=128, length=224)
_RESIDUAL = Size(width=4096, layers=8, batch=16, length=1024)
_STAGES_3 = Size(width=2048, layers=8, batch=32, length=1024)
_STAGES_2 = Size(width=1536, layers=6, batch=24, length=512)
_EXPERTS_2 = Size(width=768, layers=6, batch=16, length=768)
_TENSOR_2 = Size(width=1536, layers=5, batch=24, length=768)


def _ddp(name: str, cause: str = "", plant: str = "", **more: Any) -> Subject:
    given: dict[str, Any] = {"rank": 1, **more} if cause else more
    return Subject(name, "ddp", _A, cause=cause, plant=plant, twin="ddp_even" if cause else "", **given)


def _images(name: str, cause: str = "", plant: str = "", **more: Any) -> Subject:
    given: dict[str, Any] = {"rank": 0, "share": 0.25, **more} if cause else more
    twin = "images_even" if cause else ""
    return Subject(name, "ddp", _IMAGES, model="images", cause=cause, plant=plant, twin=twin, held_out=True, **given)


def _job(name: str, parallelism: str, size: Size, held_out: bool = False, **more: Any) -> Subject:
    return Subject(name, parallelism, size, **{"held_out": held_out, **more})


def _language(name: str, cause: str = "", plant: str = "", **more: Any) -> Subject:
    given: dict[str, Any] = {"rank": 0, **more} if cause else more
    twin = "language_even" if cause else ""
    given |= {"reads_loss": False, **_TRIAL}
    return Subject(name, "fsdp", _LANGUAGE, model="tokens", cause=cause, plant=plant, twin=twin, **given)


def _vision(name: str, cause: str = "", plant: str = "", **more: Any) -> Subject:
    given: dict[str, Any] = {"rank": 1, **more} if cause else more
    twin = "vision_even" if cause else ""
    return Subject(name, "ddp", _VISION, model="patches", cause=cause, plant=plant, twin=twin, **_TRIAL, **given)


def _residual(name: str, cause: str = "", plant: str = "", **more: Any) -> Subject:
    given: dict[str, Any] = {"rank": 1, **more} if cause else more
    twin = "residual_even" if cause else ""
    return Subject(name, "tensor", _RESIDUAL, model="residual", cause=cause, plant=plant, twin=twin, **_TRIAL, **given)


_TRIAL: dict[str, Any] = {"held_out": True, "set_apart": True}
_LAYERED = {"schedule": "1F1B", "parts": 4}

SUBJECTS = [
    _ddp("ddp_even"),
    _ddp("ddp_slow_gpu", "slow_gpu", "fewer_processors"),
    _ddp("ddp_slow_host", "slow_host", "busy_host"),
    _ddp("ddp_slow_input", "slow_input", "slow_input"),
    _ddp("ddp_garbage", "garbage_collection", "garbage"),
    _ddp("ddp_uneven_data", "uneven_data", options={"longer": 1.4}),
    _images("images_even"),
    _images("images_slow_gpu", "slow_gpu", "shared_gpu"),
    _images("images_slow_host", "slow_host", "busy_host"),
    _images("images_slow_input", "slow_input", "slow_input"),
    _job("fsdp_even", "fsdp", _SHARDED, reads_loss=False),
    _job(
        "fsdp_slow_host",
        "fsdp",
        _SHARDED,
        reads_loss=False,
        twin="fsdp_even",
        cause="slow_host",
        rank=1,
        plant="busy_host",
        share=1.0,
    ),
    _job("pipeline_even", "pipeline", _STAGES, options={"schedule": "1F1B", "parts": 8}),
    _job(
        "pipeline_uneven",
        "pipeline",
        _STAGES,
        twin="pipeline_even",
        cause="uneven_stage",
        rank=1,
        options={"schedule": "1F1B", "parts": 8, "extra": 2},
    ),
    _job("experts_even", "experts", _EXPERTS),
    _job(
        "experts_uneven",
        "experts",
        _EXPERTS,
        twin="experts_even",
        cause="expert_load",
        rank=1,
        options={"favour": 0.75},
    ),
    _job("tensor_even", "tensor", _TENSOR),
    _job("tensor_slow_host", "tensor", _TENSOR, twin="tensor_even", cause="slow_host", rank=1, plant="busy_host"),
    _job("pipeline_gpipe", "pipeline", _STAGES_2, True, options={"schedule": "GPipe", "parts": 4}),
    _job(
        "pipeline_gpipe_uneven",
        "pipeline",
        _STAGES_2,
        True,
        twin="pipeline_gpipe",
        cause="uneven_stage",
        rank=0,
        options={"schedule": "GPipe", "parts": 4, "extra": 2},
    ),
    _job("experts_2_even", "experts", _EXPERTS_2, True, reads_loss=False),
    _job(
        "experts_2_uneven",
        "experts",
        _EXPERTS_2,
        True,
        reads_loss=False,
        twin="experts_2_even",
        cause="expert_load",
        rank=0,
        options={"favour": 0.7},
    ),
    _images("images_garbage", "garbage_collection", "garbage"),
    _ddp("ddp_more_work", "slow_gpu", "more_work"),
    _job("tensor_2_even", "tensor", _TENSOR_2, True),
    _job(
        "tensor_2_slow_gpu",
        "tensor",
        _TENSOR_2,
        True,
        twin="tensor_2_even",
        cause="slow_gpu",
        rank=0,
        plant="fewer_processors",
    ),
    _images("images_uneven_data", "uneven_data", options={"longer": 1.3}),
    _job("hsdp_even", "hsdp", _SHARDED, ranks=4, reads_loss=False),
    _job(
        "hsdp_slow_gpu",
        "hsdp",
        _SHARDED,
        ranks=4,
        reads_loss=False,
        twin="hsdp_even",
        cause="slow_gpu",
        rank=2,
        plant="fewer_processors",
    ),
    _ddp("ddp_slow_link", "slow_link", rank=None, environment=(("NCCL_P2P_DISABLE", "1"),)),
    _vision("vision_even"),
    _vision("vision_slow_gpu", "slow_gpu", "fewer_processors"),
    _vision("vision_slow_host", "slow_host", "busy_host", share=0.8),
    _vision("vision_slow_input", "slow_input", "slow_input", share=0.8, rank=0),
    _vision("vision_uneven_data", "uneven_data", options={"longer": 1.4}),
    _language("language_even"),
    _language("language_slow_gpu", "slow_gpu", "fewer_processors"),
    _language("language_slow_host", "slow_host", "busy_host", share=1.0),
    _language("language_slow_input", "slow_input", "slow_input", share=1.0, rank=1),
    _language("language_lengths", "uneven_data", rank=1, options={"longer": 1.4}),
    _residual("residual_even"),
    _residual("residual_slow_gpu", "slow_gpu", "fewer_processors"),
    _residual("residual_slow_host", "slow_host", "busy_host", share=0.8, rank=0),
    _job("layered_even", "pipeline", _STAGES_3, **_TRIAL, options=_LAYERED),
    _job(
        "layered_uneven",
        "pipeline",
        _STAGES_3,
        **_TRIAL,
        twin="layered_even",
        cause="uneven_stage",
        rank=0,
        options=_LAYERED | {"moved": 1},
    ),
]
"""In the order in which they are recorded: where time runs out, the last are left out."""
