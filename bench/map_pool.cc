/* SPDX-License-Identifier: Apache-2.0 */
#include "map_pool.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <new>
#include <set>
#include <unordered_map>

namespace {

constexpr size_t granule = 512, mib = size_t{1} << 20;
constexpr size_t small_most = mib, small_segment = 2 * mib, large_segment = 20 * mib, own_least = 10 * mib;
constexpr uintptr_t highest = uintptr_t{1} << 46;

struct block {
    uintptr_t stream;
    size_t size;
    uintptr_t address;
    block *before, *after; /* neighbours in the segment */
    bool small, free;
};

struct by_fit {
    bool operator()(const block *a, const block *b) const {
        if (a->stream != b->stream) return a->stream < b->stream;
        if (a->size != b->size) return a->size < b->size;
        return a->address < b->address;
    }
};

size_t round_up(size_t size, size_t to) {
    return (size + to - 1) / to * to;
}

} // namespace

struct map_pool {
  private:
    std::mutex lock;
    std::set<block *, by_fit> free_small, free_large;
    std::unordered_map<uintptr_t, block *> live;
    uintptr_t next = highest;
    size_t blocks = 0;
    map_pool_figures figures{};

    std::set<block *, by_fit> &free_of(bool small) {
        return small ? free_small : free_large;
    }

    block *make(const block &as) {
        block *made = new block(as);
        blocks++;
        /* A block, and a node of a tree or of a hash table that holds it: three pointers and a colour, or two. */
        const uint64_t metadata = blocks * (sizeof(block) + 4 * sizeof(void *) + sizeof(block *));
        figures.metadata_peak = std::max(figures.metadata_peak, metadata);
        return made;
    }

    void drop(block *gone) {
        blocks--;
        delete gone;
    }

    block *grow(size_t size, uintptr_t stream, bool small) {
        size_t segment = small ? small_segment : large_segment;
        if (size >= own_least) segment = round_up(size, small_segment);
        next -= segment;
        figures.segments++;
        figures.reserved += segment;
        figures.reserved_peak = std::max(figures.reserved_peak, figures.reserved);
        return make({stream, segment, next, nullptr, nullptr, small, false});
    }

    block *find(size_t size, uintptr_t stream, bool small) {
        block key{stream, size, 0, nullptr, nullptr, small, false};
        auto &free_blocks = free_of(small);
        const auto found = free_blocks.lower_bound(&key);
        if (found == free_blocks.end() || (*found)->stream != stream) return nullptr;
        block *best = *found;
        free_blocks.erase(found);
        best->free = false;
        return best;
    }

    void split(block *of, size_t size) {
        const size_t rest = of->size - size;
        if (of->small ? rest < granule : rest <= mib) return;
        block *right = make({of->stream, rest, of->address + size, of, of->after, of->small, true});
        if (of->after) of->after->before = right;
        of->after = right;
        of->size = size;
        free_of(of->small).insert(right);
    }

    /* `right` becomes part of `left`, its neighbour. Neither is in a set. */
    void join(block *left, block *right) {
        left->size += right->size;
        left->after = right->after;
        if (left->after) left->after->before = left;
        drop(right);
    }

  public:
    uintptr_t allocate(size_t size, uintptr_t stream) {
        const std::lock_guard<std::mutex> guard(lock);
        size = std::max(granule, round_up(size, granule));
        const bool small = size <= small_most;
        block *taken = find(size, stream, small);
        if (!taken) taken = grow(size, stream, small);
        split(taken, size);
        live.emplace(taken->address, taken);
        return taken->address;
    }

    void release(uintptr_t address) {
        const std::lock_guard<std::mutex> guard(lock);
        const auto found = live.find(address);
        block *freed = found->second;
        live.erase(found);
        auto &free_blocks = free_of(freed->small);
        if (freed->before && freed->before->free) {
            block *left = freed->before;
            free_blocks.erase(left);
            join(left, freed);
            freed = left;
        }
        if (freed->after && freed->after->free) {
            free_blocks.erase(freed->after);
            join(freed, freed->after);
        }
        freed->free = true;
        free_blocks.insert(freed);
    }

    map_pool_figures read() {
        const std::lock_guard<std::mutex> guard(lock);
        return figures;
    }

    map_pool() = default;
    map_pool(const map_pool &) = delete;
    map_pool &operator=(const map_pool &) = delete;

    ~map_pool() {
        for (const auto &entry : live)
            delete entry.second;
        for (block *each : free_small)
            delete each;
        for (block *each : free_large)
            delete each;
    }
};

namespace {

map_pool *create() {
    return new (std::nothrow) map_pool;
}

void destroy(map_pool *pool) {
    delete pool;
}

void *allocate(map_pool *pool, size_t size, uintptr_t stream) {
    try {
        return reinterpret_cast<void *>(pool->allocate(size, stream));
    } catch (const std::bad_alloc &) {
        return nullptr;
    }
}

void release(map_pool *pool, void *block) {
    pool->release(reinterpret_cast<uintptr_t>(block));
}

void read(map_pool *pool, map_pool_figures *out) {
    *out = pool->read();
}

} // namespace

extern "C" {
extern __attribute__((visibility("default"))) const map_pool_table map_pool_functions;
const map_pool_table map_pool_functions = {create, destroy, allocate, release, read};
}
