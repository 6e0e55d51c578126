"""The Python dicts of PyProf and of ``nvidia_dlprof_pytorch_nvtx``, and PyProf's ``layer:NAME``.

    {'mod': 'torch', 'op': 'mm', 'args': [{'name': '', 'type': 'tensor', 'shape': (2, 3), 'dtype': 'float32'}, ...]}
    {'traceMarker': ['train.py:34', ...], 'funcStack': '/<module>/Net::forward/Linear::_call_impl(2)/Linear::forward'}

They are Python, no JSON, and untrusted: `ast.literal_eval` reads them, which runs nothing, and only up to
65,535 characters. A text that was cut gives what its beginning says. DLProf's op is the outermost dict. Its number
behind a function is that of the line that calls it, in the function around: the second layer of a class has "(2)"
(``build_function_stack`` of pyprof/nvtx/dlprof.py).
"""

from __future__ import annotations

import ast
import re
from pathlib import PurePosixPath
from typing import Any

from tb_dlprof_plugin.model.dtypes import InputDtypes, dtype_named
from tb_dlprof_plugin.model.shapes import InputShape, InputShapes
from tb_dlprof_plugin.model.timeline import HostKind
from tb_dlprof_plugin.readers.nvtx.ranges import Meaning

LAYER = "layer:"
_MOST_CHARACTERS = (1 << 16) - 1
_MOST_ARGUMENTS = 1000
_OP_OF_CUT_TEXT = re.compile(r"""['"]op['"]: ['"](\w{1,200})['"]""")
_FUNCTION = re.compile(r"(?P<of_class>.*)::(?P<function>\w+)(?:\((?P<number>\d{1,9})\))?\Z")
_ENTRIES = ("_call_impl", "_wrapped_call_impl", "__call__")
"""Functions by which a module is called, each call that of a module of its own."""
_LIBRARIES = ("site-packages/", "dist-packages/", "/lib/python")
_LARGEST = 2**62


def is_dict(text: str) -> bool:
    """Whether the text is such a dict."""
    return text.startswith(("{'mod'", "{'traceMarker'", "{'strRepr'", "{'op'", "{'funcStack'"))


def meaning_of_dict(text: str) -> Meaning:
    """What a dict says; an annotation of the same text where it has neither an op nor a place."""
    found = _literal(text)
    if found is None:
        op = _OP_OF_CUT_TEXT.search(text)
        return Meaning(HostKind.OP, op[1]) if op else Meaning(None, "")
    op = found.get("op")
    if isinstance(op, str) and op:
        shapes, dtypes = _inputs(found.get("args"))
        return Meaning(HostKind.OP, _function(op), shapes=shapes, dtypes=dtypes)
    module = _module(found.get("funcStack"))
    place = _place(found.get("traceMarker"))
    if module:
        return Meaning(HostKind.PYTHON_MODULE, module, place=place)
    return Meaning(HostKind.ANNOTATION if place else None, "traceMarker", place=place)


def meaning_of_layer(text: str) -> Meaning:
    """``layer:NAME`` is a module."""
    return Meaning(HostKind.PYTHON_MODULE, text.removeprefix(LAYER).strip() or LAYER)


def _literal(text: str) -> dict[Any, Any] | None:
    if len(text) > _MOST_CHARACTERS:
        return None
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
    return found if isinstance(found, dict) else None


def _function(op: str) -> str:
    """ "mul" of "__mul__" and "__rmul__", "mul_" of "__imul__"."""
    if not (op.startswith("__") and op.endswith("__") and len(op) > 4):
        return op
    plain = op[2:-2]
    for prefix, ending in (("i", "_"), ("r", "")):
        if plain.startswith(prefix) and plain[1:] in _OPERATORS:
            return _OPERATORS[plain[1:]] + ending
    return _OPERATORS.get(plain, op)


_OPERATORS = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "div": "div", "matmul": "matmul", "pow": "pow",
    "neg": "neg", "eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "and": "bitwise_and",
    "or": "bitwise_or", "xor": "bitwise_xor", "floordiv": "floor_divide", "mod": "remainder", "abs": "abs",
}  # fmt: skip


def _inputs(arguments: Any) -> tuple[InputShapes | None, InputDtypes | None]:
    if not isinstance(arguments, (list, tuple)) or len(arguments) > _MOST_ARGUMENTS:
        return None, None
    shapes: list[InputShape] = []
    names: list[str] = []
    for one in arguments:
        if not isinstance(one, dict):
            return None, None
        kind, shape, dtype = one.get("type"), one.get("shape"), one.get("dtype")
        tensor = kind == "tensor"
        shapes.append(_sizes(shape) if tensor else ())
        names.append(dtype if tensor and isinstance(dtype, str) else "" if kind == "NoneType" else "Scalar")
    return tuple(shapes), tuple(map(dtype_named, names))


def _sizes(shape: Any) -> InputShape:
    if not isinstance(shape, (tuple, list)) or not all(type(s) is int and 0 <= s < _LARGEST for s in shape):
        return None
    return tuple(shape)


def _module(stack: Any) -> str:
    """ "Net.Linear_2" of "/<module>/Net::forward/Linear::_call_impl(2)/Linear::forward/linear": the classes in order.

    Each has the number of its call where the function around calls several modules.
    """
    if not isinstance(stack, str):
        return ""
    path: list[str] = []
    last_class = last_function = ""
    for part in stack.split("/"):
        found = _FUNCTION.match(part)
        if found is None:
            continue
        of_class, function, number = found.groups()
        called = function in _ENTRIES and (last_function not in _ENTRIES or of_class != last_class)
        if called or of_class != last_class:
            path.append(of_class)
        if called and number:
            path[-1] = f"{of_class}_{number}"
        last_class, last_function = of_class, function
    return ".".join(path)


def _place(frames: Any) -> str:
    """The innermost of the frames that is in no library; "" for none. They stand outermost first."""
    if not isinstance(frames, (list, tuple)):
        return ""
    own = [frame for frame in frames if isinstance(frame, str) and not any(part in frame for part in _LIBRARIES)]
    return PurePosixPath(own[-1]).name if own else ""
