"""Reads the settings of NVIDIA Apex' amp, if the training uses it. Imports nothing of Apex, changes nothing.

``apex.amp`` keeps one state per process (apex/amp/_amp_state.py): the properties that ``amp.initialize`` was given, and
a LossScaler per loss. Its scale and its count of steps without overflow are Python numbers, so that reading them does
not synchronise.
"""

from __future__ import annotations

import sys
from typing import Any

from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.model.run_facts import RunFacts

_STATE_MODULE = "apex.amp._amp_state"


def fill_apex(facts: RunFacts) -> None:
    """Fill opt_level and, of the first loss, the scale; leaves them None where Apex' amp is not in use."""
    state: Any = getattr(sys.modules.get(_STATE_MODULE), "_amp_state", None)
    properties = getattr(state, "opt_properties", None)
    if properties is None or not properties.enabled:
        return
    facts.apex_opt_level = probe(lambda: None if properties.opt_level is None else str(properties.opt_level))
    scaler: Any = next(iter(getattr(state, "loss_scalers", ())), None)
    if scaler is None or facts.grad_scaler_scale is not None:
        return
    facts.grad_scaler_scale = probe(lambda: float(scaler.loss_scale()))
    facts.grad_scaler_growth_tracker = probe(lambda: int(scaler._unskipped))
