"""Runs a script with some remedies in this process, times its steps and ends it: no gate, no interleaving.

The independent measurement for the grid: ``python timed_script.py '{"remedies": [...], "warmup": 10, "seconds": 3}'
script.py``. The last line of stdout is a JSON object. The variables of the remedies must be set by the caller.
With ``"rounds": 6`` it says "ready" after the warm-up, and six times waits for a line on stdin, warms up shortly and
says what it timed: several processes then start together and are timed in turns.
"""

from __future__ import annotations

import builtins
import json
import os
import runpy
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

_FEWEST = 5
"""Steps that are timed."""
_WARMUP = 4
"""Steps before each round."""


class Timer:
    """Times steps from the end of the warm-up on, and ends the process."""

    def __init__(self, applied: Any, warmup: int, seconds: float, rounds: int = 0) -> None:
        self._applied, self._warmup, self._seconds = applied, warmup, seconds
        self._rounds, self._waits = max(rounds, 1), rounds > 0
        self._step, self._timed_from = 0, warmup
        self._began = time.perf_counter()
        self._first = 0.0

    def after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Torch's hook after each step of an optimizer."""
        self._applied.step_ended(self._step)
        self._step += 1
        if self._waits and self._step == self._warmup:
            _wait()
            print("\nready", flush=True)
            self._next_round()
        timed = self._step - self._timed_from
        if timed == 0:
            _wait()
            self._first = time.perf_counter()
        elif timed >= _FEWEST and timed % _FEWEST == 0:
            _wait()
            now = time.perf_counter()
            if now - self._first >= self._seconds:
                self._say((now - self._first) / timed)

    def _next_round(self) -> None:
        sys.stdin.readline()
        self._timed_from = self._step + _WARMUP

    def _say(self, step_s: float) -> None:
        import torch

        peak = torch.cuda.max_memory_allocated() if torch.cuda.is_initialized() else None
        said = {
            "step_ms": 1e3 * step_s,
            "start_s": self._first - self._began,
            "peak_bytes": peak,
            "no_effect": self._applied.no_effect(),
        }
        print("\n" + json.dumps(said), flush=True)
        self._rounds -= 1
        if self._rounds:
            self._next_round()
            return
        # Workers of DataLoaders end with their parent; nothing of the script has to be saved.
        os._exit(0)


def _wait() -> None:
    import torch

    if torch.cuda.is_initialized():
        # Not torch.cuda.synchronize, which a remedy replaces.
        torch._C._cuda_synchronize()


def _after_import_of_torch(attach: Callable[[], None]) -> None:
    """The script may set variables before it imports torch: remedies come right after that, as in `tb-dlprof try`."""
    original = builtins.__import__

    def importing(name: str, *args: Any, **kwargs: Any) -> Any:
        outermost = name.partition(".")[0] == "torch" and "torch" not in sys.modules
        module = original(name, *args, **kwargs)
        if outermost:
            builtins.__import__ = original
            attach()
        return module

    builtins.__import__ = importing


def main() -> None:
    """See the module's docstring."""
    request, script = json.loads(sys.argv[1]), sys.argv[2]

    def attach() -> None:
        from torch.optim.optimizer import register_optimizer_step_post_hook

        from tb_dlprof_plugin.trial.inside.applied import AppliedRemedies

        applied = AppliedRemedies(request["remedies"])
        timer = Timer(applied, request["warmup"], request["seconds"], request.get("rounds", 0))
        applied.start()
        register_optimizer_step_post_hook(timer.after_step)

    _after_import_of_torch(attach)
    sys.argv = [script, *sys.argv[3:]]
    sys.path.insert(0, str(Path(script).resolve().parent))
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
