"""Names of CUDA calls by CUPTI's callback id, which is all that nvprof's databases have of them.

From ``cupti_runtime_cbid.h`` and ``cupti_driver_cbid.h`` of CUDA 12.4; an id never changes. Those of the runtime that
nvprof's time had, and whatever launches, copies, waits or allocates. Versions are left out of the names.
"""

from __future__ import annotations

_RUNTIME = """
1:DriverGetVersion 2:RuntimeGetVersion 3:GetDeviceCount 4:GetDeviceProperties 5:ChooseDevice 6:GetChannelDesc
7:CreateChannelDesc 8:ConfigureCall 9:SetupArgument 10:GetLastError 11:PeekAtLastError 12:GetErrorString
13:Launch 14:FuncSetCacheConfig 15:FuncGetAttributes 16:SetDevice 17:GetDevice 18:SetValidDevices
19:SetDeviceFlags 20:Malloc 21:MallocPitch 22:Free 23:MallocArray 24:FreeArray 25:MallocHost 26:FreeHost
27:HostAlloc 28:HostGetDevicePointer 29:HostGetFlags 30:MemGetInfo 31:Memcpy 32:Memcpy2D 33:MemcpyToArray
34:Memcpy2DToArray 35:MemcpyFromArray 36:Memcpy2DFromArray 37:MemcpyArrayToArray 38:Memcpy2DArrayToArray
39:MemcpyToSymbol 40:MemcpyFromSymbol 41:MemcpyAsync 42:MemcpyToArrayAsync 43:MemcpyFromArrayAsync
44:Memcpy2DAsync 45:Memcpy2DToArrayAsync 46:Memcpy2DFromArrayAsync 47:MemcpyToSymbolAsync
48:MemcpyFromSymbolAsync 49:Memset 50:Memset2D 51:MemsetAsync 52:Memset2DAsync 53:GetSymbolAddress
54:GetSymbolSize 55:BindTexture 56:BindTexture2D 57:BindTextureToArray 58:UnbindTexture
59:GetTextureAlignmentOffset 60:GetTextureReference 61:BindSurfaceToArray 62:GetSurfaceReference
63:GLSetGLDevice 64:GLRegisterBufferObject 65:GLMapBufferObject 66:GLUnmapBufferObject
67:GLUnregisterBufferObject 68:GLSetBufferObjectMapFlags 69:GLMapBufferObjectAsync 70:GLUnmapBufferObjectAsync
71:WGLGetDevice 72:GraphicsGLRegisterImage 73:GraphicsGLRegisterBuffer 74:GraphicsUnregisterResource
75:GraphicsResourceSetMapFlags 76:GraphicsMapResources 77:GraphicsUnmapResources
78:GraphicsResourceGetMappedPointer 79:GraphicsSubResourceGetMappedArray 80:VDPAUGetDevice
81:VDPAUSetVDPAUDevice 82:GraphicsVDPAURegisterVideoSurface 83:GraphicsVDPAURegisterOutputSurface
84:D3D11GetDevice 85:D3D11GetDevices 86:D3D11SetDirect3DDevice 87:GraphicsD3D11RegisterResource
88:D3D10GetDevice 89:D3D10GetDevices 90:D3D10SetDirect3DDevice 91:GraphicsD3D10RegisterResource
92:D3D10RegisterResource 93:D3D10UnregisterResource 94:D3D10MapResources 95:D3D10UnmapResources
96:D3D10ResourceSetMapFlags 97:D3D10ResourceGetSurfaceDimensions 98:D3D10ResourceGetMappedArray
99:D3D10ResourceGetMappedPointer 100:D3D10ResourceGetMappedSize 101:D3D10ResourceGetMappedPitch
102:D3D9GetDevice 103:D3D9GetDevices 104:D3D9SetDirect3DDevice 105:D3D9GetDirect3DDevice
106:GraphicsD3D9RegisterResource 107:D3D9RegisterResource 108:D3D9UnregisterResource 109:D3D9MapResources
110:D3D9UnmapResources 111:D3D9ResourceSetMapFlags 112:D3D9ResourceGetSurfaceDimensions
113:D3D9ResourceGetMappedArray 114:D3D9ResourceGetMappedPointer 115:D3D9ResourceGetMappedSize
116:D3D9ResourceGetMappedPitch 117:D3D9Begin 118:D3D9End 119:D3D9RegisterVertexBuffer
120:D3D9UnregisterVertexBuffer 121:D3D9MapVertexBuffer 122:D3D9UnmapVertexBuffer 123:ThreadExit
124:SetDoubleForDevice 125:SetDoubleForHost 126:ThreadSynchronize 127:ThreadGetLimit 128:ThreadSetLimit
129:StreamCreate 130:StreamDestroy 131:StreamSynchronize 132:StreamQuery 133:EventCreate
134:EventCreateWithFlags 135:EventRecord 136:EventDestroy 137:EventSynchronize 138:EventQuery
139:EventElapsedTime 140:Malloc3D 141:Malloc3DArray 142:Memset3D 143:Memset3DAsync 144:Memcpy3D
145:Memcpy3DAsync 146:ThreadSetCacheConfig 147:StreamWaitEvent 148:D3D11GetDirect3DDevice
149:D3D10GetDirect3DDevice 150:ThreadGetCacheConfig 151:PointerGetAttributes 152:HostRegister 153:HostUnregister
154:DeviceCanAccessPeer 155:DeviceEnablePeerAccess 156:DeviceDisablePeerAccess 157:PeerRegister
158:PeerUnregister 159:PeerGetDevicePointer 160:MemcpyPeer 161:MemcpyPeerAsync 162:Memcpy3DPeer
163:Memcpy3DPeerAsync 164:DeviceReset 165:DeviceSynchronize 166:DeviceGetLimit 167:DeviceSetLimit
168:DeviceGetCacheConfig 169:DeviceSetCacheConfig 170:ProfilerInitialize 171:ProfilerStart 172:ProfilerStop
173:DeviceGetByPCIBusId 174:DeviceGetPCIBusId 175:GLGetDevices 176:IpcGetEventHandle 177:IpcOpenEventHandle
178:IpcGetMemHandle 179:IpcOpenMemHandle 180:IpcCloseMemHandle 181:ArrayGetInfo 182:FuncSetSharedMemConfig
183:DeviceGetSharedMemConfig 184:DeviceSetSharedMemConfig 185:CreateTextureObject 186:DestroyTextureObject
187:GetTextureObjectResourceDesc 188:GetTextureObjectTextureDesc 189:CreateSurfaceObject
190:DestroySurfaceObject 191:GetSurfaceObjectResourceDesc 192:MallocMipmappedArray 193:GetMipmappedArrayLevel
194:FreeMipmappedArray 195:BindTextureToMipmappedArray 196:GraphicsResourceGetMappedMipmappedArray
197:StreamAddCallback 198:StreamCreateWithFlags 199:GetTextureObjectResourceViewDesc 200:DeviceGetAttribute
201:StreamDestroy 202:StreamCreateWithPriority 203:StreamGetPriority 204:StreamGetFlags
205:DeviceGetStreamPriorityRange 206:MallocManaged 207:OccupancyMaxActiveBlocksPerMultiprocessor
208:StreamAttachMemAsync 209:GetErrorName 210:OccupancyMaxActiveBlocksPerMultiprocessor 211:LaunchKernel
212:GetDeviceFlags 213:Launch 214:LaunchKernel 215:Memcpy 216:Memcpy2D 217:MemcpyToArray 218:Memcpy2DToArray
219:MemcpyFromArray 220:Memcpy2DFromArray 221:MemcpyArrayToArray 222:Memcpy2DArrayToArray 223:MemcpyToSymbol
224:MemcpyFromSymbol 225:MemcpyAsync 226:MemcpyToArrayAsync 227:MemcpyFromArrayAsync 228:Memcpy2DAsync
229:Memcpy2DToArrayAsync 230:Memcpy2DFromArrayAsync 231:MemcpyToSymbolAsync 232:MemcpyFromSymbolAsync 233:Memset
234:Memset2D 235:MemsetAsync 236:Memset2DAsync 237:StreamGetPriority 238:StreamGetFlags 239:StreamSynchronize
240:StreamQuery 241:StreamAttachMemAsync 242:EventRecord 243:Memset3D 244:Memset3DAsync 245:Memcpy3D
246:Memcpy3DAsync 247:StreamWaitEvent 248:StreamAddCallback 249:Memcpy3DPeer 250:Memcpy3DPeerAsync
251:OccupancyMaxActiveBlocksPerMultiprocessorWithFlags 252:MemPrefetchAsync 253:MemPrefetchAsync 254:MemAdvise
255:DeviceGetP2PAttribute 256:GraphicsEGLRegisterImage 257:EGLStreamConsumerConnect
258:EGLStreamConsumerDisconnect 259:EGLStreamConsumerAcquireFrame 260:EGLStreamConsumerReleaseFrame
269:LaunchCooperativeKernel 270:LaunchCooperativeKernel 272:LaunchCooperativeKernelMultiDevice 311:GraphLaunch
312:GraphLaunch 370:EventRecordWithFlags 371:EventRecordWithFlags 373:MallocAsync 374:MallocAsync 375:FreeAsync
376:FreeAsync 391:MallocFromPoolAsync 392:MallocFromPoolAsync 430:LaunchKernelExC 431:LaunchKernelExC
"""

_DRIVER = """
17:CtxSynchronize 18:ModuleLoad 19:ModuleLoadData 20:ModuleLoadDataEx 21:ModuleLoadFatBinary
23:ModuleGetFunction 29:MemAlloc 31:MemAllocPitch 33:MemFree 37:MemAllocHost 38:MemFreeHost 39:MemHostAlloc
43:MemcpyHtoD 45:MemcpyDtoH 47:MemcpyDtoD 49:MemcpyDtoA 51:MemcpyAtoD 53:MemcpyHtoA 54:MemcpyAtoH 55:MemcpyAtoA
56:Memcpy2D 57:Memcpy2DUnaligned 58:Memcpy3D 60:MemcpyHtoDAsync 62:MemcpyDtoHAsync 64:MemcpyDtoDAsync
66:MemcpyHtoAAsync 67:MemcpyAtoHAsync 68:Memcpy2DAsync 69:Memcpy3DAsync 71:MemsetD8 73:MemsetD16 75:MemsetD32
77:MemsetD2D8 79:MemsetD2D16 81:MemsetD2D32 115:Launch 116:LaunchGrid 117:LaunchGridAsync 119:EventRecord
121:EventSynchronize 126:StreamSynchronize 216:MemsetD8Async 218:MemsetD16Async 220:MemsetD32Async
222:MemsetD2D8Async 224:MemsetD2D16Async 226:MemsetD2D32Async 243:MemAlloc 244:MemAllocPitch 245:MemFree
248:Memcpy 249:MemsetD8 250:MemsetD16 251:MemsetD32 252:MemsetD2D8 253:MemsetD2D16 254:MemsetD2D32
271:MemHostAlloc 276:MemcpyHtoD 277:MemcpyHtoDAsync 278:MemcpyDtoH 279:MemcpyDtoHAsync 280:MemcpyDtoD
281:MemcpyDtoDAsync 282:MemcpyAtoH 283:MemcpyAtoHAsync 284:MemcpyAtoD 285:MemcpyDtoA 286:MemcpyAtoA 287:Memcpy2D
288:Memcpy2DUnaligned 289:Memcpy2DAsync 290:Memcpy3D 291:Memcpy3DAsync 292:MemcpyHtoA 293:MemcpyHtoAAsync
294:MemAllocHost 295:StreamWaitEvent 305:Memcpy 306:MemcpyAsync 307:LaunchKernel 308:ProfilerStart
309:ProfilerStop 318:MemcpyPeer 319:MemcpyPeerAsync 320:Memcpy3DPeer 321:Memcpy3DPeerAsync 371:MemAllocManaged
397:MemcpyHtoD 398:MemcpyDtoH 399:MemcpyDtoD 400:MemcpyDtoA 401:MemcpyAtoD 402:MemcpyHtoA 403:MemcpyAtoH
404:MemcpyAtoA 405:Memcpy2D 406:Memcpy2DUnaligned 407:Memcpy3D 408:Memcpy 409:MemcpyPeer 410:Memcpy3DPeer
411:MemsetD8 412:MemsetD16 413:MemsetD32 414:MemsetD2D8 415:MemsetD2D16 416:MemsetD2D32 418:MemcpyAsync
419:MemcpyHtoAAsync 420:MemcpyAtoHAsync 421:MemcpyHtoDAsync 422:MemcpyDtoHAsync 423:MemcpyDtoDAsync
424:Memcpy2DAsync 425:Memcpy3DAsync 426:MemcpyPeerAsync 427:Memcpy3DPeerAsync 428:MemsetD8Async
429:MemsetD16Async 430:MemsetD32Async 431:MemsetD2D8Async 432:MemsetD2D16Async 433:MemsetD2D32Async
436:StreamWaitEvent 440:StreamSynchronize 441:EventRecord 442:LaunchKernel 477:LaunchCooperativeKernel
478:LaunchCooperativeKernel 480:LaunchCooperativeKernelMultiDevice 514:GraphLaunch 515:GraphLaunch 549:MemCreate
550:MemRelease 551:MemMap 552:MemUnmap 553:MemSetAccess 584:MemMapArrayAsync 585:MemMapArrayAsync
587:EventRecordWithFlags 588:EventRecordWithFlags 598:MemAllocAsync 599:MemAllocAsync 600:MemFreeAsync
601:MemFreeAsync 611:MemAllocFromPoolAsync 612:MemAllocFromPoolAsync 652:LaunchKernelEx 653:LaunchKernelEx
678:LibraryLoadData 679:LibraryLoadFromFile 681:LibraryGetKernel
"""


def _table(prefix: str, text: str) -> dict[int, str]:
    pairs = (word.split(":") for word in text.split())
    return {int(number): prefix + name for number, name in pairs}


RUNTIME_CALLS = _table("cuda", _RUNTIME)
DRIVER_CALLS = _table("cu", _DRIVER)


def runtime_call(number: int) -> str:
    """The name of a call of the runtime; one with its number where it is not known."""
    return RUNTIME_CALLS.get(number, f"CUDA runtime call {number}")


def driver_call(number: int) -> str:
    """The name of a call of the driver; one with its number where it is not known."""
    return DRIVER_CALLS.get(number, f"CUDA driver call {number}")
