/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OPENNUMA_CONF. What is refused changes nothing and is told in one printable
 * line; what is accepted is the same again when written out and read.
 */
#include "base/config.h"

#include "fuzz.h"

static void check_refusal(const onuma__config *before, const onuma__config *after) {
    const char *detail = onuma_last_error();
    FUZZ_CHECK(memcmp(before, after, sizeof *before) == 0, "a refused text changed the configuration");
    FUZZ_CHECK(strstr(detail, "OPENNUMA_CONF") != NULL, "the origin is missing in \"%s\"", detail);
    for (const char *at = detail; *at; at++)
        FUZZ_CHECK(*at >= ' ' && *at < 0x7f, "byte %d in the detail", *at);
}

static void check_written_out(const onuma__config *config) {
    char text[ONUMA__CONFIG_KEY_COUNT * 64];
    size_t used = 0;
    for (size_t i = 0; i < ONUMA__CONFIG_KEY_COUNT; i++) {
        const char *name = onuma_config_key_at(i)->name;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s:%s,", name, onuma__config_text(config, name));
        FUZZ_CHECK(used < sizeof text, "%zu bytes of text", used);
    }
    onuma__config again;
    onuma__config_init(&again);
    FUZZ_CHECK(onuma__config_parse(&again, text, "again") == ONUMA_OK, "\"%s\": %s", text, onuma_last_error());
    FUZZ_CHECK(memcmp(config, &again, sizeof again) == 0, "\"%s\" gives another configuration", text);
    fuzz_reached_the_end();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    FUZZ_CHECK(text != NULL, "no memory for the input");
    memcpy(text, data, size);
    text[size] = '\0';
    onuma__config before, config;
    onuma__config_init(&before);
    config = before;
    if (onuma__config_parse(&config, text, "OPENNUMA_CONF") != ONUMA_OK)
        check_refusal(&before, &config);
    else
        check_written_out(&config);
    free(text);
    return 0;
}
