"""The launches of a wrapper and what ran: anchors by name, library kernels of replays by what they do."""

from __future__ import annotations

import pytest

from tb_dlprof_plugin.analysis.wrapper_order import Work, aligned, recorded_name, work_name

ADD, MUL = "triton_poi_fused_add_0", "triton_poi_fused_mul_1"
MM, ATTENTION, FOREIGN = "aten::mm", "aten::_scaled_dot_product_flash_attention", "mine::op"
GEMM, FLASH = "nvjet_sm90_tst_128x128_64x6_2x1_v_bz_NNT", "void pytorch_flash::flash_fwd_kernel<1>"


def _ops(*names: str) -> tuple[Work, ...]:
    return tuple(map(Work, names))


def _replay(*names: str) -> tuple[Work, ...]:
    return tuple(Work(name, replayed=True, is_kernel=not name.startswith("Memset")) for name in names)


def test_ops_in_the_order_of_the_wrapper_are_its_launches():
    assert aligned((ADD, MM, MM, ADD), _ops(ADD, MM, MM, ADD)) == (0, 1, 2, 3)


@pytest.mark.parametrize(
    "ran", [(MUL, ADD), (ADD,), (ADD, MUL, MUL), (ADD, MM, MUL)], ids=["shuffled", "fewer", "more", "another op"]
)
def test_another_order_makes_the_whole_call_unknown(ran):
    assert aligned((ADD, MUL), _ops(*ran)) is None


def test_a_replayed_product_takes_the_kernel_that_sums_its_parts():
    work = _replay(ADD, GEMM, "void splitKreduce_kernel<32, 16>", GEMM, MUL)
    assert aligned((ADD, MM, MM, MUL), work) == (0, 1, 1, 2, 3)


def test_a_replayed_set_belongs_to_the_kernel_behind_it():
    work = _replay(GEMM, "Memset (Device)", FLASH, MUL)
    assert aligned((MM, ATTENTION, MUL), work) == (0, 1, 1, 2)


def test_replayed_kernels_that_could_be_of_either_call_are_unknown_and_their_neighbours_known():
    work = _replay(ADD, "some_kernel", "another", "a_third", MUL)
    assert aligned((ADD, FOREIGN, FOREIGN, MUL), work) == (0, -1, -1, -1, 3)


def test_a_replayed_kernel_without_a_launch_is_unknown():
    assert aligned((ADD, MUL), _replay(ADD, "copy_kernel", MUL)) == (0, -1, 1)


def test_a_replay_without_a_product_of_the_wrapper_is_another_graph():
    assert aligned((ADD, MM, MUL), _replay(ADD, MUL)) is None


def test_cpp_kernels_count_only_where_they_leave_events():
    assert aligned(("cpp_fused_add_0", MM), _ops(MM)) == (1,)
    assert aligned(("cpp_fused_add_0", MM), _ops("cpp_fused_add_0", MM)) == (0, 1)


@pytest.mark.parametrize(
    ("handle", "op"),
    [
        ("extern_kernels.mm", "aten::mm"),
        ("extern_kernels.bias_addmm", "aten::addmm"),
        ("torch.ops.aten._scaled_dot_product_cudnn_attention.default", "aten::_scaled_dot_product_cudnn_attention"),
        ("torch.ops.mine.op.default", "mine::op"),
        (ADD, ADD),
    ],
)
def test_a_handle_names_the_op_that_the_trace_has(handle, op):
    assert recorded_name(handle) == op


def test_the_event_of_a_cpp_kernel_names_its_graph_first():
    assert work_name("graph_0_cpp_fused_gelu_1") == "cpp_fused_gelu_1"
