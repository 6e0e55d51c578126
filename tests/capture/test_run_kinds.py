"""Scripts of other kinds than a plain training loop, each in a process of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from support.script_runs import Done, execute, modules, numbers, profiles, run, write  # noqa: E402

from tb_dlprof_plugin.metrics.memory import recorded_devices  # noqa: E402
from tb_dlprof_plugin.model.profile import CallKind  # noqa: E402

pytestmark = pytest.mark.slow


def recorded(folder: Path, text: str, *options: object, **env: str) -> tuple[Done, list]:
    """What ``tb-dlprof run`` says of a script, and the profiles that it leaves."""
    done = run("--run-name", "r", *options, write(folder, text), cwd=folder, **env)
    return done, profiles(folder / "runs" / "r") if (folder / "runs" / "r").is_dir() else []


def linear_ops(profile) -> list[int]:
    """Rows of the ops of linear layers."""
    return [row for row, name in enumerate(profile.ops.name.tolist()) if profile.strings[name] == "aten::linear"]


def test_inference_is_recorded_whole_with_an_iteration_for_each_call(tmp_path: Path) -> None:
    done, (profile,) = recorded(
        tmp_path,
        """
        del optimizer
        model.eval()
        with torch.inference_mode():
            for _ in range(12):
                model(torch.randn(4, 8))
        """,
    )
    assert done.status == 0
    assert numbers(profile) == list(range(12))
    assert {"stem", "blocks.0", "head"} <= modules(profile)
    assert (profile.facts.training, profile.facts.batch_size) == (False, 4)
    # The range of the whole model is there from the first call on.
    whole = (profile.ops.kind == CallKind.MODULE) & (profile.ops.module == profile.strings.index(""))
    assert int(whole[profile.calls.op].sum()) == 12


@pytest.mark.long
def test_long_inference_is_bounded(tmp_path: Path) -> None:
    _, (profile,) = recorded(
        tmp_path,
        """
        del optimizer
        with torch.no_grad():
            for _ in range(150):
                model.eval()(torch.randn(4, 8))
        """,
    )
    assert numbers(profile) == list(range(100))


@pytest.mark.long
def test_a_training_without_an_optimizer_has_an_iteration_for_each_call(tmp_path: Path) -> None:
    _, (profile,) = recorded(
        tmp_path,
        """
        del optimizer
        for _ in range(14):
            model.zero_grad()
            model(torch.randn(4, 8)).sum().backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter -= 0.1 * parameter.grad
        """,
    )
    assert numbers(profile) == list(range(5, 14))


@pytest.mark.long
def test_gradients_of_several_batches_make_one_iteration(tmp_path: Path) -> None:
    _, (profile,) = recorded(
        tmp_path,
        """
        for index in range(104):
            (model(torch.randn(4, 8)).sum() / 4).backward()
            if index % 4 == 3:
                optimizer.step()
                optimizer.zero_grad()
        """,
    )
    assert numbers(profile) == list(range(12, 22))
    assert sum(int((profile.calls.op == row).sum()) for row in linear_ops(profile)) == 10 * 4 * 3


@pytest.mark.long
def test_a_look_at_the_model_before_the_training_is_not_recorded(tmp_path: Path) -> None:
    _, (profile,) = recorded(
        tmp_path,
        """
        optimizer = None
        model.eval()
        with torch.no_grad():
            model(torch.randn(2, 8))
        model.train()
        train(26, model, torch.optim.Adam(model.parameters()))
        """,
    )
    assert numbers(profile) == list(range(12, 22))
    assert profile.facts.optimizer == "Adam"


@pytest.mark.long
def test_an_evaluation_within_the_recording_belongs_to_no_iteration(tmp_path: Path) -> None:
    _, (profile,) = recorded(
        tmp_path,
        """
        for epoch in range(3):
            train(14, model.train(), optimizer)
            model.eval()
            with torch.no_grad():
                for _ in range(7):
                    model(torch.randn(64, 8))
        """,
    )
    # The evaluation comes after iterations 12 and 13, and takes a number.
    assert numbers(profile) == [12, 13, *range(15, 23)]
    evaluating = [row for row in linear_ops(profile) if (profile.shapes_of(row) or ((),))[0][:1] == (64,)]
    starts = [int(t) for row in evaluating for t in profile.calls.start_ns[profile.calls.op == row]]
    assert len(starts) == 7 * 3
    iterations = profile.iterations
    for start in starts:
        inside = (iterations.host_start_ns <= start) & (start < iterations.host_stop_ns)
        assert not inside.any()


@pytest.mark.long
def test_an_evaluation_after_enough_iterations_ends_the_recording(tmp_path: Path) -> None:
    _, (profile,) = recorded(
        tmp_path,
        """
        for epoch in range(3):
            train(17, model.train(), optimizer)
            with torch.no_grad():
                model.eval()(torch.randn(64, 8))
        """,
    )
    assert numbers(profile) == list(range(12, 17))


@pytest.mark.long
def test_a_closure_calls_the_model_several_times_within_one_step(tmp_path: Path) -> None:
    _, (profile,) = recorded(
        tmp_path,
        """
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
        x = torch.randn(4, 8)

        def closure():
            optimizer.zero_grad()
            loss = model(x).square().sum()
            loss.backward()
            return loss

        for _ in range(26):
            optimizer.step(closure)
        """,
    )
    assert numbers(profile) == list(range(12, 22))


@pytest.mark.long
@pytest.mark.parametrize(
    "how", ["module", *(pytest.param(how, marks=pytest.mark.long) for how in ("in place", "function"))]
)
def test_compiling_is_as_without(tmp_path: Path, how: str) -> None:
    text = """
        import torch._dynamo.utils as dynamo

        how = sys.argv[1]
        call = model
        if how == "module":
            call = torch.compile(model, backend="aot_eager")
        elif how == "in place":
            model.compile(backend="aot_eager")
        else:
            @torch.compile(backend="aot_eager")
            def call(x):
                return model(x)
        for _ in range(26):
            optimizer.zero_grad()
            call(torch.randn(4, 8)).square().sum().backward()
            optimizer.step()
        print(dict(dynamo.counters["stats"]), dict(dynamo.counters["frames"]))
        print([p.sum().item() for p in model.parameters()])
    """
    script = write(tmp_path, text)

    plain = execute(sys.executable, script, how, cwd=tmp_path)
    profiled = run("-v", "quiet", "--run-name", "r", script, how, cwd=tmp_path)
    assert profiled == plain
    (profile,) = profiles(tmp_path / "runs" / "r")
    assert numbers(profile) == list(range(12, 22))
    assert profile.facts.compiled is (how != "function")


@pytest.mark.long
def test_a_script_with_a_profiler_of_its_own_is_left_alone(tmp_path: Path) -> None:
    done, found = recorded(
        tmp_path,
        """
        with torch.profiler.profile(schedule=torch.profiler.schedule(wait=18, warmup=1, active=2)) as prof:
            for _ in range(22):
                train(1, model, optimizer)
                prof.step()
        print(any("linear" in event.key for event in prof.key_averages()))
        """,
    )
    assert found == []
    assert done.out == "True\n"
    assert "train.py was not recorded: it uses torch.profiler itself" in done.err


@pytest.mark.long
def test_emit_nvtx_of_scripts_for_dlprof_does_not_keep_the_profiler_out(tmp_path: Path) -> None:
    done, (profile,) = recorded(
        tmp_path,
        """
        with torch.autograd.profiler.emit_nvtx():
            train(26, model, optimizer)
        """,
    )
    assert done.status == 0
    assert numbers(profile) == list(range(12, 22))


@pytest.mark.long
def test_only_what_lies_between_the_scripts_marks_is_recorded(tmp_path: Path) -> None:
    done, found = recorded(
        tmp_path,
        """
        def mark(set_it):
            try:
                set_it()
            except (AssertionError, RuntimeError) as error:
                print(type(error).__name__)  # there is no GPU

        for index in range(20):
            if index in (3, 12):
                mark(torch.cuda.profiler.start)
            train(1, model, optimizer)
            if index in (6, 13):
                mark(torch.cuda.profiler.stop)
        """,
        "--profile-range",
    )
    assert len(done.out.splitlines()) == 4
    assert [numbers(profile) for profile in found] == [[3, 4, 5, 6], [12, 13]]
    assert [profile.source.cycle for profile in found] == [0, 1]
    assert len({profile.source.session for profile in found}) == 1


@pytest.mark.long
def test_without_any_mark_that_is_said(tmp_path: Path) -> None:
    done, _ = recorded(tmp_path, "train(26, model, optimizer)", "--profile-range")
    assert "train.py did not call torch.cuda.profiler.start(), so nothing was recorded" in done.err


@pytest.mark.parametrize(
    "method", ["fork", *(pytest.param(how, marks=pytest.mark.long) for how in ("spawn", "forkserver"))]
)
def test_ranks_that_the_script_starts_itself_are_profiles_of_one_session(tmp_path: Path, method: str) -> None:
    write(
        tmp_path,
        """
        import os, torch.distributed as dist, torch.multiprocessing as mp
        from train_parts import *

        def work(rank, file, method):
            os.environ.update(RANK=str(rank), WORLD_SIZE="2")
            dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
            parallel = nn.parallel.DistributedDataParallel(Net())
            train(16, parallel, torch.optim.SGD(parallel.parameters(), lr=0.1))
            dist.destroy_process_group()

        if __name__ == "__main__":
            mp.start_processes(work, (os.path.abspath("store"), sys.argv[1]), nprocs=2, start_method=sys.argv[1])
        """,
        training=False,
    )
    write(tmp_path, "", "train_parts.py")
    done = run("--run-name", "r", "train.py", method, cwd=tmp_path)
    assert done.status == 0, done.err
    found = profiles(tmp_path / "runs" / "r")
    assert [profile.source.rank for profile in found] == [0, 1]
    assert [numbers(profile) for profile in found] == [[12, 13, 14, 15]] * 2
    assert len({profile.source.session for profile in found}) == 1
    assert {profile.facts.parallel_wrapper for profile in found} == {"DistributedDataParallel"}
    assert "2 ranks" in done.err


@pytest.mark.long
def test_workers_of_a_loader_record_their_batches_alone(tmp_path: Path) -> None:
    done, found = recorded(
        tmp_path,
        """
        class Embedded(torch.utils.data.Dataset):
            net = nn.Linear(8, 8)

            def __len__(self):
                return 104

            def __getitem__(self, index):
                with torch.no_grad():
                    return self.net(torch.randn(8))

        for batch in DataLoader(Embedded(), batch_size=4, num_workers=2):
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()
        """,
    )
    (profile,) = found
    assert numbers(profile) == list(range(12, 22))
    assert profile.facts.dataloader.num_workers == 2
    assert profile.facts.loading.missing == ""
    assert len(profile.loader_batches) >= 22
    assert set(profile.loader_batches.worker.tolist()) == {0, 1}
    assert "Warning" not in done.err


@pytest.mark.long
def test_a_recording_that_cannot_be_written_costs_the_script_nothing(tmp_path: Path) -> None:
    done, _ = recorded(
        tmp_path,
        """
        import shutil
        train(14, model, optimizer)
        shutil.rmtree("runs")
        open("runs", "w").close()
        train(14, model, optimizer)
        print("trained")
        sys.exit(5)
        """,
    )
    assert (done.status, done.out) == (5, "trained\n")
    assert done.err.count("TbDlprofWarning") == 1
    assert "the trace was not written" in done.err


@pytest.mark.long
def test_a_failure_of_ours_is_one_warning(tmp_path: Path) -> None:
    done, found = recorded(
        tmp_path,
        """
        import torch.profiler

        def broken(*args, **kwargs):
            raise RuntimeError("no tracing today")

        torch.profiler.profile.prepare_trace = broken
        train(26, model, optimizer)
        print("trained")
        """,
    )
    assert (done.status, done.out, found) == (0, "trained\n", [])
    assert done.err.count("TbDlprofWarning: ") == 1
    assert "no tracing today" in done.err
    assert "Nothing was recorded: RuntimeError: no tracing today." in done.err


@pytest.mark.long
@pytest.mark.parametrize("own", ["autograd.profiler.profile()", "profiler.profile()", "autograd.profiler.emit_itt()"])
@pytest.mark.parametrize("before", [13, 11])
def test_a_script_that_profiles_iterations_to_record_goes_on(tmp_path: Path, own: str, before: int) -> None:
    done, found = recorded(
        tmp_path,
        f"""
        train({before}, model, optimizer)
        with torch.{own} as prof:
            train(2, model, optimizer)
        train(12, model, optimizer)
        seen = prof.key_averages() if hasattr(prof, "key_averages") else []
        print([event.count for event in seen if event.key == "aten::addmm"])
        """,
    )
    expected = "[]\n" if "emit" in own else "[6]\n"
    assert (done.status, done.out, found) == (0, expected, [])
    assert "the script started a profiler itself" in done.err


def test_memory_is_recorded_where_it_is_asked_for(tmp_path):
    script = write(tmp_path, "train(26, model, optimizer)")
    assert run("--run-name", "with", "--memory", script, cwd=tmp_path).status == 0
    assert recorded_devices(profiles(tmp_path / "runs" / "with")[0])
    refused = run("--memory", "--mode", "simple", script, cwd=tmp_path)
    assert refused.status == 2
    assert "--memory is for recordings of torch.profiler with ops" in refused.err
