"""The remedies of rules in the words of frameworks other than PyTorch, whose words the rules themselves have.

A rule applies to another framework if it has a remedy for it here, or if its text is about no framework. All others are
not applicable: what they look for are PyTorch's ops, settings and habits. Where a recording does not say its framework,
remedies are those of any program that calls CUDA. How to record better depends on the recorder: what PyTorch's own
profiler needs is of no use under Nsight Systems.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from tb_dlprof_plugin.advice.finding import EvidenceRow, FindingItem, Reference
from tb_dlprof_plugin.model.frameworks import (
    JAX,
    ONNXRUNTIME,
    PYTORCH,
    TENSORFLOW,
    TENSORRT,
    is_of_python,
    recording_of,
)
from tb_dlprof_plugin.model.profile import Source

ANY_FRAMEWORK = frozenset({"bad_iteration_range", "bad_tensor_shape", "imbalanced_gpu"})
"""Rules whose texts hold for every framework; code of PyTorch is left out."""


@dataclass(frozen=True, slots=True)
class FrameworkRemedy:
    """What to do, with code, and where it is described; ``title`` in place of the rule's own."""

    change: str
    code: str = ""
    references: tuple[Reference, ...] = ()
    title: str = ""


_XLA_FLAGS = Reference("JAX: GPU performance tips", "https://docs.jax.dev/en/latest/gpu_performance_tips.html")
_JAX_PRECISION = Reference(
    "JAX: jax.default_matmul_precision", "https://docs.jax.dev/en/latest/_autosummary/jax.default_matmul_precision.html"
)
_JAX_ASYNC = Reference("JAX: asynchronous dispatch", "https://docs.jax.dev/en/latest/async_dispatch.html")
_JAX_PROFILING = Reference("JAX: profiling computation", "https://docs.jax.dev/en/latest/profiling.html")
_KERAS_MIXED = Reference("TensorFlow: mixed precision", "https://www.tensorflow.org/guide/mixed_precision")
_TF_DATA = Reference("TensorFlow: better performance with tf.data", "https://www.tensorflow.org/guide/data_performance")
_TF_PROFILER = Reference("TensorFlow: profiler guide", "https://www.tensorflow.org/guide/profiler")
_TRT_PRECISION = Reference(
    "TensorRT: working with reduced precision",
    "https://docs.nvidia.com/deeplearning/tensorrt/latest/inference-library/accuracy-considerations.html",
)
_ORT_FLOAT16 = Reference(
    "ONNX Runtime: float16 and mixed precision models",
    "https://onnxruntime.ai/docs/performance/model-optimizations/float16.html",
)

_JAX_PIPELINE = """import itertools, collections

def prefetch(batches, size=2):  # copies the next batches while this one is trained on
    queue = collections.deque(jax.device_put(b) for b in itertools.islice(batches, size))
    while queue:
        yield queue.popleft()
        queue.extend(jax.device_put(b) for b in itertools.islice(batches, 1))
"""
_TF_PIPELINE = """dataset = (
    dataset.map(load, num_parallel_calls=tf.data.AUTOTUNE)
    .batch(batch_size)
    .prefetch(tf.data.AUTOTUNE)
)
"""
_KERAS_STEPS = """model.compile(..., steps_per_execution=10, jit_compile=True)
"""

_GUIDE = Reference(
    "CUDA C++ Best Practices Guide", "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html"
)
_GRAPHS = Reference(
    "CUDA C++ Programming Guide: CUDA graphs",
    "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#cuda-graphs",
)
_NVTX = Reference("NVTX: annotating C, C++ and Python", "https://nvidia.github.io/NVTX/")
_NSYS = Reference("Nsight Systems User Guide", "https://docs.nvidia.com/nsight-systems/UserGuide/index.html")
_TRTEXEC = Reference(
    "TensorRT: trtexec", "https://docs.nvidia.com/deeplearning/tensorrt/latest/reference/command-line-programs.html"
)
_ORT_CUDA = Reference(
    "ONNX Runtime: CUDA execution provider",
    "https://onnxruntime.ai/docs/execution-providers/CUDA-ExecutionProvider.html",
)
_ANY = ""
"""A recording that does not say its framework: any program that calls CUDA."""

_LAUNCHING = {
    _ANY: FrameworkRemedy(
        "Launch larger kernels, or record the launches that repeat as a CUDA graph once and replay them in one call.",
        "cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);\n"
        "step(stream);  // the launches of one step\n"
        "cudaStreamEndCapture(stream, &graph);\n"
        "cudaGraphInstantiate(&executable, graph, 0);\n"
        "for (...) cudaGraphLaunch(executable, stream);\n",
        (_GRAPHS,),
    ),
    TENSORRT: FrameworkRemedy(
        "Run the engine as a CUDA graph, or with a larger batch.",
        "trtexec --loadEngine=model.engine --useCudaGraph\n",
        (_TRTEXEC,),
    ),
    ONNXRUNTIME: FrameworkRemedy(
        "Run the model as a CUDA graph, with inputs and outputs bound to GPU memory.",
        'providers = [("CUDAExecutionProvider", {"enable_cuda_graph": "1"})]\n',
        (_ORT_CUDA,),
    ),
    JAX: FrameworkRemedy(
        "Put the whole step, the optimizer with it, into one jax.jit, and let XLA replay it as command buffers (CUDA "
        "graphs). A loop of equal layers or steps is one launch by jax.lax.scan.",
        '@functools.partial(jax.jit, donate_argnums=0)\ndef train_step(state, batch): ...\n\n# XLA_FLAGS="'
        '--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUSTOM_CALL"\n',
        (_XLA_FLAGS,),
    ),
    TENSORFLOW: FrameworkRemedy(
        "Run several steps in one call, and compile the model by XLA, which fuses small ops.",
        _KERAS_STEPS,
        (_TF_PROFILER,),
    ),
}
_COPIES = {
    _ANY: FrameworkRemedy(
        "Allocate the buffers on the CPU as pinned memory, and copy them by cudaMemcpyAsync on a stream of its own "
        "while kernels run.",
        "cudaMallocHost(&batch, bytes);\n"
        "cudaMemcpyAsync(on_gpu, batch, bytes, cudaMemcpyHostToDevice, copies);\n"
        "cudaEventRecord(ready, copies);\n"
        "cudaStreamWaitEvent(work, ready, 0);\n",
        (_GUIDE,),
    ),
    ONNXRUNTIME: FrameworkRemedy(
        "Bind inputs and outputs to GPU memory, so that no run copies them.",
        'binding = session.io_binding()\nbinding.bind_ortvalue_input("x", on_gpu)\nbinding.bind_output("y", "cuda")\n'
        "session.run_with_iobinding(binding)\n",
        (_ORT_CUDA,),
    ),
    JAX: FrameworkRemedy(
        "Copy the next batches by jax.device_put while this one is trained on: it returns before the copy ends.",
        _JAX_PIPELINE,
        (_JAX_ASYNC,),
    ),
    TENSORFLOW: FrameworkRemedy(
        "Let tf.data copy the next batches to the GPU.",
        'dataset = dataset.apply(tf.data.experimental.prefetch_to_device("/GPU:0"))\n',
        (_TF_DATA,),
    ),
}
_WAITS = {
    _ANY: FrameworkRemedy(
        "Wait for events of the streams that matter, and only where a result is read: cudaDeviceSynchronize and copies "
        "of pageable memory stop the thread that launches.",
        "cudaEventRecord(done, stream);\n...\ncudaEventSynchronize(done);  // where the result is read\n",
        (_GUIDE,),
    ),
    JAX: FrameworkRemedy(
        "Read values of the GPU (float(loss), np.asarray, print, block_until_ready) once in many steps, not in each: "
        "JAX runs ahead of the GPU until a value is read.",
        "if step % 100 == 0:\n    print(step, float(loss))\n",
        (_JAX_ASYNC,),
    ),
    TENSORFLOW: FrameworkRemedy(
        "Read values of the GPU (.numpy(), print) once in many steps, not in each; inside a tf.function use tf.print "
        "and metrics.",
        "if step % 100 == 0:\n    print(step, loss.numpy())\n",
        (_TF_PROFILER,),
    ),
}

_REMEDIES: dict[str, dict[str, FrameworkRemedy]] = {
    "amp_not_used": {
        JAX: FrameworkRemedy(
            "Compute in bfloat16: keep the parameters in float32 and cast them and the inputs where they are used. In "
            "Flax that is dtype=jnp.bfloat16 of a module.",
            "x = x.astype(jnp.bfloat16)  # in the loss function\n"
            "params = jax.tree.map(lambda p: p.astype(jnp.bfloat16), params)\n"
            "# Flax: nn.Dense(features, dtype=jnp.bfloat16, param_dtype=jnp.float32)\n",
            (_JAX_PRECISION,),
            "Half precision is not used",
        ),
        TENSORFLOW: FrameworkRemedy(
            "Set Keras' mixed precision policy before the model is built. The last layer should return float32.",
            'tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")  # or "mixed_float16", on older GPUs\n',
            (_KERAS_MIXED,),
            "Mixed precision is not used",
        ),
        TENSORRT: FrameworkRemedy(
            "Build the engine with --fp16, which lets TensorRT choose FP16 by layer, and check the accuracy.",
            "trtexec --onnx=model.onnx --fp16 --saveEngine=model.fp16.engine\n",
            (_TRT_PRECISION,),
            "The engine does not use half precision",
        ),
        ONNXRUNTIME: FrameworkRemedy(
            "Convert the model to float16.",
            "from onnxconverter_common import float16\n\n"
            'onnx.save(float16.convert_float_to_float16(onnx.load("model.onnx")), "model.fp16.onnx")\n',
            (_ORT_FLOAT16,),
            "Half precision is not used",
        ),
    },
    "tf32_off": {
        JAX: FrameworkRemedy(
            "Allow TF32: inputs keep FP32's range, products are rounded to 10 bits of mantissa. Where the run asks for "
            '"highest" or "float32", drop that.',
            'jax.config.update("jax_default_matmul_precision", "tensorfloat32")\n',
            (_JAX_PRECISION,),
        ),
        TENSORFLOW: FrameworkRemedy(
            "Allow TF32, which is on unless it was switched off.",
            "tf.config.experimental.enable_tensor_float_32_execution(True)\n",
            (
                Reference(
                    "TensorFlow: enable_tensor_float_32_execution",
                    "https://www.tensorflow.org/api_docs/python/tf/config/experimental/"
                    "enable_tensor_float_32_execution",
                ),
            ),
        ),
        TENSORRT: FrameworkRemedy(
            "Build the engine without --noTF32, on a GPU that has TF32.",
            "trtexec --onnx=model.onnx --saveEngine=model.engine\n",
            (_TRT_PRECISION,),
        ),
        ONNXRUNTIME: FrameworkRemedy(
            "Allow TF32 in the CUDA provider.",
            'providers = [("CUDAExecutionProvider", {"use_tf32": 1})]\n',
            (
                Reference(
                    "ONNX Runtime: CUDA execution provider",
                    "https://onnxruntime.ai/docs/execution-providers/CUDA-ExecutionProvider.html",
                ),
            ),
        ),
    },
    "dataloader_bound": {
        TENSORFLOW: FrameworkRemedy(
            "Load in parallel and ahead of the step: parallel map, cache what fits into memory, and prefetch last.",
            _TF_PIPELINE,
            (_TF_DATA,),
            "The step waits for the input pipeline",
        ),
        JAX: FrameworkRemedy(
            "Load ahead of the step, in another thread or process, and copy by jax.device_put.",
            _JAX_PIPELINE,
            (_JAX_ASYNC,),
            "The step waits for the input pipeline",
        ),
    },
    "launch_bound": _LAUNCHING,
    "low_utilization_stretch": _LAUNCHING,
    "gpu_underutilized": _LAUNCHING,
    "gpu_gaps": {
        _ANY: FrameworkRemedy(
            "Do what the CPU does in the gap once, in another thread, or after the next launches.", references=(_GUIDE,)
        ),
        JAX: FrameworkRemedy(
            "Take what Python does in the gap out of the step: do it once, in another thread, or inside jax.jit. "
            "Values read from the GPU (float(loss)) make such gaps, too.",
            references=(_JAX_ASYNC,),
        ),
        TENSORFLOW: FrameworkRemedy(
            "Take what Python does in the gap out of the step: callbacks, metrics and summaries once in many steps, "
            "preprocessing into tf.data.",
            references=(_TF_PROFILER,),
        ),
    },
    "copies_not_overlapped": _COPIES,
    "pageable_copies": _COPIES,
    "blocking_copies": _COPIES,
    "synchronising_calls": _WAITS,
    "communication_bound": {
        JAX: FrameworkRemedy(
            "Let XLA schedule collectives in parallel with computing.",
            'XLA_FLAGS="--xla_gpu_enable_latency_hiding_scheduler=true"\n',
            (_XLA_FLAGS,),
        ),
        TENSORFLOW: FrameworkRemedy(
            "Exchange fewer bytes or larger batches less often: a larger batch per GPU, and NCCL as the "
            "implementation.",
            "options = tf.distribute.experimental.CommunicationOptions(\n"
            "    implementation=tf.distribute.experimental.CommunicationImplementation.NCCL)\n"
            "strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)\n",
        ),
    },
    "no_iterations": {
        _ANY: FrameworkRemedy(
            "Push an NVTX range around each step.",
            '#include <nvtx3/nvToolsExt.h>\n\nnvtxRangePushA("iteration 1");\n...\nnvtxRangePop();\n',
            (_NVTX,),
        ),
        JAX: FrameworkRemedy(
            "Mark each step.",
            "for step in range(steps):\n"
            '    with jax.profiler.StepTraceAnnotation("train", step_num=step):\n'
            "        state, loss = train_step(state, next(batches))\n",
            (_JAX_PROFILING,),
        ),
        TENSORFLOW: FrameworkRemedy(
            "Mark each step; Keras does it where its own callback profiles.",
            "for step in range(steps):\n"
            '    with tf.profiler.experimental.Trace("train", step_num=step, _r=1):\n'
            "        train_step(next(batches))\n"
            "# Keras: tf.keras.callbacks.TensorBoard(logdir, profile_batch=(10, 20))\n",
            (_TF_PROFILER,),
        ),
        TENSORRT: FrameworkRemedy(
            "Record the times of the inferences, too.",
            "trtexec --loadEngine=model.engine --exportTimes=times.json --exportProfile=profile.json "
            "--separateProfileRun\n",
        ),
    },
    "missing_annotations": {
        _ANY: FrameworkRemedy(
            "Push an NVTX range around each part of the program.",
            'nvtxRangePushA("solver");\n...\nnvtxRangePop();\n',
            (_NVTX,),
        ),
        JAX: FrameworkRemedy(
            "Name the parts of the model. Flax names its modules by itself.",
            'with jax.named_scope("attention"):\n    y = attention(x)\n',
            (_JAX_PROFILING,),
        ),
        TENSORFLOW: FrameworkRemedy(
            "Name the parts of the model. Keras names its layers by itself.",
            'with tf.name_scope("attention"):\n    y = attention(x)\n',
        ),
    },
    "profiling_window": {
        JAX: FrameworkRemedy(
            "Record some ten steps, after those that compile.",
            "for step in range(20):\n    if step == 10:\n        jax.profiler.start_trace(logdir)\n    ...\n"
            "jax.profiler.stop_trace()\n",
            (_JAX_PROFILING,),
        ),
        TENSORFLOW: FrameworkRemedy(
            "Record some ten steps, after the first ones.",
            "tf.keras.callbacks.TensorBoard(logdir, profile_batch=(10, 20))\n",
            (_TF_PROFILER,),
        ),
    },
}

_STEP_RANGES = """for step, batch in enumerate(loader):
    torch.cuda.nvtx.range_push(f"iteration {step}")
    ...
    torch.cuda.nvtx.range_pop()
"""
_MODULE_RANGES = """def begin(module, args):
    torch.cuda.nvtx.range_push(module.path)

for path, module in model.named_modules():
    module.path = path
    module.register_forward_pre_hook(begin)
    module.register_forward_hook(lambda *_: torch.cuda.nvtx.range_pop())
"""
_WINDOW = """if step == 10:
    torch.cuda.profiler.start()
if step == 20:
    torch.cuda.profiler.stop()
# nsys profile --trace=cuda,nvtx --capture-range=cudaProfilerApi python train.py
"""
_OF_PYTORCH_UNDER_NSYS = {
    "no_iterations": FrameworkRemedy("Push an NVTX range around each pass through the loop.", _STEP_RANGES, (_NVTX,)),
    "missing_annotations": FrameworkRemedy(
        "Push an NVTX range around each module.", _MODULE_RANGES, (_NVTX,), "The recording has no module names"
    ),
    "profiling_window": FrameworkRemedy("Record some ten steps, after the first ones.", _WINDOW, (_NSYS,)),
}
"""How PyTorch under a profiler of CUDA is recorded better, in place of options of PyTorch's own profiler."""
_OF_CUDA = ("nsys", "nvprof")


def _remedy(rule: str, source: Source) -> FrameworkRemedy | None:
    if source.framework == PYTORCH:
        return _OF_PYTORCH_UNDER_NSYS.get(rule) if source.format in _OF_CUDA else None
    return _REMEDIES.get(rule, {}).get(source.framework)


def why_not(rule: str, framework: str) -> str:
    """The reason why a rule does not apply to a framework; "" where it does."""
    if framework == PYTORCH or rule in ANY_FRAMEWORK or framework in _REMEDIES.get(rule, {}):
        return ""
    return f"Not applicable: the rule is about PyTorch, and {recording_of(framework)}."


def in_words_of(source: Source, item: FindingItem) -> FindingItem:
    """A finding with the remedy of what was recorded in place of that of PyTorch under its own profiler."""
    remedy = _remedy(item.rule, source)
    if remedy is None and source.framework == PYTORCH:
        return item
    if remedy is None:
        code = item.code if item.code.startswith("tb-dlprof ") else ""
        return msgspec.structs.replace(
            item,
            title=plain_words(source.framework, item.title),
            seen=plain_words(source.framework, item.seen),
            change=plain_words(source.framework, item.change),
            evidence=_rows(source, item),
            code=code,
            references=[],
        )
    _, colon, after = item.title.partition(":")
    return msgspec.structs.replace(
        item,
        title=plain_words(
            source.framework,
            (f"{remedy.title}{colon}{after}" if colon else remedy.title) if remedy.title else item.title,
        ),
        seen=plain_words(source.framework, item.seen),
        change=remedy.change,
        code=remedy.code,
        evidence=_rows(source, item),
        confirm=plain_words(source.framework, item.confirm),
        saving=None
        if item.saving is None
        else msgspec.structs.replace(item.saving, derivation=plain_words(source.framework, item.saving.derivation)),
        references=list(remedy.references),
    )


_WORDS = (
    ("a run with autocast", "a run with the change"),
    ("casts and the gradient scaler make", "casts make"),
    ("are spent in the DataLoader", "are spent waiting for data"),
    ("DataLoader settings: not recorded.", ""),
    ("is spent waiting in the DataLoader", "is spent waiting for data"),
    (
        "least by torch.compile alone, most with all of the step in CUDA graphs",
        "most with all of the step in CUDA graphs",
    ),
    (" TF32: matmul is not recorded, cuDNN is not recorded.", ""),
    ("the CPU runs Python code outside of PyTorch", "the CPU runs Python between ops"),
    ("DataLoader", "input pipeline"),
)
"""Words of PyTorch in what rules have seen, and the plain ones."""
_WORDS_OF_PYTHON = (
    ("the CPU runs Python between ops", "the CPU is between recorded calls"),
    ("waits for Python", "waits for the CPU between recorded calls"),
    ("Python with the GPU idle", "the CPU between recorded calls, with the GPU idle"),
    ("The training loop", "The program"),
    (" of the training)", " of the run)"),
    ("is part of the training", "is part of the program"),
    (", such as those of a training whose input sizes vary", ", such as those whose input sizes vary"),
)
"""Of a training in Python, for programs of any language."""


def title_in(framework: str, rule: str, title: str) -> str:
    """The title of a rule, in words that fit the framework."""
    remedy = _REMEDIES.get(rule, {}).get(framework)
    return remedy.title if remedy is not None and remedy.title else title


def plain_words(framework: str, text: str) -> str:
    """A sentence of a rule without words of PyTorch, for another framework."""
    if framework == PYTORCH:
        return text
    for pytorch, plain in _WORDS if is_of_python(framework) else _WORDS + _WORDS_OF_PYTHON:
        text = text.replace(pytorch, plain)
    return text.strip()


def _rows(source: Source, item: FindingItem) -> list[EvidenceRow]:
    return [msgspec.structs.replace(row, label=plain_words(source.framework, row.label)) for row in item.evidence]


def precision_remedy(precision: str, framework: str) -> tuple[str, str, str] | None:
    """Label, change and code of a precision ("tf32", "fp16", "bf16") in a framework; None for PyTorch, and where none
    is known."""
    remedy = _REMEDIES["tf32_off" if precision == "tf32" else "amp_not_used"].get(framework)
    return None if remedy is None else (precision.upper(), remedy.change, remedy.code)
