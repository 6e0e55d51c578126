from __future__ import annotations

from tb_dlprof_plugin.model.profile import Verdict


def _rocm_trace(new_trace, **device):
    trace = new_trace()
    trace.gpu(9, 0, **device)
    trace.op("aten::mm", 0, 20, dims=[[64, 64], [64, 64]], types=["c10::Half", "c10::Half"])
    trace.runtime(5, 3, 1, name="hipExtModuleLaunchKernel")
    trace.kernel("Cijk_Ailk_Bljk_HHS_BH_MT64x64x32", 30, 10, 1)
    trace.runtime(9, 3, 2, name="hipLaunchKernel")
    trace.kernel("sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1", 45, 10, 2)
    return trace.profile()


def test_nothing_is_said_of_tensor_cores_on_an_amd_gpu(new_trace) -> None:
    # GIVEN gfx90a, which claims to be 9.0 as an H100 does
    profile = _rocm_trace(new_trace, name="AMD Instinct MI210")
    assert "rocm" in {note.code for note in profile.notes}
    assert profile.system.gpus[0].compute_capability is None
    assert set(profile.kernels.tensor_core.tolist()) == {Verdict.UNKNOWN}
    assert Verdict.YES not in profile.ops.tensor_core_eligible.tolist()
    assert (profile.launches.attribution == 0).all()


def test_hip_calls_tell_it_where_the_device_has_no_name(new_trace) -> None:
    profile = _rocm_trace(new_trace, name="")
    assert "rocm" in {note.code for note in profile.notes}
    assert profile.system.gpus[0].compute_capability is None


def test_an_nvidia_gpu_keeps_what_the_trace_says_of_it(new_trace) -> None:
    trace = new_trace(cuda_runtime_version=13000)
    trace.gpu()
    trace.op("aten::mm", 0, 20)
    trace.launch("k", 5, 30, 10)
    profile = trace.profile()
    assert profile.system.gpus[0].compute_capability == (9, 0)
    assert profile.system.cuda_version == "13.0"
    assert "rocm" not in {note.code for note in profile.notes}
