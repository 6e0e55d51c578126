"""Disables ``emit_nvtx()``, in which scripts for DLProf wrap their training: only one autograd profiler can be
active."""

from __future__ import annotations

from typing import Any

from torch.autograd.profiler import emit_nvtx


class EmitNvtxDisabler:
    """Makes each ``with emit_nvtx():`` a no-op until `stop`; only Nsight Systems reads the NVTX ranges."""

    def __init__(self) -> None:
        self._original: Any = emit_nvtx.__enter__
        self.used = False

    def start(self) -> None:
        """Begin."""
        original = self._original

        def __enter__(block: Any) -> Any:
            if block.enabled:
                self.used = True
                block.enabled = False
                return block
            return original(block)

        setattr(emit_nvtx, "__enter__", __enter__)  # noqa: B010 (as a method it must not be assigned to)

    def stop(self) -> None:
        """Restore the original."""
        setattr(emit_nvtx, "__enter__", self._original)  # noqa: B010
