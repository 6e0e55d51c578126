"""Kernels of the driver that copy are copies."""

from __future__ import annotations

from collections import Counter

from tb_dlprof_plugin.model.profile import KernelKind, Verdict


def test_a_graph_s_copies_are_no_kernels(new_trace) -> None:
    trace = new_trace()
    trace.op("aten::mm", 0, 30)
    for at, name in enumerate(("memcpy128", "memcpy32_post", "my_memcpy128_kernel", "gemm")):
        trace.launch(name, 5 + at, 40 + 5 * at, 4)
    profile = trace.profile()
    kinds = Counter(
        (profile.strings[profile.kernels.name[one]], KernelKind(int(profile.kernels.kind[one])))
        for one in profile.launches.kernel.tolist()
    )
    assert kinds == {
        ("memcpy128", KernelKind.MEMCPY): 1,
        ("memcpy32_post", KernelKind.MEMCPY): 1,
        ("my_memcpy128_kernel", KernelKind.KERNEL): 1,
        ("gemm", KernelKind.KERNEL): 1,
    }
    copies = profile.kernels.kind == KernelKind.MEMCPY
    assert set(profile.kernels.tensor_core[copies].tolist()) == {Verdict.NO}
