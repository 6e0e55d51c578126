"""Loads one trace file with Python's own json, and does nothing with it."""

from __future__ import annotations

import gzip
import json
import sys

if __name__ == "__main__":
    path = sys.argv[1]
    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as stream:
        json.load(stream)
