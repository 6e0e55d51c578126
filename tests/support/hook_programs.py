"""Small training programs that do unusual things while the hook is on, each to be run with the hook and without it.

A program is drawn from parts: how the hook is used, what it profiles itself and in which steps, what it does to its
model, and what surrounds the loop. It prints its losses and a digest of its weights, which the hook must not change.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import random
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from support.program_server import TIMED_OUT, ProgramServer
from support.script_runs import Done
from support.watcher import Watched

_BEFORE = """
import contextlib, copy, gc, hashlib, io, os, pickle, signal, sys, threading, warnings
import torch
import torch.autograd.profiler as autograd_profiler
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function, schedule

CPU = [ProfilerActivity.CPU]

class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)

    def forward(self, x):
        return x + self.second(torch.relu(self.first(x)))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(8, 16)
        self.blocks = nn.Sequential(Block(16), Block(16))
        self.head = nn.Linear(16, 2)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)))

def train_step():
    x = torch.randn(4, 8)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), torch.tensor([0, 1, 0, 1]))
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

def check(changed, inputs=None):
    x = torch.ones(2, 8)
    with torch.no_grad():
        assert torch.allclose(changed(x), model(x))

def events_of(prof):
    # How many ops it saw, and that none of them is the hook's.
    names = [one.name for one in (prof.events() if hasattr(prof, "events") else prof.function_events)]
    assert RANGES_SHOW or not any("tb_dlprof::" in name for name in names), names
    return sum(name == "aten::addmm" for name in names)

torch.manual_seed(0)
model, losses, optimizer, seen = Net(), [], None, []
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
STEPS = 10
"""
_AFTER = """
if "other_thread" in globals():
    done.set(); other_thread.join()
digest = hashlib.sha256(b"".join(t.detach().numpy().tobytes() for t in model.state_dict().values())).hexdigest()
print(losses, digest, seen)
"""

HOOKS: dict[str, tuple[str, str]] = {
    # Without the hook, with it: lines that define `prof`, a context manager with `step`.
    "profile": (
        "prof = Absent()",
        "prof = tb_dlprof_plugin.profile(LOGS, model, schedule=(2, 1, 3, 1))",
    ),
    "profile from the first step": (
        "prof = Absent()",
        "prof = tb_dlprof_plugin.profile(LOGS, model, schedule=(0, 1, 8, 1), with_stack=True)",
    ),
    "profile without step": (
        "prof = Absent()",
        "prof = tb_dlprof_plugin.profile(LOGS, model); prof.step = lambda: None",
    ),
    "profile twice": (
        "prof = Absent()",
        """
        prof = Both(tb_dlprof_plugin.profile(LOGS, model, schedule=(1, 1, 2, 1)),
                    tb_dlprof_plugin.profile(LOGS, model, schedule=(2, 1, 3, 1)))
        """,
    ),
    "profile in cycles": (
        "prof = Absent()",
        "prof = tb_dlprof_plugin.profile(LOGS, model, schedule=(1, 1, 1, 3), profile_memory=True)",
    ),
    "trace handler": (
        "prof = profile(activities=CPU, schedule=schedule(wait=2, warmup=1, active=3, repeat=1))",
        """
        prof = profile(activities=CPU, schedule=schedule(wait=2, warmup=1, active=3, repeat=1),
                       on_trace_ready=tb_dlprof_plugin.trace_handler(LOGS, model=model))
        """,
    ),
    "trace handler next to it": (
        "prof = Absent()",
        "prof = Absent(); handler = tb_dlprof_plugin.trace_handler(LOGS, model=model)",
    ),
    "lightning callback": (
        "prof = Absent()",
        "prof = AsLightning(tb_dlprof_plugin.lightning_callback(LOGS, schedule=(2, 1, 3, 1)))",
    ),
}

_HELPERS = """
class Absent:
    def __enter__(self): return self
    def __exit__(self, *error): return None
    def step(self): pass

class Both:
    def __init__(self, *profs): self.profs = profs
    def __enter__(self):
        for prof in self.profs: prof.__enter__()
        return self
    def __exit__(self, *error):
        for prof in self.profs: prof.__exit__(*error)
    def step(self):
        for prof in self.profs: prof.step()

class AsLightning:
    def __init__(self, callback): self.callback = callback
    def __enter__(self):
        class Trainer:
            optimizers, global_rank, train_dataloader = [optimizer], 0, None
        self.callback.on_train_start(Trainer, model)
        return self
    def __exit__(self, *error): self.callback.on_train_end()
    def step(self): self.callback.on_train_batch_end()
"""

PROFILERS: dict[str, str] = {
    # A context manager `own()`, which a step or several are in.
    "nothing": "own = contextlib.nullcontext",
    "torch.profiler": "own = lambda: profile(activities=CPU)",
    "torch.profiler with stacks": "own = lambda: profile(activities=CPU, with_stack=True, record_shapes=True)",
    "torch.profiler warming up": (
        "own = lambda: profile(activities=CPU, schedule=schedule(wait=0, warmup=1, active=1), "
        "on_trace_ready=lambda p: seen.append(events_of(p)))"
    ),
    "autograd profiler": "own = autograd_profiler.profile",
    "autograd profiler with kineto": "own = lambda: autograd_profiler.profile(use_kineto=True, with_stack=True)",
    "legacy profiler": "import torch.autograd.profiler_legacy as legacy; own = legacy.profile",
    "emit_itt": "own = autograd_profiler.emit_itt",
    "memory profiler": "own = lambda: profile(activities=CPU, profile_memory=True)",
    "every thread": (
        "own = lambda: profile(activities=CPU, "
        "experimental_config=torch._C._profiler._ExperimentalConfig(profile_all_threads=True))"
    ),
    "kineto": """
        from torch.profiler.profiler import _KinetoProfile
        @contextlib.contextmanager
        def own():
            prof = _KinetoProfile(activities=CPU)
            prof.prepare_trace(); train_step(); prof.start_trace()
            yield prof
            prof.stop_trace()
        """,
    "execution trace": """
        from torch.profiler import ExecutionTraceObserver
        @contextlib.contextmanager
        def own():
            observer = ExecutionTraceObserver().register_callback(os.path.join(SCRATCH, "execution.json"))
            observer.start()
            yield
            observer.stop(); observer.unregister_callback()
        """,
    "memory snapshot": """
        @contextlib.contextmanager
        def own():
            with contextlib.suppress(Exception): torch.cuda.memory._record_memory_history()
            yield
            with contextlib.suppress(Exception): torch.cuda.memory._snapshot()
        """,
    "cuda profiler": """
        @contextlib.contextmanager
        def own():
            with contextlib.suppress(Exception): torch.cuda.profiler.start()
            yield
            with contextlib.suppress(Exception): torch.cuda.profiler.stop()
        """,
    "emit_nvtx": """
        @contextlib.contextmanager
        def own():
            block = autograd_profiler.emit_nvtx()
            try:
                block.__enter__()
            except Exception:
                yield
                return
            yield
            block.__exit__(None, None, None)
        """,
    "ranges": "own = lambda: record_function('mine')",
    "a profiler in a range": """
        @contextlib.contextmanager
        def own():
            with record_function("mine"), profile(activities=CPU) as prof:
                yield prof
        """,
    "a range that ends in a profiler": """
        @contextlib.contextmanager
        def own():
            with contextlib.ExitStack() as stack:
                range_ = record_function("mine"); range_.__enter__()
                train_step()
                prof = stack.enter_context(profile(activities=CPU))
                range_.__exit__(None, None, None)
                yield prof
        """,
}

PLACES: dict[str, str] = {
    # The loop. `own()` must be around some of its steps.
    "no step": """
        for i in range(STEPS):
            train_step()
            prof.step()
        """,
    "each step": """
        for i in range(STEPS):
            with own(): train_step()
            prof.step()
        """,
    "a recorded step": """
        for i in range(STEPS):
            with own() if i == 4 else contextlib.nullcontext() as mine:
                train_step()
            if hasattr(mine, "key_averages") and not getattr(mine, "on_trace_ready", None): seen.append(events_of(mine))
            prof.step()
        """,
    "the warm-up": """
        for i in range(STEPS):
            with own() if i == 2 else contextlib.nullcontext(): train_step()
            prof.step()
        """,
    "from before to within": """
        mine = own(); mine.__enter__()
        for i in range(STEPS):
            train_step()
            if i == 4: mine.__exit__(None, None, None)
            prof.step()
        """,
    "from within to after": """
        mine = own()
        for i in range(STEPS):
            if i == 4: mine.__enter__()
            train_step()
            prof.step()
        mine.__exit__(None, None, None)
        """,
    "over boundaries": """
        for i in range(STEPS):
            if i in (1, 4): mine = own(); mine.__enter__()
            train_step()
            prof.step()
            if i in (3, 6): mine.__exit__(None, None, None)
        """,
    "own steps": """
        mine = own(); mine.__enter__()
        for i in range(STEPS):
            train_step()
            getattr(mine, "step", lambda: None)()
            prof.step()
        mine.__exit__(None, None, None)
        """,
    "own steps that begin within": """
        mine = own()
        for i in range(STEPS):
            if i == 3: mine.__enter__()
            with record_function("step"):
                train_step()
                if i >= 3: getattr(mine, "step", lambda: None)()
                prof.step()
        mine.__exit__(None, None, None)
        """,
    "a forward hook": """
        def around(module, args, output):
            if i == 4 and not seen:
                seen.append("hook")
                with own(): module.weight.sum()
        model.head.register_forward_hook(around)
        for i in range(STEPS):
            train_step()
            prof.step()
        """,
    "an optimizer hook": """
        from torch.optim.optimizer import register_optimizer_step_pre_hook
        def around(optimizer, args, kwargs):
            if i == 4:
                with own(): torch.ones(3).sum()
        handle = register_optimizer_step_pre_hook(around)
        last = register_optimizer_step_pre_hook(lambda *_: None)
        for i in range(STEPS):
            train_step()
            prof.step()
        """,
    "a backward hook": """
        def around(gradient):
            if i == 4:
                with own(): torch.ones(3).sum()
        model.head.weight.register_hook(around)
        for i in range(STEPS):
            train_step()
            prof.step()
        """,
    "another thread": """
        def work():
            with own(): torch.ones(3, 3).mm(torch.ones(3, 3))
        for i in range(STEPS):
            if i == 4:
                thread = threading.Thread(target=work); thread.start(); thread.join()
            train_step()
            prof.step()
        """,
    "another thread over boundaries": """
        inside, leave = threading.Event(), threading.Event()
        def work():
            with own():
                inside.set(); leave.wait(30); torch.ones(3, 3).mm(torch.ones(3, 3))
        thread = threading.Thread(target=work)
        for i in range(STEPS):
            if i == 4: thread.start(); inside.wait(30)
            train_step()
            prof.step()
            if i == 7: leave.set(); thread.join()
        """,
    "a forked child": """
        for i in range(STEPS):
            if i == 4:
                child = os.fork()
                if not child:
                    with own(): train_step()
                    prof.step()
                    os._exit(0)
                seen.append(os.waitpid(child, 0)[1])
            train_step()
            prof.step()
        """,
    "an exception": """
        for i in range(STEPS):
            with contextlib.suppress(ZeroDivisionError):
                with own():
                    train_step()
                    if i == 4: 1 / 0
            prof.step()
        """,
}

MODELS: dict[str, str] = {
    # A function `act()` that step `WHEN` calls.
    "nothing": "act = lambda: None",
    "deepcopy": "act = lambda: check(copy.deepcopy(model))",
    "pickle": "act = lambda: check(pickle.loads(pickle.dumps(model)))",
    "torch.save": """
        def act():
            file = io.BytesIO(); torch.save(model, file); file.seek(0)
            seen.append(len(file.getvalue()))
            check(torch.load(file, weights_only=False))
        """,
    "state_dict": """
        def act():
            other = Net(); other.load_state_dict(model.state_dict()); check(other)
            seen.append(list(model.state_dict()))
        """,
    "jit.script": "act = lambda: check(torch.jit.script(model))",
    "jit.trace": "act = lambda: check(torch.jit.trace(model, torch.ones(2, 8), check_trace=False))",
    "jit.save": """
        def act():
            scripted = torch.jit.script(model)
            scripted.save(os.path.join(SCRATCH, "scripted.pt"))
            check(torch.jit.load(os.path.join(SCRATCH, "scripted.pt")))
        """,
    "fx": """
        def act():
            traced = torch.fx.symbolic_trace(model)
            seen.append([node.name for node in traced.graph.nodes])
            check(traced)
        """,
    "export": """
        def act():
            exported = torch.export.export(model, (torch.ones(2, 8),))
            seen.append([node.name for node in exported.graph.nodes])
            check(exported.module())
        """,
    "compile": """
        def act():
            compiled = torch.compile(model, backend="eager", fullgraph=True)
            check(compiled)
            torch._dynamo.config.error_on_recompile = True
        """,
    "compile method": "act = lambda: (model.compile(backend='eager', fullgraph=True), check(model))",
    "compiled function": """
        def act():
            global compiled
            compiled = torch.compile(lambda x: model(x), backend="eager", fullgraph=True)
            compiled(torch.ones(2, 8))
            check(compiled)
        """,
    "hooks": """
        def act():
            seen.append([len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()])
            for m in list(model.modules()):
                m.register_forward_hook(lambda *_: None); m.register_full_backward_hook(lambda *_: None)
        """,
    "new module": """
        def act():
            with torch.no_grad(): new = nn.Linear(16, 2); new.load_state_dict(model.head.state_dict())
            model.head = new; gc.collect()
            optimizer.param_groups[0]["params"] = list(model.parameters())
        """,
    "parametrize": """
        def act():
            nn.utils.parametrizations.weight_norm(model.head)
            optimizer.param_groups[0]["params"] = list(model.parameters())
        """,
    "own call": """
        def act():
            call = nn.Module.__call__
            def __call__(self, *args, **kwargs):
                seen.append(type(self).__name__) if len(seen) < 3 else None
                return call(self, *args, **kwargs)
            nn.Module.__call__ = __call__
        """,
    "class attributes": "act = lambda: seen.append(sorted(vars(model)) + sorted(map(repr, vars(model.head))))",
    "evaluation": "act = lambda: (model.eval(), check(model), model.train())",
    "double": "act = lambda: (model.double(), model.float())",
    "functional call": "act = lambda: torch.func.functional_call(model, model.state_dict(), torch.ones(2, 8))",
    "vmap": "act = lambda: torch.func.vmap(model)(torch.ones(2, 3, 8))",
    "data parallel": "act = lambda: check(nn.DataParallel(model))",
    "checkpoint": """
        def act():
            from torch.utils.checkpoint import checkpoint
            checkpoint(model, torch.ones(2, 8, requires_grad=True), use_reentrant=False).sum().backward()
        """,
}

MODELS["several"] = "\n".join(
    [
        "acts = []",
        *(
            f"{textwrap.dedent(MODELS[name])}\nacts.append(act)"
            for name in (
                "class attributes", "deepcopy", "pickle", "torch.save", "state_dict", "jit.script", "jit.trace",
                "jit.save", "fx", "export", "compile",
            )
        ),
        "act = lambda: [one() for one in acts]",
    ]
)  # fmt: skip

SURROUNDINGS: dict[str, str] = {
    # Lines before the loop.
    "nothing": "",
    "loader workers": """
        from torch.utils.data import DataLoader, TensorDataset
        plain = train_step
        def train_step():
            for _ in DataLoader(TensorDataset(torch.ones(4, 2)), num_workers=1, multiprocessing_context="fork"): pass
            plain()
        STEPS = 7
        """,
    "warnings are errors": "warnings.simplefilter('error', UserWarning)",
    "another thread trains": """
        other = Net()
        def run_other():
            while not done.is_set(): other(torch.ones(2, 8)).sum().backward()
        done = threading.Event(); other_thread = threading.Thread(target=run_other, daemon=True); other_thread.start()
        """,
    "garbage collections": "gc.set_threshold(1, 1, 1)",
    "stepping child": """
        plain = train_step
        def train_step():
            plain()
            if len(losses) in (5, 9):
                child = os.fork()
                if not child:
                    signal.alarm(20)
                    prof.step(); prof.step()
                    os._exit(0)
                seen.append(os.waitpid(child, 0)[1])
        """,
    "child that exits": """
        plain = train_step
        def train_step():
            plain()
            if len(losses) in (4, 9):
                sys.stdout.flush()
                child = os.fork()
                if not child:
                    print("the child says so")
                    sys.exit(3)
                seen.append(os.waitpid(child, 0)[1])
        """,
    "inference": """
        def train_step():
            with torch.inference_mode(): losses.append(model(torch.randn(4, 8)).sum().item())
        """,
    "no garbage collection": "gc.disable()",
    "deterministic": "torch.use_deterministic_algorithms(True); torch.autograd.set_detect_anomaly(True)",
    "changed folder": "os.chdir(SCRATCH)",
}


@dataclasses.dataclass(frozen=True)
class Program:
    """One combination, by the names of its parts.

    Attributes:
        when: the step that does something to the model.
    """

    hook: str = "profile"
    profiler: str = "nothing"
    place: str = "no step"
    model: str = "nothing"
    when: int = 4
    surroundings: str = "nothing"

    @property
    def name(self) -> str:
        """The parts that are not the usual ones."""
        usual = Program()
        parts = [(field.name, getattr(self, field.name)) for field in dataclasses.fields(self)]
        named = [str(value) for name, value in parts if value != getattr(usual, name)]
        return " + ".join(named) or "usual"

    @property
    def differs_by_itself(self) -> bool:
        """Whether its output depends on which thread is first, or on who gets a warning that torch gives once."""
        first_thread = self.model == "own call" and self.surroundings == "another thread trains"
        return first_thread or (self.place.startswith(_ELSEWHERE) and self.surroundings == "warnings are errors")

    def source(self, hooked: bool) -> str:
        """With the hook or without it; needs the global variables LOGS and SCRATCH, two folders."""
        act = f"""
        _step = train_step
        def train_step():
            _step()
            if len(losses) == {self.when + 1}: act()
        """
        # With a handler the ranges are in every recording of the model.
        shows = f"RANGES_SHOW = {'handler' in self.hook}"
        parts = (_BEFORE, shows, "import tb_dlprof_plugin" if hooked else "", _HELPERS, SURROUNDINGS[self.surroundings])
        parts = (*parts, MODELS[self.model], act, PROFILERS[self.profiler], HOOKS[self.hook][hooked])
        loop = textwrap.indent(textwrap.dedent(PLACES[self.place]).strip(), "    ")
        return "\n".join([*(textwrap.dedent(part) for part in parts), "with prof:", loop, _AFTER])


PROGRAMS = [
    *(Program(profiler=name, place="a recorded step") for name in PROFILERS),
    *(Program(profiler="torch.profiler", place=name) for name in PLACES if name not in ("no step", "a recorded step")),
    *(Program(name, "torch.profiler", "from within to after") for name in HOOKS if name != "profile"),
    *(Program(model=name) for name in MODELS if name != "nothing"),
    *(Program("trace handler next to it", model=name, when=2) for name in MODELS),
    *(Program(surroundings=name) for name in SURROUNDINGS if name != "nothing"),
]
"""Each part at least once."""


def draw(seed: int) -> Iterator[Program]:
    """Programs without end."""
    random_ = random.Random(seed)
    while True:
        program = Program(
            random_.choice(list(HOOKS)), random_.choice(list(PROFILERS)), random_.choice(list(PLACES)),
            random_.choice(list(MODELS)), random_.randrange(9), random_.choice(list(SURROUNDINGS)),
        )  # fmt: skip
        if not program.differs_by_itself:
            yield program


@dataclasses.dataclass
class Outcome:
    """Of one program, with the hook and without it.

    Attributes:
        harm: what the hook changed or left, a sentence each.
    """

    program: Program
    alone: Done
    hooked: Done
    harm: list[str]


def try_program(server: ProgramServer, program: Program, folder: Path) -> Outcome:
    """Run a program twice, in a folder with files of a user, and compare all that can be seen."""
    alone = _run(server, program, folder, hooked=False)
    with _shared_memory() as shared:
        before = Watched.take(_users_files(folder / "hooked"), names=shared)
        with_hook = _run(server, program, folder, hooked=True)
        # No program changes anything there itself.
        harm = before.changes()
    if alone.status:
        # Without the hook it fails, crashes or hangs: all that can be asked is that it does not crash with it.
        if alone.status > 0 and alone.status != TIMED_OUT and not 0 <= with_hook.status < TIMED_OUT:
            harm.append(f"the status was {alone.status} and is {with_hook.status}: {with_hook.err[-800:]}")
        return Outcome(program, alone, with_hook, harm)
    if with_hook.status:
        harm.append(f"the status was 0 and is {with_hook.status}: {with_hook.err[-800:]}")
    elif alone.out != with_hook.out:
        harm.append(f"the output was {alone.out!r} and is {with_hook.out!r}")
    harm += [f"says {line!r}" for line in _new_lines(alone.err, with_hook.err)]
    harm += [f"leaves {path}" for path in (folder / "hooked.logs").rglob("*") if "waiting" in path.name]
    return Outcome(program, alone, with_hook, harm)


def _crashes_alone(server: ProgramServer, program: Program, folder: Path) -> bool:
    """Whether it crashes by chance without the hook: torch writes to freed memory where two profilers overlap."""
    for attempt in range(_ATTEMPTS):
        where = folder / f"attempt{attempt}"
        where.mkdir()
        if _run(server, program, where, hooked=False).status < 0:
            return True
    return False


def _run(server: ProgramServer, program: Program, folder: Path, hooked: bool) -> Done:
    name = "hooked" if hooked else "alone"
    work, logs, scratch = folder / name, folder / f"{name}.logs", folder / f"{name}.scratch"
    for one in (work, logs, scratch):
        one.mkdir(exist_ok=True)
    return server.run(program.source(hooked), work, LOGS=str(logs), SCRATCH=str(scratch))


@contextlib.contextmanager
def _shared_memory() -> Iterator[str]:
    """The name of a file of a user in /dev/shm."""
    path = Path(f"/dev/shm/hook_programs_{os.getpid()}")
    path.write_text("of a user")
    yield path.name
    path.unlink()


def _users_files(folder: Path) -> Path:
    """With properties that are easily lost."""
    folder.mkdir()
    for name, mode in (("data.csv", 0o640), ("secret", 0o400), ("run.sh", 0o755)):
        (folder / name).write_text(name)
        (folder / name).chmod(mode)
    (folder / "link").symlink_to("data.csv")
    return folder


_ELSEWHERE = ("a forked child", "another thread")
_ATTEMPTS = 10
_OURS = re.compile(
    r"TbDlprofWarning|^  |^tb_dlprof|^The training goes on without|^Nothing is recorded"
    r"|^The (?:trace|profile) .* was not written"
)
_TORCHS = re.compile(
    r"profiler_kineto\.cpp|USDT|CPUAllocator|collection\.cpp|observer\.cpp|External init|^\s*$|Warning: "
)


def _new_lines(alone: str, hooked: str) -> list[str]:
    """Lines on standard error with the hook that are neither a warning of ours nor there without it."""
    known = {re.sub(r"\d+", "", line) for line in alone.splitlines()}
    lines = [line for line in hooked.splitlines() if re.sub(r"\d+", "", line) not in known]
    return [line for line in lines if not _OURS.search(line) and not _TORCHS.search(line)]


def main() -> None:
    """Draw programs and report those that the hook harms: python -m support.hook_programs FOLDER NUMBER SEED."""
    import sys

    folder, number, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    harmed = recorded = 0
    with ProgramServer.running() as server:
        for index, program in enumerate(itertools.islice(draw(seed), number)):
            where = folder / str(index)
            where.mkdir(parents=True)
            outcome = try_program(server, program, where)
            recorded += any((where / "hooked.logs").rglob("*tfevents*"))
            if outcome.harm and outcome.hooked.status < 0 and _crashes_alone(server, program, where):
                continue
            if outcome.harm:
                harmed += 1
                print(index, program, *outcome.harm, sep="\n    ", flush=True)
    print(f"{number} programs, of which {recorded} have a profile: {harmed} are harmed")


if __name__ == "__main__":
    main()
