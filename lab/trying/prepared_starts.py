"""What a process of ``tb-dlprof try`` that waits with its imports done saves of a start.

    python -m lab.trying.prepared_starts [--repeats 3] [--pairs 6] [--deadline 300] [--out FOLDER]

Starts are from the request to the end of the first steps, in turns, of scripts whose packages are installed. *first* is
the first process of a trial, next to which the ones that will wait import. Then pairs of processes of one script with
one thread run in turns on the CPU: one that waited against one that did not, and two that did not. Their steps are
compared by their least CPU time, which other processes of the machine change least.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tb_dlprof_plugin.capture.launcher.protocol import INJECTED
from tb_dlprof_plugin.trial.isolation import choose
from tb_dlprof_plugin.trial.variant import Laboratory, Variant, VariantError, scratch_folder

_START_S = 120.0
_STEPS = 40
"""Of a block."""
_NOT_WAITING = {"TB_DLPROF_LAB": "a variable, so that the process is one that did not wait"}
_LOOP = """
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
model = make().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
while True:
    optimizer.zero_grad()
    loss(model).backward()
    optimizer.step()
"""
_SCRIPTS = {
    "torch": """
import torch
from torch import nn
def make():
    return nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))
def loss(model):
    return model(torch.randn(256, 256, device=device)).square().mean()
""",
    "torchvision": """
import torch
import torchvision
from torchvision import transforms
def make():
    return torchvision.models.resnet18()
def loss(model):
    return model(torch.randn(4, 3, 64, 64, device=device)).square().mean()
""",
    "transformers": """
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer
def make():
    return GPT2LMHeadModel(GPT2Config(vocab_size=1000, n_embd=128, n_layer=2, n_head=4))
def loss(model):
    ids = torch.randint(0, 1000, (4, 32), device=device)
    return model(input_ids=ids, labels=ids).loss
""",
    "timm": """
import torch
import timm
def make():
    return timm.create_model("resnet18")
def loss(model):
    return model(torch.randn(4, 3, 64, 64, device=device)).square().mean()
""",
    "pandas": """
import matplotlib.pyplot as plt
import pandas as pd
import torch
def make():
    return torch.nn.Linear(256, 256)
def loss(model):
    return model(torch.randn(256, 256, device=device)).square().mean()
""",
}
_ONE_THREAD = _SCRIPTS["torch"] + "torch.set_num_threads(1)\ntorch.cuda.is_available = lambda: False\n"


@contextmanager
def laboratory_of(text: str) -> Iterator[Laboratory]:
    """For processes of a script with this text."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "train.py").write_text(text + _LOOP)
        os.chdir(folder)
        made = Laboratory([sys.executable, "train.py"], scratch_folder(), INJECTED, choose(folder))
        try:
            yield made
        finally:
            made.close()
            os.chdir(before)


def start_s(laboratory: Laboratory, *, waited: bool) -> float:
    """Seconds of one start."""
    variant = Variant(laboratory, environment={} if waited else _NOT_WAITING)
    try:
        return variant.start(_START_S)[0].since_start_s
    finally:
        variant.end()


def first_s(laboratory: Laboratory) -> float:
    """Seconds of the first start, next to those of processes that will wait."""
    first = Variant(laboratory, environment=_NOT_WAITING)
    try:
        first.launch(_START_S)
        laboratory.prepare(2)
        return first.arrived()[0].since_start_s
    finally:
        first.end()


def wait(laboratory: Laboratory) -> None:
    """Until the imports of all are done."""
    until_s = time.monotonic() + _START_S
    while not all(one.imports_s is not None for one in laboratory.waiting) and time.monotonic() < until_s:
        time.sleep(0.1)


def starts(text: str, repeats: int, ends_s: float, turns: Sequence[bool]) -> dict[str, list[float]]:
    """Seconds of starts by their kind, in turns (whether it waited), until a time of `time.monotonic`."""
    found: dict[str, list[float]] = {"first": [], "plain": [], "prepared": []}
    with laboratory_of(text) as laboratory:
        for number in range(repeats):
            if number and time.monotonic() > ends_s:
                break
            found["first"].append(first_s(laboratory))
            wait(laboratory)
            for waited in turns:
                kind = "prepared" if waited else "plain"
                found[kind].append(start_s(laboratory, waited=waited))
            laboratory.end_waiting()
    return found


def cpu_s(variant: Variant) -> float:
    """Seconds of all threads of the script's process."""
    threads = Path(f"/proc/{variant.ready[0].pid}/task").glob("*/schedstat")
    return sum(int(one.read_text().split()[0]) for one in threads) / 1e9


def difference(one: Variant, other: Variant, quads: int) -> float:
    """Percent of the CPU time of a step that the other one needs less, by the least of blocks that take turns: other
    processes of the machine add to it."""
    for variant in (one, other):
        variant.run(_STEPS, _START_S)
    spent: dict[Variant, list[float]] = {one: [], other: []}
    for variant in (one, other, other, one) * quads:
        before_s = cpu_s(variant)
        variant.run(_STEPS, _START_S)
        spent[variant].append(cpu_s(variant) - before_s)
    return 100 * (1 - min(spent[other]) / min(spent[one]))


def pairs(text: str, count: int, quads: int, ends_s: float) -> dict[str, list[float]]:
    """`difference` of the second process of a pair, and the first, which did not wait."""
    found: dict[str, list[float]] = {"waited": [], "did not": []}
    with laboratory_of(text) as laboratory:
        for _ in range(count):
            for kind, gains in found.items():
                if time.monotonic() > ends_s:
                    return found
                one, other = (
                    Variant(laboratory, environment=_NOT_WAITING),
                    Variant(laboratory, environment={} if kind == "waited" else _NOT_WAITING),
                )
                try:
                    one.launch(_START_S)
                    laboratory.prepare(2)
                    one.arrived()
                    wait(laboratory)
                    other.start(_START_S)
                    gains.append(difference(one, other, quads))
                finally:
                    one.end()
                    other.end()
                    laboratory.end_waiting()
    return found


def _guarded(measure: Callable[[], dict[str, list[float]]]) -> dict[str, list[float]]:
    try:
        return measure()
    except VariantError as error:
        print(f"failed: {error}")
        return {}


def _line(name: str, values: Sequence[float]) -> str:
    if len(values) < 2:
        return f"  {name}: too few"
    half = 1.96 * statistics.stdev(values) / math.sqrt(len(values))
    return f"  {name}: mean {statistics.fmean(values):+.2f} % ± {half:.2f}, one pair {statistics.stdev(values):.2f}"


def main() -> None:
    """See the module's docstring."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--pairs", type=int, default=6)
    options.add_argument("--quads", type=int, default=6, help="of each pair")
    options.add_argument("--quick", action="store_true", help="one start of each kind in a repeat")
    options.add_argument("--only", nargs="+", choices=list(_SCRIPTS))
    options.add_argument("--deadline", type=float, default=300.0, help="seconds for all")
    options.add_argument("--out", type=Path, help="folder for the values")
    chosen = options.parse_args()
    began_s = time.monotonic()
    names = [one for one in chosen.only or _SCRIPTS if importlib.util.find_spec(one) is not None]
    kept: dict[str, dict[str, list[float]]] = {}
    turns = (True, False) if chosen.quick else (True, False, False, True)
    print(f"{'script':13}   first   plain  prepared   seconds, the middle one")
    for number, name in enumerate(names if chosen.repeats else ()):
        share = 0.75 * (number + 1) / len(names) if chosen.pairs else 1.0
        text, ends_s = _SCRIPTS[name], began_s + share * chosen.deadline
        kept[name] = found = _guarded(partial(starts, text, chosen.repeats, ends_s, turns))
        if found:
            middle = [statistics.median(found[kind]) for kind in ("first", "plain", "prepared")]
            print(f"{name:13} {middle[0]:7.2f} {middle[1]:7.2f} {middle[2]:9.2f}", flush=True)
    if chosen.pairs:
        ends_s = began_s + chosen.deadline
        kept["pairs"] = _guarded(partial(pairs, _ONE_THREAD, chosen.pairs, chosen.quads, ends_s))
        print("CPU time of a step that a process saves against one that did not wait, where it")
        for kind, gains in kept["pairs"].items():
            print(_line(f"{kind} ({len(gains)} pairs)", gains), flush=True)
    if chosen.out is not None:
        chosen.out.mkdir(parents=True, exist_ok=True)
        (chosen.out / "prepared_starts.json").write_text(json.dumps(kept))


if __name__ == "__main__":
    main()
