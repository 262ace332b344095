/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ONUMA_API_RUNTIME_H
#define ONUMA_API_RUNTIME_H

#include "api/check.h"

/* What was found on this machine, and what is said about it. Owner, in the table of handles, of all its objects. */
typedef struct onuma__runtime onuma__runtime;
struct onuma__runtime {
    onuma__config config; /* these two constant while the runtime lives: devices point to them */
    onuma__log log;
    onuma__budget budget;
    onuma__registry registry;
    uint64_t generation;       /* of the process that made it */
    onuma__runtime *next_kept; /* in quarantine */
};

static inline onuma__runtime *onuma__get_runtime(const onuma_runtime *rt) {
    return onuma__handle_get(ONUMA__HANDLE_RUNTIME, rt);
}

#endif
