"""TensorRT's ranges: in the domain ``TensorRT`` an execution, and in it one range a layer.

A layer's type is read from its name: "Conv + Relu" of "/layer1/conv1/Conv + /layer1/relu/Relu" and of
"Conv_0 + Relu_1", "Reformatting CopyNode" whatever it reformats for.
"""

from __future__ import annotations

import re

from tb_dlprof_plugin.model.timeline import HostKind
from tb_dlprof_plugin.readers.nvtx.ranges import Meaning

DOMAIN = "TensorRT"
EXECUTIONS = ("ExecutionContext::execute", "ExecutionContext::enqueue")
_REFORMATTING = re.compile(r"(?:Reformatting|Reformat)\w* ?CopyNode|Reformatting CopyNode")
_WRAPPED = re.compile(r"\{?(PWN|ForeignNode|Myelin\w*)\b")
_NUMBER = re.compile(r"(?:_\d+)+\Z")
_LONGEST = 120


def is_execution(text: str) -> bool:
    """Whether the range is one run of an engine."""
    return text.startswith(EXECUTIONS)


def meaning(text: str) -> Meaning:
    """What a range of the domain says."""
    if is_execution(text) or text.startswith(
        ("ExecutionContext::", "IExecutionContext", "Builder", "Engine", "Runtime")
    ):
        return Meaning(HostKind.ANNOTATION, f"{DOMAIN}:{text}")
    return Meaning(HostKind.OP, text, op_type=layer_type(text))


def layer_type(name: str) -> str:
    """The type of a layer, by its name."""
    reformatting = _REFORMATTING.match(name)
    if reformatting:
        return "Reformatting CopyNode"
    wrapped = _WRAPPED.match(name)
    if wrapped:
        return wrapped[1]
    parts = re.split(r" \+ | \|\| ", name)
    kinds = [_NUMBER.sub("", one.strip().rpartition("/")[2]) or one for one in parts]
    kinds = [k.partition("(")[0] if k.startswith("PWN") else k for k in kinds]
    text = " + ".join(dict.fromkeys(kinds))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
