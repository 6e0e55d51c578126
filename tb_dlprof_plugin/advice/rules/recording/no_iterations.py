"""No iterations were found.

A recording without marks of steps: no `prof.step()` was called and no optimizer stepped. Names what repeats as often
as steps would: DLProf's key nodes.

Why it matters: Without iterations there is no time per step, no spread, and nothing to compare: the whole recording
counts as one iteration, its beginning and its end included.

What to change: Call `prof.step()` at the end of each pass through the loop.

When to leave it: The recorded block is meant to be seen as a whole.

To confirm: The Overview shows one bar for each iteration.

In other tools:
- DLProf: No Iteration Detector

Read on:
- [PyTorch: torch.profiler.schedule](https://docs.pytorch.org/docs/stable/profiler.html)
- [DLProf User Guide: how do I find a good key node?](https://docs.nvidia.com/deeplearning/frameworks/dlprof-user-guide/index.html)
"""

from __future__ import annotations

from tb_dlprof_plugin.advice.frameworks import ANY, JAX_PROFILING, NVTX, TF_PROFILER, UNDER_NSYS, FrameworkRemedy
from tb_dlprof_plugin.advice.rule import EvidenceRow, Finding, Reading, Rule, RuleContext, Silent
from tb_dlprof_plugin.advice.text import ms
from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.found_by import found_by_words
from tb_dlprof_plugin.model.frameworks import JAX, TENSORFLOW, TENSORRT
from tb_dlprof_plugin.simulation.step_detection import key_nodes, unmarked

_STEP_RANGES = """for step, batch in enumerate(loader):
    torch.cuda.nvtx.range_push(f"iteration {step}")
    ...
    torch.cuda.nvtx.range_pop()
"""
_REMEDIES = {
    UNDER_NSYS: FrameworkRemedy("Push an NVTX range around each pass through the loop.", _STEP_RANGES, (NVTX,)),
    ANY: FrameworkRemedy(
        "Push an NVTX range around each step.",
        '#include <nvtx3/nvToolsExt.h>\n\nnvtxRangePushA("iteration 1");\n...\nnvtxRangePop();\n',
        (NVTX,),
    ),
    JAX: FrameworkRemedy(
        "Mark each step.",
        "for step in range(steps):\n"
        '    with jax.profiler.StepTraceAnnotation("train", step_num=step):\n'
        "        state, loss = train_step(state, next(batches))\n",
        (JAX_PROFILING,),
    ),
    TENSORFLOW: FrameworkRemedy(
        "Mark each step; Keras does it where its own callback profiles.",
        "for step in range(steps):\n"
        '    with tf.profiler.experimental.Trace("train", step_num=step, _r=1):\n'
        "        train_step(next(batches))\n"
        "# Keras: tf.keras.callbacks.TensorBoard(logdir, profile_batch=(10, 20))\n",
        (TF_PROFILER,),
    ),
    TENSORRT: FrameworkRemedy(
        "Record the times of the inferences, too.",
        "trtexec --loadEngine=model.engine --exportTimes=times.json --exportProfile=profile.json "
        "--separateProfileRun\n",
    ),
}
"""In the words of other frameworks and recorders."""

RULE = Rule(
    __name__,
    __doc__,
    without_steps=True,
    confidence="high",
    remedies=_REMEDIES,
)

_LOOP = """with tb_dlprof_plugin.profile(logdir, model=model) as prof:
    for batch in loader:
        ...
        prof.step()  # ends the iteration
"""
_ROWS = 3


def check(context: RuleContext) -> Finding | Silent:
    """Fires where nothing marks the steps."""
    view = context.view
    iterations = view.profile.iterations
    if not unmarked(view):
        count = f"{len(iterations)} iterations were" if len(iterations) > 1 else "1 iteration was"
        return Silent(f"{count} found by {found_by_words(iterations.found_by)}.")
    nodes = key_nodes(view, view.selection())
    duration = int(iterations.duration_ns.sum())
    seen = f"Nothing marks a step: the {ms(duration)} of the recording count as one iteration."
    if nodes:
        best = nodes[0]
        seen += (
            f" {best.name[0].upper()}{best.name[1:]} is called {best.calls} times, every "
            f"{ms(best.distance_ns)}, as are {len(nodes) - 1} other ops and modules: "
            f"{best.calls} steps of that length, if each call is one."
        )
        change = f"Call prof.step() after each pass through the loop that calls {best.name}."
        if key := next((node for node in nodes if node.key), None):
            change += f" The reports of this recording can be cut at {key.name}: tb-dlprof report --key-node {key.key}."
    else:
        seen += " No op repeats at even distances."
        change = "Call prof.step() after each pass through the loop."
    return RULE.finding(
        title=f"No iterations were found; {nodes[0].name} repeats {nodes[0].calls} times"
        if nodes
        else "No iterations were found",
        seen=seen,
        readings=[
            Reading("Iterations", 0, "count", 1),
            Reading("Repetitions of most ops", nodes[0].calls if nodes else None, "count"),
            Reading("Time from one to the next", nodes[0].distance_ns if nodes else None, "ns"),
        ],
        evidence=[
            EvidenceRow(
                f"{node.name}, {node.calls} times",
                node.distance_ns,
                percent(node.distance_ns, duration),
                "ops" if node.op else "modules",
                node.op,
            )
            for node in nodes[:_ROWS]
        ],
        change=change,
        code=_LOOP,
        saving="Marks change what can be seen, not the training.",
    )
