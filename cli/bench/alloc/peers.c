/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "bench/alloc/peers.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/alloc/malloc.h"
#include "bench/alloc/umf.h"
#include "output.h"

#define REMEDY                                                                                                         \
    "scripts/setup.sh bench puts the peers' libraries into build/stacks/peers; --peers-from names another folder"

/* -------------------------------------------------------------- environment */

static const char static_room[] = "glibc.rtld.optional_static_tls=16384";

/* Memory that a peer has got it keeps, as the pool here does: no calls of the system in the middle of a measurement. */
static const struct {
    const char *name, *value;
} peer_settings[] = {
    {"MALLOC_CONF", "dirty_decay_ms:-1,muzzy_decay_ms:-1"}, /* jemalloc's */
    {"MIMALLOC_PURGE_DELAY", "-1"},
};

/* Sets what is not yet so; true: something was not. */
static bool set_environment(void) {
    bool changed = false;
    const char *tunables = getenv("GLIBC_TUNABLES");
    if (!tunables || !strstr(tunables, static_room)) {
        size_t size = sizeof static_room + 1 + (tunables ? strlen(tunables) : 0);
        char *both = cli_allocate(size);
        snprintf(both, size, "%s%s%s", tunables ? tunables : "", tunables && *tunables ? ":" : "", static_room);
        setenv("GLIBC_TUNABLES", both, 1);
        free(both);
        changed = true;
    }
    for (size_t i = 0; i < sizeof peer_settings / sizeof *peer_settings; i++) {
        const char *value = getenv(peer_settings[i].name);
        if (value && strcmp(value, peer_settings[i].value) == 0) continue;
        setenv(peer_settings[i].name, peer_settings[i].value, 1);
        changed = true;
    }
    return changed;
}

bool bench_peers_prepare(int argc, char **argv) {
    if (!set_environment()) return true;
    char **again = cli_allocate(((size_t)argc + 3) * sizeof *again);
    char command[] = "opennuma", bench[] = "bench";
    again[0] = command;
    again[1] = bench;
    memcpy(again + 2, argv, (size_t)argc * sizeof *argv);
    again[argc + 2] = NULL;
    (void)execv("/proc/self/exe", again);
    cli_error("cannot start again with the peers' settings in the environment: %s", strerror(errno));
    free(again);
    return false;
}

/* ------------------------------------------------------------------- folder */

static char *join(const char *folder, const char *name) {
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = cli_allocate(size);
    snprintf(path, size, "%s/%s", folder, name);
    return path;
}

/* The folder, or NULL and `folder` freed where there is none. */
static char *existing(char *folder) {
    struct stat status;
    if (stat(folder, &status) == 0 && S_ISDIR(status.st_mode)) return folder;
    free(folder);
    return NULL;
}

char *bench_peers_folder(void) {
    const char *stacks = getenv("OPENNUMA_STACKS"); /* setup.sh's */
    if (stacks && *stacks) return existing(join(stacks, "peers"));
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0) return NULL;
    program[length] = '\0'; /* build/PRESET/opennuma */
    char *slash = strrchr(program, '/');
    if (slash) *slash = '\0';
    return existing(join(program, "../stacks/peers"));
}

/* ------------------------------------------------------------------ loading */

static void *open_library(const char *folder, const char *name) {
    char *path = join(folder, name);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) cli_error("%s; " REMEDY, dlerror());
    free(path);
    return library;
}

/* What the peers link to: the system's, and where it has none the folder's, by the name that they ask for. */
static void open_needed(const char *folder) {
    static const char *const needed[] = {"libgcc_s.so.1", "libstdc++.so.6", "libatomic.so.1", "libhwloc.so.15"};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        if (dlopen(needed[i], RTLD_NOW | RTLD_LOCAL)) continue;
        char *path = join(folder, needed[i]);
        (void)dlopen(path, RTLD_NOW | RTLD_LOCAL); /* if it is missing, the peer's own error names it */
        free(path);
    }
}

static bool find_function(void *library, const char *name, void *function) {
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    if (!found) cli_error("a peer's library has no function %s; " REMEDY, name);
    return found != NULL;
}

static bool load_mimalloc(const char *folder, bench_allocator *out) {
    enum { OLDEST = 30400 }; /* 3.4.0 */
    static bench_malloc functions;
    static char version[64];
    int (*get_version)(void);
    void *library = open_library(folder, "libmimalloc.so.3");
    if (!library || !find_function(library, "mi_malloc", &functions.allocate) ||
        !find_function(library, "mi_free", &functions.release) || !find_function(library, "mi_version", &get_version))
        return false;
    int number = get_version();
    snprintf(version, sizeof version, "%d.%d.%d, no purging", number / 10000, number / 100 % 100, number % 100);
    *out = bench_malloc_allocator("mimalloc", version, &functions);
    if (number >= OLDEST) return true;
    cli_error("mimalloc is %s, and 3.4 is the oldest that is compared with; " REMEDY, version);
    return false;
}

static bool load_jemalloc(const char *folder, bench_allocator *out) {
    static bench_malloc functions;
    static char version[64];
    int (*control)(const char *name, void *old, size_t *old_size, void *new, size_t new_size);
    void *library = open_library(folder, "libjemalloc.so.2");
    if (!library || !find_function(library, "malloc", &functions.allocate) ||
        !find_function(library, "free", &functions.release) || !find_function(library, "mallctl", &control))
        return false;
    const char *text = "?";
    ssize_t decay = 0;
    size_t text_size = sizeof text, decay_size = sizeof decay;
    if (control("version", &text, &text_size, NULL, 0) != 0 ||
        control("opt.dirty_decay_ms", &decay, &decay_size, NULL, 0) != 0 || decay != -1) {
        cli_error("jemalloc has not taken its settings from MALLOC_CONF; " REMEDY);
        return false;
    }
    snprintf(version, sizeof version, "%.*s, decay off", (int)strcspn(text, "-"), text);
    *out = bench_malloc_allocator("jemalloc", version, &functions);
    return true;
}

static bool load_umf(const char *folder, bench_peers *out) {
    void *malloc_of_scalable = open_library(folder, "libtbbmalloc.so.2"); /* UMF asks for it by that name */
    void *library = malloc_of_scalable ? open_library(folder, "libumf.so.1") : NULL;
    if (!library) return false;
    char wrong[128];
    size_t count = bench_umf_allocators(library, out->allocators + out->count, out->lacking, sizeof out->lacking, wrong,
                                        sizeof wrong);
    if (count == 0) cli_error("%s/libumf.so.1: %s; " REMEDY, folder, wrong);
    out->count += count;
    return count > 0;
}

bool bench_peers_load(const char *folder, bench_peers *out) {
    *out = (bench_peers){0};
    open_needed(folder);
    if (!load_mimalloc(folder, &out->allocators[out->count++])) return false;
    if (!load_jemalloc(folder, &out->allocators[out->count++])) return false;
    return load_umf(folder, out);
}
