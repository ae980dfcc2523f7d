// SPDX-License-Identifier: MPL-2.0
//
// A libcuda of a few lines, to see how it is called. Each call is a line in the file STUB_LOG: the function,
// the context that is current, and a handle. STUB_FAIL=FUNCTION:N:CODE lets the Nth call of a function fail.
// Built with -D: VERSION, INIT (what cuInit answers), DEVICES, WITHOUT_EVENTS.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef VERSION
#define VERSION 12020
#endif
#ifndef INIT
#define INIT 0
#endif
#ifndef DEVICES
#define DEVICES 1
#endif

static __thread void *stack[16];
static __thread int depth;

// Logs the call and answers what it is to return.
int stub_call(const char *name, void *handle) {
    static struct { const char *name; int count; } calls[64];
    const char *path = getenv("STUB_LOG"), *fail = getenv("STUB_FAIL");
    int at = 0, length = (int)strlen(name);
    while (calls[at].name && strcmp(calls[at].name, name)) at++;
    calls[at].name = name;
    calls[at].count++;
    FILE *log = path ? fopen(path, "a") : NULL;
    if (log) {
        fprintf(log, "%s %p %p\n", name, depth ? stack[depth - 1] : NULL, handle);
        fclose(log);
    }
    if (fail && !strncmp(fail, name, length) && fail[length] == ':') {
        int n = 0, code = 0;
        sscanf(fail + length, ":%d:%d", &n, &code);
        if (n == calls[at].count) return code;
    }
    return 0;
}

static void *handles = (void *)0x1000;
void *stub_handle(void) { return handles = (char *)handles + 0x10; }

int cuDriverGetVersion(int *version) { *version = VERSION; return 0; }
int cuInit(unsigned flags) { return flags ? 1 : INIT; }
int cuDeviceGetCount(int *count) { *count = DEVICES; return 0; }
int cuDeviceGet(int *device, int index) { *device = index + 40; return 0; }
int cuDeviceGetName(char *name, int room, int device) { snprintf(name, room, "Stub %d", device); return 0; }

int cuDevicePrimaryCtxRetain(void **context, int device) {
    (void)device;
    *context = (void *)0xc0;
    return stub_call("cuDevicePrimaryCtxRetain", *context);
}
int cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return stub_call("cuDevicePrimaryCtxRelease", 0); }
int cuCtxCreate_v2(void **context, unsigned flags, int device) {
    (void)flags, (void)device;
    *context = (void *)0xc1;
    stack[depth++] = *context;
    return stub_call("cuCtxCreate", *context);
}
int cuCtxDestroy_v2(void *context) { return stub_call("cuCtxDestroy", context); }
int cuCtxPushCurrent_v2(void *context) {
    int answer = stub_call("cuCtxPushCurrent", context);
    if (!answer) stack[depth++] = context;
    return answer;
}
int cuCtxPopCurrent_v2(void **context) {
    if (!depth) return 201;
    *context = stack[--depth];
    return 0;
}
// What the tests ask: how many contexts are on this thread's stack.
int stub_depth(void) { return depth; }

int cuStreamCreate(void **stream, unsigned flags) {
    *stream = stub_handle();
    return flags == 1 ? stub_call("cuStreamCreate", *stream) : 1;
}
int cuStreamDestroy_v2(void *stream) { return stub_call("cuStreamDestroy", stream); }
int cuMemHostAlloc(void **start, size_t size, unsigned flags) {
    (void)flags;
    int answer = stub_call("cuMemHostAlloc", 0);
    *start = answer ? NULL : malloc(size);
    if (*start) memset(*start, 0xaa, size);
    return answer;
}
int cuMemFreeHost(void *start) { free(start); return stub_call("cuMemFreeHost", 0); }

// A copy runs when somebody waits for it, or asks for the third time.
struct copy {
    size_t source_x, source_y; int source_kind; const char *source_host; unsigned long long source;
    void *source_array; size_t source_pitch;
    size_t target_x, target_y; int target_kind; char *target_host; unsigned long long target;
    void *target_array; size_t target_pitch;
    size_t width, height;
};
static struct copy pending[16];
static int copies, asked;
static void run_copies(void) {
    for (int i = 0; i < copies; i++) {
        struct copy *c = &pending[i];
        char *target = c->target_kind == 1 ? c->target_host : (char *)c->target;
        for (size_t y = 0; y < c->height; y++)
            memcpy(target + y * c->target_pitch, (char *)c->source + y * c->source_pitch, c->width);
    }
    copies = asked = 0;
}
int cuMemcpy2DAsync_v2(const struct copy *copy, void *stream) {
    int answer = stub_call("cuMemcpy2DAsync", stream);
    if (!answer) pending[copies++] = *copy;
    return answer;
}
int cuStreamSynchronize(void *stream) {
    int answer = stub_call("cuStreamSynchronize", stream);
    if (!answer) run_copies();
    return answer;
}
int cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
    (void)event;
    return flags ? 1 : stub_call("cuStreamWaitEvent", stream);
}
#ifndef WITHOUT_EVENTS
int cuEventCreate(void **event, unsigned flags) {
    (void)flags;
    *event = stub_handle();
    return stub_call("cuEventCreate", *event);
}
int cuEventDestroy_v2(void *event) { return stub_call("cuEventDestroy", event); }
int cuEventRecord(void *event, void *stream) { (void)stream; return stub_call("cuEventRecord", event); }
int cuEventQuery(void *event) {
    int answer = stub_call("cuEventQuery", event);
    if (answer) return answer;
    if (copies && ++asked < 3) return 600;
    run_copies();
    return 0;
}
int cuEventSynchronize(void *event) {
    int answer = stub_call("cuEventSynchronize", event);
    if (!answer) run_copies();
    return answer;
}
#endif
