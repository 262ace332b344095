/* SPDX-License-Identifier: Apache-2.0 */
#include "api/check.h"

#include <inttypes.h>

_Atomic uint64_t onuma__home_generation;

onuma_result onuma__refuse_forked(const char *function, const char *device) {
    return onuma__fail(ONUMA_ERROR_FORKED,
                       "%s: device %s belongs to the parent process, and its driver does not survive fork(); make a "
                       "runtime in the child",
                       function, device);
}

onuma_result onuma__check_block_fork_slowly(const void *ptr, const char *function) {
    onuma__block block;
    /* No live block: whoever asked says so better. */
    if (onuma__engine_find(ptr, &block) != ONUMA_OK) return ONUMA_OK;
    return onuma__check_fork(((const onuma__owner *)block.owner)->device, function);
}

onuma_result onuma__refuse_null(const char *function, const char *parameter) {
    return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "%s: %s is NULL", function, parameter);
}

onuma_result onuma__check_access(onuma_access mode, const char *function) {
    if (mode >= ONUMA_ACCESS_READ && mode <= ONUMA_ACCESS_READ_WRITE) return ONUMA_OK;
    return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "%s: mode %" PRIu32 " is not one of ONUMA_ACCESS_*", function,
                       mode);
}
