"""``tb-dlprof distributed`` over the traces of two ranks and over a run that holds them."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tb_dlprof_plugin import distributed, import_job, job_table, read_profiles
from tb_dlprof_plugin.cli.main import app
from tb_dlprof_plugin.fleet.answers import job_of as answers
from tb_dlprof_plugin.fleet.job import Delay

TRACES = Path(__file__).parents[1] / "traces"
RANKS = [str(TRACES / f"nccl_rank{rank}.pt.trace.json.gz") for rank in (0, 1)]


def _run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["distributed", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_json_has_the_answers_about_the_job() -> None:
    code, out, _ = _run(*RANKS, "--format", "json")
    job = json.loads(out)
    assert code == 0
    assert (job["world_size"], job["ranks"], job["missing_ranks"]) == (2, [0, 1], [])
    assert job["step"].keys() == {"ms", "low_ms", "high_ms", "source"}
    assert job["account"][0].keys() == {
        "rank", "step_ms", "compute_ms", "transfer_ms", "waiting_ms", "bubble_ms", "host_ms",
    }  # fmt: skip
    for row in job["account"]:
        parts = sum(row[f"{part}_ms"] for part in ("compute", "transfer", "waiting", "bubble", "host"))
        assert parts == pytest.approx(row["step_ms"])
    assert job["delays"][0].keys() >= {"rank", "caused_waiting_ms", "saving_ms", "cause", "certain"}
    assert job["what_if"][0].keys() == {"change", "step_ms", "low_ms", "high_ms"}
    assert job["collectives"]["matched_percent"] == 100
    assert abs(job["simulated_error_percent"]) < 1
    assert job["clock"].keys() >= {"uncertainty_us", "offsets_us"}
    assert job["efficiency"]["parallel"] is not None


def test_text_csv_and_python_agree() -> None:
    _, text, _ = _run(*RANKS)
    job = distributed(*RANKS)
    assert text.startswith(job.sentence)
    code, out, _ = _run(*RANKS, "--format", "csv", "--table", "collective_rows")
    lines = out.splitlines()
    assert code == 0
    assert lines[0].startswith("operation,dimension,size,module")
    assert len(lines) == 1 + len(job.collective_rows)
    assert job_table(job, "delays").columns[:3] == ("rank", "caused_waiting_ms", "saving_ms")
    with pytest.raises(ValueError, match="there is no table 'ranks'; there are account, delays"):
        job_table(job, "ranks")


def test_a_glob_and_a_folder_are_a_job() -> None:
    code, out, _ = _run(str(TRACES / "cpu_gloo_rank*.pt.trace.json.gz"), "--format", "json")
    assert code == 0
    assert json.loads(out)["ranks"] == [0, 1]


def test_a_recording_of_several_ranks_is_a_job() -> None:
    code, out, _ = _run(str(TRACES / "nsys" / "two_ranks.sqlite.gz"), "--format", "json")
    assert code == 0
    assert json.loads(out)["ranks"] == [0, 1]


def test_a_run_directory_is_a_job(tmp_path: Path) -> None:
    made = CliRunner().invoke(app, ["import", *RANKS, "--logdir", str(tmp_path), "--run", "two"])
    assert made.exit_code == 0, made.output
    code, out, _ = _run(str(tmp_path / "two"), "--format", "json")
    assert code == 0
    of_traces = json.loads(_run(*RANKS, "--format", "json")[1])
    assert json.loads(out)["account"] == of_traces["account"]


def test_fail_on_straggler(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _run(*RANKS, "--fail-on", "straggler")[0] == 0
    late = [Delay(1, 5.0, 4.7, 4.1, 5.2, "slow_host", "It launches late.", True)]
    monkeypatch.setattr(answers, "delays", lambda *_, **__: late)
    code, _, err = _run(*RANKS, "--fail-on", "straggler")
    said = "repairing it saves 4.70 ms of a step (4.10 ms to 5.20 ms)"
    assert (code, err) == (1, f"tb-dlprof: rank 1 delays the others, because its host is slow: {said}.\n")
    code, _, err = _run(RANKS[0], "--fail-on", "straggler")
    assert code == 3
    assert err.startswith("tb-dlprof: which rank delays the others cannot be said. 1 of 2 ranks is missing (1)")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["missing"], "missing does not exist"),
        (["none/*.json"], "No file matches none/*.json."),
        ([RANKS[0], str(TRACES), "--table", "account"], "--table chooses"),
    ],
)
def test_errors_are_one_sentence(arguments: list[str], sentence: str) -> None:
    code, _, err = _run(*arguments)
    assert code != 0
    assert sentence in err.replace("\n", " ")


def test_the_same_rank_twice_is_an_error(tmp_path: Path) -> None:
    copy = tmp_path / "copy_rank0.pt.trace.json.gz"
    copy.write_bytes(Path(RANKS[0]).read_bytes())
    code, _, err = _run(RANKS[0], str(copy))
    assert code != 0
    assert "Rank 0 is there 2 times" in err


def test_a_folder_with_a_rank_twice_says_where(tmp_path: Path) -> None:
    for name in ("iteration_10", "iteration_20"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rank0_trace.json.gz").write_bytes(Path(RANKS[0]).read_bytes())
    code, _, err = _run(str(tmp_path))
    assert code != 0
    assert "holds rank 0 several times, in iteration_10 and in iteration_20; name one of these folders" in " ".join(
        err.split()
    )


def test_ranks_are_those_of_their_folders_where_traces_name_none(tmp_path: Path) -> None:
    for rank, source in enumerate(RANKS[:2]):
        trace = json.loads(gzip.decompress(Path(source).read_bytes()))
        trace.pop("distributedInfo", None)
        for name in (f"rank{rank}", f"part{rank}"):
            (tmp_path / name[:4] / name).mkdir(parents=True)
            (tmp_path / name[:4] / name / "trace.json").write_text(json.dumps(trace))
    code, out, _ = _run(str(tmp_path / "rank"), "--format", "json")
    assert code == 0
    assert [account["rank"] for account in json.loads(out)["account"]] == [0, 1]
    code, _, err = _run(str(tmp_path / "part"))
    assert code != 0
    assert "A recording that names no rank has that of its name" in " ".join(err.split())
    (run,) = import_job(str(tmp_path / "rank"), tmp_path / "logdir", engine="here")
    assert (run.name, run.ranks) == ("rank", [0, 1])
    assert [one.profile.source.cycle for one in read_profiles(tmp_path / "logdir")] == [0, 0]


def test_dumps_of_the_flight_recorder_name_the_rank_that_a_job_waits_for(tmp_path: Path) -> None:
    # Ranks 0 and 2 wait in the second all-reduce, which rank 1 has not called.
    for rank in range(3):
        calls = [(1, "completed"), (2, "started")][: 1 if rank == 1 else 2]
        entries = [
            {
                "process_group": ("0", "default_pg"),
                "collective_seq_id": number,
                "p2p_seq_id": 0,
                "is_p2p": False,
                "profiling_name": "nccl:all_reduce",
                "input_sizes": [[4]],
                "input_dtypes": ["Float"],
                "output_sizes": [[4]],
                "output_dtypes": ["Float"],
                "state": state,
                "time_created_ns": number,
            }
            for number, state in calls
        ]
        groups = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2]"}}
        (tmp_path / f"_dump_{rank}").write_bytes(pickle.dumps({"entries": entries, "pg_config": groups}))
    code, out, _ = _run(str(tmp_path))
    assert code == 0
    assert out.startswith("The job stands still and waits for rank 1.")
    assert "Rank 1 has not made call 2 of default_pg, which ranks 0, 2 wait for" in out
    job = distributed(tmp_path)
    assert (job.world_size, job.step, job.delays) == (3, None, [])
