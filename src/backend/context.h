/* SPDX-License-Identifier: Apache-2.0 */
/* What the library gives to backends (onuma_backend_host), seen from its own side. */
#ifndef ONUMA_BACKEND_CONTEXT_H
#define ONUMA_BACKEND_CONTEXT_H

#include "backend/device.h"

/* One for each registry; constant once made. */
typedef struct onuma__backend_context onuma__backend_context;

onuma_result onuma__backend_context_create(const onuma__config *config, const onuma__log *log,
                                           onuma__backend_context **out);
void onuma__backend_context_destroy(onuma__backend_context *context); /* NULL ok */

/* Fill what a backend is given. */
void onuma__backend_context_host(const onuma__backend_context *context, onuma_backend_host *host);

#endif
