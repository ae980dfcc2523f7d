// SPDX-License-Identifier: MPL-2.0
//
// A oneVPL client from the public headers alone: internal allocation, one surface at a time.
// client CODEC FILE writes the visible rows of every picture to stdout.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vpl/mfx.h>

static void fail(const char *what, mfxStatus status) {
    fprintf(stderr, "%s: %d\n", what, (int)status);
    exit(1);
}

static void write_rows(mfxFrameSurface1 *surface) {
    const mfxFrameInfo *info = &surface->Info;
    const mfxFrameData *data = &surface->Data;
    size_t pitch = (size_t)data->PitchHigh << 16 | data->PitchLow;
    size_t bytes = info->FourCC == MFX_FOURCC_P010 ? 2 : 1;
    for (mfxU16 row = 0; row < info->CropH; row++)
        fwrite(data->Y + (info->CropY + row) * pitch + info->CropX * bytes, bytes, info->CropW, stdout);
    for (mfxU16 row = 0; row < (info->CropH + 1) / 2; row++)
        fwrite(data->UV + (info->CropY / 2 + row) * pitch + info->CropX * bytes, bytes, info->CropW, stdout);
}

static void publish(mfxFrameSurface1 *surface) {
    mfxFrameSurfaceInterface *calls = surface->FrameInterface;
    mfxStatus status;
    while ((status = calls->Synchronize(surface, 100)) == MFX_WRN_IN_EXECUTION) {
    }
    if (status != MFX_ERR_NONE) fail("Synchronize", status);
    if ((status = calls->Map(surface, MFX_MAP_READ)) != MFX_ERR_NONE) fail("Map", status);
    write_rows(surface);
    if ((status = calls->Unmap(surface)) != MFX_ERR_NONE) fail("Unmap", status);
    if ((status = calls->Release(surface)) != MFX_ERR_NONE) fail("Release", status);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    mfxU32 codec = !strcmp(argv[1], "h264") ? MFX_CODEC_AVC : !strcmp(argv[1], "h265") ? MFX_CODEC_HEVC : MFX_CODEC_MPEG2;
    FILE *file = fopen(argv[2], "rb");
    if (!file) return 2;

    mfxLoader loader = MFXLoad();
    mfxConfig config = MFXCreateConfig(loader);
    mfxVariant value;
    memset(&value, 0, sizeof value);
    value.Type = MFX_VARIANT_TYPE_U32;
    value.Data.U32 = codec;
    MFXSetConfigFilterProperty(config, (const mfxU8 *)"mfxImplDescription.mfxDecoderDescription.decoder.CodecID", value);
    mfxSession session;
    mfxStatus status = MFXCreateSession(loader, 0, &session);
    if (status != MFX_ERR_NONE) fail("MFXCreateSession", status);

    static mfxU8 buffer[1 << 16];
    mfxBitstream bitstream;
    memset(&bitstream, 0, sizeof bitstream);
    bitstream.Data = buffer;
    bitstream.MaxLength = sizeof buffer;
    bitstream.DataLength = (mfxU32)fread(buffer, 1, sizeof buffer, file);

    mfxVideoParam parameters;
    memset(&parameters, 0, sizeof parameters);
    parameters.mfx.CodecId = codec;
    parameters.IOPattern = MFX_IOPATTERN_OUT_SYSTEM_MEMORY;
    status = MFXVideoDECODE_DecodeHeader(session, &bitstream, &parameters);
    if (status != MFX_ERR_NONE) fail("DecodeHeader", status);
    status = MFXVideoDECODE_Init(session, &parameters);
    if (status < 0) fail("Init", status);

    int draining = 0;
    for (;;) {
        mfxFrameSurface1 *surface = NULL;
        mfxSyncPoint sync = NULL;
        status = MFXVideoDECODE_DecodeFrameAsync(session, draining ? NULL : &bitstream, NULL, &surface, &sync);
        if (surface) {
            publish(surface);
        } else if (status == MFX_ERR_MORE_DATA && draining) {
            break;
        } else if (status == MFX_ERR_MORE_DATA) {
            memmove(buffer, buffer + bitstream.DataOffset, bitstream.DataLength);
            bitstream.DataOffset = 0;
            size_t more = fread(buffer + bitstream.DataLength, 1, sizeof buffer - bitstream.DataLength, file);
            bitstream.DataLength += (mfxU32)more;
            draining = more == 0;
        } else if (status < 0) {
            fail("DecodeFrameAsync", status);
        }
    }
    MFXVideoDECODE_Close(session);
    MFXClose(session);
    MFXUnload(loader);
    return fclose(file);
}
