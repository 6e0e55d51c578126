"""Loads a run directory as torch-tb-profiler's TensorBoard plugin does, a process per trace file included."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point; the one argument is the run directory."""
    from torch_tb_profiler import io
    from torch_tb_profiler.profiler.loader import RunLoader

    run = RunLoader("run", sys.argv[1], io.Cache()).load()
    # A file that its process could not load is only logged.
    if not [worker for worker, _ in run.profiles if worker != "All"]:
        sys.exit("torch-tb-profiler loaded no profile")


if __name__ == "__main__":
    main()
