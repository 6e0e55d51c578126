"""TensorFlow's ranges: "MatMul: dense/MatMul" in the domain ``tensorflow-core`` of NVIDIA's builds.

``TF_ENABLE_NVTX_RANGES=1`` writes them (tensorflow/core/profiler/nvtx_utils.cc of NVIDIA/tensorflow), and with
``TF_ENABLE_NVTX_RANGES_DETAILED=1`` JSON with shapes and data types. An XLA cluster's thunk is named
"op_type: cluster_1/xla_run/op".
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from tb_dlprof_plugin.model.dtypes import InputDtypes, dtype_named
from tb_dlprof_plugin.model.shapes import InputShape, InputShapes
from tb_dlprof_plugin.model.timeline import HostKind
from tb_dlprof_plugin.readers.nvtx.ranges import Meaning

DOMAIN = "tensorflow-core"
MEMORY_DOMAIN = "tensorflow-memalloc"
_NODE = re.compile(r"(\w{1,200}): ?(\S.*)\Z", re.DOTALL)
_DTYPES = {
    "DT_HALF": "float16", "DT_BFLOAT16": "bfloat16", "DT_FLOAT": "float32", "DT_DOUBLE": "float64",
    "DT_INT8": "int8", "DT_INT16": "int16", "DT_INT32": "int32", "DT_INT64": "int64", "DT_UINT8": "uint8",
    "DT_BOOL": "bool", "DT_COMPLEX64": "complex64", "DT_COMPLEX128": "complex128",
}  # fmt: skip
_LARGEST = 2**62


def is_detailed(text: str) -> bool:
    """Whether the text is the JSON of detailed ranges."""
    return text.startswith('{"op"')


def meaning(text: str) -> Meaning:
    """What a range of the domain says."""
    if is_detailed(text):
        return _detailed(text)
    node = _NODE.match(text)
    return _op(node[1], node[2]) if node else Meaning(HostKind.ANNOTATION, text)


def _detailed(text: str) -> Meaning:
    try:
        found: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("op"), str):
        return Meaning(HostKind.ANNOTATION, text)
    node = found.get("name")
    attributes = found.get("attrs")
    dtype = attributes.get("T") if isinstance(attributes, dict) else None
    shapes = _shapes(found.get("args"))
    dtypes: InputDtypes | None = None
    if shapes is not None and isinstance(dtype, str):
        dtypes = tuple(dtype_named(_DTYPES.get(dtype, dtype)) for _ in shapes)
    return _op(found["op"], node if isinstance(node, str) else "", shapes, dtypes)


def _op(kind: str, node: str, shapes: InputShapes | None = None, dtypes: InputDtypes | None = None) -> Meaning:
    scope = node.strip("/").rpartition("/")[0]
    return Meaning(HostKind.OP, kind, shapes=shapes, dtypes=dtypes, module=scope.replace("/", "."))


def _shapes(arguments: Any) -> InputShapes | None:
    if not isinstance(arguments, list):
        return None
    found: list[InputShape] = []
    for one in arguments:
        shape = one.get("shape") if isinstance(one, dict) else None
        sound = isinstance(shape, list) and all(type(s) is int and abs(s) < _LARGEST for s in shape)
        found.append(tuple(shape) if sound and shape is not None else None)
    return tuple(found)
