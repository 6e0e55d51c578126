"""What a CUDA call does, in each spelling of its name: the runtime, the driver, HIP, Kineto or Nsight Systems."""

from __future__ import annotations

import pytest

from tb_dlprof_plugin.names.cuda_calls import CudaCall, cuda_call, cuda_call_column

_MEANINGS = {
    CudaCall.LAUNCH: (
        "cudaLaunchKernel cudaLaunchKernel_v7000 cudaLaunchKernel_ptsz cudaLaunchKernelExC "
        "cuLaunchKernelEx cudaLaunchCooperativeKernel_v9000 cuLaunchCooperativeKernelMultiDevice "
        "hipLaunchKernel hipModuleLaunchKernel hipExtModuleLaunchKernel hipExtLaunchKernel "
        "hipExtLaunchMultiKernelMultiDevice cudaLaunch_v3020 cudaLaunchKernelExC_v11060_ptsz "
        "cuLaunchKernel_ptsz hipLaunchByPtr"
    ),
    CudaCall.GRAPH_LAUNCH: "cudaGraphLaunch cudaGraphLaunch_v10000 cuGraphLaunch_ptsz hipGraphLaunch",
    CudaCall.MEMCPY: (
        "cudaMemcpy cudaMemcpy_v3020 cudaMemcpy2D cudaMemcpy3D_ptds cudaMemcpyToSymbol "
        "cudaMemcpyFromSymbol cuMemcpy cuMemcpyHtoD_v2 cuMemcpyDtoH_v2_ptds hipMemcpy hipMemcpyDtoH "
        "hipMemcpyWithStream"
    ),
    CudaCall.MEMCPY_ASYNC: (
        "cudaMemcpyAsync cudaMemcpyAsync_v3020 cudaMemcpyAsync_ptsz cudaMemcpy2DAsync "
        "cuMemcpyHtoDAsync_v2 cuMemcpyDtoD_v2 cudaMemcpyPeer hipMemcpyDtoD cudaMemcpy3DPeerAsync"
    ),
    CudaCall.MEMSET: "cudaMemset cudaMemset3D cuMemsetD8 cuMemsetD32_v2 hipMemset2D",
    CudaCall.MEMSET_ASYNC: "cudaMemsetAsync cudaMemsetAsync_v3020 cuMemsetD32Async hipMemsetAsync",
    CudaCall.STREAM_SYNCHRONIZE: (
        "cudaStreamSynchronize cudaStreamSynchronize_v3020 cudaStreamSynchronize_ptsz "
        "cuStreamSynchronize hipStreamSynchronize"
    ),
    CudaCall.DEVICE_SYNCHRONIZE: (
        "cudaDeviceSynchronize cudaDeviceSynchronize_v3020 cuCtxSynchronize hipDeviceSynchronize cudaThreadSynchronize"
    ),
    CudaCall.EVENT_SYNCHRONIZE: "cudaEventSynchronize_v3020 cuEventSynchronize hipEventSynchronize",
    CudaCall.EVENT_RECORD: "cudaEventRecord cudaEventRecordWithFlags cuEventRecord_ptsz hipEventRecord",
    CudaCall.STREAM_WAIT_EVENT: "cudaStreamWaitEvent cudaStreamWaitEvent_v3020_ptsz cuStreamWaitEvent",
    CudaCall.MALLOC: "cudaMalloc cudaMalloc_v3020 cudaMallocManaged cudaMallocPitch cuMemAlloc_v2 hipMalloc",
    CudaCall.MALLOC_ASYNC: "cudaMallocAsync cudaMallocFromPoolAsync cuMemAllocAsync hipMallocAsync",
    CudaCall.HOST_MALLOC: (
        "cudaHostAlloc cudaHostAlloc_v3020 cudaMallocHost cuMemHostAlloc cuMemAllocHost_v2 hipHostMalloc"
    ),
    CudaCall.FREE: "cudaFree cudaFree_v3020 cuMemFree_v2 hipFree",
    CudaCall.FREE_ASYNC: "cudaFreeAsync cuMemFreeAsync_ptsz hipFreeAsync",
    CudaCall.HOST_FREE: "cudaFreeHost cuMemFreeHost hipHostFree",
    CudaCall.MEMORY_CREATE: "cuMemCreate",
    CudaCall.MEMORY_MAP: "cuMemMap",
    CudaCall.MEMORY_SET_ACCESS: "cuMemSetAccess",
    CudaCall.MEMORY_UNMAP: "cuMemUnmap",
    CudaCall.MEMORY_RELEASE: "cuMemRelease",
    CudaCall.CODE_LOAD: (
        "cuModuleLoadData cuLibraryLoadData cudaLibraryLoadFromFile cuModuleGetFunction cuLibraryGetKernel"
    ),
    CudaCall.PROFILER_START: "cudaProfilerStart cuProfilerStart",
    CudaCall.PROFILER_STOP: "cudaProfilerStop_v4000",
    CudaCall.OTHER: (
        "cudaEventQuery cudaGetErrorString cudaStreamIsCapturing cudaFuncSetAttribute "
        "cudaLaunchHostFunc cudaEventRecordTimestamps cudnnConvolutionForward cublasSgemm custom_Memcpy "
        "aten::copy_ Memcpy cuda culaunchkernel cudaGraphAddMemcpyNode"
    ),
}


@pytest.mark.parametrize("meaning", list(CudaCall), ids=lambda meaning: meaning.name)
def test_names_of_a_call_mean_the_same_with_every_ending(meaning: CudaCall) -> None:
    names = _MEANINGS[meaning].split()

    assert {name: cuda_call(name).name for name in names} == dict.fromkeys(names, meaning.name)


def test_a_column_answers_only_for_the_names_asked_about() -> None:
    strings = ["", "cudaMemcpy", "cudaFree", "aten::add"]

    assert cuda_call_column(strings, [1, 3, 1]).tolist() == [0, CudaCall.MEMCPY, 0, 0]
