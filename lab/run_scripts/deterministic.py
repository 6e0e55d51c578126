"""Run a script with torch's deterministic algorithms, so that on a GPU, too, its training repeats itself.

python lab/run_scripts/deterministic.py SCRIPT [ARGS]
"""

from __future__ import annotations

import os
import runpy
import sys

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch

if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit((__doc__ or "").strip())
    torch.use_deterministic_algorithms(True, warn_only=True)
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
