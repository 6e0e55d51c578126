"""What a user of each framework and format does to have recorded what a recording lacks: the second half of notes."""

from __future__ import annotations

from dataclasses import dataclass

from tb_dlprof_plugin.model.profile import Source


@dataclass(frozen=True, slots=True)
class Remedies:
    """How iterations, modules, shapes, memory, Python stacks, the time of a step without the profiler and
    ops come into a recording; each is the end of a sentence, "" for none."""

    steps: str = ""
    modules: str = ""
    shapes: str = ""
    memory: str = ""
    stacks: str = ""
    timing: str = ""
    ops: str = ""


_RANGES = Remedies(
    steps='push an NVTX range "iteration N" around each',
    modules="push an NVTX range around each",
    ops="record with --trace=cuda,nvtx, and push NVTX ranges: in PyTorch by torch.autograd.profiler.emit_nvtx()",
)
_EMITTED = Remedies(
    steps='push a range "iteration N" around each',
    modules="record with the hook, or push a range around each module",
    shapes="pass record_shapes=True to emit_nvtx",
    ops="record more than one iteration inside torch.autograd.profiler.emit_nvtx()",
)
_BY_FORMAT = {
    "kineto": Remedies(
        steps="call prof.step()",
        modules="pass model= to the hook",
        shapes="profile with record_shapes=True",
        memory="give profile_memory=True to tb_dlprof_plugin.profile(...), or to your own "
        "torch.profiler.profile(...), or record with tb-dlprof run --memory",
        stacks="it needs with_stack=True",
        timing="record with the hook or with tb-dlprof run, which time some",
        ops="record with ProfilerActivity.CPU as well, and more than one iteration",
    ),
    "tensorrt": Remedies(
        steps="run trtexec with --exportTimes=times.json, too, and import the files together",
        shapes="run trtexec with --exportLayerInfo=layers.json --profilingVerbosity=detailed, too",
    ),
    "nsys": _RANGES,
    "nvprof": _RANGES,
    "onnxruntime": Remedies(steps="run the session more than once"),
}
_BY_FORMAT_AND_FRAMEWORK = {
    ("nsys", "pytorch"): _EMITTED,
    ("nvprof", "pytorch"): _EMITTED,
}
_BY_FRAMEWORK = {
    "jax": Remedies(
        steps='run each step in `with jax.profiler.StepTraceAnnotation("train", step_num=i):`',
        modules='name parts of the model by `with jax.named_scope("attention"):`, or use Flax',
        shapes="record without options that leave the compiled programs out (Hlo Proto)",
        stacks="record with python_tracer_level=1 in jax.profiler.ProfileOptions",
    ),
    "tensorflow": Remedies(
        steps='run each step in `with tf.profiler.experimental.Trace("train", step_num=i, _r=1):`, or profile by Keras '
        "with TensorBoard(profile_batch=(10, 20))",
        modules="name layers, or build the model by Keras",
        stacks="record with python_tracer_level=1 in tf.profiler.experimental.ProfilerOptions",
    ),
}


def remedies_of(format_name: str, framework: str) -> Remedies:
    """What to do for a recording of this format and framework; nothing where we do not know."""
    return (
        _BY_FORMAT_AND_FRAMEWORK.get((format_name, framework))
        or _BY_FORMAT.get(format_name)
        or _BY_FRAMEWORK.get(framework)
        or Remedies()
    )


def remedies_for(source: Source) -> Remedies:
    """What to do for a profile of this source."""
    return remedies_of(source.format, source.framework)


def sentence(what: str, remedy: str) -> str:
    """What is missing, with the remedy where there is one."""
    return f"{what}; {remedy}." if remedy else f"{what}."
