/* SPDX-License-Identifier: Apache-2.0 */
/* fork(): engines work on in the child. */
#ifndef ONUMA_POOL_FORK_H
#define ONUMA_POOL_FORK_H

#include "pool/engine.h"

/* Before the first engine of the process: hear of forks. */
void onuma__fork_start(void);

/* An engine lives from enter to leave. */
void onuma__fork_enter(onuma__engine *engine);
void onuma__fork_leave(onuma__engine *engine);

#endif
