"""What Nsight Systems records besides calls, kernels and ranges: the GPU's counters, CUDA's memory, NCCL's payloads."""

from __future__ import annotations

import struct
from pathlib import Path

import msgspec
import pytest
from support.nsys_database import NsysDatabase, thread

from tb_dlprof_plugin.analysis import analyze_ranks
from tb_dlprof_plugin.fleet.facts_of_profile import facts_of_profile
from tb_dlprof_plugin.fleet.matching import match
from tb_dlprof_plugin.fleet.rank_facts import Operation
from tb_dlprof_plugin.metrics.communication import collectives
from tb_dlprof_plugin.metrics.memory import DeviceMemory
from tb_dlprof_plugin.metrics.tensor_activity import measured_activity
from tb_dlprof_plugin.model.process_groups import ProcessGroup
from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.pages.tensor_cores import tensor_cores_page
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.codec import decode, encode
from tb_dlprof_plugin.store.run_ref import RunRef

GEMM, PLAIN = (
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64",
    "void at::native::vectorized_elementwise_kernel",
)
USAGE = "CUDA_GPU_MEMORY_USAGE_EVENTS"
MEBI = 1 << 20


@pytest.fixture
def database(tmp_path: Path) -> NsysDatabase:
    return NsysDatabase(tmp_path / "report.sqlite")


def only(database: NsysDatabase) -> Profile:
    (profile,) = analyze_ranks(database.write())
    return decode(encode(profile))


class TestTensorActive:
    """Two steps of 400 µs: a matrix product for half of each, then another kernel for a quarter."""

    def steps(self, database: NsysDatabase) -> None:
        for step in range(2):
            start = 1000 * step
            database.range(f"iteration {step}", start, 400)
            for name, at, length in ((GEMM, 0, 200), (PLAIN, 200, 100)):
                database.range("aten::mm, op_id = 1", start + at, 10)
                database.launch(name, start + at + 1, start + at + 2, length - 4)

    def samples(self, database: NsysDatabase, busy: dict[int, float], gpu: int = 0) -> None:
        """One each 10 µs; ``busy`` has what the counter says in each 100 µs of a step."""
        database.row("TARGET_INFO_GPU_METRICS", typeId=256 + gpu, metricId=4, metricName="SM Issue [Throughput %]")
        name = "Tensor Active [Throughput %]"
        database.row("TARGET_INFO_GPU_METRICS", typeId=256 + gpu, metricId=5, metricName=name)
        for at in range(0, 2000, 10):
            common = {"timestamp": at * 1000, "typeId": 256 + gpu}
            database.row("GPU_METRICS", **common, metricId=4, value=99)
            database.row("GPU_METRICS", **common, metricId=5, value=busy.get((at - 1) % 1000 // 100, 0))

    def test_a_step_has_its_mean_and_a_kernel_that_of_the_samples_within_it(self, database) -> None:
        self.steps(database)
        self.samples(database, {0: 60, 1: 60})
        view = ProfileView(only(database))
        found = measured_activity(view, view.selection())
        assert found is not None
        assert found.metric == "Tensor Active [Throughput %]"
        # Half of each step of 400 µs, and the time between the steps is none of theirs.
        assert found.active_percent == pytest.approx(30)
        assert found.measured_ns == 800_000
        names = {view.profile.strings[view.profile.kernels.name[one.kernel]]: one for one in found.kernels}
        assert names[GEMM].active_percent == pytest.approx(60)
        assert names[PLAIN].active_percent == 0
        assert not found.contradicting

    def test_a_verdict_that_the_counter_contradicts_is_named_in_one_sentence(self, database) -> None:
        self.steps(database)
        self.samples(database, {2: 35})
        view = ProfileView(only(database))
        page = tensor_cores_page(view, RunRef("run", "s", 0, 0), view.selection())
        assert len(page.measured) == 2
        assert (
            "by its name it uses Tensor Cores, but it kept them 0.0 % busy. One more kernel differs."
            in page.measured[1]
        )
        assert {kernel.measured_percent for kernel in page.kernels} == {0.0, 35.0}
        # As the browser gets it.
        assert msgspec.json.decode(msgspec.json.encode(page))["kernels"]

    def test_the_samples_of_another_gpu_are_not_this_ones(self, database) -> None:
        self.steps(database)
        self.samples(database, {0: 60}, gpu=3)
        for number, ordinal in ((3, 1), (0, 0)):
            database.row("TARGET_INFO_GPU", id=number, cuDevice=ordinal, name="GPU", computeMajor=9, computeMinor=0)
        view = ProfileView(only(database))
        assert measured_activity(view, view.selection()) is None

    def test_a_gpu_id_that_is_no_ordinal_is_found(self, database) -> None:
        self.steps(database)
        self.samples(database, {0: 60}, gpu=3)
        database.row("TARGET_INFO_GPU", id=3, cuDevice=0, name="GPU", computeMajor=9, computeMinor=0)
        view = ProfileView(only(database))
        assert measured_activity(view, view.selection()) is not None

    def test_values_that_are_no_percent_are_left_out(self, database) -> None:
        self.steps(database)
        database.row("TARGET_INFO_GPU_METRICS", typeId=256, metricId=5, metricName="Tensor Active [Throughput %]")
        for at, value in enumerate((None, "x", -4, 1e300, float("nan"), 250, 2**62)):
            database.row("GPU_METRICS", timestamp=at * 1000, typeId=256, metricId=5, value=value)
        database.row("GPU_METRICS", timestamp=None, typeId=None, metricId=5, value=3)
        for at in (-(2**63), -(2**62), 2**62, 2**63 - 1):
            database.row("GPU_METRICS", timestamp=at, typeId=256, metricId=5, value=3)
        view = ProfileView(only(database))
        assert measured_activity(view, view.selection()) is None


class TestMemory:
    def test_what_cuda_hands_out_is_the_memory_of_the_gpu(self, database) -> None:
        database.range("aten::mm, op_id = 1", 0, 50)
        database.launch("k", 5, 60, 10)
        call = database.call(10, 5, name="cudaMalloc_v3020")
        common = {"globalPid": thread(0), "deviceId": 0, "memKind": 2}
        database.row(
            USAGE, start=12_000, address=64, bytes=4 * MEBI, memoryOperationType=0, correlationId=call, **common
        )
        database.row(USAGE, start=20_000, address=128, bytes=MEBI, memoryOperationType=0, **common)
        pinned = common | {"memKind": 1}
        database.row(USAGE, start=21_000, address=256, bytes=9 * MEBI, memoryOperationType=0, **pinned)
        for at in (None, -(2**63), 2**62):
            database.row(USAGE, start=at, address=1, bytes=MEBI, memoryOperationType=0, **common)
        # Some frees have no size.
        database.row(USAGE, start=30_000, address=64, bytes=0, memoryOperationType=1, **common)
        profile = only(database)
        memory = DeviceMemory(ProfileView(profile), 0)
        assert memory.allocated.tolist() == [0, 4 * MEBI, 5 * MEBI, MEBI]
        # The call around it is the op's.
        assert profile.strings[profile.ops.name[profile.calls.op[memory.call[0]]]] == "cudaMalloc"
        assert "memory_of_cuda" in {note.code for note in profile.notes}


class TestNcclPayloads:
    SCHEMAS = (
        (100, [("NCCL communicator ID", 18, None), ("Message size [bytes]", 22, 8)]),
        (101, [("NCCL communicator ID", 18, None), ("No. of ranks", 5, 8), ("Rank", 5, 12)]),
        (102, [("NCCL communicator ID", 18, None), ("Message size [bytes]", 22, 8), ("Peer rank", 5, 16)]),
        (103, [("Message size [bytes]", 22, None)]),
    )

    def layout(self, database: NsysDatabase) -> None:
        database.domain("NCCL", 1)
        for schema, fields in self.SCHEMAS:
            for index, (name, kind, offset) in enumerate(fields):
                database.row(
                    "NVTX_PAYLOAD_SCHEMA_ENTRIES", domainId=1, schemaId=schema, idx=index, type=kind, name=name,
                    offset=offset,
                )  # fmt: skip

    def payload(self, schema: int, body: bytes) -> bytes:
        return struct.pack("<IIIIQQ", 1, 0, schema, 0, len(body), 32 + len(body)) + body

    def collective(self, database: NsysDatabase, name: str, at: float, **payload: object) -> None:
        database.range(f"nccl{name}", at, 10, domainId=1, textId=None, **payload)
        database.launch(f"ncclDevKernel_{name}_Sum_f32_RING_LL", at + 2, at + 20, 5)

    def sizes(self, database: NsysDatabase) -> list[int]:
        view = ProfileView(only(database))
        return collectives(view, view.selection()).bytes.tolist()

    def test_the_bytes_of_a_collective_are_in_the_payload_of_its_range(self, database) -> None:
        self.layout(database)
        init = self.payload(101, struct.pack("<Qiii", 77, 4, 0, 0))
        database.range("ncclCommInitRank", 0, 5, domainId=1, binaryData=init)
        self.collective(database, "AllReduce", 100, binaryData=self.payload(100, struct.pack("<QQ", 77, 4096)))
        self.collective(database, "ReduceScatter", 200, binaryData=self.payload(100, struct.pack("<QQ", 77, 1000)))
        self.collective(database, "ReduceScatter", 300, binaryData=self.payload(100, struct.pack("<QQ", 78, 1000)))
        text = '{"NCCL communicator ID": "12,345", "Message size [bytes]": "1,048,576"}'
        self.collective(database, "AllGather", 400, jsonText=text)
        assert self.sizes(database) == [4096, 4000, -1, MEBI]

    def test_older_versions_of_nccl_name_no_communicator(self, database) -> None:
        self.layout(database)
        self.collective(database, "AllReduce", 100, binaryData=self.payload(103, struct.pack("<Q", 4096)))
        profile = only(database)
        assert self.sizes(database) == [4096]
        assert (len(profile.communications), profile.process_groups) == (0, [])

    def test_communicators_are_process_groups_and_their_calls_are_numbered(self, database) -> None:
        self.layout(database)
        for rank, pid in enumerate((100, 200)):
            database.domain("NCCL", 1, pid=pid)
            init = self.payload(101, struct.pack("<Qii", 2**63 + 5, 2, rank))
            database.range("ncclCommInitRankConfig", 0, 5, domainId=1, binaryData=init, pid=pid)
            for at in (100, 200):
                size = self.payload(100, struct.pack("<QQ", 2**63 + 5, 4096))
                database.range("ncclAllReduce", at, 10, domainId=1, textId=None, binaryData=size, pid=pid)
                database.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + 2, at + 20, 5, pid=pid)
            name = ("ncclSend", "ncclRecv")[rank]
            call = self.payload(102, struct.pack("<QQi", 2**63 + 5, 512, 1 - rank))
            database.range(name, 300, 10, domainId=1, textId=None, binaryData=call, pid=pid)
            database.launch("ncclDevKernel_SendRecv", 302, 320, 5, pid=pid)
        first, second = analyze_ranks(database.write())
        assert first.process_groups == [ProcessGroup("NCCL 8000000000000005", members=(0, 1))]
        for profile, peer in ((first, 1), (second, 0)):
            table = profile.communications
            assert [profile.strings[name] for name in table.name[:2].tolist()] == ["ncclAllReduce"] * 2
            assert (table.sequence.tolist(), table.peer.tolist()) == ([0, 1, 2], [-1, -1, peer])
            assert (table.launch >= 0).all()
        facts = [facts_of_profile(ProfileView(profile)) for profile in (first, second)]
        matched = match(facts)
        assert len(matched) == 3
        assert Operation.SEND in matched.operation.tolist()

    def test_without_the_creation_of_a_communicator_members_and_numbers_are_unknown(self, database) -> None:
        self.layout(database)
        self.collective(database, "AllReduce", 100, binaryData=self.payload(100, struct.pack("<QQ", 77, 4096)))
        profile = only(database)
        assert profile.process_groups == [ProcessGroup("NCCL 4d")]
        assert profile.communications.sequence.tolist() == [-1]

    @pytest.mark.parametrize(
        "blob", [b"", b"\0" * 31, b"\xff" * 40, struct.pack("<IIIIQQ", 1, 0, 100, 0, 2**63, 0) + b"\1\2", "text", 5]
    )
    def test_a_damaged_payload_is_unknown(self, database, blob: object) -> None:
        self.layout(database)
        self.collective(database, "AllReduce", 100, binaryData=blob)
        assert self.sizes(database) == [-1]
