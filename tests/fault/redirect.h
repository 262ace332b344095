/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Put in front of every file of src/ when it is compiled for these tests: calls of the system and of the allocator go
 * to os.c, which counts them, may let them fail, and then calls the real ones. The files themselves are the
 * shipped ones. Plain names, not wrappers of the linker, so that it works with any of them.
 *
 * ONUMA_FAULT_OS: the file is not of src/os, so that its calls of src/os are redirected too.
 * ONUMA_FAULT_KEPT: what it maps is never given back by design (page map, descriptors, directory).
 */
#ifndef ONUMA_TESTS_FAULT_REDIRECT_H
#define ONUMA_TESTS_FAULT_REDIRECT_H

#define malloc fault_malloc
#define calloc fault_calloc
#define realloc fault_realloc
#define free fault_free

#if defined(ONUMA_FAULT_OS)
#if defined(ONUMA_FAULT_KEPT)
#define onuma__os_map fault_os_map_kept
#define onuma__os_release fault_os_release_kept
#else
#define onuma__os_map fault_os_map
#define onuma__os_release fault_os_release
#endif
#define onuma__os_map_large fault_os_map_large
#define onuma__os_reserve fault_os_reserve
#define onuma__os_commit fault_os_commit
#define onuma__os_decommit fault_os_decommit
#define onuma__os_protect fault_os_protect
#define onuma__os_library_open fault_os_library_open
#define onuma__os_library_of_process fault_os_library_of_process
#define onuma__os_library_symbol fault_os_library_symbol
#define onuma__os_thread_first fault_os_thread_first
#define onuma__os_barrier_all fault_os_barrier_all
#define onuma__os_memory fault_os_memory
#define onuma__os_can_read fault_os_can_read
#define onuma__os_cache_read fault_os_cache_read
#define onuma__os_cache_write fault_os_cache_write
#define onuma__os_sleep fault_os_sleep
#define onuma__os_now fault_os_now
#define onuma__os_lock_acquire fault_os_lock_acquire
#define onuma__os_lock_try fault_os_lock_try
#define onuma__os_lock_release fault_os_lock_release
#endif

#endif
