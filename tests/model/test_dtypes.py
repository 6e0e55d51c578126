"""What names of data types mean, in each tool's spelling."""

from __future__ import annotations

import pytest

from tb_dlprof_plugin.model.dtypes import DType, dtype_named, dtypes_in, element_bytes, precision_of_dtypes

torch = pytest.importorskip("torch")

_TORCH = (
    *("float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz"),
    *("float8_e5m2fnuz", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64", "complex128"),
)


@pytest.mark.parametrize("name", _TORCH)
def test_every_type_is_as_torch_has_it(name: str) -> None:
    dtype, of_torch = dtype_named(name), getattr(torch, name)

    assert (dtype.torch_name, dtype.element_bytes) == (name, of_torch.itemsize)
    assert (dtype.kind == "float", dtype.kind == "complex") == (of_torch.is_floating_point, of_torch.is_complex)
    assert {dtype_named(other) for other in (dtype.name, dtype.label)} == {dtype}


@pytest.mark.parametrize(
    "name", ["float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "int64", "uint8", "bool"]
)
def test_kinetos_names_are_those_that_torch_gives_its_types(name: str) -> None:
    # The profiler writes caffe2::TypeMeta's names, which the error of a product of two types quotes.
    wrong = getattr(torch, name)
    other = torch.float32 if name != "float32" else torch.float64
    with pytest.raises(RuntimeError) as caught:
        torch.mm(torch.zeros(2, 2, dtype=other), torch.zeros(2, 2, dtype=wrong))

    assert f"!= {dtype_named(name).name}" in str(caught.value)


def test_compilers_differ_in_the_names_of_integers() -> None:
    assert dtype_named("long") == dtype_named("long int")


def test_a_name_that_the_table_lacks_stands_for_itself() -> None:
    assert dtype_named("c10::QInt8") == DType("c10::QInt8", "QInt8")
    assert [dtype_named(name).element_bytes for name in ("", "Scalar", "TensorList")] == [None] * 3


def test_a_text_may_list_types_as_kineto_or_as_people_write_them() -> None:
    expected = (dtype_named("c10::Half"), dtype_named("float"))

    assert dtypes_in('["c10::Half", "float"]') == dtypes_in("fp16, fp32") == expected
    assert dtypes_in("") == ()


@pytest.mark.parametrize(
    ("names", "precision"),
    [
        (("", "long int", "c10::BFloat16", "float"), "bf16"),
        (("c10::Float8_e4m3fnuz",), "fp8"),
        (("c10::complex<float>", "signed char", "Scalar"), ""),
        ((), ""),
    ],
)
def test_the_precision_is_that_of_the_first_floating_point_tensor(names: tuple[str, ...], precision: str) -> None:
    assert precision_of_dtypes(tuple(map(dtype_named, names))) == precision


def test_elements_of_complex_tensors_have_no_size_for_products() -> None:
    dtypes = tuple(map(dtype_named, ("c10::Half", "c10::complex<float>", "Scalar", "double")))

    assert element_bytes(dtypes) == [2, None, None, 8]
