"""Debugging settings off, and algorithms that need not be deterministic."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tb_dlprof_plugin.capture.facts.switches import VARIABLES, slow_switches
from tb_dlprof_plugin.trial.inside.remedy import Changes, Remedy

if TYPE_CHECKING:
    from torch import nn

    from tb_dlprof_plugin.trial.edit import Edit, ScriptSource
    from tb_dlprof_plugin.trial.inside.hooks import TrialHooks


class SlowSwitchesOff(Remedy):
    name = "slow_switches_off"
    title = "Debugging switches off"
    usual_percent = 10.0
    rules = ("slow_api",)
    changes = Changes.NOTHING
    may_change = "Nothing; errors are reported later, or with less detail."

    def __init__(self) -> None:
        self._off: list[str] = []
        # Variables are read at the start of a process.
        self.in_running_process = not self.environment()

    def environment(self) -> Mapping[str, str]:
        return {name: _off(name) for name in _names_on()}

    def on_import(self, hooks: TrialHooks) -> None:
        import torch

        # Set by `environment`, or by the script before it imported torch: CUDA reads its variables later.
        self._off += [f"{name} in the environment" for name in VARIABLES if os.environ.get(name) in ("", "0")]
        for name in _names_on():
            self._off.append(f"{name} in the environment")
            os.environ[name] = _off(name)

        def make(original: Any) -> Any:
            def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
                if enabled:
                    self._off.append("anomaly mode")
                original(False)

            return set_anomaly_enabled

        if torch.is_anomaly_enabled():
            self._off.append("anomaly mode")
            hooks.on_undo(partial(torch.set_anomaly_enabled, True, torch.is_anomaly_check_nan_enabled()))
            torch.set_anomaly_enabled(False)
        # `detect_anomaly` and `set_detect_anomaly` call it.
        hooks.replace(torch, "set_anomaly_enabled", make)

    def on_model(self, model: nn.Module, hooks: TrialHooks) -> None:
        import torch

        for owner in (torch.backends.cudnn, torch.backends.mkldnn):
            if getattr(owner, "enabled", True) is False:
                hooks.set(owner, "enabled", True)
                self._off.append(f"{owner.__name__}.enabled = False")

    def no_effect(self) -> str | None:
        return None if self._off else "No debugging switch is on."

    def code(self) -> str:
        switched = "".join(f"# switched off: {one}\n" for one in dict.fromkeys(self._off))
        return switched or "torch.autograd.set_detect_anomaly(False)\n"

    def patch(self, script: ScriptSource) -> Sequence[Edit] | None:
        edits = []
        for call in script.calls("torch.autograd.set_detect_anomaly"):
            mode = next((one.value for one in call.node.keywords if one.arg == "mode"), None)
            mode = mode if mode is not None else call.node.args[0] if call.node.args else None
            if mode is None or call.file.source(mode) not in ("True", "False"):
                return None
            edits.append(call.file.replace(mode, "False"))
        return edits or None


class Nondeterministic(Remedy):
    name = "nondeterministic"
    title = "Algorithms need not be deterministic"
    usual_percent = 3.0
    rules = ("slow_api",)
    changes = Changes.ROUNDING
    may_change = "Sums are added in an order that may differ from run to run."
    group = "determinism"
    in_running_process = True

    def __init__(self) -> None:
        self._off = 0

    def on_import(self, hooks: TrialHooks) -> None:
        import torch

        def make(original: Any) -> Any:
            def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
                self._off += bool(mode)
                original(False)

            return use_deterministic_algorithms

        hooks.replace(torch, "use_deterministic_algorithms", make)

    def on_model(self, model: nn.Module, hooks: TrialHooks) -> None:
        import torch

        if torch.are_deterministic_algorithms_enabled():
            warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
            torch.use_deterministic_algorithms(False)
            # After `use_deterministic_algorithms` is torch's own again: what is undone last was replaced first.
            self._off += 1
            hooks.after_undo(partial(_deterministic, warn_only))
        if torch.backends.cudnn.deterministic:
            hooks.set(torch.backends.cudnn, "deterministic", False)
            self._off += 1

    def no_effect(self) -> str | None:
        return None if self._off else "No deterministic algorithms are asked for."

    def code(self) -> str:
        return "torch.use_deterministic_algorithms(False)\ntorch.backends.cudnn.deterministic = False\n"


def _deterministic(warn_only: bool) -> None:
    import torch

    torch.use_deterministic_algorithms(True, warn_only=warn_only)


def _names_on() -> list[str]:
    return [one.partition("=")[0] for one in slow_switches() if one.partition("=")[0] in VARIABLES]


def _off(name: str) -> str:
    """An empty value counts as not set for Python; CUDA reads a number."""
    return "0" if name.startswith(("CUDA_", "HIP_")) else ""


REMEDIES: tuple[type[Remedy], ...] = (SlowSwitchesOff, Nondeterministic)
