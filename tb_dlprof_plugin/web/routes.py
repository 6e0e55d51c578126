"""The names of the routes. A separate module, because TensorBoard's start needs them before the pages are imported."""

from __future__ import annotations

ROUTES = (
    "runs",
    "overview",
    "ops",
    "op",
    "modules",
    "kernels",
    "launches",
    "timeline",
    "timeline_events",
    "timeline_event",
    "timeline_matches",
    "tensor_cores",
    "roofline",
    "memory",
    "key_nodes",
    "search",
    "related",
    "report",
    "advice",
    "trust",
    "compare",
    "many_runs",
    "by_model",
    "sweep",
    "compare_op",
    "forecast",
    "trace_links",
)
