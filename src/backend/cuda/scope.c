/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Around each call of the driver. Another context of the thread stays beneath ours and is current again afterwards.
 *
 * While a thread captures a graph in the strict modes, calls like cuMemMap or cuEventQuery would end its capture with an
 * error, though what we do there is no part of the graph: the relaxed mode is for that.
 */
#include "backend/cuda/cuda.h"

onuma_result onuma__cu_enter(onuma_backend_device *device, onuma__cu_scope *scope) {
    *scope = (onuma__cu_scope){.mode = ONUMA__CU_CAPTURE_MODE_RELAXED};
    onuma__cu_result code = device->cu->ExchangeCaptureMode(&scope->mode);
    scope->relaxed = code == ONUMA__CU_SUCCESS;
    if (scope->relaxed) code = device->cu->CtxPush(device->context);
    scope->entered = scope->relaxed && code == ONUMA__CU_SUCCESS;
    if (scope->entered) return ONUMA_OK;
    onuma__cu_leave(device, scope);
    return onuma__cu_fail(device->host, code, "making the context of \"%s\" current", device->facts.info.name);
}

/* Neither can fail after it worked on the way in, but for a process that ends, to which it makes no difference. */
void onuma__cu_leave(onuma_backend_device *device, onuma__cu_scope *scope) {
    onuma__cu_context ours;
    if (scope->entered) (void)device->cu->CtxPop(&ours);
    if (scope->relaxed) (void)device->cu->ExchangeCaptureMode(&scope->mode);
    scope->entered = scope->relaxed = false;
}
