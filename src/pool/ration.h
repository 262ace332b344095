/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What calls of the source are spent on. A call costs from microseconds to
 * milliseconds, and holds up the program; memory that is held in vain costs for
 * ever. So some calls are made only to keep a pool tight, and those are
 * rationed by what the program does, for there are programs whose memory would
 * come and go with every block.
 */
#ifndef ONUMA_POOL_RATION_H
#define ONUMA_POOL_RATION_H

#include "pool/engine.h"

/*
 * Range mode: whether pages may go back because the pool holds too many. A program whose blocks come and go at random
 * would have the same pages go and come for ever; with a little more it stops missing.
 */
bool onuma__ration_reclaim(const onuma__engine *engine);

/*
 * Segments mode: the most that an allocation may leave over of a wholly free segment that it takes. What has been broken
 * up cannot go back until its last piece is freed, so it would be better to acquire a segment to measure and give that
 * one back: two calls, and so only as long as the program makes few. SIZE_MAX: anything.
 */
size_t onuma__ration_broken(const onuma__engine *engine);

#endif
