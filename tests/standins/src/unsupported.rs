// SPDX-License-Identifier: MPL-2.0

//! Names that FFmpeg's and GStreamer's loaders insist on, and whose functions nobody calls to decode into
//! memory: kernels, textures, graphics, external memory. Each answers `CUDA_ERROR_NOT_SUPPORTED`.

use nvcuvid_sys::CuResult;

macro_rules! unsupported {
    ($($name:ident)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "`: not supported, whatever its arguments.")]
            // SAFETY: the name is the driver's, and this library stands in for the driver.
            #[unsafe(no_mangle)]
            pub extern "C" fn $name() -> CuResult {
                CuResult::NOT_SUPPORTED
            }
        )*
    };
}

unsupported! {
    cuArray3DCreate_v2 cuArrayCreate_v2 cuArrayDestroy
    cuCtxGetLimit cuCtxDisablePeerAccess cuCtxEnablePeerAccess
    cuDestroyExternalMemory cuDestroyExternalSemaphore
    cuEGLStreamConsumerDisconnect cuEGLStreamProducerConnect cuEGLStreamProducerDisconnect
    cuEGLStreamProducerPresentFrame cuEGLStreamProducerReturnFrame
    cuExternalMemoryGetMappedBuffer cuExternalMemoryGetMappedMipmappedArray
    cuGLGetDevices_v2 cuGraphicsGLRegisterBuffer cuGraphicsGLRegisterImage
    cuGraphicsMapResources cuGraphicsResourceGetMappedPointer_v2 cuGraphicsResourceSetMapFlags_v2
    cuGraphicsSubResourceGetMappedArray cuGraphicsUnmapResources cuGraphicsUnregisterResource
    cuImportExternalMemory cuImportExternalSemaphore
    cuIpcCloseMemHandle cuIpcGetEventHandle cuIpcGetMemHandle cuIpcOpenEventHandle cuIpcOpenMemHandle
    cuLaunchKernel cuLinkAddData cuLinkComplete cuLinkCreate cuLinkDestroy
    cuMemsetD2D8_v2 cuMemsetD2D8Async cuMemsetD2D16_v2 cuMemsetD2D16Async cuMemsetD2D32_v2 cuMemsetD2D32Async
    cuMemAllocManaged cuMipmappedArrayDestroy cuMipmappedArrayGetLevel
    cuModuleGetFunction cuModuleGetGlobal cuModuleLoadData cuModuleUnload
    cuSignalExternalSemaphoresAsync cuTexObjectCreate cuTexObjectDestroy cuWaitExternalSemaphoresAsync
}
