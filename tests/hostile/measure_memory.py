"""Reads the blobs named as arguments, each in a child of its own, and prints what reading it took beyond the start.

One line for each: MB of memory at the peak, seconds, and what came out ("decoded", or the sentence of the error).
"""

from __future__ import annotations

import os
import resource
import sys
import time
from pathlib import Path

from tb_dlprof_plugin.store.codec import ProfileError, decode


def measure(path: Path) -> None:
    """Reads one blob and prints the line."""
    blob = path.read_bytes()
    before, begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    try:
        decode(blob)
        result = "decoded"
    except ProfileError as error:
        result = str(error)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"{used / 1024:.0f}\t{time.process_time() - begin:.2f}\t{result}", flush=True)


for name in sys.argv[1:]:
    if not (child := os.fork()):
        measure(Path(name))
        os._exit(0)
    os.waitpid(child, 0)
