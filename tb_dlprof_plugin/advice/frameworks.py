"""What the rules say of frameworks other than PyTorch: words for their sentences, and remedies that rules share.

A rule applies to PyTorch, to the frameworks of its remedies, or to any. Where a recording does not say its framework,
remedies are those of any program that calls CUDA. How to record better depends on the recorder: what PyTorch's own
profiler needs is of no use under Nsight Systems.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tb_dlprof_plugin.advice.finding import Reference
from tb_dlprof_plugin.model.frameworks import JAX, ONNXRUNTIME, PYTORCH, TENSORFLOW, TENSORRT, is_of_python
from tb_dlprof_plugin.model.profile import Source

ANY = ""
"""A recording that does not say its framework: any program that calls CUDA."""
UNDER_NSYS = "PyTorch under a profiler of CUDA"
"""How PyTorch is recorded better there, in place of options of PyTorch's own profiler."""
_OF_CUDA = ("nsys", "nvprof")


@dataclass(frozen=True, slots=True)
class FrameworkRemedy:
    """What to do, with code, and where it is described; ``title`` in place of the rule's own."""

    change: str
    code: str = ""
    references: tuple[Reference, ...] = ()
    title: str = ""


Remedies = Mapping[str, FrameworkRemedy]
"""By framework, by `ANY` or by `UNDER_NSYS`."""


def remedy_for(remedies: Remedies, source: Source) -> FrameworkRemedy | None:
    """The remedy in place of PyTorch's under its own profiler; None where there is none."""
    if source.framework == PYTORCH:
        return remedies.get(UNDER_NSYS) if source.format in _OF_CUDA else None
    return remedies.get(source.framework)


@dataclass(frozen=True, slots=True)
class Words:
    """What the sentences of rules call the parts of a program.

    Attributes:
        program: what runs the steps, at the start of a sentence.
        training: what the steps are part of.
        run: what numbers the steps.
        loader: what loads the batches.
        waiting_for_data: what the CPU does where a batch is missing.
        python: what the CPU does outside every recorded call, after "the CPU".
        waits_for_python: what the GPU does meanwhile.
        python_idle: that time, as a label.
        casts: what mixed precision adds to the launches.
        fewest_graphs: how launches are saved at the least.
    """

    program: str
    training: str
    run: str
    loader: str
    waiting_for_data: str
    python: str
    waits_for_python: str
    python_idle: str
    casts: str
    fewest_graphs: str


_PYTORCH = Words(
    program="The training loop",
    training="training",
    run="training",
    loader="the DataLoader",
    waiting_for_data="waiting in the DataLoader",
    python="runs Python code outside PyTorch",
    waits_for_python="waits for Python",
    python_idle="Python with the GPU idle",
    casts="casts and the gradient scaler",
    fewest_graphs="least by torch.compile alone, ",
)
_PYTHON = replace(
    _PYTORCH,
    loader="the input pipeline",
    waiting_for_data="waiting for data",
    python="runs Python between ops",
    casts="casts",
    fewest_graphs="",
)
_ANY_LANGUAGE = replace(
    _PYTHON,
    program="The program",
    training="program",
    run="run",
    python="is between recorded calls",
    waits_for_python="waits for the CPU between recorded calls",
    python_idle="the CPU between recorded calls, with the GPU idle",
)


def words_of(framework: str) -> Words:
    """The words for a program of a framework."""
    return _PYTORCH if framework == PYTORCH else _PYTHON if is_of_python(framework) else _ANY_LANGUAGE


XLA_FLAGS = Reference("JAX: GPU performance tips", "https://docs.jax.dev/en/latest/gpu_performance_tips.html")
JAX_PRECISION = Reference(
    "JAX: jax.default_matmul_precision", "https://docs.jax.dev/en/latest/_autosummary/jax.default_matmul_precision.html"
)
JAX_ASYNC = Reference("JAX: asynchronous dispatch", "https://docs.jax.dev/en/latest/async_dispatch.html")
JAX_PROFILING = Reference("JAX: profiling computation", "https://docs.jax.dev/en/latest/profiling.html")
KERAS_MIXED = Reference("TensorFlow: mixed precision", "https://www.tensorflow.org/guide/mixed_precision")
TF_DATA = Reference("TensorFlow: better performance with tf.data", "https://www.tensorflow.org/guide/data_performance")
TF_PROFILER = Reference("TensorFlow: profiler guide", "https://www.tensorflow.org/guide/profiler")
TRT_PRECISION = Reference(
    "TensorRT: working with reduced precision",
    "https://docs.nvidia.com/deeplearning/tensorrt/latest/inference-library/accuracy-considerations.html",
)
ORT_FLOAT16 = Reference(
    "ONNX Runtime: float16 and mixed precision models",
    "https://onnxruntime.ai/docs/performance/model-optimizations/float16.html",
)
GUIDE = Reference(
    "CUDA C++ Best Practices Guide", "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html"
)
GRAPHS = Reference(
    "CUDA C++ Programming Guide: CUDA graphs",
    "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#cuda-graphs",
)
NVTX = Reference("NVTX: annotating C, C++ and Python", "https://nvidia.github.io/NVTX/")
NSYS = Reference("Nsight Systems User Guide", "https://docs.nvidia.com/nsight-systems/UserGuide/index.html")
TRTEXEC = Reference(
    "TensorRT: trtexec", "https://docs.nvidia.com/deeplearning/tensorrt/latest/reference/command-line-programs.html"
)
ORT_CUDA = Reference(
    "ONNX Runtime: CUDA execution provider",
    "https://onnxruntime.ai/docs/execution-providers/CUDA-ExecutionProvider.html",
)

JAX_PIPELINE = """import itertools, collections

def prefetch(batches, size=2):  # copies the next batches while this one is trained on
    queue = collections.deque(jax.device_put(b) for b in itertools.islice(batches, size))
    while queue:
        yield queue.popleft()
        queue.extend(jax.device_put(b) for b in itertools.islice(batches, 1))
"""
_KERAS_STEPS = """model.compile(..., steps_per_execution=10, jit_compile=True)
"""

LAUNCHING = {
    ANY: FrameworkRemedy(
        "Launch larger kernels, or record the launches that repeat as a CUDA graph once and replay them in one call.",
        "cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);\n"
        "step(stream);  // the launches of one step\n"
        "cudaStreamEndCapture(stream, &graph);\n"
        "cudaGraphInstantiate(&executable, graph, 0);\n"
        "for (...) cudaGraphLaunch(executable, stream);\n",
        (GRAPHS,),
    ),
    TENSORRT: FrameworkRemedy(
        "Run the engine as a CUDA graph, or with a larger batch.",
        "trtexec --loadEngine=model.engine --useCudaGraph\n",
        (TRTEXEC,),
    ),
    ONNXRUNTIME: FrameworkRemedy(
        "Run the model as a CUDA graph, with inputs and outputs bound to GPU memory.",
        'providers = [("CUDAExecutionProvider", {"enable_cuda_graph": "1"})]\n',
        (ORT_CUDA,),
    ),
    JAX: FrameworkRemedy(
        "Put the whole step, the optimizer with it, into one jax.jit, and let XLA replay it as command buffers (CUDA "
        "graphs). A loop of equal layers or steps is one launch by jax.lax.scan.",
        '@functools.partial(jax.jit, donate_argnums=0)\ndef train_step(state, batch): ...\n\n# XLA_FLAGS="'
        '--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUSTOM_CALL"\n',
        (XLA_FLAGS,),
    ),
    TENSORFLOW: FrameworkRemedy(
        "Run several steps in one call, and compile the model by XLA, which fuses small ops.",
        _KERAS_STEPS,
        (TF_PROFILER,),
    ),
}
COPIES = {
    ANY: FrameworkRemedy(
        "Allocate the buffers on the CPU as pinned memory, and copy them by cudaMemcpyAsync on a stream of its own "
        "while kernels run.",
        "cudaMallocHost(&batch, bytes);\n"
        "cudaMemcpyAsync(on_gpu, batch, bytes, cudaMemcpyHostToDevice, copies);\n"
        "cudaEventRecord(ready, copies);\n"
        "cudaStreamWaitEvent(work, ready, 0);\n",
        (GUIDE,),
    ),
    ONNXRUNTIME: FrameworkRemedy(
        "Bind inputs and outputs to GPU memory, so that no run copies them.",
        'binding = session.io_binding()\nbinding.bind_ortvalue_input("x", on_gpu)\nbinding.bind_output("y", "cuda")\n'
        "session.run_with_iobinding(binding)\n",
        (ORT_CUDA,),
    ),
    JAX: FrameworkRemedy(
        "Copy the next batches by jax.device_put while this one is trained on: it returns before the copy ends.",
        JAX_PIPELINE,
        (JAX_ASYNC,),
    ),
    TENSORFLOW: FrameworkRemedy(
        "Let tf.data copy the next batches to the GPU.",
        'dataset = dataset.apply(tf.data.experimental.prefetch_to_device("/GPU:0"))\n',
        (TF_DATA,),
    ),
}
WAITS = {
    ANY: FrameworkRemedy(
        "Wait for events of the streams that matter, and only where a result is read: cudaDeviceSynchronize and copies "
        "of pageable memory stop the thread that launches.",
        "cudaEventRecord(done, stream);\n...\ncudaEventSynchronize(done);  // where the result is read\n",
        (GUIDE,),
    ),
    JAX: FrameworkRemedy(
        "Read values of the GPU (float(loss), np.asarray, print, block_until_ready) once in many steps, not in each: "
        "JAX runs ahead of the GPU until a value is read.",
        "if step % 100 == 0:\n    print(step, float(loss))\n",
        (JAX_ASYNC,),
    ),
    TENSORFLOW: FrameworkRemedy(
        "Read values of the GPU (.numpy(), print) once in many steps, not in each; inside a tf.function use tf.print "
        "and metrics.",
        "if step % 100 == 0:\n    print(step, loss.numpy())\n",
        (TF_PROFILER,),
    ),
}
