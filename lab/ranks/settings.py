"""Jobs in which a setting of all ranks costs time, each with its repaired twin: the advice about jobs is held to it.

Those that are held out have other models and sizes, and some a slow link: rules are written without a look at them.
"""

from __future__ import annotations

from typing import Any

from .subjects import Size, Subject

_WIDE = Size(width=2048, layers=6, batch=4, length=1024)
_SMALL = Size(width=384, layers=16, batch=8, length=256)
"""Kernels are short, so that the CPU sets the pace."""
_SHARDED = Size(width=1536, layers=6, batch=8, length=1024)
_STAGES = Size(width=1024, layers=8, batch=32, length=1024)
_WIDE_2 = Size(width=1536, layers=10, batch=6, length=512)
_SMALL_2 = Size(width=256, layers=24, batch=4, length=256)
_SHARDED_2 = Size(width=2048, layers=8, batch=2, length=1024)
_STAGES_2 = Size(width=1536, layers=6, batch=24, length=512)
_SLOW_LINK = (("NCCL_P2P_DISABLE", "1"),)


def _of(
    parallelism: str,
    size: Size,
    base: str,
    variants: dict[str, tuple[str, dict[str, Any]]],
    held_out: bool = False,
    **more: Any,
) -> list[Subject]:
    """The job ``base`` and its variants: name, what is at fault ("" where nothing is), options."""
    options = more.pop("options", {})
    even = Subject(base, parallelism, size, held_out=held_out, options=options, **more)
    return [even] + [
        Subject(
            f"{base}_{name}",
            parallelism,
            size,
            cause=cause,
            twin=base,
            held_out=held_out,
            options={**options, **changed},
            **more,
        )
        for name, (cause, changed) in variants.items()
    ]


_SYNCED: dict[str, tuple[str, dict[str, Any]]] = {"synced": ("no_sync_missing", {"no_sync": False})}
_BUCKETS: dict[str, tuple[str, dict[str, Any]]] = {
    "one": ("one_bucket", {"bucket_mb": 100_000}),
    "tiny": ("tiny_buckets", {"bucket_mb": 1}),
    "bf16": ("", {"hook": "bf16"}),
}
_SEARCH: dict[str, tuple[str, dict[str, Any]]] = {
    "unused_search": ("find_unused_parameters", {"find_unused": True}),
    "static": ("", {"static_graph": True}),
    "unused_search_static": ("", {"find_unused": True, "static_graph": True}),
}
_UNITS: dict[str, tuple[str, dict[str, Any]]] = {
    "one_unit": ("one_unit", {"one_unit": True}),
    "tiny_units": ("tiny_units", {"tiny_units": True}),
    "no_reshard": ("", {"reshard": False}),
    "bf16": ("", {"reduce": "bf16"}),
}
_FEW_PARTS: dict[str, tuple[str, dict[str, Any]]] = {"few": ("few_microbatches", {"parts": 2})}

SETTINGS = [
    *_of("ddp", _WIDE, "wide", _BUCKETS | {"copied": ("", {"bucket_view": False})}),
    *_of("ddp", _WIDE, "accumulate", _SYNCED, options={"accumulate": 4, "no_sync": True}),
    *_of("fsdp", _SHARDED, "sharded", _UNITS, reads_loss=False),
    *_of("pipeline", _STAGES, "gpipe", _FEW_PARTS, options={"schedule": "GPipe", "parts": 8}),
    *_of("ddp", _SMALL, "small", _SEARCH),
    *_of("ddp", _WIDE_2, "wide_2", _BUCKETS, True),
    *_of("ddp", _WIDE_2, "accumulate_2", _SYNCED, True, options={"accumulate": 3, "no_sync": True}),
    *_of("fsdp", _SHARDED_2, "sharded_2", _UNITS, True, reads_loss=False),
    *_of("pipeline", _STAGES_2, "gpipe_2", _FEW_PARTS, True, options={"schedule": "GPipe", "parts": 8}),
    *_of("ddp", _SMALL_2, "small_2", {"unused_search": _SEARCH["unused_search"]}, True),
    *_of("fsdp1", _SHARDED, "sharded1", {"no_prefetch": ("no_prefetch", {"prefetch": False})}, reads_loss=False),
    *_of("ddp", _WIDE_2, "slow_wide", _BUCKETS, True, environment=_SLOW_LINK),
    *_of(
        "ddp",
        _WIDE_2,
        "slow_accumulate",
        _SYNCED,
        True,
        environment=_SLOW_LINK,
        options={"accumulate": 3, "no_sync": True},
    ),
]
"""In the order in which they are recorded: where time runs out, the last are left out."""

_NARROW = Size(width=384, layers=2, batch=1, length=16)
"""Gathering parameters takes longer on a CPU than computing with them."""


def _gloo(
    name: str, parallelism: str, options: dict[str, Any], cause: str = "", twin: str = "", **more: Any
) -> Subject:
    return Subject(
        name,
        parallelism,
        _NARROW,
        model="residual",
        cause=cause,
        twin=twin,
        reads_loss=False,
        options={"cpu": True, **options},
        steps=2,
        **more,
    )


GLOO = [
    _gloo("gloo_hybrid", "hsdp", {"reshard": False, "prefetch": True}, ranks=4, hosts=2),
    _gloo("gloo_flat", "fsdp", {}, "sharded_over_hosts", "gloo_hybrid", ranks=4, hosts=2),
    _gloo("gloo_units", "fsdp", {"reshard": False, "prefetch": True}),
    _gloo("gloo_one_unit", "fsdp", {"one_unit": True, "reshard_root": True}, "one_unit", "gloo_units"),
]
"""On CPUs, for what a job's structure shows: settings of FSDP, and two hosts over which it divides the model."""
