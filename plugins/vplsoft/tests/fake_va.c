// SPDX-License-Identifier: MPL-2.0
//
// A VA display for machines without a render node, as far as FFmpeg looks at one before it hands it to a
// oneVPL runtime that has no use for it. For LD_PRELOAD. It takes the place of libva's and libdrm's
// functions, so it is written from their manuals and needs neither's headers.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_node(const char *path) { return strncmp(path, "/dev/dri/renderD128", 19) == 0; }

int open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, int) : 0;
    va_end(arguments);
    int (*next)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    return next(is_node(path) ? "/dev/null" : path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, int) : 0;
    va_end(arguments);
    return open(path, flags, mode);
}

struct version { // drmVersion
    int major, minor, patch, name_length;
    char *name;
    int date_length;
    char *date;
    int description_length;
    char *description;
};

struct version *drmGetVersion(int fd) {
    (void)fd;
    static char name[] = "i915";
    struct version *version = calloc(1, sizeof *version);
    if (version) {
        version->name = name;
        version->name_length = 4;
    }
    return version;
}

void drmFreeVersion(struct version *version) { free(version); }

void *vaGetDisplayDRM(int fd) {
    (void)fd;
    static char display[4096]; // its address is all that is used
    return display;
}

int vaDisplayIsValid(void *display) { return display != NULL; }
int vaSetDriverName(void *display, char *name) { (void)display, (void)name; return 0; }
const char *vaQueryVendorString(void *display) { (void)display; return "Intel iHD driver (none)"; }
int vaTerminate(void *display) { (void)display; return 0; }
int vaMaxNumImageFormats(void *display) { (void)display; return 1; }
const char *vaErrorStr(int status) { (void)status; return "no VA driver"; }
void *vaSetErrorCallback(void *display, void *to, void *user) { (void)display, (void)to, (void)user; return NULL; }
void *vaSetInfoCallback(void *display, void *to, void *user) { (void)display, (void)to, (void)user; return NULL; }

int vaInitialize(void *display, int *major, int *minor) {
    (void)display;
    *major = 1;
    *minor = 17;
    return 0;
}

int vaQueryImageFormats(void *display, void *formats, int *count) {
    (void)display, (void)formats;
    *count = 0;
    return 0;
}
