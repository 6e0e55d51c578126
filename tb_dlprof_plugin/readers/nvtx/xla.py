"""XLA's ranges in the domain ``TSL``, which JAX and TensorFlow write: modules, and thunks in them.

    XlaModule:#prefix=jit(step),hlo_module=jit_step,program_id=3#
    Thunk:#name=jit(step)/dot_general,hlo_op=fusion.12#

The expressions are those of nsys_jax (NVIDIA/JAX-Toolbox). Ranges of compilation are annotations: the modules and
thunks that autotuning runs in them are none of the program's.
"""

from __future__ import annotations

import re

from tb_dlprof_plugin.model.timeline import HostKind
from tb_dlprof_plugin.readers.nvtx.ranges import Meaning

DOMAIN = "TSL"
MODULE = "XlaModule:#"
THUNK = "Thunk:#"
COMPILATION = ("XlaCompile", "XlaPass", "XlaOptimize", "XlaAutotuner", "XlaEmit", "XlaBuild")
_MODULE = re.compile(r"XlaModule:#(?:prefix=.*?,)?hlo_module=([A-Za-z0-9._-]+)")
_THUNK = re.compile(r"Thunk:#(?:name=.*?,)?hlo_op=([A-Za-z0-9._-]+)")
_TF_OP = re.compile(r"([A-Za-z_][\w./-]*):([A-Z]\w*)\Z")


def meaning(text: str) -> Meaning:
    """What a range of the domain says."""
    module = _MODULE.match(text)
    if module:
        return Meaning(HostKind.PYTHON_MODULE, module[1])
    thunk = _THUNK.match(text)
    if thunk:
        return Meaning(HostKind.OP, thunk[1])
    node = _TF_OP.match(text)
    if node:
        scope = node[1].rpartition("/")[0]
        return Meaning(HostKind.OP, node[2], module=scope.replace("/", "."))
    return Meaning(HostKind.ANNOTATION, f"{DOMAIN}:{text}")


def is_xla(text: str) -> bool:
    """Whether the text is a module's or a thunk's, in whatever domain."""
    return text.startswith((MODULE, THUNK))
