/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of sharing by name. A test build (ONUMA_TEST_RULES) can switch each of them off, to see that the tests
 * notice; in every other build they are constants and leave no trace.
 */
#ifndef ONUMA_SYNC_RULES_H
#define ONUMA_SYNC_RULES_H

enum {
    /* Without these, memory is used too early. */
    ONUMA__RULE_UNORDERED,    /* what is freed on an unordered queue waits for a marker, for that queue too */
    ONUMA__RULE_FREE_USES,    /* a free waits for announced uses */
    ONUMA__RULE_FREE_OWNER,   /* and for the queue that the block was allocated for */
    ONUMA__RULE_ACQUIRE_USES, /* an acquire waits for announced uses that conflict */
    ONUMA__RULE_OPEN_USES,    /* what another thread announced and has not submitted is waited for, too */
    ONUMA__RULE_RECYCLED,     /* the first acquire waits for what the memory's last owner left on the queue */
    ONUMA__RULE_CONFLICT,     /* a use is refused while the CPU holds the block in a way that does not go with it */
    /* Without these, somebody waits in vain. */
    ONUMA__RULE_READERS,    /* readers do not wait for readers */
    ONUMA__RULE_EVENT,      /* with an event, that work alone is waited for */
    ONUMA__RULE_FRESH,      /* an acquire of fresh memory waits for nobody */
    ONUMA__RULE_OWN_REUSE,  /* an in-order queue gets what was freed on it at once */
    ONUMA__RULE_OWN_RECORD, /* also if the block had a side record */
    ONUMA__RULES
};

#ifdef ONUMA_TEST_RULES
#include <stdint.h>
extern uint32_t onuma__rules_off; /* bits; the test's, set while nothing else runs */
#define ONUMA__RULE(name) ((onuma__rules_off >> ONUMA__RULE_##name & 1) == 0)
#else
#define ONUMA__RULE(name) true
#endif

#endif
