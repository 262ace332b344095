/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OPENNUMA_CONF: "key:value,key:value". Each key is registered once, in the
 * list below; from it come the struct, the parser, the documentation and
 * onuma_config_key_at.
 *
 * X(field, "name", type, fallback, "help"). Types: BOOL (on|off), SIZE (bytes,
 * with k, m, g), TIME (ns, with us, ms, s), or CHOICE with the "a|b|c" it may be, which is stored as
 * the index of the word.
 */
#ifndef ONUMA_BASE_CONFIG_H
#define ONUMA_BASE_CONFIG_H

#include "base/result.h"

/* clang-format off */
#define ONUMA__CONFIG_KEYS(X)                                                                                          \
    X(log,            "log",            CHOICE("none|error|warn|info|debug"), "none", "lowest level of log lines written") \
    X(track,          "track",          CHOICE("basic|full"), "basic", "full: exact peaks, and age and call site of every block in leak reports; costs some 50 ns a call") \
    X(check,          "check",          CHOICE("none|hazards"), "none", "hazards: report conflicting and unannounced accesses") \
    X(backends,       "backends",       CHOICE("all|host"), "all", "host: load no driver at all") \
    X(host_large_pages, "host.large_pages", BOOL, "off", "segments of the host's pools in large pages, where the system lets this process have them; else ordinary ones") \
    X(cuda_share,     "cuda.share",     CHOICE("auto|vmm|pinned|managed"), "auto", "how CUDA devices share memory with the CPU; auto takes the first of vmm and pinned that works, managed memory is taken only by this") \
    X(opencl_share,   "opencl.share",   CHOICE("auto|usm|svm_fine|svm_coarse|import"), "auto", "how OpenCL devices share memory with the CPU; auto takes the best that works") \
    X(opencl_probe,   "opencl.probe",   CHOICE("cached|always|off"), "cached", "whether a kernel proves, at a device's first use, that sharing works: cached keeps the result in the user's cache folder, off believes the driver") \
    X(opencl_patience, "opencl.patience", TIME, "30s", "how long that proof may wait for a device in all; one that keeps it waiting longer counts as hung") \
    X(pool_segment,   "pool.segment",   SIZE, "0", "size of ordinary segments; 0: by kind and device") \
    X(pool_wait,      "pool.wait",      TIME, "1ms", "how long an allocation may wait for queues rather than make a pool larger than it ever needed to be") \
    X(pool_device_wait, "pool.device_wait", BOOL, "off", "on: rather than grow a pool, let an in-order queue wait on the device for another one and take over what that freed; may hang programs that hold one queue back by hand until another is done") \
    X(pool_cache,     "pool.cache",     SIZE, "16m", "most bytes of free small blocks, as many of large ones, and as many in its arena, that one thread keeps per pool and queue") \
    X(limit_hard,     "limit.hard",     SIZE, "0", "most bytes that all pools of a runtime reserve together; 0: no limit") \
    X(limit_soft,     "limit.soft",     SIZE, "0", "where all pools of a runtime reserve more together, they keep nothing in vain; 0: never") \
    X(decay_half_life, "decay.half_life", TIME, "10s", "in this time half of what a pool holds in vain is given up; after three times that all has gone back to the system. 0: it goes back by trims only") \
    X(decay_floor,    "decay.floor",    SIZE, "256k", "bytes beyond what is in use that decay leaves each pool") \
    X(decay_thread,   "decay.thread",   BOOL, "off", "a thread of the library's own lets memory decay while the program makes no calls") \
    X(pressure,       "pressure",       BOOL, "off", "a thread of the library's own gives memory back when the system is short of it, and calls the program's handler")
/* clang-format on */

/* Each key's place in the list. */
enum {
#define ONUMA__X(field, name, type, fallback, help) ONUMA__CONFIG_KEY_##field,
    ONUMA__CONFIG_KEYS(ONUMA__X)
#undef ONUMA__X
        ONUMA__CONFIG_KEY_COUNT
};

#define ONUMA__CONFIG_TEXT_BYTES 24 /* holds any number and the longest word */

typedef struct onuma__config {
#define ONUMA__X(field, name, type, fallback, help) uint64_t field;
    ONUMA__CONFIG_KEYS(ONUMA__X)
#undef ONUMA__X
    /* The values once more, as text, so that onuma__config_text can hand out pointers that live as long as the config. */
    char text[ONUMA__CONFIG_KEY_COUNT][ONUMA__CONFIG_TEXT_BYTES];
} onuma__config;

/* The words of CHOICE keys, in the order they are listed there. */
enum { ONUMA__TRACK_BASIC, ONUMA__TRACK_FULL };
enum { ONUMA__CHECK_NONE, ONUMA__CHECK_HAZARDS };
enum { ONUMA__BACKENDS_ALL, ONUMA__BACKENDS_HOST };
enum { ONUMA__PROBE_CACHED, ONUMA__PROBE_ALWAYS, ONUMA__PROBE_OFF };
enum { ONUMA__SHARE_AUTO, ONUMA__SHARE_USM, ONUMA__SHARE_SVM_FINE, ONUMA__SHARE_SVM_COARSE, ONUMA__SHARE_IMPORT };

/* Every key at its fallback. */
void onuma__config_init(onuma__config *config);

/*
 * Apply a text to a config; later keys win over earlier ones. NULL and "" change nothing.
 * INVALID_ARGUMENT names the key or value that is wrong and lists what there is; the config is then unchanged.
 * `origin` names the text's source in that message ("OPENNUMA_CONF").
 */
onuma_result onuma__config_parse(onuma__config *config, const char *text, const char *origin);

/* A key's value as text: the word, or the number of bytes or ns. Lives as long as `config`. NULL: there is no such key. */
const char *onuma__config_text(const onuma__config *config, const char *key);

/* Read one value of a type ("bool", "size", "time" or "a|b|c"). false, and *value untouched, if it is not one. */
bool onuma__config_value(const char *type, const char *text, size_t length, uint64_t *value);

#endif
