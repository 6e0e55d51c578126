"""Prints what torch-tb-profiler computes of one trace file, as JSON; its own figures, in its own units."""

from __future__ import annotations

import json
import sys
import tempfile


def main() -> None:
    """Entry point; the one argument is the trace file."""
    from torch_tb_profiler.profiler.data import RunProfileData
    from torch_tb_profiler.profiler.event_parser import ProfileRole

    with tempfile.TemporaryDirectory() as folder:
        data = RunProfileData.parse("worker", None, sys.argv[1], folder)
    kernels = data.kernel_stat
    json.dump(
        {
            "steps": [
                {"name": name, **{role.name: float(cost.costs[role]) for role in ProfileRole}}
                for name, cost in zip(data.steps_names, data.steps_costs, strict=True)
            ],
            "gpu_utilization": {
                str(gpu): data.gpu_metrics_parser.gpu_utilization[gpu] for gpu in data.gpu_metrics_parser.gpu_ids
            },
            "kernels": []
            if kernels is None
            else [
                {"name": str(name), **{key: float(row[key]) for key in ("count", "sum", "min", "max")}}
                for name, row in kernels.iterrows()
            ],
            "kernels_by_op": [
                {"name": k.name, "op": k.op_name, "calls": k.calls, "sum": float(k.total_duration)}
                for k in data.kernel_list_groupby_name_op
            ],
            "ops": [
                {
                    "name": op.name,
                    "calls": op.calls,
                    "host_total": float(op.host_duration),
                    "host_self": float(op.self_host_duration),
                    "device_total": float(op.device_duration),
                    "device_self": float(op.self_device_duration),
                }
                for op in data.op_list_groupby_name
            ],
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
