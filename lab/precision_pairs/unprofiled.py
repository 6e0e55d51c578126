"""How near the estimated step without the profiler comes to the timed one, on all eager runs
that are stored.

    python -m lab.precision_pairs.unprofiled

Of runs whose GPU is busy for less than 90 % of the recorded step, the others need no estimate. The share of the
profiler in the CPU time is calibrated on these same runs (`python -m lab.precision_pairs.forecast` says how much
leaving a model out changes).
"""

from __future__ import annotations

import statistics

from tb_dlprof_plugin.simulation.estimate import step_estimate

from .forecast import frame_of, recordings


def main() -> None:
    """Entry point of the script."""
    recorded, estimated, inside, runs = [], [], 0, 0
    for run in recordings():
        if run.precision.startswith("compile") or not run.stored:
            continue
        runs += 1
        view = frame_of(run)
        step = step_estimate(view, view.selection())
        if not step.estimated:
            continue
        truth = run.step_ms * 1e6
        recorded.append(step.recorded_ns / truth - 1)
        estimated.append(step.ns / truth - 1)
        inside += step.low_ns <= truth <= step.high_ns
        print(
            f"{run.model:36} {run.precision:9} timed {run.step_ms:7.2f} ms, recorded {100 * recorded[-1]:+6.1f} %, "
            f"estimated {100 * estimated[-1]:+6.1f} %"
        )
    errors = [abs(error) for error in estimated]
    print(
        f"{len(estimated)} of {runs} eager runs are estimated: the recorded step is "
        f"{100 * statistics.median(recorded):.1f} % too long at the median; the estimate is off by "
        f"{100 * statistics.median(errors):.1f} % at the median, {100 * max(errors):.1f} % at most; its bounds "
        f"hold the timed step in {inside}"
    )


if __name__ == "__main__":
    main()
