/* SPDX-License-Identifier: Apache-2.0 */
/* A library that an .icd file may name and that does one bad thing, chosen when it is compiled. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define AT_LOAD __attribute__((constructor))

/* Something that has an effect in each turn, so that the compiler keeps the loop. */
static volatile int turns;
__attribute__((unused)) static void loop_for_ever(void) {
    for (;;)
        turns = !turns;
}

#if defined(ABORTS_AT_LOAD)
AT_LOAD static void at_load(void) {
    fputs("first words\nthe device's firmware is of another version\n", stderr);
    abort();
}
#elif defined(EXITS_AT_LOAD)
AT_LOAD static void at_load(void) {
    puts("this must not get into anybody's results");
    fflush(stdout);
    exit(0);
}
#elif defined(HANGS_AT_LOAD)
AT_LOAD static void at_load(void) {
    loop_for_ever();
}
#elif defined(NEEDS_WHAT_IS_ABSENT)
int absent_function(void);
EXPORT int need_it(void);
EXPORT int need_it(void) {
    return absent_function();
}
#endif

#if defined(HANGS_WHEN_ASKED) || defined(CRASHES_WHEN_ASKED)
EXPORT int clIcdGetPlatformIDsKHR(unsigned room, void **platforms, unsigned *count);
EXPORT int clIcdGetPlatformIDsKHR(unsigned room, void **platforms, unsigned *count) {
    (void)room;
    (void)platforms;
    (void)count;
#if defined(HANGS_WHEN_ASKED)
    loop_for_ever();
#else
    raise(SIGSEGV);
#endif
    return 0;
}

EXPORT void *clGetExtensionFunctionAddress(const char *name);
EXPORT void *clGetExtensionFunctionAddress(const char *name) {
    void *found = NULL;
    int (*asked)(unsigned, void **, unsigned *) = clIcdGetPlatformIDsKHR;
    if (strcmp(name, "clIcdGetPlatformIDsKHR") == 0) memcpy(&found, &asked, sizeof found);
    return found;
}
#endif

#if defined(IS_ABSENT_LATER)
EXPORT int absent_function(void);
EXPORT int absent_function(void) {
    return 0;
}
#endif
