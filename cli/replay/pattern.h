/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What --verify writes into a block: words that count up from a start drawn from
 * the block's number. So bytes of another block, and bytes of the same block in
 * another place, are told apart from its own.
 */
#ifndef CLI_REPLAY_PATTERN_H
#define CLI_REPLAY_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void pattern_fill(void *block, size_t size, uint64_t number);

/* true: as it was filled. false: *at is the first 8 bytes (by their offset) that are not. */
bool pattern_check(const void *block, size_t size, uint64_t number, size_t *at);

#endif
