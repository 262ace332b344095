/* SPDX-License-Identifier: Apache-2.0 */
/* Results and the thread's error detail: the one path along which errors flow. */
#ifndef ONUMA_BASE_RESULT_H
#define ONUMA_BASE_RESULT_H

#include "opennuma/opennuma.h"

#if defined(__GNUC__)
/* MinGW's gcc takes __printf__ for Microsoft's formats, which know no %zu; ours come from C17. */
#if defined(__MINGW32__) && !defined(__clang__)
#define ONUMA__PRINTF(text, first) __attribute__((__format__(__gnu_printf__, text, first)))
#else
#define ONUMA__PRINTF(text, first) __attribute__((__format__(__printf__, text, first)))
#endif
#define ONUMA__COLD __attribute__((cold, noinline))
#define ONUMA__INLINE __attribute__((always_inline)) inline /* where a call would cost more than it does */
#define ONUMA__APART __attribute__((noinline))              /* so that what is left needs no stack */
#define ONUMA__LIKELY(x) __builtin_expect(!!(x), 1)
#define ONUMA__UNLIKELY(x) __builtin_expect(!!(x), 0)
#else
#define ONUMA__PRINTF(text, first)
#define ONUMA__COLD
#define ONUMA__INLINE inline
#define ONUMA__APART
#define ONUMA__LIKELY(x) (x)
#define ONUMA__UNLIKELY(x) (x)
#endif

/* Beside a variable that hot code reads: it lies in this library, so it is reached without a table. */
#if defined(__GNUC__) && !defined(_WIN32)
#define ONUMA__HIDDEN __attribute__((visibility("hidden")))
#else
#define ONUMA__HIDDEN
#endif

#define ONUMA__DETAIL_BYTES 512

/*
 * Record why a call fails and return `r`, so that failing reads
 *     return onuma__fail(ONUMA_ERROR_LIMIT, "pool \"%s\": %zu bytes ...; raise ...", ...);
 * The text names the value that was wrong and the remedy; it is cut at
 * ONUMA__DETAIL_BYTES. A caller further out that knows more replaces it.
 */
onuma_result onuma__fail(onuma_result r, const char *format, ...) ONUMA__PRINTF(2, 3) ONUMA__COLD;

/* Analysers cannot look into it; told that the result is `r`, they see that callers stop there. */
#if defined(__clang_analyzer__)
#define onuma__fail(r, ...) ((onuma__fail)((r), __VA_ARGS__), (r))
#endif

/*
 * The thread's text buffer of ONUMA__DETAIL_BYTES. Base sits below the system
 * layer and so cannot make thread-local storage itself: this is the one thing
 * it asks of that layer (src/os implements it). NULL when memory is out: the
 * detail is then lost, the result code never.
 */
char *onuma__thread_text(void);

#endif
