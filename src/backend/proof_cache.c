/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping findings: their text, and the file it stands in. What makes the file itself safe is src/os's. */
#include "backend/proof_cache.h"

#include "os/os.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char header[] = "opennuma sharing proof 2\n";

/* --------------------------------------------------------------------- key */

uint64_t onuma__proof_hash(uint64_t seed, const void *bytes, size_t length) {
    uint64_t hash = seed != 0 ? seed : UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

void onuma__proof_key_add(onuma__proof_key *key, const char *name, const char *value) {
    const size_t room = sizeof key->text - key->length;
    char *to = key->text + key->length;
    const int named = snprintf(to, room, "%s=", name);
    size_t used = named > 0 ? (size_t)named : room;
    const unsigned char *at = (const unsigned char *)value;
    for (; *at != '\0' && used + 5 < room; at++) { /* room for an escape, a newline and the end */
        const bool plain = *at >= ' ' && *at <= '~' && *at != '%';
        used += (size_t)snprintf(to + used, room - used, plain ? "%c" : "%%%02x", *at);
    }
    if (*at != '\0' || used + 2 > room) {
        *to = '\0';
        key->overflowed = true;
        return;
    }
    to[used] = '\n';
    to[used + 1] = '\0';
    key->length += used + 1;
}

void onuma__proof_key_add_number(onuma__proof_key *key, const char *name, uint64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    onuma__proof_key_add(key, name, text);
}

/* -------------------------------------------------------------------- text */

static bool is_way(const char *text) {
    size_t length = 0;
    while ((text[length] >= 'a' && text[length] <= 'z') || text[length] == '_')
        length++;
    return text[length] == '\0';
}

static bool is_printable(const char *text) {
    while (*text >= ' ' && *text <= '~')
        text++;
    return *text == '\0';
}

static const char *word(bool value) {
    return value ? "yes" : "no";
}

size_t onuma__proof_format(const onuma__proof_key *key, const onuma__proof_record *record,
                           char text[ONUMA__PROOF_FILE_BYTES]) {
    if (key->overflowed || !is_way(record->way) || !is_printable(record->detail)) return 0;
    int length = snprintf(text, ONUMA__PROOF_FILE_BYTES,
                          "%s%s\nway=%s\nmapped=%s\nimports=%s\nimport_zero_copy=%s\nmax_segment=%" PRIu64
                          "\nnotes=%" PRIu32 "\ndetail=%s\n",
                          header, key->text, record->way, word(record->mapped), word(record->imports),
                          word(record->import_zero_copy), record->max_segment, record->notes, record->detail);
    const size_t sum = 4 + 16 + 1; /* "sum=", the digits and a newline */
    if (length < 0 || (size_t)length + sum + 1 > ONUMA__PROOF_FILE_BYTES) return 0;
    const uint64_t hash = onuma__proof_hash(0, text, (size_t)length);
    snprintf(text + length, sum + 1, "sum=%016" PRIx64 "\n", hash);
    return (size_t)length + sum;
}

/* What is left to read. */
typedef struct reader {
    const char *at;
    size_t left;
} reader;

static bool take(reader *r, const char *text, size_t length) {
    if (length > r->left || memcmp(r->at, text, length) != 0) return false;
    r->at += length;
    r->left -= length;
    return true;
}

/* The value of the line "name=value", which must come next and fit `room`. */
static bool take_value(reader *r, const char *name, char *value, size_t room) {
    if (!take(r, name, strlen(name)) || !take(r, "=", 1)) return false;
    const char *end = memchr(r->at, '\n', r->left);
    if (end == NULL || (size_t)(end - r->at) >= room) return false;
    const size_t length = (size_t)(end - r->at);
    memcpy(value, r->at, length);
    value[length] = '\0';
    if (memchr(value, '\0', length) != NULL) return false;
    r->at += length + 1;
    r->left -= length + 1;
    return true;
}

static bool take_bool(reader *r, const char *name, bool *value) {
    char text[4];
    if (!take_value(r, name, text, sizeof text)) return false;
    *value = strcmp(text, "yes") == 0;
    return *value || strcmp(text, "no") == 0;
}

static bool take_number(reader *r, const char *name, uint64_t *value) {
    char text[21], again[21];
    if (!take_value(r, name, text, sizeof text)) return false;
    uint64_t number = 0;
    for (const char *at = text; *at >= '0' && *at <= '9'; at++)
        number = number * 10 + (uint64_t)(*at - '0');
    *value = number;
    snprintf(again, sizeof again, "%" PRIu64, number); /* one form only, and no overflow */
    return strcmp(text, again) == 0;
}

bool onuma__proof_parse(const char *text, size_t length, const onuma__proof_key *key, onuma__proof_record *out) {
    reader r = {text, length};
    onuma__proof_record record = {.way = ""};
    char sum[17], want[17];
    uint64_t notes = 0;
    if (key->overflowed || !take(&r, header, sizeof header - 1) || !take(&r, key->text, key->length) ||
        !take(&r, "\n", 1) || !take_value(&r, "way", record.way, sizeof record.way) ||
        !take_bool(&r, "mapped", &record.mapped) || !take_bool(&r, "imports", &record.imports) ||
        !take_bool(&r, "import_zero_copy", &record.import_zero_copy) ||
        !take_number(&r, "max_segment", &record.max_segment) || !take_number(&r, "notes", &notes) ||
        notes > UINT32_MAX || !take_value(&r, "detail", record.detail, sizeof record.detail))
        return false;
    snprintf(want, sizeof want, "%016" PRIx64, onuma__proof_hash(0, text, (size_t)(r.at - text)));
    if (!take_value(&r, "sum", sum, sizeof sum) || strcmp(sum, want) != 0 || r.left != 0) return false;
    if (!is_way(record.way) || !is_printable(record.detail)) return false;
    record.notes = (uint32_t)notes;
    *out = record;
    return true;
}

/* -------------------------------------------------------------------- file */

static void name_file(const onuma__proof_key *key, char name[40]) {
    snprintf(name, 40, "sharing-%016" PRIx64, onuma__proof_hash(0, key->text, key->length));
}

bool onuma__proof_recall(const onuma_backend_host *host, const onuma__proof_key *key, onuma__proof_record *out) {
    char name[40], text[ONUMA__PROOF_FILE_BYTES];
    size_t length = 0;
    if (key->overflowed) return false;
    name_file(key, name);
    if (onuma__os_cache_read(name, text, sizeof text, &length) != ONUMA_OK) {
        host->log(host, ONUMA_LOG_DEBUG, "nothing is known of sharing from earlier runs: %s", onuma_last_error());
        return false;
    }
    if (onuma__proof_parse(text, length, key, out)) return true;
    host->log(host, ONUMA_LOG_DEBUG, "the cache file %s is not as this version writes it, and is ignored", name);
    return false;
}

void onuma__proof_keep(const onuma_backend_host *host, const onuma__proof_key *key, const onuma__proof_record *record) {
    char name[40], text[ONUMA__PROOF_FILE_BYTES];
    const size_t length = onuma__proof_format(key, record, text);
    name_file(key, name);
    if (length == 0)
        host->log(host, ONUMA_LOG_DEBUG, "what was found of sharing is not kept: its text is too long");
    else if (onuma__os_cache_write(name, text, length) != ONUMA_OK)
        host->log(host, ONUMA_LOG_DEBUG, "what was found of sharing is not kept: %s", onuma_last_error());
}
