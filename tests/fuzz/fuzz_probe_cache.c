/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of the probe's cache. What is read is what would be written again, byte by byte; all else is refused and
 * changes nothing. The sum at the end would keep the fuzzer out, so each input is also tried with the right one.
 */
#include "backend/proof_cache.h"

#include "fuzz.h"

static onuma__proof_key fuzz_key(void) {
    onuma__proof_key key = {.length = 0};
    onuma__proof_key_add(&key, "driver", "a\nb");
    return key;
}

static void check(const char *text, size_t length) {
    const onuma__proof_key key = fuzz_key();
    onuma__proof_record record, before;
    memset(&record, 0x5a, sizeof record);
    before = record;
    if (!onuma__proof_parse(text, length, &key, &record)) {
        FUZZ_CHECK(memcmp(&record, &before, sizeof record) == 0, "a refused file changed the record");
        return;
    }
    char again[ONUMA__PROOF_FILE_BYTES];
    const size_t written = onuma__proof_format(&key, &record, again);
    FUZZ_CHECK(written == length && memcmp(again, text, length) == 0, "%zu bytes were read as if they were others",
               length);
    fuzz_reached_the_end();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 32);
    FUZZ_CHECK(text != NULL, "no memory for the input");
    if (size != 0) memcpy(text, data, size);
    check(text, size);
    snprintf(text + size, 32, "sum=%016llx\n", (unsigned long long)onuma__proof_hash(0, text, size));
    check(text, size + 21);
    free(text);
    return 0;
}
