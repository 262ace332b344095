/* SPDX-License-Identifier: Apache-2.0 */
/* The library's side: src/sync and the real engine on host queues, with memory for as many blocks as the model has. */
#ifndef ONUMA_TESTS_PROTOCOL_LIBRARY_H
#define ONUMA_TESTS_PROTOCOL_LIBRARY_H

#include "model.h"

typedef struct library library;

/* Memory and queues from scratch. */
library *library_open(variant what, bool second_in_order);
void library_close(library *l);
/* Does a step of the program; `m` is the model before it. */
answer library_take(library *l, const model *m, step s);
/* Ends whatever the program left: all work is done, all is freed. NULL, or what has not come back then. */
const char *library_rest(library *l);

#endif
