/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool replay(const engine_calls *calls, onuma_source mode, const operation *operations, size_t count, char *failure) {
    model *m = calloc(1, sizeof *m);
    broken_reset();
    if (model_open(m, calls, mode, 1, 0)) {
        worker *w = &m->workers[0];
        for (size_t i = 0; i < count && !atomic_load(&m->failed); i++)
            operation_run(w, &operations[i]);
        worker_receive_all(w);
        if (!atomic_load(&m->failed)) reference_compare(m);
        if (!atomic_load(&m->failed)) worker_finish(w);
    }
    model_close(m);
    const bool sound = !atomic_load(&m->failed);
    if (failure != NULL) memcpy(failure, m->failure, sizeof m->failure);
    free(m);
    return sound;
}

/*
 * Leave out ever smaller parts as long as what remains fails: halves first, in the end single operations.
 * What then remains fails only together.
 */
size_t shrink(const engine_calls *calls, onuma_source mode, operation *operations, size_t count) {
    char failure[sizeof((model *)0)->failure] = "";
    operation *trial = malloc((count + 1) * sizeof *trial);
    for (size_t part = count / 2 + 1; part > 0; part = part == 1 ? 0 : (part + 1) / 2) {
        for (size_t at = 0; at < count;) {
            const size_t end = at + part < count ? at + part : count;
            memcpy(trial, operations, at * sizeof *trial);
            memcpy(trial + at, operations + end, (count - end) * sizeof *trial);
            if (replay(calls, mode, trial, count - (end - at), failure)) {
                at = end;
            } else {
                count -= end - at;
                memcpy(operations, trial, count * sizeof *trial);
            }
        }
    }
    free(trial);
    replay(calls, mode, operations, count, failure);
    printf("  fails after these %zu operations (%s):\n  %s\n", count, mode == ONUMA_SOURCE_RANGE ? "range" : "segments",
           failure);
    for (size_t i = 0; i < count; i++)
        operation_print(&operations[i]);
    return count;
}
