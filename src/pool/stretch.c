/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/stretch.h"

#include "pool/index.h"

static bool serves(const onuma__node *node, onuma__tag tag) {
    return onuma__node_is_free_of(node, tag) || onuma__node_is_free_of(node, 0);
}

onuma__node *onuma__stretch_of(onuma__node *node, uintptr_t *base, size_t *size) {
    onuma__node *first = node, *last = node;
    if (node->tag != 0) {
        while (serves(first->before, node->tag))
            first = first->before;
        while (serves(last->after, node->tag))
            last = last->after;
    }
    *base = first->base;
    *size = last->base + last->size - first->base;
    /* Of two neighbours at most one is of tag 0. */
    return first->tag == node->tag ? first : first->after;
}

static onuma__index *index_of(onuma__engine *engine, const onuma__node *node) {
    return onuma__tag_get(engine, node->tag, false)->indexes[node->segment->sort];
}

static void forget(onuma__engine *engine, onuma__node *node) {
    uintptr_t base;
    size_t size;
    onuma__node *head = onuma__stretch_of(node, &base, &size);
    if (!head->indexed) return;
    onuma__index_remove(index_of(engine, head), head);
    head->indexed = false;
}

static void note(onuma__engine *engine, onuma__node *node) {
    uintptr_t base;
    size_t size;
    onuma__node *head = onuma__stretch_of(node, &base, &size);
    if (head->indexed) return;
    head->stretch_base = base;
    head->stretch_size = size;
    head->indexed = true;
    onuma__index_insert(index_of(engine, head), head);
}

typedef void visitor(onuma__engine *engine, onuma__node *node);

/* A node beside the one that changes; what lies beyond it matters only if it is of tag 0, part of two stretches. */
static void visit_side(onuma__engine *engine, onuma__node *near, onuma__node *far, visitor *fn) {
    if (near->tag != 0)
        fn(engine, near);
    else if (onuma__node_is_free(far))
        fn(engine, far);
}

static void visit_near(onuma__engine *engine, onuma__node *node, visitor *fn) {
    if (onuma__node_is_free(node)) fn(engine, node);
    if (onuma__node_is_free(node->before)) visit_side(engine, node->before, node->before->before, fn);
    if (onuma__node_is_free(node->after)) visit_side(engine, node->after, node->after->after, fn);
}

void onuma__stretch_forget_near(onuma__engine *engine, onuma__node *node) {
    visit_near(engine, node, forget);
}

void onuma__stretch_note_near(onuma__engine *engine, onuma__node *node) {
    visit_near(engine, node, note);
}
