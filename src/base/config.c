/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration's table, parser and texts, all made from ONUMA__CONFIG_KEYS.
 *
 * The text comes from the environment and may be anything, so it is walked once,
 * by spans (begin and length) that never leave it; nothing is allocated.
 */
#include "base/config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BOOL "bool"
#define SIZE "size"
#define TIME "time"
#define CHOICE(words) words

static const onuma_config_key keys[ONUMA__CONFIG_KEY_COUNT] = {
#define ONUMA__X(field, name, type, fallback, help) {name, type, fallback, help},
    ONUMA__CONFIG_KEYS(ONUMA__X)
#undef ONUMA__X
};

static uint64_t *value_of(onuma__config *config, size_t key) {
    switch (key) {
#define ONUMA__X(field, name, type, fallback, help)                                                                    \
    case ONUMA__CONFIG_KEY_##field:                                                                                    \
        return &config->field;
        ONUMA__CONFIG_KEYS(ONUMA__X)
#undef ONUMA__X
    default:
        return NULL;
    }
}

const onuma_config_key *onuma_config_key_at(size_t i) {
    return i < ONUMA__CONFIG_KEY_COUNT ? &keys[i] : NULL;
}

/* ------------------------------------------------------------------- spans */

typedef struct span {
    const char *begin;
    size_t length;
} span;

static bool equals(span s, const char *word) {
    return s.length == strlen(word) && memcmp(s.begin, word, s.length) == 0;
}

static span trimmed(span s) {
    while (s.length && (*s.begin == ' ' || *s.begin == '\t'))
        s.begin++, s.length--;
    while (s.length && (s.begin[s.length - 1] == ' ' || s.begin[s.length - 1] == '\t'))
        s.length--;
    return s;
}

/* Cut off and return what comes before the first `separator`; *found tells whether there was one. */
static span cut(span *rest, char separator, bool *found) {
    const char *at = rest->length ? memchr(rest->begin, separator, rest->length) : NULL;
    span head = {rest->begin, at ? (size_t)(at - rest->begin) : rest->length};
    size_t used = head.length + (at ? 1 : 0);
    rest->begin += used;
    rest->length -= used;
    *found = at != NULL;
    return head;
}

/* ------------------------------------------------------------------ values */

typedef struct unit {
    const char *suffix;
    uint64_t factor;
} unit;

static const unit size_units[] = {{"", 1}, {"k", 1u << 10}, {"m", 1u << 20}, {"g", 1u << 30}};
static const unit time_units[] = {{"", 1}, {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* A whole number with one of the units, at most `most`. */
static bool read_number(span s, const unit *units, size_t unit_count, uint64_t most, uint64_t *value) {
    uint64_t number = 0;
    size_t digits = 0;
    for (; digits < s.length && s.begin[digits] >= '0' && s.begin[digits] <= '9'; digits++) {
        uint64_t digit = (uint64_t)(s.begin[digits] - '0');
        if (number > (most - digit) / 10) return false;
        number = number * 10 + digit;
    }
    if (digits == 0) return false;
    span suffix = {s.begin + digits, s.length - digits};
    for (size_t i = 0; i < unit_count; i++) {
        if (!equals(suffix, units[i].suffix)) continue;
        if (number > most / units[i].factor) return false;
        *value = number * units[i].factor;
        return true;
    }
    return false;
}

static bool read_word(span s, const char *words, uint64_t *value) {
    span rest = {words, strlen(words)};
    bool more = true;
    for (uint64_t i = 0; more; i++) {
        span word = cut(&rest, '|', &more);
        if (word.length != s.length || memcmp(word.begin, s.begin, s.length) != 0) continue;
        *value = i;
        return true;
    }
    return false;
}

bool onuma__config_value(const char *type, const char *text, size_t length, uint64_t *value) {
    span s = {text, length};
    if (length == 0) return false;
    if (strcmp(type, SIZE) == 0) return read_number(s, size_units, COUNT(size_units), SIZE_MAX, value);
    if (strcmp(type, TIME) == 0) return read_number(s, time_units, COUNT(time_units), UINT64_MAX, value);
    if (strcmp(type, BOOL) == 0) return read_word(s, "off|on", value);
    return read_word(s, type, value);
}

/* What values of a type look like, for the message about one that does not. */
static const char *allowed(const char *type) {
    if (strcmp(type, SIZE) == 0)
        return "a number of bytes that fits in memory's addresses, perhaps with k, m or g (64m)";
    if (strcmp(type, TIME) == 0) return "a number of nanoseconds, perhaps with us, ms or s (50ms)";
    if (strcmp(type, BOOL) == 0) return "on or off";
    return type;
}

static void write_text(onuma__config *config, size_t key) {
    char *text = config->text[key];
    memset(text, 0, ONUMA__CONFIG_TEXT_BYTES); /* so that equal configs are equal bytes */
    uint64_t value = *value_of(config, key);
    const char *words = strcmp(keys[key].type, BOOL) == 0 ? "off|on" : keys[key].type;
    if (strcmp(words, SIZE) == 0 || strcmp(words, TIME) == 0) {
        snprintf(text, ONUMA__CONFIG_TEXT_BYTES, "%" PRIu64, value);
        return;
    }
    span rest = {words, strlen(words)};
    span word = {words, 0};
    bool more = true;
    for (uint64_t i = 0; i <= value && more; i++)
        word = cut(&rest, '|', &more);
    snprintf(text, ONUMA__CONFIG_TEXT_BYTES, "%.*s", (int)word.length, word.begin);
}

/* ----------------------------------------------------------------- parsing */

/* A span as it may stand in a message: short and printable. */
typedef struct quoted {
    char text[44];
} quoted;

static quoted quote(span s) {
    quoted q;
    const size_t most = sizeof q.text - sizeof "...";
    size_t n = s.length < most ? s.length : most;
    for (size_t i = 0; i < n; i++)
        q.text[i] = s.begin[i] >= ' ' && s.begin[i] < 0x7f ? s.begin[i] : '?';
    strcpy(q.text + n, n < s.length ? "..." : "");
    return q;
}

static onuma_result unknown_key(span name, const char *origin) {
    char list[ONUMA__DETAIL_BYTES];
    size_t used = 0;
    for (size_t i = 0; i < ONUMA__CONFIG_KEY_COUNT && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", keys[i].name);
    return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "%s: there is no key \"%s\"; the keys are %s", origin,
                       quote(name).text, list);
}

static onuma_result apply(onuma__config *config, span item, const char *origin) {
    bool has_value;
    span value = item;
    span name = trimmed(cut(&value, ':', &has_value));
    value = trimmed(value);
    size_t key = 0;
    while (key < ONUMA__CONFIG_KEY_COUNT && !equals(name, keys[key].name))
        key++;
    if (key == ONUMA__CONFIG_KEY_COUNT) return unknown_key(name, origin);
    if (!has_value)
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "%s: key \"%s\" has no value; write %s:%s (it may be %s)",
                           origin, keys[key].name, keys[key].name, keys[key].fallback, allowed(keys[key].type));
    if (!onuma__config_value(keys[key].type, value.begin, value.length, value_of(config, key)))
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "%s: key \"%s\" has the value \"%s\"; it may be %s", origin,
                           keys[key].name, quote(value).text, allowed(keys[key].type));
    write_text(config, key);
    return ONUMA_OK;
}

onuma_result onuma__config_parse(onuma__config *config, const char *text, const char *origin) {
    if (!text) return ONUMA_OK;
    onuma__config changed = *config;
    span rest = {text, strlen(text)};
    bool more = true;
    while (more) {
        span item = trimmed(cut(&rest, ',', &more));
        if (item.length == 0) continue;
        onuma_result r = apply(&changed, item, origin);
        if (r != ONUMA_OK) return r;
    }
    *config = changed;
    return ONUMA_OK;
}

void onuma__config_init(onuma__config *config) {
    memset(config, 0, sizeof *config);
    for (size_t key = 0; key < ONUMA__CONFIG_KEY_COUNT; key++) {
        /* A unit test holds that every fallback is a value of its key. */
        onuma__config_value(keys[key].type, keys[key].fallback, strlen(keys[key].fallback), value_of(config, key));
        write_text(config, key);
    }
}

const char *onuma__config_text(const onuma__config *config, const char *key) {
    for (size_t i = 0; i < ONUMA__CONFIG_KEY_COUNT; i++)
        if (strcmp(keys[i].name, key) == 0) return config->text[i];
    return NULL;
}
