/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/directory.h"

#include <string.h>

typedef struct entry {
    uintptr_t base, last;    /* addresses of the first and the last byte */
    onuma__segment *segment; /* NULL: an import */
    onuma__import import;
} entry;

/* Never unmapped while it has entries; the array moves when it grows. */
static struct {
    onuma__os_lock lock; /* guards all of this */
    entry *entries;      /* by address; they do not overlap */
    size_t count, capacity, mapped;
} directory;

void onuma__directory_lock(void) {
    onuma__os_lock_acquire(&directory.lock);
}

void onuma__directory_unlock(void) {
    onuma__os_lock_release(&directory.lock);
}

/* Under the lock: how many entries start at or before the address. */
static size_t rank(uintptr_t address) {
    size_t low = 0, high = directory.count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (directory.entries[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Under the lock: the entry that holds the address, or NULL. */
static entry *holder(uintptr_t address) {
    const size_t r = rank(address);
    if (r == 0) return NULL;
    entry *found = &directory.entries[r - 1];
    return address <= found->last ? found : NULL;
}

static bool make_room(void) {
    if (directory.count < directory.capacity) return true;
    const size_t page = onuma__os_abilities_get()->page_size;
    size_t bytes = directory.mapped != 0 ? directory.mapped * 2 : 64 * 1024;
    if (bytes < page) bytes = page;
    entry *entries = onuma__os_map(bytes, 0);
    if (entries == NULL) return false;
    if (directory.entries != NULL) {
        memcpy(entries, directory.entries, directory.count * sizeof *entries);
        onuma__os_release(directory.entries, directory.mapped);
    }
    directory.entries = entries;
    directory.mapped = bytes;
    directory.capacity = bytes / sizeof *entries;
    return true;
}

/* Under the lock: an entry that overlaps [base, last], which belong at `at`; or NULL. */
static const entry *overlapping(size_t at, uintptr_t base, uintptr_t last) {
    if (at > 0 && directory.entries[at - 1].last >= base) return &directory.entries[at - 1];
    if (at < directory.count && directory.entries[at].base <= last) return &directory.entries[at];
    return NULL;
}

/* Under the lock. The text of a failure is the caller's; a CONFLICT is with *other, copied out. */
static onuma_result insert(const entry *added, entry *other) {
    const size_t at = rank(added->base);
    const entry *clash = overlapping(at, added->base, added->last);
    if (clash != NULL) {
        *other = *clash;
        return ONUMA_ERROR_CONFLICT;
    }
    if (!make_room()) return ONUMA_ERROR_OUT_OF_MEMORY;
    memmove(&directory.entries[at + 1], &directory.entries[at], (directory.count - at) * sizeof *added);
    directory.entries[at] = *added;
    directory.count++;
    return ONUMA_OK;
}

static void erase(entry *gone) {
    const size_t at = (size_t)(gone - directory.entries);
    directory.count--;
    memmove(gone, gone + 1, (directory.count - at) * sizeof *gone);
}

onuma_result onuma__directory_add(onuma__segment *segment) {
    const uintptr_t base = (uintptr_t)segment->span.base;
    const entry added = {.base = base, .last = base + (segment->span.size - 1), .segment = segment};
    entry other;
    onuma__os_lock_acquire(&directory.lock);
    const onuma_result r = insert(&added, &other);
    onuma__os_lock_release(&directory.lock);
    if (r == ONUMA_ERROR_CONFLICT)
        return onuma__fail(ONUMA_ERROR_INTERNAL,
                           "the source gave %zu bytes at %p, which overlap memory that is in use; this is a defect of "
                           "the driver, or memory was imported that is no longer the program's",
                           segment->span.size, segment->span.base);
    return r;
}

void onuma__directory_remove(onuma__segment *segment) {
    onuma__os_lock_acquire(&directory.lock);
    entry *found = holder((uintptr_t)segment->span.base);
    if (found != NULL && found->segment == segment) erase(found);
    onuma__os_lock_release(&directory.lock);
}

onuma__place onuma__directory_find(uintptr_t address) {
    onuma__place place = {0};
    onuma__os_lock_acquire(&directory.lock);
    const entry *found = holder(address);
    if (found != NULL) {
        place.segment = found->segment;
        place.is_import = found->segment == NULL;
        place.import = found->import;
    }
    onuma__os_lock_release(&directory.lock);
    return place;
}

static onuma_result refuse_import(const void *base, size_t size, const entry *other) {
    return onuma__fail(ONUMA_ERROR_CONFLICT, "import of %zu bytes at %p: overlaps %s, %p to %p; %s", size, base,
                       other->segment != NULL ? "memory that a pool holds"
                       : other->import.held   ? "an import that is freed and still in use by a queue"
                                              : "another import",
                       (void *)other->base, (void *)other->last, // NOLINT: addresses
                       other->segment != NULL ? "its blocks need no import, and what is free of it is the pool's"
                                              : "free that first, or map the memory a second time");
}

onuma_result onuma__import_check(const void *base, size_t size) {
    const uintptr_t address = (uintptr_t)base;
    onuma__os_lock_acquire(&directory.lock);
    const entry *clash = overlapping(rank(address), address, address + (size - 1));
    const entry other = clash != NULL ? *clash : (entry){0};
    onuma__os_lock_release(&directory.lock);
    return clash != NULL ? refuse_import(base, size, &other) : ONUMA_OK;
}

onuma_result onuma__import_add(void *base, size_t size, const onuma__span *span, void *owner) {
    const uintptr_t address = (uintptr_t)base;
    if (base == NULL || size == 0 || size - 1 > UINTPTR_MAX - address)
        return onuma__fail(ONUMA_ERROR_INVALID_ARGUMENT, "import of %zu bytes at %p: no such memory", size, base);
    const entry added = {.base = address,
                         .last = address + (size - 1),
                         .import = {.base = address, .size = size, .span = span, .owner = owner}};
    entry other;
    onuma__os_lock_acquire(&directory.lock);
    const onuma_result r = insert(&added, &other);
    onuma__os_lock_release(&directory.lock);
    return r == ONUMA_ERROR_CONFLICT ? refuse_import(base, size, &other) : r;
}

void onuma__import_remove(void *base) {
    onuma__os_lock_acquire(&directory.lock);
    entry *found = holder((uintptr_t)base);
    if (found != NULL && found->segment == NULL && found->base == (uintptr_t)base) erase(found);
    onuma__os_lock_release(&directory.lock);
}

onuma_result onuma__import_hold(uintptr_t base) {
    onuma_result r = ONUMA_ERROR_INVALID_POINTER;
    onuma__os_lock_acquire(&directory.lock);
    entry *found = holder(base);
    if (found != NULL && found->segment == NULL && found->base == base) {
        r = found->import.held ? ONUMA_ERROR_DOUBLE_FREE : ONUMA__HELD;
        found->import.held = true;
    }
    onuma__os_lock_release(&directory.lock);
    return r;
}
