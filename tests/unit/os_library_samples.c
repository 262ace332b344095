/* SPDX-License-Identifier: Apache-2.0 */
/* The libraries that test_os_library.c opens, all from this file. */
#if defined(ONUMA_TEST_LACKING)
int onuma_test_dependency(void);
int onuma_test_lacking(void);
int onuma_test_lacking(void) {
    return onuma_test_dependency();
}
#elif defined(ONUMA_TEST_DEPENDENCY)
int onuma_test_dependency(void);
int onuma_test_dependency(void) {
    return 1;
}
#else
int onuma_test_answer(void);
int onuma_test_answer(void) {
    return 42;
}
#endif
