"""Prints what HTA computes of one trace file, as JSON; times in microseconds. The last step is included."""

from __future__ import annotations

import json
import logging
import sys
import warnings

from hta.common.trace import Trace
from hta.trace_analysis import TraceAnalysis

LONG_CALL_US, LONG_DELAY_US = 50, 100
"""HTA's own default cutoffs."""


def main() -> None:
    """Entry point; the one argument is the trace file."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, include_last_profiler_step=True)
    trace: Trace = analysis.t
    events = trace.traces[0]
    gpu = events[events["stream"].ne(-1)]
    categories = trace.symbol_table.get_sym_table()
    temporal = analysis.get_temporal_breakdown(visualize=False).iloc[0]
    overlap = float(analysis.get_comm_comp_overlap(visualize=False).iloc[0]["comp_comm_overlap_pctg"])
    idle, _ = analysis.get_idle_time_breakdown(visualize=False)
    launches = analysis.get_cuda_kernel_launch_stats(visualize=False)[0]
    delays = launches["launch_delay"]
    try:
        queues = {
            str(stream): float(series["queue_length"].max())
            for stream, series in analysis.get_queue_length_time_series()[0].groupby("stream")
        }
    except (AssertionError, KeyError, TypeError, ValueError):
        # HTA gives up where a launch has no kernel or several (graphs).
        queues = None
    json.dump(
        {
            "gpu_events": gpu["cat"].map(lambda number: categories[number]).value_counts().to_dict(),
            "temporal": {name: float(temporal[f"{name}(us)"]) for name in ("idle_time", "compute_time", "kernel_time")},
            "overlap_percent": None if overlap != overlap else overlap,
            "idle": [
                {"stream": int(row.stream), "category": row.idle_category, "time": float(row.idle_time)}
                for row in idle.itertuples()
            ],
            "launches": {
                "count": len(launches),
                "cpu_duration": float(launches["cpu_duration"].sum()),
                "gpu_duration": float(launches["gpu_duration"].sum()),
                "launch_delay": float(delays.sum()),
                "max_launch_delay": float(delays.max()) if len(launches) else 0.0,
                "short_kernels": int((launches["gpu_duration"] < launches["cpu_duration"]).sum()),
                "long_calls": int((launches["cpu_duration"] > LONG_CALL_US).sum()),
                "long_delays": int((delays > LONG_DELAY_US).sum()),
            },
            "queue": queues,
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
