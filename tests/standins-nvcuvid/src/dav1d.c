// SPDX-License-Identifier: MPL-2.0
//
// libdav1d behind a few functions: its structures differ between versions, so that the compiler has to see
// its headers. One thread, no delay, every frame in coding order.

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <dav1d/dav1d.h>

// A surface for a picture: an owner of it, or null where none is free.
typedef void *(*lease_fn)(void *surfaces);
typedef void (*release_fn)(void *lease);

struct standin_dav1d {
    Dav1dContext *context;
    void *surfaces;
    lease_fn lease;
    release_fn release;
};

struct standin_picture {
    void *lease;
    const void *planes[3];
    size_t strides[2];
    int width, height, depth;
    int layout;     // Dav1dPixelLayout
    int is_inter;
    int is_shown;   // by its own frame header
    int has_grain;
    Dav1dPicture *handle;
};

struct memory {
    void *start;
    void *lease;
};

static int allocate(Dav1dPicture *picture, void *cookie) {
    struct standin_dav1d *const decoder = cookie;
    const size_t bytes = picture->p.bpc > 8 ? 2 : 1;
    const size_t width = ((size_t)picture->p.w + 127) & ~(size_t)127;
    const size_t height = ((size_t)picture->p.h + 127) & ~(size_t)127;
    const int has_chroma = picture->p.layout != DAV1D_PIXEL_LAYOUT_I400;
    const int halves_columns = picture->p.layout != DAV1D_PIXEL_LAYOUT_I444;
    const int halves_rows = picture->p.layout == DAV1D_PIXEL_LAYOUT_I420;
    // A stride that is a multiple of a page has every row in the same cache lines.
    const size_t luma_stride = width * bytes + DAV1D_PICTURE_ALIGNMENT;
    const size_t chroma_stride = (width >> halves_columns) * bytes + DAV1D_PICTURE_ALIGNMENT;
    const size_t luma = luma_stride * height;
    const size_t chroma = has_chroma ? chroma_stride * (height >> halves_rows) : 0;
    struct memory *const memory = calloc(1, sizeof(*memory));
    void *start = NULL;
    if (!memory)
        return DAV1D_ERR(ENOMEM);
    if (posix_memalign(&start, DAV1D_PICTURE_ALIGNMENT, luma + 2 * chroma + DAV1D_PICTURE_ALIGNMENT)) {
        free(memory);
        return DAV1D_ERR(ENOMEM);
    }
    memory->start = start;
    memory->lease = decoder->lease(decoder->surfaces);
    if (!memory->lease) {
        free(start);
        free(memory);
        return DAV1D_ERR(ENOMEM);
    }
    picture->data[0] = start;
    picture->data[1] = has_chroma ? (uint8_t *)start + luma : NULL;
    picture->data[2] = has_chroma ? (uint8_t *)start + luma + chroma : NULL;
    picture->stride[0] = (ptrdiff_t)luma_stride;
    picture->stride[1] = (ptrdiff_t)chroma_stride;
    picture->allocator_data = memory;
    return 0;
}

static void release(Dav1dPicture *picture, void *cookie) {
    struct standin_dav1d *const decoder = cookie;
    struct memory *const memory = picture->allocator_data;
    decoder->release(memory->lease);
    free(memory->start);
    free(memory);
}

struct standin_dav1d *standin_dav1d_open(void *surfaces, lease_fn lease, release_fn release_lease,
                                         int operating_point, int all_layers) {
    struct standin_dav1d *const decoder = calloc(1, sizeof(*decoder));
    if (!decoder)
        return NULL;
    decoder->surfaces = surfaces;
    decoder->lease = lease;
    decoder->release = release_lease;
    Dav1dSettings settings;
    dav1d_default_settings(&settings);
    settings.n_threads = 1;
    settings.max_frame_delay = 1;
    settings.apply_grain = 0; // by standin_dav1d_grain, into a surface of its own
    settings.operating_point = operating_point;
    settings.all_layers = all_layers;
    settings.output_invisible_frames = 1;
    settings.logger.callback = NULL;
    settings.allocator.cookie = decoder;
    settings.allocator.alloc_picture_callback = allocate;
    settings.allocator.release_picture_callback = release;
    if (dav1d_open(&decoder->context, &settings) < 0) {
        free(decoder);
        return NULL;
    }
    return decoder;
}

void standin_dav1d_close(struct standin_dav1d *decoder) {
    dav1d_close(&decoder->context);
    free(decoder);
}

void standin_dav1d_flush(struct standin_dav1d *decoder) {
    dav1d_flush(decoder->context);
}

static int describe(Dav1dPicture *picture, struct standin_picture *out) {
    const Dav1dFrameHeader *const header = picture->frame_hdr;
    const Dav1dFilmGrainData *const grain = &header->film_grain.data;
    Dav1dPicture *const handle = malloc(sizeof(*handle));
    if (!handle) {
        dav1d_picture_unref(picture);
        return DAV1D_ERR(ENOMEM);
    }
    *handle = *picture; // the reference moves
    out->handle = handle;
    out->lease = ((struct memory *)picture->allocator_data)->lease;
    for (int plane = 0; plane < 3; plane++)
        out->planes[plane] = picture->data[plane];
    out->strides[0] = (size_t)picture->stride[0];
    out->strides[1] = (size_t)picture->stride[1];
    out->width = picture->p.w;
    out->height = picture->p.h;
    out->depth = picture->p.bpc;
    out->layout = (int)picture->p.layout;
    out->is_inter = header->frame_type == DAV1D_FRAME_TYPE_INTER ||
                    header->frame_type == DAV1D_FRAME_TYPE_SWITCH;
    out->is_shown = header->show_frame;
    out->has_grain = grain->num_y_points || grain->num_uv_points[0] || grain->num_uv_points[1] ||
                     grain->chroma_scaling_from_luma;
    return 0;
}

// Sends the first bytes of a unit; answers how many were taken, or a negative error: the rest is not usable.
ptrdiff_t standin_dav1d_send(struct standin_dav1d *decoder, const uint8_t *bytes, size_t size) {
    Dav1dData data = { 0 };
    uint8_t *const copy = dav1d_data_create(&data, size);
    if (!copy)
        return DAV1D_ERR(ENOMEM);
    memcpy(copy, bytes, size);
    const int code = dav1d_send_data(decoder->context, &data);
    const size_t left = data.sz;
    if (data.sz)
        dav1d_data_unref(&data);
    if (code < 0 && code != DAV1D_ERR(EAGAIN))
        return code;
    return (ptrdiff_t)(size - left);
}

// 1: a picture; 0: none is ready; negative: what was sent is damaged.
int standin_dav1d_receive(struct standin_dav1d *decoder, struct standin_picture *out) {
    Dav1dPicture picture = { 0 };
    const int code = dav1d_get_picture(decoder->context, &picture);
    if (code == DAV1D_ERR(EAGAIN))
        return 0;
    if (code < 0)
        return code;
    return describe(&picture, out) < 0 ? DAV1D_ERR(ENOMEM) : 1;
}

// The picture with film grain, in a surface of its own.
int standin_dav1d_grain(struct standin_dav1d *decoder, const struct standin_picture *from,
                        struct standin_picture *out) {
    Dav1dPicture picture = { 0 };
    const int code = dav1d_apply_grain(decoder->context, &picture, from->handle);
    return code < 0 ? code : describe(&picture, out);
}

void standin_dav1d_unref(struct standin_picture *picture) {
    dav1d_picture_unref(picture->handle);
    free(picture->handle);
}

// The operating points of the sequence header in a unit: their number, and 0 where there is no header.
int standin_dav1d_points(const uint8_t *bytes, size_t size, uint16_t idc[32]) {
    Dav1dSequenceHeader header;
    if (!size || dav1d_parse_sequence_header(&header, bytes, size) < 0)
        return 0;
    for (int point = 0; point < header.num_operating_points && point < 32; point++)
        idc[point] = (uint16_t)header.operating_points[point].idc;
    return header.num_operating_points;
}
