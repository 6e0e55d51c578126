"""A recording without ops has the verdicts on Tensor Cores, TF32 and mixed precision that its kernels allow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.marks import short_of
from support.nsys_database import NsysDatabase
from support.recorded_runs import DEMO, recorded_view
from support.without_ops import kineto_without_ops, nsys_without_ranges

from tb_dlprof_plugin.advice import advise
from tb_dlprof_plugin.analysis import analyze_ranks
from tb_dlprof_plugin.metrics.tensor_cores import tensor_core_totals
from tb_dlprof_plugin.model.profile import Verdict
from tb_dlprof_plugin.names.tensor_core_eligibility import eligible_by_kernel
from tb_dlprof_plugin.pages.overview import overview
from tb_dlprof_plugin.pages.tensor_cores import TensorCoresPage, tensor_cores_page
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef

REF = RunRef("run", "s", 0, 0)
TRACES = Path(__file__).resolve().parents[1] / "traces"
ELEMENTWISE = ("void at::native::elementwise_kernel<128>", 120)
"""By such kernels a recording without ranges is known to be of PyTorch."""
SAME_POINTS = 5.0
"""How far the shares may be apart: sums of bias gradients are kernels of their own, which only an op ties to a product.

Over demo/recorded and tests/data the median difference is 0, and 163 of 177 runs are within 3 points.
"""


def view_of(path: Path) -> ProfileView:
    return ProfileView(analyze_ranks(path)[0])


def page_of(view: ProfileView) -> TensorCoresPage:
    return tensor_cores_page(view, REF, view.selection())


@pytest.mark.parametrize("name", short_of(["emit_nvtx_fp32", "emit_nvtx_amp"], {"emit_nvtx_amp"}))
def test_nsys_without_ranges_has_the_share_that_it_has_with_them(name: str, tmp_path: Path) -> None:
    source = TRACES / "nsys" / f"{name}.sqlite.gz"
    with_ops, without = page_of(view_of(source)), page_of(view_of(nsys_without_ranges(source, tmp_path)))
    assert with_ops.utilization_percent is not None
    assert without.utilization_percent == pytest.approx(with_ops.utilization_percent, abs=SAME_POINTS)
    assert without.headline.startswith("No op was recorded around the kernels. By their names Tensor Cores run for")
    assert (without.ops, without.without_op_percent) == ([], 100)
    assert sum(kernel.total_ns for kernel in without.kernels) == without.eligible_ns
    assert sum(part.value_ns or 0 for part in without.by_precision) == without.eligible_ns
    assert sum(total.time_ns for total in without.by_reason) == (without.not_using_ns or 0) + (without.unknown_ns or 0)


@pytest.mark.parametrize("launches", [True, False], ids=["launches", "gpu alone"])
@pytest.mark.parametrize(
    "name",
    short_of(
        ["resnet50_fp32", "resnet50_amp_fp16", "bert_bf16", "vit_amp", "cuda_training", "fp8"],
        {"bert_bf16", "cuda_training", "fp8"},
    ),
)
def test_a_trace_without_ops_has_the_share_that_it_has_with_them(name: str, launches: bool, tmp_path: Path) -> None:
    source = TRACES / f"{name}.pt.trace.json.gz"
    with_ops = page_of(view_of(source))
    view = view_of(kineto_without_ops(source, tmp_path, launches=launches))
    without = page_of(view)
    assert with_ops.utilization_percent is not None
    assert without.utilization_percent == pytest.approx(with_ops.utilization_percent, abs=SAME_POINTS)
    assert "No op of the selected iterations" not in without.headline
    figure = overview(view, REF, view.selection()).summary.tensor_core_kernel_utilization_percent
    assert figure == without.utilization_percent


@pytest.mark.parametrize(
    "run", short_of(sorted(str(path.parent.relative_to(DEMO)) for path in DEMO.glob("*/*/events.*")), ["lenet/fp32"])
)
def test_the_kernels_of_every_recorded_run_tell_what_its_ops_do(run: str) -> None:
    view = recorded_view(DEMO / run)
    kernels, launches, strings = view.profile.kernels, view.profile.launches, view.profile.strings
    eligible = [
        eligible_by_kernel(strings[name], strings[family], strings[rule], view.tensor_core_capability)
        for name, family, rule in zip(kernels.name, kernels.family, kernels.rule, strict=True)
    ]
    rows = view.selected_launches(view.selection()) & (np.array(eligible) == Verdict.YES)[launches.kernel]
    on = kernels.tensor_core[launches.kernel] == Verdict.YES
    by_kernels = 100 * launches.duration_ns[rows & on].sum() / launches.duration_ns[rows].sum()
    assert by_kernels == pytest.approx(tensor_core_totals(view, view.selection()).utilization, abs=SAME_POINTS)


def a100(folder: Path, *kernels: tuple[str, float]) -> ProfileView:
    """A program on an A100 without any range: each kernel of so many µs, one after the other."""
    database = NsysDatabase(folder / "bare.sqlite")
    database.row(
        "TARGET_INFO_GPU", id=0, cuDevice=0, name="NVIDIA A100-SXM4-80GB", computeMajor=8, computeMinor=0, smCount=108
    )
    start = 10.0
    for name, length in kernels:
        database.launch(name, start - 5, start, length)
        start += length
    database.write()
    return view_of(database.path)


def advice_of(view: ProfileView) -> tuple[dict[str, Any], dict[str, str]]:
    found = advise(view, view.selection())
    return {one.rule: one for one in found.findings}, {one.rule: one.why for one in found.rules}


def test_fp32_products_alone_are_what_tensor_cores_could_compute(tmp_path: Path) -> None:
    view = a100(tmp_path, ("ampere_sgemm_128x64_tn", 880), ELEMENTWISE)
    page = page_of(view)
    assert page.headline == (
        "No op was recorded around the kernels. By their names those that could use Tensor Cores take 880 µs; none "
        "does. Off them mostly: unknown (880 µs of kernel time)."
    )
    assert page.by_reason[0].text == (
        "By its name the kernel ampere_sgemm_128x64_tn computes in FP32; whether TF32 is allowed was not recorded."
    )
    findings, _ = advice_of(view)
    assert findings["tf32_off"].seen.startswith(
        "No op was recorded around them: by their names, FP32 matrix kernels off the Tensor Cores take 0.88 ms"
    )
    assert findings["amp_not_used"].seen.startswith(
        "No op was recorded around the kernels: by their names, those that Tensor Cores could compute take 0.88 ms"
    )
    assert [row.label for row in findings["amp_not_used"].evidence] == ["ampere_sgemm_128x64_tn"]
    assert findings["tf32_off"].confirm.endswith("TF32 should take the place of the kernels listed.")


def test_half_precision_on_tensor_cores_leaves_nothing_to_advise(tmp_path: Path) -> None:
    view = a100(tmp_path, ("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_tn", 390), ELEMENTWISE)
    assert page_of(view).headline == (
        "No op was recorded around the kernels. By their names Tensor Cores run for 100.0 % of the kernel time that "
        "could use them."
    )
    findings, silent = advice_of(view)
    assert not {"tf32_off", "amp_not_used", "amp_defeated"} & set(findings)
    assert silent["amp_not_used"] == "100 % of the eligible kernel time is in half precision already."


def test_without_any_product_no_op_is_blamed(tmp_path: Path) -> None:
    view = a100(tmp_path, ELEMENTWISE)
    assert page_of(view).headline == (
        "No op was recorded around the kernels. By their names none computes a matrix product, convolution or "
        "attention."
    )
    assert advice_of(view)[1]["amp_not_used"] == "No kernel of the selected iterations is work for Tensor Cores."


def test_on_a_gpu_alone_the_advice_is_without_a_saving(tmp_path: Path) -> None:
    source = TRACES / "resnet50_fp32.pt.trace.json.gz"
    findings, _ = advice_of(view_of(kineto_without_ops(source, tmp_path, launches=False)))
    for rule in ("tf32_off", "amp_not_used"):
        assert findings[rule].saving is None
        assert findings[rule].saving_unknown_because.startswith(
            "The calls that launch work on the GPU were not recorded"
        )
        assert "CPU" not in findings[rule].seen


def test_fp32_work_in_a_run_of_mixed_precision_is_named_by_its_kernels(tmp_path: Path) -> None:
    view = a100(
        tmp_path,
        ("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_tn", 600),
        ("ampere_sgemm_128x64_tn", 400),
        ELEMENTWISE,
    )
    finding = advice_of(view)[0]["amp_defeated"]
    assert finding.title.startswith("Mixed precision is on, but ampere_sgemm_128x64_tn runs in FP32")
    assert finding.change.startswith("Let what launches ampere_sgemm_128x64_tn run in FP16")


def test_an_op_of_pytorch_decides_for_the_kernels_that_it_launches(new_trace) -> None:
    trace = new_trace()
    trace.gpu()
    trace.step(1, 0, 400)
    trace.op("aten::linalg_qr", 0, 20)
    trace.launch("ampere_sgemm_128x64_nn", 2, 20, 60)
    # cuBLAS, called by an extension outside every op.
    trace.launch("ampere_sgemm_128x64_nt", 30, 100, 40)
    page = page_of(trace.view())
    assert (page.eligible_ns, [kernel.name for kernel in page.kernels]) == (40_000, ["ampere_sgemm_128x64_nt"])
    assert page.without_op_percent == 100
