"""The trace handler as a drop-in for torch's own, with real profilers and a real analysis process."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from tb_dlprof_plugin.capture import TbDlprofWarning, export, trace_handler, wait_for_analysis  # noqa: E402
from tb_dlprof_plugin.store.logdir import read_profiles  # noqa: E402

TRACE_NAME = re.compile(r"^(.+)\.(\d{19})\.pt\.trace\.json(\.gz)?$")


def run_profiled(step, handler, steps=4, active=2, repeat=1):
    losses = []
    with torch.profiler.profile(
        schedule=torch.profiler.schedule(wait=0, warmup=1, active=active, repeat=repeat),
        on_trace_ready=handler,
        record_shapes=True,
    ) as prof:
        for _ in range(steps):
            losses.append(step())
            prof.step()
    return losses


def weights(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def test_drop_in_for_torch_profiler(tmp_path, training, kit):
    _model, step = training
    handler = trace_handler(str(tmp_path), "worker0")
    run_profiled(step, handler)
    assert handler.wait(60)
    (trace,) = kit.traces(tmp_path)
    assert TRACE_NAME.match(trace.name).group(1) == "worker0"
    (stored,) = read_profiles(tmp_path)
    source = stored.profile.source
    assert (source.rank, source.cycle, source.worker, source.trace_file) == (0, 0, "worker0", trace.name)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", source.session)
    assert list(stored.profile.iterations.number) == [1, 2]
    assert stored.profile.facts.optimizer == "SGD"
    assert stored.profile.facts.record_shapes is True
    assert stored.profile.facts.model is None
    assert stored.profile.facts.autocast is None
    assert stored.profile.system.torch_version == torch.__version__
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([trace.name, stored.path.name])


def test_default_worker_name_is_torchs(tmp_path, training, kit):
    handler = trace_handler(tmp_path)
    run_profiled(training[1], handler)
    assert handler.wait(60)
    import socket

    assert TRACE_NAME.match(kit.traces(tmp_path)[0].name).group(1) == f"{socket.gethostname()}_{os.getpid()}"


def test_training_is_bit_identical_with_and_without_the_hook(tmp_path, kit):
    plain_model, plain_step = kit.make_training()
    plain_losses = [plain_step() for _ in range(4)]
    model, step = kit.make_training()
    losses = run_profiled(step, trace_handler(tmp_path, model=model))
    assert losses == plain_losses
    ours, plain = weights(model), weights(plain_model)
    assert all(torch.equal(ours[name], plain[name]) for name in plain)


def test_gzip_is_made_by_the_worker_and_never_seen_half_written(tmp_path, training, kit):
    handler = trace_handler(tmp_path, use_gzip=True)
    run_profiled(training[1], handler)
    assert all(path.suffix == ".gz" for path in kit.traces(tmp_path))
    assert handler.wait(60)
    (trace,) = kit.traces(tmp_path)
    assert trace.name.endswith(".pt.trace.json.gz")
    assert kit.trace_events(trace)
    (stored,) = read_profiles(tmp_path)
    assert stored.profile.source.trace_file == trace.name
    assert len(list(tmp_path.iterdir())) == 2


def test_cycles_share_a_session(tmp_path, training):
    handler = trace_handler(tmp_path)
    run_profiled(training[1], handler, steps=6, repeat=2)
    assert handler.wait(60)
    sources = [stored.profile.source for stored in read_profiles(tmp_path)]
    assert sorted(source.cycle for source in sources) == [0, 1]
    assert len({source.session for source in sources}) == 1


def test_subdirectory_and_keep_trace(tmp_path, training, kit):
    handler = trace_handler(tmp_path, subdirectory="dlprof", keep_trace=False, session="a b/c", rank=3)
    run_profiled(training[1], handler)
    assert handler.wait(60)
    assert kit.traces(tmp_path) == []
    assert kit.event_files(tmp_path) == []
    (stored,) = read_profiles(tmp_path / "dlprof")
    assert stored.profile.source.session == "a_b_c"
    assert stored.profile.source.rank == 3


def test_rank_comes_from_the_environment(tmp_path, training, monkeypatch):
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "4")
    handler = trace_handler(tmp_path)
    run_profiled(training[1], handler)
    assert handler.wait(60)
    (stored,) = read_profiles(tmp_path)
    assert stored.profile.source.rank == 2
    assert stored.profile.facts.world_size == 4


@pytest.mark.long
def test_drop_in_for_lightning(tmp_path, kit):
    lightning = pytest.importorskip("lightning.pytorch")
    from lightning.pytorch.profilers import PyTorchProfiler

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = kit.Net()

        def training_step(self, batch, index):
            return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), foreach=True)

    data = torch.utils.data.TensorDataset(torch.randn(16, 3, 8, 8), torch.zeros(16, dtype=torch.long))
    module = Module()
    handler = trace_handler(tmp_path / "logs", model=module)
    profiler = PyTorchProfiler(
        on_trace_ready=handler,
        schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1),
        record_module_names=False,
    )
    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        profiler=profiler,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
    )
    trainer.fit(module, torch.utils.data.DataLoader(data, batch_size=2))
    assert handler.wait(60)
    (stored,) = read_profiles(tmp_path / "logs")
    facts = stored.profile.facts
    assert (facts.optimizer, facts.model, facts.batch_size, facts.training) == ("Adam(foreach=True)", "Module", 2, True)
    names = {event["name"] for event in kit.module_events(kit.traces(tmp_path / "logs")[0])}
    assert "tb_dlprof::module::net.layers.0.conv" in names


@pytest.mark.slow
def test_lightning_callback_records_the_whole_cycle(tmp_path, kit):
    lightning = pytest.importorskip("lightning.pytorch")
    import pickle

    from tb_dlprof_plugin import lightning_callback

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = kit.Net()

        def training_step(self, batch, index):
            return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), foreach=True)

    data = torch.utils.data.TensorDataset(torch.randn(36, 3, 8, 8), torch.zeros(36, dtype=torch.long))
    callback = lightning_callback(tmp_path / "logs", schedule=(5, 1, 2, 1), wait=True)
    assert isinstance(callback, lightning.Callback)
    assert type(pickle.loads(pickle.dumps(callback))).__name__ == "DLProfCallback"
    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        callbacks=[callback],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
    )
    trainer.fit(Module(), torch.utils.data.DataLoader(data, batch_size=2))
    (stored,) = read_profiles(tmp_path / "logs")
    facts = stored.profile.facts
    assert list(stored.profile.iterations.number) == [6, 7]
    assert (facts.optimizer, facts.model, facts.batch_size, facts.training) == ("Adam(foreach=True)", "Module", 2, True)
    assert facts.dataloader.batch_size == 2
    assert (len(facts.unprofiled_before_ns), len(facts.unprofiled_after_ns)) == (4, 8)
    assert "net.layers.0.conv" in stored.profile.strings
    assert callback.session is None


@pytest.mark.slow
def test_transformers_callback_records_steps_of_the_optimizer(tmp_path):
    transformers = pytest.importorskip("transformers")
    from tb_dlprof_plugin import transformers_callback

    config = transformers.GPT2Config(n_layer=1, n_head=2, n_embd=16, vocab_size=32, n_positions=16)
    data = [{"input_ids": torch.arange(8) % 32, "labels": torch.arange(8) % 32}] * 48
    arguments = transformers.TrainingArguments(
        output_dir=tmp_path / "out",
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2,
        num_train_epochs=1,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    callback = transformers_callback(tmp_path / "logs", schedule=(5, 1, 2, 1), wait=True)
    trainer = transformers.Trainer(
        model=transformers.GPT2LMHeadModel(config), args=arguments, train_dataset=data, callbacks=[callback]
    )
    assert trainer.train().global_step == 12
    (stored,) = read_profiles(tmp_path / "logs")
    facts = stored.profile.facts
    assert list(stored.profile.iterations.number) == [6, 7]
    assert (facts.model, facts.training, facts.dataloader.batch_size) == ("GPT2LMHeadModel", True, 2)
    assert facts.optimizer.startswith("AdamW")
    assert "transformer.h.0.mlp.c_fc" in stored.profile.strings
    assert callback.session is None


@pytest.mark.slow
def test_drop_in_for_accelerate(tmp_path, kit):
    accelerate = pytest.importorskip("accelerate")
    from accelerate.utils import ProfileKwargs

    handler = trace_handler(tmp_path)
    options = ProfileKwargs(
        schedule_option={"wait": 0, "warmup": 1, "active": 2, "repeat": 1}, on_trace_ready=handler, record_shapes=True
    )
    accelerator = accelerate.Accelerator(cpu=True, kwargs_handlers=[options])
    model = kit.Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = accelerator.prepare(model, optimizer)
    with accelerator.profile() as prof:
        for _ in range(4):
            optimizer.zero_grad()
            accelerator.backward(model(torch.randn(2, 3, 8, 8)).sum())
            optimizer.step()
            prof.step()
    assert handler.wait(60)
    assert list(read_profiles(tmp_path)[0].profile.iterations.number) == [1, 2]


@pytest.mark.parametrize("under_file", [True, False])
def test_unwritable_logdir_warns_and_training_goes_on(tmp_path, kit, under_file):
    blocker = tmp_path / "file"
    blocker.write_text("in the way")
    _model, step = kit.make_training()
    why = f"{blocker}: not a directory" if under_file else "not a directory"
    said = re.escape(f"cannot be written ({why})")
    with pytest.warns(TbDlprofWarning, match=said):
        handler = trace_handler(blocker / "x" if under_file else blocker)
    with pytest.warns(TbDlprofWarning, match=r"The trace .*pt\.trace\.json was not written"):
        losses = run_profiled(step, handler)
    plain = kit.make_training()[1]
    assert losses == [plain() for _ in range(4)]
    assert blocker.read_text() == "in the way"


def test_a_logdir_that_only_looks_writable_is_told_before_anything_is_recorded(tmp_path, monkeypatch):
    """To the superuser a read-only file system has the permissions to write."""

    def refuse(dir):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    assert export.why_not_writable(str(tmp_path / "new" / "run")) is None
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(export.tempfile, "TemporaryFile", refuse)
    assert os.access(tmp_path, os.W_OK)
    with pytest.warns(TbDlprofWarning, match=rf"run cannot be written \({tmp_path}: Read-only file system\)"):
        trace_handler(tmp_path / "run").close()


@pytest.mark.long
def test_file_size_limit_warns_and_leaves_no_half_trace(tmp_path):
    """A limit on file sizes fails a write in the middle of the trace, as a full disk does."""
    script = """
        import resource, signal, sys, warnings
        import torch
        from tb_dlprof_plugin.capture import trace_handler
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        model = torch.nn.Linear(4, 4)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with torch.profiler.profile(on_trace_ready=trace_handler(sys.argv[1])):
                for _ in range(200):
                    model(torch.randn(2, 4))
        print([str(w.message) for w in caught if w.category.__name__ == "TbDlprofWarning"])
        print("training went on")
    """
    done = run_script(script, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "pt.trace.json was not written" in done.stdout
    assert "training went on" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_full_disk_is_named(tmp_path, training, monkeypatch):
    import errno

    def full(self, path, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(torch.profiler.profile, "export_chrome_trace", full)
    with pytest.warns(TbDlprofWarning, match="the disk is full"):
        run_profiled(training[1], trace_handler(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_killed_worker_warns_names_the_trace_and_what_to_do(tmp_path, training, kit, monkeypatch):
    from tb_dlprof_plugin.capture import handler as handler_module

    start_analysis = handler_module.start_analysis

    def start_and_kill(*args, **kwargs):
        # At once: the analysis of so small a trace may end before the profiler's block does.
        worker = start_analysis(*args, **kwargs)
        worker.process.send_signal(signal.SIGKILL)
        return worker

    monkeypatch.setattr(handler_module, "start_analysis", start_and_kill)

    def train_on() -> int:
        handler = trace_handler(tmp_path, use_gzip=True)
        run_profiled(training[1], handler)
        losses = [training[1]() for _ in range(2)]
        handler.wait(60)
        return len(losses)

    with pytest.warns(TbDlprofWarning, match=r"killed by SIGKILL.*tb-dlprof import .* --logdir .* --run") as caught:
        steps_after_the_kill = train_on()
    assert steps_after_the_kill == 2
    assert list(tmp_path.glob("*tfevents*")) == []
    (trace,) = kit.traces(tmp_path)
    assert any(str(trace) in str(warning.message) for warning in caught)
    assert trace.suffix == ".json"
    assert kit.trace_events(trace)


def test_worker_reports_a_trace_that_it_cannot_read(tmp_path, training, monkeypatch):
    from tb_dlprof_plugin.capture import handler as handler_module

    def truncated(prof, path, use_python_export=False):
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text("no trace at all")

    monkeypatch.setattr(handler_module, "export_trace", truncated)
    handler = trace_handler(tmp_path)
    run_profiled(training[1], handler)
    with pytest.warns(TbDlprofWarning, match="was not written: .*Run `tb-dlprof import"):
        assert not handler.wait(60)


def test_no_process_can_be_started(tmp_path, training, kit, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    with pytest.warns(TbDlprofWarning, match="no analysis process started"):
        run_profiled(training[1], trace_handler(tmp_path / "run", use_gzip=True))
    assert [path.suffix for path in kit.traces(tmp_path / "run")] == [".json"]


def test_warnings_as_errors_do_not_reach_the_training(tmp_path, kit, caplog):
    blocker = tmp_path / "file"
    blocker.write_text("")
    _model, step = kit.make_training()
    with warnings.catch_warnings():
        warnings.simplefilter("error", TbDlprofWarning)
        losses = run_profiled(step, trace_handler(blocker / "x"))
    assert len(losses) == 4
    assert "was not written" in caplog.text


def test_exit_waits_for_the_analysis(tmp_path):
    script = """
        import sys, torch
        from tb_dlprof_plugin.capture import trace_handler
        model = torch.nn.Linear(4, 4)
        with torch.profiler.profile(on_trace_ready=trace_handler(sys.argv[1])):
            model(torch.randn(2, 4))
        assert not [m for m in sys.modules if m.split(".")[0] in ("tensorboard", "google")], "heavy import"
    """
    done = run_script(script, tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(read_profiles(tmp_path)) == 1


def test_worker_does_not_import_torch():
    code = "import sys, tb_dlprof_plugin.capture.analysis_process; assert 'torch' not in sys.modules"
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )


@pytest.mark.long
def test_ranks_of_one_run_share_a_session(tmp_path):
    script = """
        import sys, os, torch, torch.distributed as dist, torch.multiprocessing as mp
        from tb_dlprof_plugin.capture import trace_handler
        def main(rank, folder):
            dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
            model = torch.nn.Linear(4, 4)
            handler = trace_handler(f"{folder}/run")
            with torch.profiler.profile(on_trace_ready=handler):
                model(torch.randn(2, 4))
            assert handler.wait(60)
            dist.barrier()
            dist.destroy_process_group()
        if __name__ == "__main__":
            # As `mp.spawn` does, but without importing torch twice more.
            mp.start_processes(main, (sys.argv[1],), nprocs=2, start_method="fork")
    """
    done = run_script(script, tmp_path)
    assert done.returncode == 0, done.stderr
    sources = [stored.profile.source for stored in read_profiles(tmp_path / "run")]
    assert sorted(source.rank for source in sources) == [0, 1]
    assert len({source.session for source in sources}) == 1


def test_a_recording_that_another_profiler_ended_is_one_warning(tmp_path, training):
    from torch.autograd.profiler import profile as autograd_profile

    handler = trace_handler(tmp_path)
    with (
        pytest.warns(TbDlprofWarning, match="another profiler ended this one's recording"),
        torch.profiler.profile(on_trace_ready=handler),
        autograd_profile(),
    ):
        training[1]()
    assert list(tmp_path.iterdir()) == []


def test_handler_lets_go_of_the_model(tmp_path, training, kit):
    import gc

    model, _ = training
    handler = trace_handler(tmp_path, model=model)
    assert kit.is_observed(model)
    del handler
    gc.collect()
    assert not kit.is_observed(model)


def test_nothing_is_left_in_the_temporary_directory(tmp_path, training, monkeypatch):
    import tempfile

    scratch = tmp_path / "tmp"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    handler = trace_handler(tmp_path / "run")
    run_profiled(training[1], handler)
    assert handler.wait(60)
    assert wait_for_analysis(1)
    assert [path for path in scratch.iterdir() if path.is_dir()] == []


def run_script(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own, from a file so that spawned children find it."""
    path = folder.parent / f"{folder.name}_script.py"
    path.write_text(textwrap.dedent(script))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    return subprocess.run(
        [sys.executable, str(path), str(folder)], capture_output=True, text=True, env=env, timeout=180
    )
