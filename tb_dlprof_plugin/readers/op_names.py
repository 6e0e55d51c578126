"""What the name of an op says: its type, the module it computes for and its part of the training step.

XLA keeps the path of names that JAX gave an op, ``jit(step)/transpose(jvp(block_0))/attention/dot_general``: the
program, scopes (``jax.named_scope``, Flax's modules), transformations around them, and last the primitive. Of
instructions that XLA makes of several, it keeps the names of all, with ";" between them. TensorFlow names nodes of its
graph ``gradient_tape/model/dense/MatMul``, with the type apart.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from tb_dlprof_plugin.model.profile import Role
from tb_dlprof_plugin.model.timeline import StatedOp

PROGRAMS = ("jit(", "pjit(", "pmap(")
"""Beginnings of paths of names: the function that was compiled."""

_TRANSFORMED = re.compile(r"(\w+)\((.*)\)", re.DOTALL)
_SCOPES_OF = frozenset({"jvp", "transpose", "remat", "checkpoint", "rematted_computation"})
"""Transformations whose brackets hold a scope of the user. In those of others (jit, vmap) are names of functions."""
_NO_SCOPES = frozenset({
    "while", "body", "cond", "scan", "branch", "closed_call", "core_call", "checkpoint", "remat",
    "rematted_computation", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "custom_lin", "shard_map",
    "main", "pjit", "jit", "StatefulPartitionedCall", "PartitionedCall", "XlaModule", "",
})  # fmt: skip
_BRANCH = re.compile(r"branch_\d+(_fun)?|replica_\d+|tower_\d+")
_GRADIENTS = ("gradient_tape", "gradients", "Gradients")
_OPTIMIZER = re.compile(
    r"(?i)(^|_)(adam\w*|sgd|momentum|rmsprop|adagrad|adadelta|adafactor|lamb|lion|ftrl|optimizer|optax|apply_updates|"
    r"apply_gradients|apply_gradient_op|resourceapply\w+|opt_update)(_\d+)?$"
)
_DATA = re.compile(
    r"^(Iterator::Root$|IteratorGetNext)|(^|: |/)IteratorGetNext|MultiDeviceIteratorGetNext|InfeedDequeue"
)
_INSTANCE = re.compile(r"[._]\d+$")
_EINSUM = re.compile(r"[\w.,]*->[\w.]*")
"""``jnp.einsum`` puts its products into a scope of the formula, "bqhd,bkhd->bhqk", which is no module."""


def of_xla(program: str, op_name: str, op_type: str, opcode: str, differentiated: bool) -> StatedOp:
    """What is known of an XLA instruction.

    Args:
        program: the name of its module, which the modules' paths begin with.
        op_name: the path of names, "" where it has none.
        op_type: the type of the TensorFlow op that it was made of, "" for other frameworks.
        opcode: of the instruction itself.
        differentiated: whether any op of the program was differentiated: what lies in no part of it then is forward
            only where its path says so.
    """
    parts = split(op_name)
    if len(parts) == 1:
        # "params[0]": an instruction that works on an argument, or the program itself.
        parts = [*parts, ""] if parts[0].startswith(PROGRAMS) else ["", ""]
    backward = any(part.startswith("transpose(") or part in _GRADIENTS for part in parts)
    forward = any("jvp(" in part for part in parts)
    scopes = scopes_of(parts[:-1])
    last = parts[-1] if parts else ""
    primitive = _TRANSFORMED.sub(r"\1", last).partition("[")[0]
    kind = op_type or primitive or opcode
    optimizer = any(_OPTIMIZER.search(scope) for scope in scopes)
    role = Role.OTHER
    if backward:
        role = Role.BACKWARD
    elif optimizer:
        role = Role.OPTIMIZER
    elif forward or not differentiated:
        role = Role.FORWARD
    return StatedOp(op_type=kind, module=".".join([program, *scopes] if program else scopes), role=role)


def scopes_of(parts: Sequence[str]) -> tuple[str, ...]:
    """The user's scopes in parts of a path of names."""
    return tuple(scope for part in parts for scope in _scopes(part))


def of_tensorflow(node: str, op_type: str, differentiated: bool) -> StatedOp:
    """What the name of a node of TensorFlow's graph says, such as "gradient_tape/model/dense/MatMul"."""
    parts = [part for part in node.split("/") if part not in _NO_SCOPES and not _BRANCH.fullmatch(part)]
    backward = any(part in _GRADIENTS or part.startswith("gradients_") for part in parts)
    scopes = [part for part in parts[:-1] if part not in _GRADIENTS and not part.startswith("gradients_")]
    # Of an op made of another one the name of that one is a scope: "dense/MatMul/ReadVariableOp".
    role = Role.OTHER
    if _DATA.search(op_type):
        role, scopes = Role.DATALOADER, []
    elif any(_OPTIMIZER.search(part) for part in parts) or _OPTIMIZER.search(op_type):
        role = Role.OPTIMIZER
    elif backward:
        role = Role.BACKWARD
    elif scopes or not differentiated:
        role = Role.FORWARD
    return StatedOp(op_type=op_type, module=".".join(scopes), role=role)


def is_input_pipeline(name: str) -> bool:
    """Whether an event is the training's own wait for its next batch."""
    return _DATA.search(name) is not None


def is_gradient(op_name: str) -> bool:
    """Whether a path of names says that the op was differentiated."""
    return "jvp(" in op_name or any(word in op_name for word in _GRADIENTS)


@functools.lru_cache(maxsize=65536)
def base_of(name: str) -> str:
    """A name of XLA without the numbers that tell equal ones apart: "loop_add_fusion" of "loop_add_fusion.12_3"."""
    name = name.removesuffix(".kd").replace(".", "_").replace("-", "_")
    while (shorter := _INSTANCE.sub("", name)) != name:
        name = shorter
    return name


def split(op_name: str) -> list[str]:
    """The parts of a path, of several the first; what stands in brackets is one part."""
    parts, depth, begin = [], 0, 0
    for at, letter in enumerate(op_name):
        if letter == ";" and depth == 0:
            op_name = op_name[:at]
            break
        if letter in "([":
            depth += 1
        elif letter in ")]":
            depth = max(0, depth - 1)
        elif letter == "/" and depth == 0:
            parts.append(op_name[begin:at])
            begin = at + 1
    parts.append(op_name[begin:])
    return [part for part in parts if part]


def _scopes(part: str) -> list[str]:
    """The user's scopes in one part of a path."""
    found = _TRANSFORMED.fullmatch(part)
    if found is None:
        return (
            []
            if part in _NO_SCOPES or part in _GRADIENTS or _BRANCH.fullmatch(part) or _EINSUM.fullmatch(part)
            else [part]
        )
    if found[1] not in _SCOPES_OF:
        return []
    return [scope for inner in split(found[2]) for scope in _scopes(inner)]


def module_of(node: str) -> str:
    """ "layer1.0.conv1" of that name; "" for a name without a path.

    PyTorch's exporter repeats the path of a module inside a Sequential: "/layer1/layer1.0" is the module layer1.0.
    """
    first = node.partition(" + ")[0].strip("{}").partition("...")[0]
    if not first.startswith("/"):
        return ""
    path = ""
    for part in first.split("/")[1:-1]:
        path = part if not path or part.startswith(f"{path}.") else f"{path}.{part}"
    return path
