/* SPDX-License-Identifier: Apache-2.0 */
/* Giving memory back to the source. */
#ifndef ONUMA_POOL_TRIM_H
#define ONUMA_POOL_TRIM_H

#include "pool/engine.h"

/*
 * Segments mode, before `more` bytes are acquired: wholly free segments, which
 * did not serve the request, are dropped while what is reserved would exceed
 * what was in use at most by more than a thirty-second.
 */
void onuma__trim_before_growth(onuma__engine *engine, size_t more);

#endif
