"""What holds a GPU's clock down, by the names that facts of a run have for NVML's reasons."""

from __future__ import annotations

POWER = frozenset({"power cap", "power brake"})
HEAT = frozenset({"thermal slowdown", "thermal slowdown by hardware"})
