"""In the process of one side: runs the test's step in blocks, whenever the test that compares asks for one."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn

import pytest

from tb_dlprof_plugin.trial.protocol import Block, decode, encode, lines

VARIABLE = "TB_DLPROF_STEP"
"""The environment variable with the request, as JSON."""


@dataclass(frozen=True)
class StepRequest:
    """What a process is to serve.

    Attributes:
        descriptor: of the socket.
        call: the number of the call of `not_slower` in the test, from 0 on.
        root: of the repository's working tree.
        test_file: of the working tree.
    """

    descriptor: int
    call: int
    root: str
    test_file: str

    def to_json(self) -> str:
        """For the environment."""
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class StepFacts:
    """What the process says of itself once its step is there.

    Attributes:
        device: the GPU's name, or the CPU's; "" if unknown.
        driver: of NVIDIA; "" without a GPU.
        torch: version; "" where the step does not import it.
        sources: files of the working tree that it has imported, without tests.
    """

    device: str
    driver: str
    torch: str
    sources: list[str]


def asked() -> StepRequest | None:
    """The request of this process; None where it is an ordinary run of tests."""
    text = os.environ.get(VARIABLE)
    return None if text is None else StepRequest(**json.loads(text))


def serve(step: Callable[[], object], request: StepRequest) -> NoReturn:
    """Run blocks of steps until the other end closes, then skip the rest of the test."""
    with socket.socket(fileno=request.descriptor) as channel:
        channel.sendall(encode("step_ready", _facts(request)))
        buffer = bytearray()
        while received := channel.recv(65536):
            buffer += received
            for line in lines(buffer):
                _, message = decode(line)
                channel.sendall(encode("block", _block(step, int(message["steps"]))))
    pytest.skip("its steps were measured")


def _block(step: Callable[[], object], steps: int) -> Block:
    wait = _wait_for_gpu()
    wait()
    began = time.perf_counter()
    for _ in range(steps):
        step()
    wait()
    return Block(steps, time.perf_counter() - began)


def _wait_for_gpu() -> Callable[[], object]:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return torch.cuda.synchronize
    return lambda: None


def _facts(request: StepRequest) -> StepFacts:
    from tb_dlprof_plugin.capture.facts.machine import complete_system
    from tb_dlprof_plugin.model.run_facts import System

    system = complete_system(System())
    torch = sys.modules.get("torch")
    on_gpu = torch is not None and torch.cuda.is_initialized()
    return StepFacts(
        device=str(torch.cuda.get_device_name() if torch is not None and on_gpu else system.cpu_model or ""),
        driver=system.driver_version or "" if on_gpu else "",
        torch="" if torch is None else str(torch.__version__),
        sources=_sources(Path(request.root), Path(request.test_file)),
    )


def _sources(root: Path, test_file: Path) -> list[str]:
    prefix = Path(sys.prefix).resolve()
    found = set()
    for module in list(sys.modules.values()):
        name = getattr(module, "__file__", None)
        if not isinstance(name, str):
            continue
        path = Path(name).resolve()
        if not path.is_relative_to(root) or path.is_relative_to(prefix):
            continue
        beside_tests = path.name == "__init__.py" and test_file.is_relative_to(path.parent)
        if path not in (test_file, root) and path.name != "conftest.py" and not beside_tests:
            found.add(str(path))
    return sorted(found)
