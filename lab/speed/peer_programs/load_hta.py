"""Loads one trace file with HTA, and analyses nothing."""

from __future__ import annotations

import sys

from hta.trace_analysis import TraceAnalysis

if __name__ == "__main__":
    traces = TraceAnalysis(trace_files={0: sys.argv[1]}).t.traces
    if not len(traces.get(0, ())):
        sys.exit("HTA loaded no events")
