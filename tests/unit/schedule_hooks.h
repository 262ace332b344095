/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included before everything else in the engine's sources, as tests/unit/test_pool_schedules.c compiles them: every
 * atomic operation becomes a step of the scheduler in schedule.c, and the system's locks, yields and thread states are
 * the scheduler's. The sources themselves know nothing of it.
 *
 * All threads are fibers of one, so barriers have nothing to do: what is explored are the sequentially consistent orders.
 */
#ifndef ONUMA_TESTS_SCHEDULE_HOOKS_H
#define ONUMA_TESTS_SCHEDULE_HOOKS_H

#include <stdatomic.h>

#include "os/os.h"
#include "schedule.h"

#define onuma__os_lock_acquire(lock) schedule_lock(lock)
#define onuma__os_lock_release(lock) schedule_unlock(lock)
#define onuma__os_yield() schedule_yield()
#define onuma__os_thread_get() schedule_thread()
#define onuma__os_on_thread_exit(fn) schedule_on_thread_exit(fn)
#define onuma__os_light_barrier() ((void)0)
#define onuma__os_barrier_all() schedule_barrier()

/* A place in the sources: what is decided about it holds in every run, whatever the addresses. */
#define STEP(p, writes) schedule_step(__FILE__ " " #p, __LINE__, (const volatile void *)(p), writes)

#if defined(__clang__)
#define LOAD(p) __c11_atomic_load((p), memory_order_seq_cst)
#define STORE(p, v) __c11_atomic_store((p), (v), memory_order_seq_cst)
#define EXCHANGE(p, v) __c11_atomic_exchange((p), (v), memory_order_seq_cst)
#define COMPARE_EXCHANGE(p, e, v)                                                                                      \
    __c11_atomic_compare_exchange_strong((p), (e), (v), memory_order_seq_cst, memory_order_seq_cst)
#define FETCH(name, p, v) __c11_atomic_fetch_##name((p), (v), memory_order_seq_cst)
#else
#define LOAD(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define STORE(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
#define EXCHANGE(p, v) __atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST)
#define COMPARE_EXCHANGE(p, e, v) __atomic_compare_exchange_n((p), (e), (v), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)
#define FETCH(name, p, v) __atomic_fetch_##name((p), (v), __ATOMIC_SEQ_CST)
#endif

/* The faults of schedule.h: an exchange that compares in one step and stores in another; a load that reads 0. */
#define LOAD_STEP(p) (STEP(p, false), schedule_is_blind(#p) ? 0 : LOAD(p))
#define COMPARE_EXCHANGE_STEP(p, e, v)                                                                                 \
    (STEP(p, true), !schedule_tears(#p) ? COMPARE_EXCHANGE(p, e, v)                                                    \
                    : LOAD(p) != *(e)   ? (*(e) = LOAD(p), false)                                                      \
                                        : (STEP(p, true), STORE(p, v), true))

#undef atomic_load
#undef atomic_load_explicit
#undef atomic_store
#undef atomic_store_explicit
#undef atomic_exchange
#undef atomic_exchange_explicit
#undef atomic_compare_exchange_strong
#undef atomic_compare_exchange_strong_explicit
#undef atomic_compare_exchange_weak
#undef atomic_compare_exchange_weak_explicit
#undef atomic_fetch_add
#undef atomic_fetch_add_explicit
#undef atomic_fetch_sub
#undef atomic_fetch_sub_explicit
#undef atomic_fetch_or
#undef atomic_fetch_or_explicit
#undef atomic_fetch_and
#undef atomic_fetch_and_explicit
#define atomic_load(p) LOAD_STEP(p)
#define atomic_load_explicit(p, order) LOAD_STEP(p)
#define atomic_store(p, v) (STEP(p, true), STORE(p, v))
#define atomic_store_explicit(p, v, order) (STEP(p, true), STORE(p, v))
#define atomic_exchange(p, v) (STEP(p, true), EXCHANGE(p, v))
#define atomic_exchange_explicit(p, v, order) (STEP(p, true), EXCHANGE(p, v))
#define atomic_compare_exchange_strong(p, e, v) COMPARE_EXCHANGE_STEP(p, e, v)
#define atomic_compare_exchange_strong_explicit(p, e, v, success, failure) COMPARE_EXCHANGE_STEP(p, e, v)
#define atomic_compare_exchange_weak(p, e, v) COMPARE_EXCHANGE_STEP(p, e, v)
#define atomic_compare_exchange_weak_explicit(p, e, v, success, failure) COMPARE_EXCHANGE_STEP(p, e, v)
#define atomic_fetch_add(p, v) (STEP(p, true), FETCH(add, p, v))
#define atomic_fetch_add_explicit(p, v, order) (STEP(p, true), FETCH(add, p, v))
#define atomic_fetch_sub(p, v) (STEP(p, true), FETCH(sub, p, v))
#define atomic_fetch_sub_explicit(p, v, order) (STEP(p, true), FETCH(sub, p, v))
#define atomic_fetch_or(p, v) (STEP(p, true), FETCH(or, p, v))
#define atomic_fetch_or_explicit(p, v, order) (STEP(p, true), FETCH(or, p, v))
#define atomic_fetch_and(p, v) (STEP(p, true), FETCH(and, p, v))
#define atomic_fetch_and_explicit(p, v, order) (STEP(p, true), FETCH(and, p, v))

#endif
