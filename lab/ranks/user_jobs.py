"""Jobs as users record them: by torch.profiler alone and by the hook, in the same processes.

A job with a planted cause or setting names its even twin. Held-out jobs have other models and sizes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .subjects import Size, Subject

_PLANTS: dict[str, dict[str, Any]] = {
    "sleep_5": {"cause": "slow_host", "plant": "sleep", "delay_ms": 5.0},
    "sleep_10": {"cause": "slow_host", "plant": "sleep", "delay_ms": 10.0},
    "sleep_20": {"cause": "slow_host", "plant": "sleep", "delay_ms": 20.0},
    "loader": {"cause": "slow_input", "plant": "slow_input"},
    "more_work": {"cause": "slow_gpu", "plant": "more_work", "share": 0.25},
    "longer": {"cause": "uneven_data", "options": {"longer": 1.3}},
    "extra": {"cause": "uneven_stage", "options": {"extra": 2}},
    "favour": {"cause": "expert_load", "options": {"favour": 0.7}},
}
_ONE_RANK = ("sleep_5", "sleep_10", "sleep_20", "loader", "more_work", "longer")
_AHEAD = ("sleep_20", "loader")
"""Planted where no step waits for the GPU: hosts run ahead until the queue of launches is full."""
_SETTINGS: dict[str, dict[str, Any]] = {
    "one": {"cause": "one_bucket", "options": {"bucket_mb": 100_000}},
    "tiny": {"cause": "tiny_buckets", "options": {"bucket_mb": 1}},
    "synced": {"cause": "no_sync_missing", "options": {"no_sync": False}},
    "unused": {"cause": "find_unused_parameters", "options": {"find_unused": True}},
    "one_unit": {"cause": "one_unit", "options": {"one_unit": True}},
    "no_reshard": {"options": {"reshard": False}},
}


def _family(even: Subject, *variants: str) -> list[Subject]:
    """The even job and its variants: a plant on one rank, or a setting of all."""
    even = replace(even, bare=True)
    jobs = [even]
    for name in variants:
        changed = dict((_PLANTS | _SETTINGS)[name])
        if name in _PLANTS:
            changed["rank"] = 0 if even.held_out else 1
        changed["options"] = even.options | changed.get("options", {})
        jobs.append(replace(even, name=f"{even.name}_{name}", twin=even.name, **changed))
    return jobs


def _data_parallel(name: str, model: str, size: Size, **more: Any) -> list[Subject]:
    waiting = Subject(name, "ddp", size, model=model, **more)
    ahead = replace(waiting, name=f"{name}_ahead", reads_loss=False)
    return [*_family(waiting, *_ONE_RANK), *_family(ahead, *_AHEAD)]


def _in_turns(*families: list[Subject]) -> list[Subject]:
    """Families in turns, so that a recording that ends early has some of each; twins come before their variants."""
    longest = max(len(family) for family in families)
    return [family[at] for at in range(longest) for family in families if at < len(family)]


_GPT = Size(width=1024, layers=8, batch=12, length=1024)
_IMAGES = Size(width=192, layers=8, batch=48, length=128)
_VIT = Size(width=768, layers=12, batch=96, length=224)
_SHARDED = Size(width=1536, layers=6, batch=8, length=1024)
_SHARDED_2 = Size(width=1280, layers=8, batch=6, length=1024)
_TENSOR = Size(width=2048, layers=4, batch=16, length=1024)
_TENSOR_2 = Size(width=3072, layers=6, batch=16, length=512)
_STAGES = Size(width=1024, layers=8, batch=32, length=1024)
_STAGES_2 = Size(width=1536, layers=6, batch=24, length=512)
_EXPERTS = Size(width=1024, layers=4, batch=12, length=1024)
_EXPERTS_2 = Size(width=768, layers=6, batch=16, length=768)
_WIDE = Size(width=2048, layers=6, batch=4, length=1024)
_WIDE_2 = Size(width=1536, layers=10, batch=6, length=512)
_SMALL = Size(width=384, layers=16, batch=8, length=256)
_SMALL_2 = Size(width=256, layers=24, batch=4, length=256)
_SHARDED_PLANTS = ("no_reshard", "one_unit", "sleep_10", "sleep_20", "loader", "more_work")
_FEW = ("sleep_10", "more_work")

USER_JOBS = [
    *_in_turns(
        _data_parallel("gpt", "tokens", _GPT, shapes=True),
        _data_parallel("vit", "patches", _VIT, held_out=True),
        _family(Subject("sharded", "fsdp", _SHARDED, reads_loss=False), *_SHARDED_PLANTS),
        _family(Subject("sharded_2", "fsdp", _SHARDED_2, model="tokens", held_out=True, shapes=True), *_SHARDED_PLANTS),
        _family(Subject("tensor", "tensor", _TENSOR, shapes=True), *_FEW),
        _family(Subject("tensor_2", "tensor", _TENSOR_2, model="residual", held_out=True), *_FEW),
        _family(Subject("stages", "pipeline", _STAGES, options={"schedule": "1F1B", "parts": 8}), "extra", "sleep_10"),
        _family(
            Subject("stages_2", "pipeline", _STAGES_2, held_out=True, options={"schedule": "GPipe", "parts": 4}),
            "extra",
            "sleep_10",
        ),
        _family(Subject("experts", "experts", _EXPERTS), "favour", "sleep_10"),
        _family(Subject("experts_2", "experts", _EXPERTS_2, held_out=True, reads_loss=False), "favour", "sleep_10"),
        _family(Subject("wide", "ddp", _WIDE, shapes=True), "one", "tiny"),
        _family(Subject("wide_2", "ddp", _WIDE_2, held_out=True), "one", "tiny"),
        _family(Subject("kept", "ddp", _WIDE, options={"accumulate": 4, "no_sync": True}), "synced"),
        _family(Subject("kept_2", "ddp", _WIDE_2, held_out=True, options={"accumulate": 3, "no_sync": True}), "synced"),
        _family(Subject("small", "ddp", _SMALL), "unused"),
        _family(Subject("small_2", "ddp", _SMALL_2, held_out=True), "unused"),
        _data_parallel("images", "images", _IMAGES),
    ),
    *_family(Subject("compiled", "ddp", _GPT, model="tokens", options={"compiled": True}), "sleep_10"),
]
"""In the order in which they are recorded: where time runs out, the last are left out."""


def _scaled(name: str, model: str, size: Size, **more: Any) -> list[Subject]:
    """One rank, then more with the same batch on each (weak) and with the same batch in all (strong)."""
    one = Subject(f"{name}_1", "single", size, model=model, ranks=1, bare=True, shapes=True, **more)
    found = [one]
    for ranks in (2, 4):
        weak = replace(one, name=f"{name}_{ranks}_weak", parallelism="ddp", ranks=ranks)
        strong = replace(weak, name=f"{name}_{ranks}_strong", size=replace(size, batch=size.batch // ranks))
        found += [weak, strong]
    return found


SCALING = [
    *_scaled("gpt", "tokens", _GPT),
    *_scaled("images", "images", _IMAGES),
    *_scaled("wide", "transformer", replace(_WIDE, batch=8), held_out=True),
    *_scaled("vit", "patches", _VIT, held_out=True),
]
"""The same training on one, two and four GPUs."""
