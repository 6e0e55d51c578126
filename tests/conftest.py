"""Literal Kineto traces for the tests: `new_trace` begins one, `training` makes a whole small recording.

Times are microseconds, as in the files. Helpers come to tests as fixtures, because test directories are no packages.
"""

from __future__ import annotations

import functools
import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from support import leftovers, recorded_runs
from support.trace_builder import BACKWARD_THREAD, MAIN_THREAD, TraceBuilder
from support.worker_groups import BEGIN_FIRST, GroupScheduling, group_of

from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef

# As many workers as cores run, each with processes of its own: more threads than one would wait for each other.
for _threads in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

# What a recording leaves must not depend on whether torch-tb-profiler is installed; the tests of its copies say so.
os.environ.setdefault("TB_DLPROF_PYTORCH_VIEWS", "0")
# Not this user's: what one test run keeps, no other finds.
os.environ["XDG_CACHE_HOME"] = os.environ["XDG_DATA_HOME"] = tempfile.mkdtemp(prefix="tb_dlprof_tests_")
# The line about a recording runs all rules, which takes an analysis longer; the tests of that line ask for it.
os.environ.setdefault("TB_DLPROF_QUIET", "1")

# A run names another profile with --hypothesis-profile, as `make test-all` does.
settings.register_profile("short", max_examples=40, deadline=None)
settings.register_profile("long", max_examples=400, deadline=None)
settings.load_profile("short")

TESTS = Path(__file__).resolve().parent

FFMA_CONV = (
    "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nchwkcrs_nchw_tilesize128x64x8_stage3_warpsize2x2x1_g1_ffma_"
    "t1r3s3_execute_kernel__5x_cudnn"
)
FFMA_GEMM = (
    "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel"
    "__5x_cublas"
)
TF32_CONV = (
    "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16_stage4_warpsize2x2x1_g1_"
    "tensor16x8x8_execute_kernel__5x_cudnn"
)
TF32_GEMM = "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x64_32x3_tn_align4>(Params)"
FP16_CONV = (
    "sm90_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_warpgroupsize1x1x1_g1_"
    "execute_segment_k_off_kernel__5x_cudnn"
)
FP16_GEMM = "nvjet_sm90_hsh_128x64_64x8_2x1_v_bz_TNN"
ELEMENTWISE = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
    "(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)"
)
CAST = "void at::native::unrolled_elementwise_kernel<at::native::float16_copy_kernel_cuda>(int)"
MULTI_TENSOR = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::BinaryOpListAlphaFunctor>"
CONV_KERNELS = {"fp32": FFMA_CONV, "tf32": TF32_CONV, "fp16": FP16_CONV}
GEMM_KERNELS = {"fp32": FFMA_GEMM, "tf32": TF32_GEMM, "fp16": FP16_GEMM}


_NEEDS_TORCH_OR_A_BROWSER = re.compile(
    r"^(?:import|from) (?:torch|playwright|planted)\b|importorskip\(\"(?:torch|playwright)\"\)"
    r"|^from support(?:\.| import .*)(?:script_runs|tensorboard|jupyter|program_server)\b",
    re.MULTILINE,
)


@functools.cache
def _is_slow(path: Path) -> bool:
    """Whether all tests of a file need torch, a TensorBoard or a browser."""
    if path.relative_to(TESTS).parts[0] in ("e2e", "capture", "demo"):
        return True
    return path.name.startswith("test_") and bool(_NEEDS_TORCH_OR_A_BROWSER.search(path.read_text()))


def _has_slow_tests(path: Path) -> bool:
    """Whether a file has tests that `pytest_collection_modifyitems` marks slow, or that say so themselves."""
    texts = [one.read_text() for one in (path, path.parent / "conftest.py") if one.is_file()]
    return _is_slow(path) or any(re.search(r"mark\.slow|start_tensorboard", text) for text in texts)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`make test` does not import what it leaves out: torch may be missing. In `make landing` it takes less time so."""
    if TESTS not in collection_path.parents:
        return None
    if "not slow" in config.option.markexpr:
        return True if _is_slow(collection_path) else None
    is_left_out = config.option.markexpr.startswith("slow and ") and collection_path.name.startswith("test_")
    return True if is_left_out and not _has_slow_tests(collection_path) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks slow tests, those with a real TensorBoard too.

    Groups that take long come first, so that workers end at about the same time.
    """
    slow: Counter[str] = Counter()
    for item in items:
        if _is_slow(item.path) or "start_tensorboard" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
        slow[group_of(item.nodeid)] += any(item.get_closest_marker(name) for name in ("slow", "long"))
    items.sort(key=lambda item: (group_of(item.nodeid) not in BEGIN_FIRST, -slow[group_of(item.nodeid)]))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> GroupScheduling | None:
    return GroupScheduling(config, log) if config.getvalue("dist") == "loadscope" else None


@pytest.fixture(scope="session", autouse=True)
def _no_process_outlives_the_tests() -> Iterator[None]:
    """Set up first, so that it looks after every other fixture has ended what it started."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(leftovers.MARK, str(os.getpid()))
        yield
    assert leftovers.leftovers() == []


@pytest.fixture(scope="session", autouse=True)
def _recorded_runs_stay_as_they_are() -> Iterator[None]:
    yield
    assert recorded_runs.changed_views() == []


@pytest.fixture(scope="session")
def new_trace(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., TraceBuilder]:
    """Makes an empty trace; keyword arguments become keys of the JSON document."""
    folder = tmp_path_factory.mktemp("traces")
    return lambda **document: TraceBuilder(folder, **document)


@pytest.fixture(scope="session")
def training(new_trace: Callable[..., TraceBuilder]) -> Callable[..., TraceBuilder]:
    """Makes a recording of training steps of 1000 µs each on one GPU: conv1, fc, loss, backward, optimizer.

    In "fp32" kernels take 740 µs of a step: convolution forward 200 and backward 300, linear 100 and 100, loss 10,
    optimizer 30; a copy takes 20, the DataLoader 100. In "tf32" the matrix kernels take half of that; in "fp16" a
    fifth, and two casts of 10 µs are added. The backward node of the linear layer comes in two parts. One kernel of
    50 µs was launched before the recording began; one of 5 µs has a launch call in no op.
    """

    def make(
        precision: str = "fp32", *, steps: int = 3, capability: tuple[int, int] | None = (9, 0), loader: float = 100
    ) -> TraceBuilder:
        trace = new_trace(baseTimeNanoseconds=1_700_000_000_000_000_000, cuda_runtime_version=12040)
        # Names of known GPUs tell their capability.
        trace.gpu(*(capability or (None, None)), name="NVIDIA H200" if capability else "NVIDIA Unheard")
        factor = {"fp32": 1.0, "tf32": 0.5, "fp16": 0.2}[precision]
        dtype = "c10::Half" if precision == "fp16" else "float"
        trace.kernel(ELEMENTWISE, -60, 50, 3)
        for index in range(steps):
            _training_step(trace, index, precision, factor, dtype, loader)
        trace.launch(ELEMENTWISE, 1000 * steps - 10, 1000 * steps - 6, 5)
        return trace

    return make


def _training_step(
    trace: TraceBuilder, index: int, precision: str, factor: float, dtype: str, loader: float = 100
) -> None:
    at, seq = 1000 * index, 10 * index
    conv, gemm = CONV_KERNELS[precision], GEMM_KERNELS[precision]
    trace.step(5 + index, at, 1000)
    if loader:
        trace.loader(at, loader)
    trace.op("aten::to", at + 100, 18, dims=[[8, 3, 32, 32]], types=["float"])
    trace.op("aten::copy_", at + 101, 16, dims=[[8, 3, 32, 32]], types=["float"])
    trace.launch("Memcpy HtoD (Pageable -> Device)", at + 102, at + 110, 20, bytes=98304)

    image, weight, row, matrix = [8, 3, 32, 32], [16, 3, 3, 3], [8, 64], [64, 10]
    trace.module("conv1", at + 120, 80)
    trace.op("aten::conv2d", at + 125, 60, dims=[image, weight], types=["float", "float"])
    clock = at + 160.0
    if precision == "fp16":
        trace.op("aten::to", at + 126, 14, dims=[image], types=["float"])
        trace.launch(CAST, at + 130, clock, 10)
        clock += 10
    trace.op("aten::convolution", at + 142, 42, seq=seq, dims=[image, weight], types=[dtype, dtype])
    trace.op("aten::cudnn_convolution", at + 145, 35, dims=[image, weight], types=[dtype, dtype])
    trace.launch(
        conv, at + 150, clock, 200 * factor, grid=[16, 1, 1], block=[256, 1, 1], registers_per_thread=128,
        shared_memory=4096, **{"est._achieved_occupancy_%": 25},
    )  # fmt: skip
    clock += 200 * factor
    trace.module("fc", at + 210, 40)
    trace.op("aten::linear", at + 212, 33, dims=[row, matrix], types=["float", "float"])
    if precision == "fp16":
        trace.op("aten::to", at + 213, 5, dims=[row], types=["float"])
        trace.launch(CAST, at + 214, clock, 10)
        clock += 10
    trace.op("aten::addmm", at + 219, 21, seq=seq + 1, dims=[[10], row, matrix], types=[dtype, dtype, dtype])
    trace.launch(gemm, at + 222, clock, 100 * factor)
    clock += 100 * factor
    trace.op("aten::nll_loss_forward", at + 260, 20, seq=seq + 2, dims=[[8, 10]], types=["float"])
    trace.launch(ELEMENTWISE, at + 265, clock, 10)
    clock += 10

    trace.backward("AddmmBackward0", at + 300, 30, seq + 1)
    trace.op("AddmmBackward0", at + 302, 26, tid=BACKWARD_THREAD, seq=seq + 1, fwd=MAIN_THREAD)
    trace.op("aten::mm", at + 305, 20, tid=BACKWARD_THREAD, dims=[[8, 10], [10, 64]], types=[dtype, dtype])
    trace.launch(gemm, at + 310, clock, 100 * factor, tid=BACKWARD_THREAD)
    clock += 100 * factor
    trace.backward("torch::autograd::AccumulateGrad", at + 332, 6, seq + 1)
    trace.backward("ConvolutionBackward0", at + 350, 50, seq)
    trace.op(
        "aten::convolution_backward", at + 355, 40, tid=BACKWARD_THREAD,
        dims=[[8, 16, 30, 30], image, weight], types=[dtype, dtype, dtype],
    )  # fmt: skip
    trace.launch(conv, at + 370, clock, 300 * factor, tid=BACKWARD_THREAD)
    clock += 300 * factor

    trace.optimizer(at + 420, 60)
    trace.op("aten::_foreach_add_", at + 430, 40, types=["TensorList", "TensorList"])
    trace.launch(MULTI_TENSOR, at + 440, clock, 30)
    clock += 30
    # The loss is read: the CPU waits until the GPU is done.
    trace.op("aten::item", at + 500, clock + 6 - at - 500)
    trace.runtime(at + 501, clock + 5 - at - 501, name="cudaStreamSynchronize")


@pytest.fixture(scope="session")
def gpu_view(training: Callable[..., TraceBuilder]) -> ProfileView:
    """Three FP32 steps on an H200, which take as long without the profiler."""
    return training().view(facts=RunFacts(unprofiled_before_ns=[1_000_000] * 4))


@pytest.fixture(scope="session")
def cpu_trace(new_trace: Callable[..., TraceBuilder]) -> TraceBuilder:
    """Two steps of 100 µs of one linear layer without a GPU; ops take 60, the DataLoader 10 of each."""
    trace = new_trace()
    for index in range(2):
        at = 100 * index
        trace.step(index, at, 100)
        trace.loader(at, 10)
        trace.module("fc", at + 15, 32)
        trace.op("aten::linear", at + 16, 30, dims=[[8, 64], [64, 10]], types=["float", "float"])
        trace.op("aten::addmm", at + 18, 20, seq=index, dims=[[10], [8, 64], [64, 10]], types=["float"] * 3)
        trace.backward("AddmmBackward0", at + 50, 20, index)
        trace.op("aten::mm", at + 55, 10, tid=BACKWARD_THREAD, dims=[[8, 10], [10, 64]], types=["float"] * 2)
        trace.optimizer(at + 80, 15)
        trace.op("aten::add_", at + 82, 10)
    return trace


@pytest.fixture(scope="session")
def cpu_view(cpu_trace: TraceBuilder) -> ProfileView:
    return cpu_trace.view()


@pytest.fixture(scope="session")
def ref() -> RunRef:
    return RunRef("run", "trace", 0, 0)
