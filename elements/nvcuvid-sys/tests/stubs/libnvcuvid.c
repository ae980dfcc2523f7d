// SPDX-License-Identifier: MPL-2.0
//
// A libnvcuvid of a few lines on the libcuda beside it. Its bitstream is a list of commands of two bytes, a
// letter and a number: S sequence, D decode into surface, G the same for AV1 with film grain (the next surface
// stays without), P show surface, O operating points. Built with -D: WITHOUT_DECODER, WITHOUT_OPTIONAL.
#include <stdlib.h>
#include <string.h>
#include <ffnvcodec/dynlink_cuda.h>
#include <ffnvcodec/dynlink_nvcuvid.h>

int stub_call(const char *name, void *handle);
void *stub_handle(void);

static CUVIDPARSERPARAMS parser;
int stub_last_answer;

CUresult cuvidCreateVideoParser(CUvideoparser *object, CUVIDPARSERPARAMS *params) {
    parser = *params;
    *object = stub_handle();
    return stub_call("cuvidCreateVideoParser", *object);
}
CUresult cuvidDestroyVideoParser(CUvideoparser object) {
    stub_last_answer = parser.pfnDisplayPicture(parser.pUserData, NULL);
    return stub_call("cuvidDestroyVideoParser", object);
}
CUresult cuvidParseVideoData(CUvideoparser object, CUVIDSOURCEDATAPACKET *packet) {
    CUresult answer = stub_call("cuvidParseVideoData", object);
    for (unsigned long at = 0; at + 1 < packet->payload_size; at += 2) {
        int number = packet->payload[at + 1];
        static CUVIDPICPARAMS picture;
        memset(&picture, 0, sizeof picture);
        picture.CurrPicIdx = number;
        switch (packet->payload[at]) {
        case 'S': {
            CUVIDEOFORMAT format = { .codec = parser.CodecType, .coded_width = 64, .coded_height = 32,
                .min_num_decode_surfaces = number, .chroma_format = cudaVideoChromaFormat_420 };
            stub_last_answer = parser.pfnSequenceCallback(parser.pUserData, &format);
            break;
        }
        case 'G':
            picture.CodecSpecific.av1.apply_grain = 1;
            picture.CodecSpecific.av1.decodePicIdx = number + 1;
            // fall through
        case 'D': stub_last_answer = parser.pfnDecodePicture(parser.pUserData, &picture); break;
        case 'P': {
            CUVIDPARSERDISPINFO display = { .picture_index = number, .progressive_frame = 1,
                .timestamp = packet->flags & CUVID_PKT_TIMESTAMP ? packet->timestamp : -1 };
            stub_last_answer = parser.pfnDisplayPicture(parser.pUserData, &display);
            break;
        }
        case 'O': {
            CUVIDOPERATINGPOINTINFO points = { .codec = cudaVideoCodec_AV1 };
            stub_last_answer = parser.pfnGetOperatingPoint(parser.pUserData, &points);
            break;
        }
        }
    }
    if (packet->flags & CUVID_PKT_NOTIFY_EOS) stub_last_answer = parser.pfnDisplayPicture(parser.pUserData, NULL);
    return answer;
}

CUresult cuvidGetDecoderCaps(CUVIDDECODECAPS *caps) {
    caps->bIsSupported = caps->eCodecType == cudaVideoCodec_H264;
    caps->nNumNVDECs = 7;
    caps->nMaxWidth = caps->nMaxHeight = 4096;
    return stub_call("cuvidGetDecoderCaps", 0);
}
#ifndef WITHOUT_DECODER
CUresult cuvidCreateDecoder(CUvideodecoder *decoder, CUVIDDECODECREATEINFO *info) {
    *decoder = stub_handle();
    return info->DeinterlaceMode == cudaVideoDeinterlaceMode_Weave ? stub_call("cuvidCreateDecoder", *decoder) : 1;
}
#endif
CUresult cuvidDestroyDecoder(CUvideodecoder decoder) { return stub_call("cuvidDestroyDecoder", decoder); }
CUresult cuvidDecodePicture(CUvideodecoder decoder, CUVIDPICPARAMS *picture) {
    (void)picture;
    return stub_call("cuvidDecodePicture", decoder);
}

// Each row of a surface holds its number and the picture's index.
enum { PITCH = 128, ROWS = 48 };
CUresult cuvidMapVideoFrame64(CUvideodecoder decoder, int index, unsigned long long *address, unsigned *pitch,
                              CUVIDPROCPARAMS *params) {
    CUresult answer = stub_call("cuvidMapVideoFrame", decoder);
    if (answer || !params->output_stream) return answer ? answer : 1;
    unsigned char *surface = malloc(PITCH * ROWS);
    for (int y = 0; y < ROWS; y++) memset(surface + y * PITCH, y + 64 * index, PITCH);
    *address = (unsigned long long)surface;
    *pitch = PITCH;
    return 0;
}
CUresult cuvidUnmapVideoFrame64(CUvideodecoder decoder, unsigned long long address) {
    memset((void *)address, 0xee, PITCH * ROWS);
    free((void *)address);
    return stub_call("cuvidUnmapVideoFrame", decoder);
}
#ifndef WITHOUT_OPTIONAL
CUresult cuvidGetDecodeStatus(CUvideodecoder decoder, int index, CUVIDGETDECODESTATUS *status) {
    status->decodeStatus = index;
    return stub_call("cuvidGetDecodeStatus", decoder);
}
CUresult cuvidReconfigureDecoder(CUvideodecoder decoder, CUVIDRECONFIGUREDECODERINFO *info) {
    (void)info;
    return stub_call("cuvidReconfigureDecoder", decoder);
}
#endif
