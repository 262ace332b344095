/* SPDX-License-Identifier: Apache-2.0 */
/* What every unit test includes, in the order cmocka demands. */
#ifndef ONUMA_TESTS_UNIT_SUPPORT_H
#define ONUMA_TESTS_UNIT_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
