"""Recordings on one GPU."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.profiler import ProfilerActivity, record_function

from recordings.recorder import Recorder
from recordings.subjects import CLASSES, MLP, SmallNet, image_batch, loader_step, training_step


def _features(device: torch.device) -> tuple[Tensor, Tensor]:
    """A batch for `MLP`."""
    return torch.randn(64, 64, device=device), torch.randint(0, CLASSES, (64,), device=device)


def _resnet(rec: Recorder, precision: str, batch: int) -> Callable[[], Tensor]:
    from models import MODELS
    from training import Training

    torch.manual_seed(0)
    training = Training(MODELS["resnet50"].build((3, 224, 224), 1000), rec.device, precision, False)
    images = torch.randn(batch, 3, 224, 224, device=rec.device)
    labels = torch.randint(0, 1000, (batch,), device=rec.device)
    for _ in range(3):
        training.step(images, labels)
    return lambda: training.step(images, labels)


def resnet50_fp32(rec: Recorder) -> None:
    """ResNet-50, FP32, batch 128: GPU-bound, kernels queued before the recording"""
    rec.steps(_resnet(rec, "fp32", 128), warm=3)


def resnet50_amp_fp16(rec: Recorder) -> None:
    """ResNet-50, AMP FP16 with GradScaler, batch 128"""
    rec.steps(_resnet(rec, "amp-fp16", 128), warm=3, steps=1)


def cuda_training(rec: Recorder) -> None:
    """Two training steps of a small model, shapes"""
    rec.steps(training_step(rec.device))


def _graphed_step(device: torch.device) -> Callable[[], None]:
    """A whole training step in one CUDA graph."""
    torch.manual_seed(0)
    model = SmallNet().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images, labels = image_batch(device)

    def eager() -> None:
        optimizer.zero_grad(set_to_none=True)
        functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            eager()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    source = torch.randn(images.shape).pin_memory()

    def step() -> None:
        images.copy_(source, non_blocking=True)
        graph.replay()

    step()
    return step


def cuda_graph(rec: Recorder) -> None:
    """A whole training step captured as a CUDA graph, replayed"""
    rec.steps(_graphed_step(rec.device), steps=4)


def cuda_graph_callables(rec: Recorder) -> None:
    """torch.cuda.make_graphed_callables: graphs of forward and backward, an eager optimizer"""
    torch.manual_seed(0)
    model = SmallNet().to(rec.device)
    images, labels = image_batch(rec.device)
    graphed: Any = torch.cuda.make_graphed_callables(model, (images,))
    rec.steps(training_step(rec.device, graphed, (images, labels)))


def _compiled_step(rec: Recorder, mode: str) -> Callable[[], Tensor]:
    model = torch.compile(MLP().to(rec.device), mode=mode)
    step = training_step(rec.device, model, _features(rec.device))  # type: ignore[arg-type]
    for _ in range(4):
        step()
    return step


def torch_compile(rec: Recorder) -> None:
    """torch.compile: Triton kernels of inductor, training"""
    rec.steps(_compiled_step(rec, "default"))


def torch_compile_reduce_overhead(rec: Recorder) -> None:
    """torch.compile(mode="reduce-overhead"): Triton kernels in CUDA graphs, training"""
    rec.steps(_compiled_step(rec, "reduce-overhead"), warm=2)


def sdpa(rec: Recorder) -> None:
    """Fused attention by each backend (flash, memory-efficient, math, cuDNN), BF16, forward and backward"""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    backends = {
        "flash": SDPBackend.FLASH_ATTENTION,
        "efficient": SDPBackend.EFFICIENT_ATTENTION,
        "math": SDPBackend.MATH,
        "cudnn": SDPBackend.CUDNN_ATTENTION,
    }
    shape = (2, 4, 128, 64)
    query, key, value = (
        torch.randn(shape, device=rec.device, dtype=torch.bfloat16, requires_grad=True) for _ in range(3)
    )
    usable = {}
    for name, backend in backends.items():
        with contextlib.suppress(RuntimeError), sdpa_kernel(backend):
            functional.scaled_dot_product_attention(query, key, value).sum().backward()
            usable[name] = backend

    def step() -> None:
        for name, backend in usable.items():
            with record_function(f"attention {name}"), sdpa_kernel(backend):
                functional.scaled_dot_product_attention(query, key, value, is_causal=True).sum().backward()
        functional.scaled_dot_product_attention(query.float(), key.float(), value.float()).sum().backward()

    step()
    rec.steps(step)


def two_streams(rec: Recorder) -> None:
    """Two user streams whose kernels overlap, joined by events, copies on a third"""
    one, two, copies = (torch.cuda.Stream() for _ in range(3))
    left, right = (torch.randn(512, 512, device=rec.device) for _ in range(2))
    pinned = torch.randn(4 << 20).pin_memory()

    def step() -> None:
        start, first, second, copied = (torch.cuda.Event() for _ in range(4))
        start.record()
        with torch.cuda.stream(copies):
            copies.wait_event(start)
            moved = pinned.to(rec.device, non_blocking=True)
            copied.record()
        with torch.cuda.stream(one):
            one.wait_event(start)
            torch.cuda._sleep(200_000)
            product = left @ left
            product = torch.relu(product @ left)
            first.record()
        with torch.cuda.stream(two):
            two.wait_event(start)
            torch.cuda._sleep(100_000)
            other = right @ right
            torch.cuda._sleep(200_000)
            other = other.softmax(dim=1)
            second.record()
        current = torch.cuda.current_stream()
        for event in (first, second, copied):
            current.wait_event(event)
        for tensor in (product, other, moved):
            tensor.record_stream(current)
        total = product.sum() + other.sum() + moved.sum()
        total.item()

    step()
    rec.steps(step)


def steps_many(rec: Recorder) -> None:
    """Twenty steps of a linear layer"""
    model = nn.Linear(64, 64).to(rec.device)
    inputs = torch.randn(16, 64, device=rec.device)
    rec.steps(lambda: model(inputs).sum().backward(), steps=20)


def no_steps(rec: Recorder) -> None:
    """Two training steps without a schedule: no ProfilerStep"""
    step = training_step(rec.device)
    rec.block(lambda: (step(), step()))


def no_shapes(rec: Recorder) -> None:
    """Two training steps without shapes"""
    rec.steps(training_step(rec.device), record_shapes=False)


def with_stack(rec: Recorder) -> None:
    """A training step with Python stacks and nn.Module views"""
    rec.steps(training_step(rec.device), steps=1, with_stack=True, with_modules=True)


def with_memory(rec: Recorder) -> None:
    """Two training steps with memory events of the GPU's and the CPU's allocator"""
    rec.steps(training_step(rec.device, optimizer=torch.optim.Adam), profile_memory=True)


def all_options(rec: Recorder) -> None:
    """A training step with shapes, memory, stacks, modules and FLOPs"""
    options = {"with_stack": True, "with_modules": True, "profile_memory": True, "with_flops": True}
    rec.steps(training_step(rec.device, MLP(), _features(rec.device)), steps=1, **options)


def with_flops(rec: Recorder) -> None:
    """A training step with FLOPs and module views of TorchScript"""
    step = training_step(rec.device, torch.jit.script(MLP()), _features(rec.device))
    for _ in range(4):
        step()
    rec.steps(step, steps=1, with_flops=True, with_modules=True)


@contextlib.contextmanager
def _external_stream() -> Iterator[torch.cuda.Stream]:
    """A stream that another library would have made."""
    cudart: Any = torch.cuda.cudart()
    handle = ctypes.c_ulonglong(0)
    address = ctypes.addressof(handle)
    cudart.cudaStreamCreate(address)
    try:
        yield torch.cuda.ExternalStream(handle.value)
    finally:
        torch.cuda.synchronize()
        cudart.cudaStreamDestroy(handle.value)


def copies(rec: Recorder) -> None:
    """Pageable and pinned copies, sets, .item(), .cpu(), synchronizing calls, an external stream"""
    pageable, pinned = torch.randn(256, 256), torch.randn(256, 256).pin_memory()
    weight = torch.randn(256, 256, device=rec.device)

    with _external_stream() as external:

        def step() -> None:
            first = pageable.to(rec.device) @ weight
            second = pinned.to(rec.device, non_blocking=True) @ weight
            external.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(external):
                third = torch.relu(weight * 2)
                zeros = torch.zeros(1024, device=rec.device)
            torch.cuda.current_stream().wait_stream(external)
            (first.sum() + second.sum()).item()
            (third.mean() + zeros.mean()).cpu()
            torch.nonzero(first > 0)
            first[0, 0] = 1.0
            back = pinned.clone().pin_memory()
            back.copy_(second, non_blocking=True)
            copy = weight.clone()
            copy.zero_()
            torch.cuda.synchronize()

        step()
        rec.steps(step)


def loader_workers(rec: Recorder) -> None:
    """A DataLoader with two workers and pinned memory"""
    rec.steps(loader_step(rec.device, workers=2, batches=10), warm=2)


def inference(rec: Recorder) -> None:
    """Forward only, BF16 autocast, in inference mode"""
    model = SmallNet().to(rec.device).eval()
    images, _ = image_batch(rec.device)

    @torch.inference_mode()
    def step() -> None:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            model(images)

    step()
    rec.steps(step, steps=3)


def threads(rec: Recorder) -> None:
    """Training in two Python threads of one process"""

    steps = [training_step(rec.device, MLP(), _features(rec.device)) for _ in range(2)]

    def body() -> None:
        workers = [threading.Thread(target=step) for step in steps]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    body()
    rec.steps(body, steps=1)


def checkpointing(rec: Recorder) -> None:
    """Activation checkpointing, reentrant and not: forward kernels inside the backward pass"""
    from torch.utils.checkpoint import checkpoint

    blocks = [MLP().to(rec.device) for _ in range(2)]
    inputs = torch.randn(64, 64, device=rec.device, requires_grad=True)

    def step() -> None:
        for block, reentrant in zip(blocks, (False, True), strict=True):
            checkpoint(block, inputs, use_reentrant=reentrant).sum().backward()

    step()
    rec.steps(step)


def accumulation(rec: Recorder) -> None:
    """Two forward and backward passes to one optimizer step (fused Adam), clipped gradients"""
    model = MLP().to(rec.device)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    inputs = torch.randn(64, 64, device=rec.device)

    def step() -> None:
        optimizer.zero_grad()
        for _ in range(2):
            model(inputs).sum().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    step()
    rec.steps(step)


def lstm(rec: Recorder) -> None:
    """cuDNN's LSTM, training"""
    model = nn.LSTM(64, 128, num_layers=2).to(rec.device)
    inputs = torch.randn(20, 16, 64, device=rec.device)

    def step() -> None:
        model(inputs)[0].sum().backward()

    step()
    rec.steps(step)


def bert_bf16(rec: Recorder) -> None:
    """A two-layer BERT of transformers in BF16, AdamW, one step"""
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=512, vocab_size=1000
    )
    model = BertForMaskedLM(config).to(rec.device, torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters())
    tokens = torch.randint(0, 1000, (4, 64), device=rec.device)

    def step() -> None:
        optimizer.zero_grad()
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()

    step()
    rec.steps(step, steps=1)


def vit_amp(rec: Recorder) -> None:
    """timm's ViT-Tiny under AMP BF16, channels last, one step"""
    import timm

    model = timm.create_model("vit_tiny_patch16_224", pretrained=False, depth=4).to(rec.device)
    optimizer = torch.optim.AdamW(model.parameters())
    images = torch.randn(8, 3, 224, 224, device=rec.device).contiguous(memory_format=torch.channels_last)

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(images).float().sum()
        loss.backward()
        optimizer.step()

    step()
    rec.steps(step, steps=1)


def fp8(rec: Recorder) -> None:
    """torch._scaled_mm in FP8, with the casts to it"""
    left, right = torch.randn(256, 256, device=rec.device), torch.randn(256, 256, device=rec.device)
    one = torch.ones((), device=rec.device)

    def step() -> None:
        torch._scaled_mm(
            left.to(torch.float8_e4m3fn), right.to(torch.float8_e4m3fn).t(), one, one, out_dtype=torch.bfloat16
        )

    step()
    rec.steps(step)


def user_ranges(rec: Recorder) -> None:
    """Nested record_function ranges, NVTX ranges, cudaProfilerStart and Stop"""
    step = training_step(rec.device)

    def body() -> None:
        with record_function("outer"), torch.cuda.nvtx.range("nvtx"):
            torch.cuda.cudart().cudaProfilerStart()  # type: ignore[attr-defined]
            with record_function("inner"):
                step()
            torch.cuda.cudart().cudaProfilerStop()  # type: ignore[attr-defined]

    body()
    rec.steps(body)


def cuda_only(rec: Recorder) -> None:
    """Only ProfilerActivity.CUDA: kernels and runtime calls, no ops"""
    rec.steps(training_step(rec.device), activities=[ProfilerActivity.CUDA])


def sync_events(rec: Recorder) -> None:
    """enable_cuda_sync_events: waits on the GPU's timeline"""
    from torch._C._profiler import _ExperimentalConfig

    step = training_step(rec.device)
    side = torch.cuda.Stream()

    def body() -> None:
        loss = step()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            (loss * 2).item()
        torch.cuda.synchronize()

    body()
    rec.steps(body, experimental_config=_ExperimentalConfig(enable_cuda_sync_events=True))


def kineto_metadata(rec: Recorder) -> None:
    """expose_kineto_event_metadata, overload names, all threads"""
    from torch._C._profiler import _ExperimentalConfig

    config = _ExperimentalConfig(
        verbose=True, expose_kineto_event_metadata=True, capture_overload_names=True, profile_all_threads=True
    )
    rec.steps(training_step(rec.device), steps=1, experimental_config=config)


def no_external_ids(rec: Recorder) -> None:
    """disable_external_correlation: kernels without the op's id"""
    from torch._C._profiler import _ExperimentalConfig

    rec.steps(training_step(rec.device), experimental_config=_ExperimentalConfig(disable_external_correlation=True))


def legacy_cuda(rec: Recorder) -> None:
    """torch.autograd.profiler without Kineto, with CUDA events: a bare list of events"""
    step = training_step(rec.device)
    with torch.autograd.profiler.profile(use_device="cuda", use_kineto=False, record_shapes=True) as prof:
        step()
    rec.keep(prof)


def hook_fp32(rec: Recorder) -> None:
    """Recorded with tb_dlprof_plugin.profile(model=...)"""
    from recordings.hook import record_hook

    record_hook(rec, steps=2)


def hook_amp_bf16(rec: Recorder) -> None:
    """Recorded with tb_dlprof_plugin.profile(model=...), AMP BF16"""
    from recordings.hook import record_hook

    record_hook(rec, steps=2, precision="amp-bf16")


ALONE = [resnet50_fp32, resnet50_amp_fp16, two_streams]
"""Recorded while nothing else runs on the GPU, for what they show is in their times."""

NEED_COMPILER = [torch_compile, torch_compile_reduce_overhead]

KINDS = [
    *ALONE,
    *NEED_COMPILER,
    cuda_training,
    cuda_graph,
    cuda_graph_callables,
    sdpa,
    steps_many,
    no_steps,
    no_shapes,
    with_stack,
    with_memory,
    with_flops,
    all_options,
    copies,
    loader_workers,
    inference,
    threads,
    checkpointing,
    accumulation,
    lstm,
    bert_bf16,
    vit_amp,
    fp8,
    user_ranges,
    cuda_only,
    sync_events,
    kineto_metadata,
    no_external_ids,
    legacy_cuda,
    hook_fp32,
    hook_amp_bf16,
]
