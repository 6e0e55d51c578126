"""Names of kernels that the CUDA driver itself launches."""

from __future__ import annotations

import re

DRIVER_COPY = re.compile(r"^memcpy(?:32|64|128)(?:_\w+)?$")
"""A copy within a GPU. Nodes of CUDA graphs that copy run as such kernels: torch.profiler and XPlane record them as
kernels, Nsight Systems as copies."""
