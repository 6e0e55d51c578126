"""A key node cuts a recording as chapter 7 of DLProf's guide says."""

from __future__ import annotations

import numpy as np
import pytest

from tb_dlprof_plugin.analysis.key_node import cut_at
from tb_dlprof_plugin.metrics.iteration_range import by_number
from tb_dlprof_plugin.metrics.iterations import step_totals
from tb_dlprof_plugin.metrics.key_node import key_node_candidates, with_key_node
from tb_dlprof_plugin.model.run_choice import KeyNodeError
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.codec import decode, encode


def spans(profile, *, host: bool = False) -> list[tuple[int, int]]:
    """Start and stop of each iteration in whole µs since the recording's first event."""
    iterations = profile.iterations
    start, stop = (
        (iterations.host_start_ns, iterations.host_stop_ns) if host else (iterations.start_ns, iterations.stop_ns)
    )
    zero = int(iterations.host_start_ns[0])
    return [(int(a - zero) // 1000, int(b - zero) // 1000) for a, b in zip(start, stop, strict=True)]


@pytest.fixture
def three_heads(new_trace):
    """`head` at 10 to 20, 110 to 120 and 210 to 220 with an `aten::relu` behind each; the first event begins at 0."""
    trace = new_trace()
    trace.op("aten::first", 0, 5)
    for at in (0, 100, 200):
        trace.op("aten::head", at + 10, 10)
        trace.op("aten::relu", at + 30, 40)
    return trace


def test_three_instances_make_four_intervals_between_their_stops(three_heads) -> None:
    cut = with_key_node(three_heads.profile(), "head")
    assert spans(cut) == spans(cut, host=True) == [(0, 20), (20, 120), (120, 220), (220, 270)]
    assert cut.iterations.number.tolist() == [0, 1, 2, 3]
    assert cut.iterations.found_by == "key_node"
    assert cut.notes[0].code == "steps_from_key_node"
    assert "no_steps" not in [note.code for note in cut.notes]


def test_calls_belong_to_the_interval_in_which_they_begin(three_heads) -> None:
    view = ProfileView(with_key_node(three_heads.profile(), "head"))
    names = [view.profile.strings[i] for i in view.profile.ops.name[view.profile.calls.op].tolist()]
    found = sorted(zip(view.call_iteration.tolist(), names, strict=True))
    assert found == [
        (0, "aten::first"), (0, "aten::head"), (1, "aten::head"), (1, "aten::relu"), (2, "aten::head"),
        (2, "aten::relu"), (3, "aten::relu"),
    ]  # fmt: skip


def test_categories_are_those_of_the_new_intervals(three_heads) -> None:
    view = ProfileView(with_key_node(three_heads.profile(), "head"))
    cpu = [step_totals(view, view.selection(index, index)).category_ns["cpu"] for index in range(4)]
    # The first op and the first head; each relu with the next head.
    assert cpu == [15_000, 50_000, 50_000, 40_000]


def test_an_interval_ends_when_the_gpu_has_finished_what_it_launched(new_trace) -> None:
    trace = new_trace()
    trace.gpu()
    trace.kernel("before", -50, 20, 3)
    for at in (0, 100):
        trace.op("aten::head", at, 10)
        trace.launch("head_kernel", at + 2, at + 60, 90)
    cut = with_key_node(trace.profile(), "head")
    # The recording begins with the kernel launched before it, at -50, and ends with the last kernel, at 250. The head
    # stops at 10 and 110; what the first launched runs until 150.
    assert spans(cut, host=True) == [(0, 60), (60, 160), (160, 300)]
    assert spans(cut) == [(0, 200), (200, 300), (300, 300)]
    assert cut.iterations.category_ns[:, 0, 1].tolist() == [20_000 + 90_000, 90_000, 0]


def test_a_name_of_both_directions_means_the_forward_op_and_an_id_any(gpu_view: ProfileView) -> None:
    profile = gpu_view.profile
    assert spans(with_key_node(profile, "conv1/conv2d"), host=True)[1] == (60 + 185, 60 + 1185)
    (backward,) = [
        gpu_view.groups.ids[row]
        for row in range(len(gpu_view.groups))
        if profile.strings[gpu_view.groups.module[row]] == "conv1" and gpu_view.groups.role[row] == 2
    ]
    assert spans(with_key_node(profile, backward), host=True)[1] == (60 + 400, 60 + 1400)


def test_an_instance_of_several_backward_nodes_stops_with_the_last(gpu_view: ProfileView) -> None:
    """The linear layer's node stops at 330, the one behind it at 338."""
    profile, groups = gpu_view.profile, gpu_view.groups
    (row,) = [r for r in range(len(groups)) if profile.strings[groups.module[r]] == "fc" and groups.role[r] == 2]
    cut = with_key_node(profile, groups.ids[row])
    assert spans(cut, host=True)[1] == (60 + 338, 60 + 1338)


@pytest.mark.parametrize("name", ["Optimizer.step#SGD.step", "conv1"])
def test_an_annotation_or_a_module_can_be_the_key_node(gpu_view: ProfileView, name: str) -> None:
    stop = {"Optimizer.step#SGD.step": 480, "conv1": 200}[name]
    cut = with_key_node(gpu_view.profile, name)
    assert spans(cut, host=True)[1] == (60 + stop, 60 + 1000 + stop)
    assert len(cut.iterations) == 4


def test_a_cuda_call_outside_every_op_can_be_the_key_node(three_heads) -> None:
    three_heads.runtime(80, 5, name="cudaDeviceSynchronize")
    cut = with_key_node(three_heads.profile(), "unassociated_cudaDeviceSynchronize")
    assert spans(cut) == [(0, 85), (85, 270)]


def test_on_several_gpus_the_nth_instances_of_all_are_one(new_trace) -> None:
    trace = new_trace()
    trace.gpu()
    trace.gpu(id=1)
    for at in (0, 100):
        for device in (0, 1):
            trace.op("aten::head", at + 20 * device, 10, tid=1 + device)
            trace.launch("k", at + 20 * device + 1, at + 20 * device + 5, 2, tid=1 + device, device=device)
    # The second GPU's stop at 30 and 130.
    assert spans(with_key_node(trace.profile(), "head"), host=True) == [(0, 30), (30, 130), (130, 130)]
    trace.op("aten::head", 200, 10)
    trace.launch("k", 201, 205, 2)
    # Three on one GPU and two on the other: each is an iteration.
    assert len(with_key_node(trace.profile(), "head").iterations) == 6


def test_an_unknown_key_node_names_ops_that_could_be_one(three_heads) -> None:
    with pytest.raises(KeyNodeError) as caught:
        with_key_node(three_heads.profile(), "global_step")
    text = str(caught.value)
    assert text.startswith("there is no op named 'global_step'; called once a step are, first to last, head (")
    assert "3 calls), relu (" in text
    assert "first (" not in text


def test_ops_called_as_often_as_there_are_steps_are_candidates_in_order(gpu_view: ProfileView) -> None:
    found = key_node_candidates(gpu_view)
    assert [name for _, name, _ in found][:3] == ["to", "conv1/conv2d", "fc/linear"]
    assert {calls for _, _, calls in found} == {3}


def test_a_name_of_several_ops_asks_for_an_id(new_trace) -> None:
    trace = new_trace()
    trace.op("aten::add_", 0, 10)
    trace.optimizer(20, 30)
    trace.op("aten::add_", 25, 10)
    trace.backward("ReluBackward0", 60, 10, 1)
    profile = trace.profile()
    with pytest.raises(KeyNodeError, match=r"2 ops are named 'add_'; give the Op ID of one: \w+ \(other\), \w+ \(opt"):
        with_key_node(profile, "add_")


def test_gpu_work_outside_every_op_cannot_be_the_key_node(gpu_view: ProfileView) -> None:
    name = "unassociated_" + next(s for s in gpu_view.profile.strings if "vectorized_elementwise_kernel" in s)
    with pytest.raises(KeyNodeError, match="no call on the CPU that could end an iteration"):
        with_key_node(gpu_view.profile, name)


def test_a_cut_profile_is_stored_and_read_as_any_other(gpu_view: ProfileView) -> None:
    cut = with_key_node(gpu_view.profile, "conv1/conv2d")
    again = decode(encode(cut))
    assert again.iterations.found_by == "key_node"
    assert (again.iterations.category_ns == cut.iterations.category_ns).all()


def test_a_cut_can_be_cut_again(three_heads) -> None:
    once = with_key_node(three_heads.profile(), "head")
    twice = with_key_node(once, "relu")
    assert spans(twice) == [(0, 70), (70, 170), (170, 270), (270, 270)]
    assert [note.code for note in twice.notes].count("steps_from_key_node") == 1


def test_no_instance_leaves_one_interval(three_heads) -> None:
    cut = cut_at(three_heads.profile(), np.zeros(0, dtype=np.int64), "nothing")
    assert spans(cut) == [(0, 270)]


class TestRange:
    def test_numbers_are_the_trainings(self, gpu_view: ProfileView) -> None:
        assert by_number(gpu_view, 6, 7) == gpu_view.selection(1, 2)
        assert by_number(gpu_view, None, 5) == gpu_view.selection(0, 0)
        assert by_number(gpu_view, None, None) == gpu_view.selection()

    @pytest.mark.parametrize(
        ("start", "stop", "words"),
        [
            (4, None, "iteration 4 was not recorded; this recording has iterations 5 to 7"),
            (5, 8, "iteration 8 was not recorded"),
            (7, 5, "the range 7 to 5 is empty"),
        ],
    )
    def test_what_was_not_recorded_is_refused(self, gpu_view: ProfileView, start, stop, words: str) -> None:
        with pytest.raises(ValueError, match=words):
            by_number(gpu_view, start, stop)

    def test_without_iterations_a_range_is_refused_with_what_to_do(self, three_heads) -> None:
        view = three_heads.view()
        assert by_number(view, 0, 0) == view.selection()
        with pytest.raises(ValueError, match=r"no iterations were found in this recording.*key node"):
            by_number(view, 3, None)

    def test_gaps_between_recorded_steps_are_listed(self, new_trace) -> None:
        trace = new_trace()
        for number in (1, 2, 8):
            trace.step(number, 100 * number, 50)
            trace.op("aten::relu", 100 * number + 5, 10)
        with pytest.raises(ValueError, match=r"has iterations 1 to 2, 8$"):
            by_number(trace.view(), 4, None)
