"""XLA's ranges in the domain ``TSL``, which JAX and TensorFlow write: modules, and thunks in them.

    XlaModule:#prefix=jit(step),hlo_module=jit_step,program_id=3#
    Thunk:#name=jit(step)/dot_general,hlo_op=fusion.12#

The expressions are those of nsys_jax (NVIDIA/JAX-Toolbox). A thunk's ``name`` is what the paths of names of its
instructions begin with: of a single one its path, of several the scope around them. Ranges of compilation are
annotations: the modules and thunks that autotuning runs in them are none of the program's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tb_dlprof_plugin.model.timeline import HostKind, StatedOp
from tb_dlprof_plugin.readers import op_names
from tb_dlprof_plugin.readers.nvtx.ranges import Meaning

DOMAIN = "TSL"
MODULE = "XlaModule:#"
THUNK = "Thunk:#"
COMPILATION = ("XlaCompile", "XlaPass", "XlaOptimize", "XlaAutotuner", "XlaEmit", "XlaBuild")
_MODULE = re.compile(r"XlaModule:#(?:prefix=.*?,)?hlo_module=([A-Za-z0-9._-]+)")
_THUNK = re.compile(r"Thunk:#(?:name=(.*?),)?hlo_op=([A-Za-z0-9._-]+)", re.DOTALL)
_TF_OP = re.compile(r"([A-Za-z_][\w./-]*):([A-Z]\w*)\Z")
_PROGRAM = re.compile(r"(p?jit|pmap)\((.*)\)", re.DOTALL)
_NO_WORD = re.compile(r"[^\w.-]")
_PRODUCTS = re.compile(r"(nested_)?gemm_fusion_dot(_general)?|triton_gemm_dot(_general)?|cublas_\w+")
_FOLDED = ("custom_call", "transpose")
"""A call of a library that is named after a transpose: the product into which XLA folded it."""


class Xla:
    """The meaning of the ranges of one recording."""

    def __init__(self, texts: Iterable[str]) -> None:
        """``texts`` are those of all ranges: which words of their paths are scopes shows only in all of them."""
        self._scopes: set[tuple[str, ...]] = set()
        self._owner: dict[str, str] = {}
        self._named = self._differentiated = False
        for text in texts:
            found = _THUNK.match(text) if text.startswith(THUNK) else None
            if found is not None and found[1]:
                self._named = True
                self._differentiated = self._differentiated or op_names.is_gradient(found[1])
                scopes = op_names.scopes_of(op_names.split(found[1])[:-1])
                self._scopes.update(scopes[:length] for length in range(1, len(scopes) + 1))

    def meaning(self, text: str) -> Meaning:
        """What a range of the domain says."""
        module = _MODULE.match(text)
        if module:
            return Meaning(HostKind.PYTHON_MODULE, module[1])
        thunk = _THUNK.match(text)
        if thunk:
            return self._thunk(thunk[1] or "", thunk[2])
        node = _TF_OP.match(text)
        if node:
            scope = node[1].rpartition("/")[0]
            return Meaning(HostKind.OP, node[2], module=scope.replace("/", "."))
        return Meaning(HostKind.ANNOTATION, f"{DOMAIN}:{text}")

    def _thunk(self, path: str, op: str) -> Meaning:
        base = op_names.base_of(op)
        if not self._named:
            # Nothing says whether this is a training: an instruction may be of either pass.
            return Meaning(HostKind.OP, op, stated=StatedOp(base))
        parts = op_names.split(path)
        whole = op_names.scopes_of(parts)
        if parts and (parts[-1].startswith(op_names.PROGRAMS) or "(" in parts[-1] or whole in self._scopes):
            # Several instructions of this scope.
            path = f"{path}/{base}"
        product = bool(_PRODUCTS.fullmatch(base)) or (base, parts[-1] if parts else "") == _FOLDED
        kind = "dot_general" if product and path.startswith(op_names.PROGRAMS) else ""
        program = _program(parts[0]) if parts else ""
        stated = op_names.of_xla(program, path, kind, base, self._differentiated)
        owner = self._owner.setdefault(op, program)
        return Meaning(HostKind.OP, op if owner == program else f"{program}/{op}", stated=stated)


def _program(part: str) -> str:
    """The name of the program as its module has it, "jit_step" of "jit(step)"; "" where the path does not say it."""
    found = _PROGRAM.fullmatch(part)
    return f"{found[1]}_{_NO_WORD.sub('_', found[2])}".rstrip("_") if found else ""


def program_of(text: str) -> str:
    """The program that a module's range runs, such as "jit_step"; "" for every other range."""
    module = _MODULE.match(text)
    return module[1] if module else ""


def is_xla(text: str) -> bool:
    """Whether the text is a module's or a thunk's, in whatever domain."""
    return text.startswith((MODULE, THUNK))
