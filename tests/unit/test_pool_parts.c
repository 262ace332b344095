/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's structures one by one: page map, bitmaps, size classes, the choice among free nodes, the directory. */
#include "pool/directory.h"
#include "pool/index.h"
#include "pool/node.h"
#include "pool_support.h"

#include <string.h>

static uint64_t seed = 0x9e3779b97f4a7c15;

static uint64_t draw(uint64_t below) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % below;
}

/* ---------------------------------------------------------------- page map */

static void test_pagemap_corners(void **state) {
    (void)state;
    static const uint64_t corners[] = {0,
                                       ONUMA__UNIT,
                                       0x1ffff000,
                                       0x20000000,
                                       0x00003ffffffff000,
                                       0x0000400000000000,
                                       0x00007ffffffff000,
                                       0x0000800000000000,
                                       0x8000000000000000,
                                       0xff007fffffde0000,
                                       0xfffffffffffff000};
    const size_t count = sizeof corners / sizeof corners[0];
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(onuma__pagemap_get(corners[i]), 0);
        assert_int_equal(onuma__pagemap_prepare(corners[i], 1), ONUMA_OK);
        assert_int_equal(onuma__pagemap_get(corners[i]), 0);
        onuma__pagemap_set(corners[i], (onuma__entry)(i * 64 + 1));
    }
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(onuma__pagemap_get(corners[i]), i * 64 + 1);
        assert_int_equal(onuma__pagemap_get(corners[i] + ONUMA__UNIT - 1), i * 64 + 1);
    }
    /* neighbours are untouched, also across the end of the address space */
    assert_int_equal(onuma__pagemap_get(0x2000), 0);
    assert_int_equal(onuma__pagemap_get(0xffffffffffffe000), 0);
    for (size_t i = 0; i < count; i++)
        onuma__pagemap_set(corners[i], 0);
}

static void test_pagemap_runs(void **state) {
    (void)state;
    /* over the seams between leaves and between middles */
    const uint64_t seams[] = {0x0000111120000000, 0x0000400000000000 * 5};
    for (size_t i = 0; i < 2; i++) {
        const uint64_t base = seams[i] - 5 * ONUMA__UNIT;
        assert_int_equal(onuma__pagemap_prepare(base, 10 * ONUMA__UNIT), ONUMA_OK);
        onuma__pagemap_fill(base, 10 * ONUMA__UNIT, 65);
        for (size_t page = 0; page < 10; page++)
            assert_int_equal(onuma__pagemap_get(base + page * ONUMA__UNIT + 100), 65);
        assert_int_equal(onuma__pagemap_get(base - 1), 0);
        assert_int_equal(onuma__pagemap_get(base + 10 * ONUMA__UNIT), 0);
        onuma__pagemap_fill(base, 10 * ONUMA__UNIT, 0);
        assert_int_equal(onuma__pagemap_get(base + ONUMA__UNIT), 0);
    }
}

/* ----------------------------------------------------------------- bitmaps */

static void test_bitmap_previous(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 63, 64, 65, 4095, 4097, 300000};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        const size_t bits = sizes[s];
        onuma__bitmap map;
        assert_int_equal(onuma__bitmap_init(&map, bits), ONUMA_OK);
        unsigned char *naive = calloc(bits, 1);
        for (int round = 0; round < 2000; round++) {
            const size_t bit = draw(bits);
            naive[bit] = !naive[bit];
            if (naive[bit])
                onuma__bitmap_set(&map, bit);
            else
                onuma__bitmap_clear(&map, bit);
            if (round > 200 && round < 400) { /* nearly empty for a while */
                onuma__bitmap_clear(&map, bit);
                naive[bit] = 0;
            }
            const size_t from = draw(bits);
            assert_int_equal(onuma__bitmap_test(&map, from), naive[from]);
            size_t expected = from;
            while (expected != SIZE_MAX && !naive[expected])
                expected--;
            assert_int_equal(onuma__bitmap_previous(&map, from), expected);
        }
        free(naive);
        onuma__bitmap_finish(&map);
    }
}

static void test_bits(void **state) {
    (void)state;
    enum { BITS = 300 };
    uint64_t words[BITS / 64 + 1] = {0};
    bool naive[BITS] = {false};
    for (int round = 0; round < 3000; round++) {
        size_t from = draw(BITS + 1), to = draw(BITS + 1);
        if (from > to) {
            const size_t swap = from;
            from = to;
            to = swap;
        }
        const bool value = draw(2) != 0;
        if (round % 3 == 0) {
            onuma__bits_assign(words, from, to, value);
            for (size_t i = from; i < to; i++)
                naive[i] = value;
        }
        size_t count = 0, first = to;
        for (size_t i = to; i-- > from;) {
            count += naive[i];
            if (naive[i] == value) first = i;
        }
        assert_int_equal(onuma__bits_count(words, from, to), count);
        assert_int_equal(onuma__bits_find(words, from, to, value), first);
    }
}

/* ----------------------------------------------------------------- classes */

static void test_classes(void **state) {
    (void)state;
    for (size_t alignment = 16; alignment <= 4096; alignment *= 2) {
        onuma__classes classes;
        onuma__classes_init(&classes, alignment);
        assert_true(classes.count > 0 && classes.count <= ONUMA__CLASSES_MAX);
        assert_int_equal(onuma__class_size(&classes, 0), alignment);
        assert_int_equal(onuma__class_size(&classes, classes.count - 1), ONUMA__SMALL_MAX);
        for (unsigned c = 0; c < classes.count; c++) {
            const size_t size = onuma__class_size(&classes, c), slab = classes.slab_bytes[c];
            assert_int_equal(size % alignment, 0);
            if (c > 0) assert_true(size > onuma__class_size(&classes, c - 1));
            assert_int_equal(slab % ONUMA__UNIT, 0);
            assert_true(slab <= ONUMA__SLAB_BYTES_MAX && slab >= 5 * size);
            assert_true(slab / size <= ONUMA__SLAB_SLOTS_MAX);
            assert_true(slab % size * 25 <= slab); /* at most 4 % lost at the end */
        }
        for (size_t size = 1; size <= ONUMA__SMALL_MAX; size++) {
            const unsigned c = onuma__class_of(classes.shift, size);
            const size_t slot = onuma__class_size(&classes, c);
            assert_true(slot >= size);
            if (c > 0) assert_true(onuma__class_size(&classes, c - 1) < size);
            if (size > 8 * alignment)
                assert_true((slot - size) * 9 <= slot);
            else
                assert_true(slot - size < alignment);
        }
        for (size_t align = alignment; align <= 4096; align *= 2) {
            const unsigned c = onuma__class_aligned(&classes, 100, align);
            assert_true(c < classes.count);
            assert_int_equal(onuma__class_size(&classes, c) % align, 0);
        }
    }
    onuma__classes classes;
    onuma__classes_init(&classes, 8192);
    assert_int_equal(classes.count, 0);
}

/* ------------------------------------------------------- choice among nodes */

enum { NODES = 400 };

static onuma__node free_node(onuma__segment *segment, uintptr_t base, size_t size) {
    return (onuma__node){.segment = segment, .base = base, .size = size, .stretch_base = base, .stretch_size = size};
}

/* A free node that would fit best, by looking at all: the tightest, then the lowest. */
static const onuma__node *naive_best(const onuma__node *nodes, const bool *in, size_t size) {
    const onuma__node *best = NULL;
    for (size_t i = 0; i < NODES; i++) {
        if (!in[i] || nodes[i].size < size) continue;
        if (best == NULL || nodes[i].size < best->size || (nodes[i].size == best->size && nodes[i].base < best->base))
            best = &nodes[i];
    }
    return best;
}

static void test_index_against_best_fit(void **state) {
    (void)state;
    onuma__index *index = calloc(1, sizeof *index);
    onuma__node *nodes = calloc(NODES, sizeof *nodes);
    onuma__segment segment;
    memset(&segment, 0, sizeof segment);
    bool in[NODES] = {false};
    double asked = 0, given = 0, best_given = 0;
    for (size_t i = 0; i < NODES; i++) {
        nodes[i] = free_node(&segment, (i + 1) << 40, (1 + draw((uint64_t)1 << draw(20))) * ONUMA__UNIT);
    }
    for (int round = 0; round < 20000; round++) {
        onuma__node *node = &nodes[draw(NODES)];
        const size_t i = (size_t)(node - nodes);
        if (in[i])
            onuma__index_remove(index, node);
        else
            onuma__index_insert(index, node);
        in[i] = !in[i];
        const size_t size = (1 + draw((uint64_t)1 << draw(21))) * ONUMA__UNIT;
        onuma__fit fit = {.size = size, .align = ONUMA__UNIT, .committed = true};
        onuma__fit_search(&fit, index);
        const onuma__node *best = naive_best(nodes, in, size);
        assert_int_equal(fit.node != NULL, best != NULL);
        if (best == NULL) continue;
        assert_true(in[fit.node - nodes] && fit.node->size >= size);
        assert_int_equal(fit.base, fit.node->base);
        asked += (double)size;
        given += (double)fit.node->size;
        best_given += (double)best->size;
    }
    assert_true(asked > 0);
    /* Probing the own list first is all but best fit; the textbook's rounding up is not. */
    assert_true(given <= best_given * 1.02);
    free(nodes);
    free(index);
}

static void test_index_aligned(void **state) {
    (void)state;
    onuma__index *index = calloc(1, sizeof *index);
    onuma__node *nodes = calloc(201, sizeof *nodes);
    onuma__segment segment;
    memset(&segment, 0, sizeof segment);
    /* Many that are large enough but lie badly, and one that must be found above them. */
    for (size_t i = 0; i < 200; i++) {
        nodes[i] = free_node(&segment, ((uint64_t)(i + 1) << 30) + ONUMA__UNIT, 64 * ONUMA__UNIT);
        onuma__index_insert(index, &nodes[i]);
    }
    nodes[200] = free_node(&segment, ((uint64_t)1 << 45) + ONUMA__UNIT, (size_t)1 << 31);
    onuma__index_insert(index, &nodes[200]);
    onuma__fit fit = {.size = 64 * ONUMA__UNIT, .align = (size_t)1 << 30};
    onuma__fit_search(&fit, index);
    assert_ptr_equal(fit.node, &nodes[200]);
    assert_int_equal(fit.base, ((uint64_t)1 << 45) + ((uint64_t)1 << 30));
    free(nodes);
    free(index);
}

/* --------------------------------------------------------------- directory */

static void test_directory(void **state) {
    (void)state;
    enum { COUNT = 5000 };
    static bool in[COUNT];
    const uintptr_t origin = 0x0000123400000000;
    for (int round = 0; round < 30000; round++) {
        const size_t i = draw(COUNT);
        void *base = (void *)(origin + i * 4096 + 8);
        if (in[i])
            onuma__import_remove(base);
        else
            assert_int_equal(onuma__import_add(base, 4088, NULL, &in[i]), ONUMA_OK);
        in[i] = !in[i];
        const size_t j = draw(COUNT);
        const onuma__place place = onuma__directory_find(origin + j * 4096 + 8 + draw(4088));
        assert_int_equal(place.is_import, in[j]);
        if (in[j]) assert_ptr_equal(place.import.owner, &in[j]);
        assert_false(onuma__directory_find(origin + j * 4096 + draw(8)).is_import);
    }
    for (size_t i = 0; i < COUNT; i++)
        if (in[i]) onuma__import_remove((void *)(origin + i * 4096 + 8));
    assert_false(onuma__directory_find(origin + 8).is_import);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pagemap_corners), cmocka_unit_test(test_pagemap_runs),
        cmocka_unit_test(test_bitmap_previous), cmocka_unit_test(test_bits),
        cmocka_unit_test(test_classes),         cmocka_unit_test(test_index_against_best_fit),
        cmocka_unit_test(test_index_aligned),   cmocka_unit_test(test_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
