/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a probe found, kept in the user's cache folder for later runs: a small text per key, of one form only.
 *
 * The key is the list of everything that the finding depends on, and the file holds it whole: a finding is believed
 * only where each line of the key is the same. Nothing in a file is trusted beyond that. One that is not exactly as
 * this version writes it is as good as none.
 */
#ifndef ONUMA_BACKEND_PROOF_CACHE_H
#define ONUMA_BACKEND_PROOF_CACHE_H

#include "opennuma/backend.h"

enum { ONUMA__PROOF_KEY_BYTES = 6144, ONUMA__PROOF_FILE_BYTES = 8192 };

/* "name=value" lines. */
typedef struct onuma__proof_key {
    char text[ONUMA__PROOF_KEY_BYTES];
    size_t length;
    bool overflowed; /* some of it is missing: nothing is kept under it */
} onuma__proof_key;

/* Any bytes may stand in a value. */
void onuma__proof_key_add(onuma__proof_key *key, const char *name, const char *value);
void onuma__proof_key_add_number(onuma__proof_key *key, const char *name, uint64_t value);
uint64_t onuma__proof_hash(uint64_t seed, const void *bytes, size_t length); /* FNV-1a; begin with seed 0 */

/* A finding, in words that every driver API has. */
typedef struct onuma__proof_record {
    char way[16]; /* "" : none works */
    bool mapped, imports, import_zero_copy;
    uint64_t max_segment;
    uint32_t notes;   /* of ONUMA_SHARING_* */
    char detail[256]; /* printable */
} onuma__proof_record;

/* The file's text. 0: it does not fit, or the record holds what no file may. */
size_t onuma__proof_format(const onuma__proof_key *key, const onuma__proof_record *record,
                           char text[ONUMA__PROOF_FILE_BYTES]);
/* false, and *out untouched, for anything that onuma__proof_format would not write for this key. */
bool onuma__proof_parse(const char *text, size_t length, const onuma__proof_key *key, onuma__proof_record *out);

/* What is kept under the key, if it can be trusted. Says why not in the log only. */
bool onuma__proof_recall(const onuma_backend_host *host, const onuma__proof_key *key, onuma__proof_record *out);
void onuma__proof_keep(const onuma_backend_host *host, const onuma__proof_key *key, const onuma__proof_record *record);

#endif
