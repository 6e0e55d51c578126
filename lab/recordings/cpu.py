"""Recordings that every machine can make."""

from __future__ import annotations

import json
import threading

import torch
from torch import nn
from torch.nn import functional
from torch.profiler import record_function
from torch.utils.checkpoint import checkpoint

from recordings.recorder import Recorder
from recordings.subjects import CLASSES, MLP, SmallNet, image_batch, loader_step, training_step


def cpu_training(rec: Recorder) -> None:
    """Two training steps, shapes"""
    rec.steps(training_step(rec.device))


def cpu_plain(rec: Recorder) -> None:
    """Two training steps, every option off"""
    rec.steps(training_step(rec.device), record_shapes=False)


def cpu_stack(rec: Recorder) -> None:
    """A training step with Python stacks and nn.Module views"""
    rec.steps(training_step(rec.device), steps=1, with_stack=True, with_modules=True)


def cpu_memory(rec: Recorder) -> None:
    """Two training steps with memory events"""
    rec.steps(training_step(rec.device), profile_memory=True)


def cpu_all_options(rec: Recorder) -> None:
    """A training step with shapes, memory, stacks, modules and FLOPs"""
    options = {"with_stack": True, "with_modules": True, "profile_memory": True, "with_flops": True}
    rec.steps(training_step(rec.device), steps=1, **options)


def cpu_no_steps(rec: Recorder) -> None:
    """Two training steps without a schedule: no ProfilerStep"""
    step = training_step(rec.device)
    rec.block(lambda: (step(), step()))


def cpu_inference(rec: Recorder) -> None:
    """Forward only, in inference mode"""
    model = SmallNet().eval()
    images, _ = image_batch(rec.device)

    @torch.inference_mode()
    def step() -> object:
        return model(images)

    rec.steps(step)


def cpu_loader(rec: Recorder) -> None:
    """A DataLoader without workers"""
    rec.steps(loader_step(rec.device, workers=0, batches=8))


def cpu_loader_workers(rec: Recorder) -> None:
    """A DataLoader with two workers"""
    rec.steps(loader_step(rec.device, workers=2, batches=8))


def cpu_user_ranges(rec: Recorder) -> None:
    """Nested record_function ranges, and one in a second thread"""
    step = training_step(rec.device)

    def other() -> None:
        with record_function("other thread"):
            torch.ones(8).add(1)

    def body() -> None:
        with record_function("outer"):
            with record_function("inner"):
                step()
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()

    rec.steps(body)


def cpu_checkpoint(rec: Recorder) -> None:
    """Activation checkpointing: forward ops inside the backward pass"""
    model = MLP()
    inputs, labels = torch.randn(8, 64, requires_grad=True), torch.randint(0, CLASSES, (8,))

    def step() -> None:
        functional.cross_entropy(checkpoint(model, inputs, use_reentrant=False), labels).backward()

    step()
    rec.steps(step)


def cpu_gradient_penalty(rec: Recorder) -> None:
    """A backward pass through a backward pass"""
    model = MLP()
    inputs = torch.randn(8, 64, requires_grad=True)

    def step() -> None:
        (gradient,) = torch.autograd.grad(model(inputs).sum(), inputs, create_graph=True)
        gradient.pow(2).sum().backward()

    step()
    rec.steps(step)


def cpu_accumulation(rec: Recorder) -> None:
    """Two forward and backward passes to one optimizer step (Adam)"""
    model = MLP()
    optimizer = torch.optim.Adam(model.parameters())
    inputs, labels = torch.randn(8, 64), torch.randint(0, CLASSES, (8,))

    def step() -> None:
        optimizer.zero_grad()
        for _ in range(2):
            functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    step()
    rec.steps(step)


def cpu_script(rec: Recorder) -> None:
    """A scripted model (TorchScript) with module views"""
    model = torch.jit.script(MLP())
    rec.steps(
        training_step(rec.device, model, (torch.randn(8, 64), torch.randint(0, CLASSES, (8,)))), with_modules=True
    )


def cpu_empty(rec: Recorder) -> None:
    """Nothing but the steps"""
    rec.steps(lambda: None)


def cpu_steps_many(rec: Recorder) -> None:
    """Twenty steps of a linear layer"""
    model = nn.Linear(4, 2)
    inputs = torch.randn(2, 4)
    rec.steps(lambda: model(inputs).sum().backward(), steps=20)


def cpu_verbose(rec: Recorder) -> None:
    """_ExperimentalConfig(verbose=True)"""
    from torch._C._profiler import _ExperimentalConfig

    rec.steps(
        training_step(rec.device), experimental_config=_ExperimentalConfig(verbose=True), with_stack=True, steps=1
    )


def cpu_metadata(rec: Recorder) -> None:
    """expose_kineto_event_metadata, overload names, all threads, user metadata in the file"""
    from torch._C._profiler import _ExperimentalConfig
    from torch.profiler import profile

    config = _ExperimentalConfig(
        expose_kineto_event_metadata=True, capture_overload_names=True, profile_all_threads=True
    )
    step = training_step(rec.device)
    with profile(activities=rec.activities(), record_shapes=True, experimental_config=config) as prof:
        prof.add_metadata("note", 'a text with "quotes"')
        prof.add_metadata_json("settings", json.dumps({"depth": 2}))
        step()
    rec.keep(prof)


def cpu_legacy(rec: Recorder) -> None:
    """torch.autograd.profiler without Kineto: a bare list of events with no categories"""
    step = training_step(rec.device)
    with torch.autograd.profiler.profile(use_kineto=False, record_shapes=True) as prof:
        step()
    rec.keep(prof)


def cpu_events_export(rec: Recorder) -> None:
    """EventList.export_chrome_trace: torch's Python exporter over Kineto's events"""
    import tempfile
    from pathlib import Path

    step = training_step(rec.device)
    with torch.profiler.profile(activities=rec.activities()) as prof:
        step()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        prof.events().export_chrome_trace(str(path))
        rec.keep_trace(path.read_bytes())
    rec.keep_averages(prof.events())


def cpu_hook(rec: Recorder) -> None:
    """Recorded with tb_dlprof_plugin.profile(model=...)"""
    from recordings.hook import record_hook

    record_hook(rec, steps=2)


KINDS = [
    cpu_training,
    cpu_plain,
    cpu_stack,
    cpu_memory,
    cpu_all_options,
    cpu_no_steps,
    cpu_inference,
    cpu_loader,
    cpu_loader_workers,
    cpu_user_ranges,
    cpu_checkpoint,
    cpu_gradient_penalty,
    cpu_accumulation,
    cpu_script,
    cpu_empty,
    cpu_steps_many,
    cpu_verbose,
    cpu_metadata,
    cpu_legacy,
    cpu_events_export,
    cpu_hook,
]
