/* SPDX-License-Identifier: Apache-2.0 */
/* Getting memory from the source. No lock is held while it is called. */
#ifndef ONUMA_POOL_GROW_H
#define ONUMA_POOL_GROW_H

#include "pool/engine.h"

/*
 * A taken node of `size` bytes whose pages are committed, whatever that needs. The source's result on failure, with
 * everything else as it was. Called without the engine's lock.
 */
onuma_result onuma__grow_node(onuma__engine *engine, size_t size, size_t align, onuma__tag tag, onuma__node **out);

/* Whether so much more can be had without that other pages go back for it. */
bool onuma__grow_has_room(const onuma__engine *engine, size_t size);

#endif
