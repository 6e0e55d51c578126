"""Bytes and shapes of what launches of a generated wrapper take."""

from __future__ import annotations

from tb_dlprof_plugin.readers.inductor.wrapper_code import kernels_of_wrapper

_WRAPPER = """
triton_poi_0 = async_compile.triton('triton_poi_0', '''
    triton_meta={'signature': {'in_out_ptr0': '*fp32', 'in_ptr0': '*bf16', 'xnumel': 'i32', 'XBLOCK': 'constexpr'}},
''', device_str='cuda')
cpp_1 = async_compile.cpp_pybinding(['const float*', 'float*', 'const int64_t'], r'''
''')
def call(args):
    primals_1, primals_2 = args
    assert_size_stride(primals_1, (4, 8), (8, 1))
    buf0 = empty_strided_cuda((4, 8), (8, 1), torch.float32)
    buf1 = buf0; del buf0  # reuse
    # [Provenance debug handles] triton_poi_0:1
    stream0 = get_raw_stream(0)
    triton_poi_0.run(buf1, primals_1, 32, stream=stream0)
    buf2 = empty_strided_cuda((8, 8), (8, 1), torch.bfloat16)
    # [Provenance debug handles] extern_kernels.mm:2
    extern_kernels.mm(reinterpret_tensor(primals_1, (8, 4), (1, 8), 0), primals_1, out=buf2)
    buf3 = empty_strided_cpu((s77, 8), (8, 1), torch.float32)
    # [Provenance debug handles] cpp_1:3
    cpp_1(buf1, buf3, 7)
    # [Provenance debug handles] triton_poi_0:4
    triton_poi_0.run(buf3, primals_1, 32, stream=stream0)
"""


def test_each_launch_has_the_bytes_of_its_arguments_and_library_calls_their_shapes():
    in_place, product, cpp, varying = kernels_of_wrapper(_WRAPPER, {})
    # What is read and written counts twice.
    assert (in_place.bytes, in_place.shapes) == (2 * 32 * 4 + 32 * 2, ())
    assert product.shapes == ((8, 4), (4, 8), (8, 8))
    # The wrapper says no data type of what it gets: a product has one for all.
    assert (product.dtypes, product.bytes) == (("bfloat16",) * 3, (32 + 32 + 64) * 2)
    assert cpp.bytes == -1
    assert varying.bytes == -1


_CONVOLUTIONS = """
        # [Provenance debug handles] extern_kernels.convolution:2
        buf4 = extern_kernels.convolution(buf1, buf0, stride=(2, 2), padding=(1, 1), dilation=(1, 1), \
transposed=False, output_padding=(0, 0), groups=1, bias=None)
        # [Provenance debug handles] torch.ops.aten.convolution_backward.default:4
        buf5 = torch.ops.aten.convolution_backward.default(buf4, reinterpret_tensor(relu_1, (4, 16), (16, 1), 0), \
primals_10, [4], (2, 2), (0, 0), (1, 1), True, (0, 0), 1, [True, False, True])
        # [Provenance debug handles] torch.ops.aten.convolution_backward.default:5
        buf6 = torch.ops.aten.convolution_backward.default(buf4, buf3, buf2, None, [1], [1], [1], False, [0], 1, \
[False, True, False])
        # [Provenance debug handles] extern_kernels.mm:6
        extern_kernels.mm(buf1, buf2, out=buf3)
"""


def test_convolutions_keep_the_arguments_that_are_no_tensors():
    assert [one.arguments for one in kernels_of_wrapper(_CONVOLUTIONS, {})] == [
        "stride=(2, 2), padding=(1, 1), dilation=(1, 1), transposed=False, output_padding=(0, 0), groups=1",
        "[4], (2, 2), (0, 0), (1, 1), True, (0, 0), 1, [True, False, True]",
        "None, [1], [1], [1], False, [0], 1, [False, True, False]",
        "",
    ]
