"""What is wrapped around the user's model: parallel wrappers, compiled modules, checkpointing.

Wrappers are recognised by the names of their classes: importing FSDP or Dynamo to ask ``isinstance`` would cost
seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

_PARALLEL = {
    "DistributedDataParallel": "module",
    "DataParallel": "module",
    "FullyShardedDataParallel": "_fsdp_wrapped_module",
    "DeepSpeedEngine": "module",
}
_TRANSPARENT = {**_PARALLEL, "ActivationWrapper": "_checkpoint_wrapped_module"}
_FULLY_SHARD = "FSDPModule"
"""Mixed into the model's own class by ``fully_shard``."""


def inner(module: nn.Module) -> nn.Module | None:
    """The module that a parallel or checkpointing wrapper holds, None for any other module."""
    for name in class_names(module):
        if name in _TRANSPARENT:
            held: Any = getattr(module, _TRANSPARENT[name], None)
            return held if held is not module else None
    return None


def is_compiled_region(module: nn.Module) -> bool:
    """Whether calling the module runs code that torch.compile made: ``torch.compile(m)`` or ``m.compile()``."""
    return is_optimized_module(module) or getattr(module, "_compiled_call_impl", None) is not None


def is_optimized_module(module: nn.Module) -> bool:
    """Whether it is what ``torch.compile(m)`` returns."""
    return "OptimizedModule" in class_names(module) and hasattr(module, "_orig_mod")


def unwrap(model: nn.Module) -> nn.Module:
    """The user's own model, under all wrappers."""
    while True:
        held = inner(model)
        if held is None and is_optimized_module(model):
            held = model._orig_mod  # type: ignore[assignment]
        if held is None:
            return model
        model = held


def parallel_wrapper(model: nn.Module) -> str | None:
    """Class name of the outermost parallel wrapper, such as ``DistributedDataParallel``; ``FSDPModule`` for FSDP2."""
    module: nn.Module | None = model
    while module is not None:
        names = class_names(module)
        for name in names:
            if name in _PARALLEL or name == _FULLY_SHARD:
                return name
        module = module._orig_mod if is_optimized_module(module) else inner(module)  # type: ignore[assignment]
    return None


def class_names(module: Any) -> list[str]:
    """Names of the module's class and its bases."""
    return [cls.__name__ for cls in type(module).__mro__]
