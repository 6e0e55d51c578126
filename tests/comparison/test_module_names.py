"""Modules of two frameworks' runs that are the same one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_dlprof_plugin.analysis import analyze_ranks
from tb_dlprof_plugin.comparison import compare
from tb_dlprof_plugin.comparison.module_names import shared_modules, words_of
from tb_dlprof_plugin.pages.compare_ops import module_rows, op_rows

RECORDED = Path(__file__).parents[1] / "readers" / "xplane" / "jax_h200.xplane.pb.gz"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("layers.0.mlp", "layer_0.mlp"),
        ("Block_3.Attention_0", "block.3.attention.0"),
        ("DenseBlock_1", "dense_block.1"),
    ],
)
def test_numbering_plural_and_case_are_no_difference(one: str, other: str) -> None:
    assert words_of(one) == words_of(other)


def test_the_plural_of_a_word_without_a_number_stays() -> None:
    assert words_of("bias.embeddings") == ("bias", "embeddings")


class TestSharedModules:
    def test_the_program_is_no_part_of_a_path(self) -> None:
        of_base, of_candidate = shared_modules({"blocks.0.mlp", "head"}, {"jit_step", "jit_step.block_0.mlp"})
        assert of_base == {"blocks.0.mlp": "blocks.0.mlp", "head": "head"}
        assert of_candidate == {"jit_step": "", "jit_step.block_0.mlp": "blocks.0.mlp"}

    def test_modules_of_several_programs_are_the_same(self) -> None:
        _, of_candidate = shared_modules({"head"}, {"jit_train.head", "jit_evaluate.head"})
        assert set(of_candidate.values()) == {"head"}

    def test_what_begins_every_path_of_one_run_goes(self) -> None:
        _, of_candidate = shared_modules({"stem", "layers.0"}, {"ResNet.stem", "ResNet.layers_0"})
        assert of_candidate == {"ResNet.stem": "stem", "ResNet.layers_0": "layers.0"}

    def test_it_stays_where_nothing_is_the_same_without_it(self) -> None:
        of_base, _ = shared_modules({"encoder.a", "encoder.b"}, {"encoder.a", "head"})
        assert of_base == {"encoder.a": "encoder.a", "encoder.b": "encoder.b"}

    def test_an_ending_that_both_have_once_is_enough(self) -> None:
        bert = {f"bert.encoder.layer.{n}.attention" for n in range(2)} | {"bert.embeddings", "classifier"}
        _, of_candidate = shared_modules(bert, {f"jit_step.layer_{n}.attention" for n in range(2)})
        assert of_candidate["jit_step.layer_1.attention"] == "bert.encoder.layer.1.attention"

    def test_an_ending_that_one_has_twice_says_nothing(self) -> None:
        two = {f"{part}.layer.0" for part in ("encoder", "decoder")}
        _, of_candidate = shared_modules(two, {"jit_step.layer_0"})
        assert of_candidate == {"jit_step.layer_0": "layer_0"}

    def test_layers_of_other_names_are_the_same_where_they_alone_count_as_far(self) -> None:
        torch = {f"encoder.h.{n}.mlp" for n in range(3)} | {"wte"}
        jax = {f"jit_step.block_{n}.mlp" for n in range(3)} | {"jit_step.block_0.norm"}
        _, of_candidate = shared_modules(torch, jax)
        assert {of_candidate[f"jit_step.block_{n}.mlp"] for n in range(3)} == {f"encoder.h.{n}.mlp" for n in range(3)}

    def test_layers_that_count_otherwise_stay_apart(self) -> None:
        _, of_candidate = shared_modules({f"h.{n}" for n in range(3)}, {f"jit_step.block_{n}" for n in range(4)})
        assert "h.0" not in of_candidate.values()

    def test_what_only_one_names_counts_to_the_module_around_it(self) -> None:
        torch = {"layers.0", "layers.0.mlp", "layers.0.mlp.act", "pooler"}
        of_base, _ = shared_modules(torch, {"jit_step.layer_0.mlp", "jit_step.layer_0"})
        assert of_base == {
            "layers.0": "layers.0",
            "layers.0.mlp": "layers.0.mlp",
            "layers.0.mlp.act": "layers.0.mlp",
            "pooler": "pooler",
        }


def test_times_of_a_recorded_jax_run_and_one_of_pytorch_meet_in_their_modules(new_trace) -> None:
    trace = new_trace()
    for step in range(3):
        begin = 1000 * step
        trace.step(step, begin, 900)
        for layer, at in (("blocks.0.mlp", begin + 10), ("blocks.0.mlp.act", begin + 200), ("pool", begin + 400)):
            trace.module(layer, at, 100)
            trace.op("aten::mm", at + 1, 90)
            trace.launch("gemm", at + 5, at + 20, 50)
    torch_run = trace.profile()
    jax_run = analyze_ranks(RECORDED)[0]
    comparison = compare(torch_run, jax_run)
    rows = {row.module: row for row in module_rows(comparison)}
    assert rows["blocks.0.mlp"].a_ns == 100_000
    assert rows["blocks.0.mlp"].b_ns
    assert (rows["pool"].status, rows["pool"].b_ns) == ("removed", None)
    assert rows["block_1.mlp"].status == "added"
    assert {row.listed_in for row in op_rows(comparison)} == rows.keys()
