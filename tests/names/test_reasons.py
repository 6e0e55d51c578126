"""Each reason for a kernel off the Tensor Cores, and which comes first where several apply."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tb_dlprof_plugin.model.dtypes import dtype_named, dtypes_in
from tb_dlprof_plugin.model.profile import Verdict
from tb_dlprof_plugin.names.alignment import misaligned, product_sizes
from tb_dlprof_plugin.names.kernel_verdicts import classify_kernel
from tb_dlprof_plugin.names.tensor_core_eligibility import eligible
from tb_dlprof_plugin.names.tensor_core_reasons import Product, Reason, Settings, reason_for
from tb_dlprof_plugin.readers.input_text import parse_shapes

ORACLE = Path(__file__).parent / "oracle" / "h200.json.gz"
HOPPER = Settings((9, 0), matmul_tf32=True, cudnn_tf32=True, half=False)
OFF = replace(HOPPER, matmul_tf32=False, cudnn_tf32=False)
FLOAT, HALF, BFLOAT = '["float", "float"]', '["c10::Half", "c10::Half"]', '["c10::BFloat16", "c10::BFloat16"]'
SQUARE = "[[64, 64], [64, 64]]"


def mm(shapes: str = SQUARE, dtypes: str = HALF, verdict: Verdict = Verdict.NO, op: str = "aten::mm") -> Product:
    return Product(op, parse_shapes(shapes) or (), dtypes_in(dtypes), "a_kernel", verdict)


def conv(shapes: str = "[[8, 64, 9, 9], [128, 64, 3, 3]]", dtypes: str = HALF) -> Product:
    return mm(shapes, dtypes, op="aten::cudnn_convolution")


@pytest.mark.parametrize(
    ("product", "settings", "id", "words"),
    [
        (mm(), replace(HOPPER, compute_capability=(6, 1)), "gpu_has_none", "6.1"),
        (conv("[[8, 64, 9, 9], [64, 1, 3, 3]]"), HOPPER, "no_tensor_core_kernel", "depthwise"),
        (mm(op="aten::mv"), HOPPER, "no_tensor_core_kernel", "a product with a vector"),
        (mm(op="aten::_conv_depthwise2d"), HOPPER, "no_tensor_core_kernel", "depthwise"),
        (mm(dtypes='["double", "double"]'), replace(HOPPER, compute_capability=(8, 6)), "dtype", "FP64"),
        (mm(dtypes='["c10::complex<float>"]'), replace(HOPPER, compute_capability=(7, 5)), "dtype", "complex"),
        (mm(dtypes='["c10::complex<float>"]'), replace(OFF, half=True), "fp32_tf32_off", "matmul.allow_tf32 is False"),
        (mm(op="triton_tem_fused_mm_0"), HOPPER, "unknown", "shapes of the inputs"),
        (mm(dtypes='["c10::complex<double>"]'), replace(HOPPER, compute_capability=(8, 6)), "dtype", "FP64"),
        (mm(dtypes='["c10::complex<double>"]'), HOPPER, "library_choice", "FP64"),
        (mm(dtypes='["long int", "long int"]'), HOPPER, "dtype", "integers"),
        (mm(dtypes=BFLOAT), replace(HOPPER, compute_capability=(7, 5)), "dtype", "inputs are BF16"),
        (mm(dtypes=FLOAT), replace(HOPPER, compute_capability=(7, 0)), "dtype", "only under autocast"),
        (mm(verdict=Verdict.UNKNOWN), HOPPER, "unknown", "a_kernel"),
        (mm(), replace(HOPPER, compute_capability=None), "unknown", "compute capability was not recorded"),
        (mm(dtypes=""), HOPPER, "unknown", "types of its inputs"),
        (mm("[[1, 64], [64, 64]]"), HOPPER, "too_small", "M = 1: a product of a matrix with a vector"),
        (mm("[[64, 1], [1, 64]]"), HOPPER, "too_small", "K = 1: an outer product"),
        (mm(dtypes=FLOAT), replace(OFF, half=True), "amp_off_for_op", "most matrix work of the run is in half"),
        (mm(dtypes=FLOAT), OFF, "fp32_tf32_off", "torch.backends.cuda.matmul.allow_tf32 is False"),
        (conv(dtypes=FLOAT), OFF, "fp32_tf32_off", "torch.backends.cudnn.allow_tf32 is False"),
        (mm(dtypes=FLOAT), replace(HOPPER, matmul_tf32=None), "unknown", "was not recorded"),
        (mm("[[4, 64], [64, 64]]"), HOPPER, "too_small", "M = 4: less than one tile"),
        (mm("[[64, 84], [84, 10]]"), HOPPER, "alignment", "N = 10, K = 84: no multiple of 8, the 16 bytes"),
        (mm("[[64, 84], [84, 10]]", FLOAT), HOPPER, "alignment", "N = 10: no multiple of 4"),
        (conv("[[8, 3, 9, 9], [64, 3, 3, 3]]"), HOPPER, "alignment", "Input channels = 3: no multiple of 8"),
        (mm(dtypes='["signed char", "signed char"]', shapes="[[24, 64], [64, 64]]"), HOPPER, "alignment", "M = 24: no"),
        (mm(), HOPPER, "library_choice", "fit Tensor Cores in FP16, but the library ran a_kernel"),
        (mm(dtypes=FLOAT), HOPPER, "library_choice", "fit Tensor Cores in TF32"),
        (mm(""), HOPPER, "unknown", "shapes of the inputs"),
    ],
)
def test_each_reason_has_its_id_and_its_numbers(product: Product, settings: Settings, id: str, words: str) -> None:
    found = reason_for(product, settings)
    assert found.id == id
    assert words in found.text


def test_what_no_switch_changes_comes_before_the_switch() -> None:
    # GIVEN FP32 products that TF32 would not bring on the Tensor Cores
    assert reason_for(mm("[[1, 64], [64, 64]]", FLOAT), OFF).id == "too_small"
    assert reason_for(conv("[[8, 64, 9, 9], [64, 1, 3, 3]]", FLOAT), OFF).id == "no_tensor_core_kernel"
    # and one whose size matters only once TF32 is on
    assert reason_for(mm("[[64, 84], [84, 10]]", FLOAT), OFF).id == "fp32_tf32_off"


def test_a_switch_of_cudnn_says_nothing_of_matrix_products() -> None:
    only_cudnn = replace(OFF, cudnn_tf32=True)
    assert reason_for(conv(dtypes=FLOAT), only_cudnn).id == "library_choice"
    assert reason_for(mm(dtypes=FLOAT), only_cudnn).id == "fp32_tf32_off"


def test_fused_attention_in_fp32_heeds_no_switch() -> None:
    attention = mm("[[2, 8, 128, 64], [2, 8, 128, 64]]", FLOAT, op="aten::_efficient_attention_forward")
    assert reason_for(attention, OFF).id == "library_choice"


def test_the_reason_names_the_switch_that_changes_it() -> None:
    assert reason_for(mm(dtypes=FLOAT), OFF).remedy == "tf32"
    assert reason_for(mm(dtypes=FLOAT), replace(OFF, half=True)).remedy == "amp"
    assert reason_for(mm("[[64, 84], [84, 10]]"), HOPPER) == Reason(
        "alignment", "N = 10, K = 84: no multiple of 8, the 16 bytes that Tensor Core kernels want in FP16."
    )


def test_a_buffer_of_bytes_makes_no_int8_product() -> None:
    lstm = Product(
        "aten::_cudnn_rnn",
        ((20, 16, 64), (), (), (), (1, 16, 128)),
        tuple(map(dtype_named, ("float", "", "unsigned char"))),
        "k",
        Verdict.NO,
    )
    assert lstm.precision == "fp32"


def oracle_products() -> list[tuple[Product, str, bool]]:
    """Plain matrix products on an H200: what ran, in which precision, and whether the hardware counted matrix work."""
    recorded = json.loads(gzip.decompress(ORACLE.read_bytes()))
    found = []
    for row in recorded["rows"]:
        if classify_kernel(row["name"], op=row["op"], input_types=row["input_types"]).kind != "gemm":
            continue
        for index in row["workloads"]:
            name = re.fullmatch(r"mm/(\d+)x(\d+)x(\d+)/\w+/(\w+)", recorded["workloads"][index]["name"])
            if name and row["op"] == "aten::mm":
                m, n, k = map(int, name.groups()[:3])
                product = mm(json.dumps([[m, k], [k, n]]), row["input_types"])
                found.append((product, name[4], row["with_matrix_work"] > 0))
    return found


def test_the_hardware_leaves_only_small_products_off_the_tensor_cores() -> None:
    # GIVEN products in a precision that Tensor Cores take, as the counters saw them
    half = [
        (product, precision, on)
        for product, precision, on in oracle_products()
        if precision in ("fp16", "bf16", "tf32")
    ]
    off = [product for product, _, on in half if not on]
    assert len(off) >= 6
    assert {reason_for(product, HOPPER).id for product in off} == {"too_small"}
    # This cuBLAS runs sizes off their multiple on Tensor Cores, too: alignment is said only of kernels that are not.
    odd = [
        on
        for p, precision, on in half
        if misaligned(sizes := product_sizes(p.op, p.shapes), precision) and all(s.value >= 8 for s in sizes)
    ]
    assert len(odd) >= 21
    assert all(odd)


def test_what_the_hardware_ran_on_tensor_cores_was_eligible_but_for_solvers_and_vectors() -> None:
    recorded = json.loads(gzip.decompress(ORACLE.read_bytes()))
    on = {(row["op"], row["input_types"]) for row in recorded["rows"] if row["with_matrix_work"] and row["op"]}
    assert len(on) > 100
    # Shapes are not in the recording; only depthwise convolutions would need them.
    missed = {op for op, dtypes in on if eligible(op, (), dtypes_in(dtypes), (9, 0)) != Verdict.YES}
    # Solvers multiply blocks on the side; cuBLAS computes some products with a vector in half precision as matrices.
    assert {op for op in missed if "linalg" not in op} <= {"aten::addmv", "aten::addmv_"}
