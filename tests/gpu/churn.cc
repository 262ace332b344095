// SPDX-License-Identifier: Apache-2.0
// What a pair of allocation and free costs through PyTorch's own allocator and through OpenNUMA's callbacks, on equal terms:
// called from C++, each thread with a stream of PyTorch's, with sixteen blocks alive. torch_cuda.py builds and calls it.
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

using Alloc = void *(size_t, int, void *);
using Free = void(void *, size_t, int, void *);

static const size_t sizes[] = {512, 4096, 40000, 700000, 3000000};
static const int live = 16;

template <class A, class F> static double run(int threads, int pairs, A alloc, F release) {
    std::vector<double> results(threads);
    std::vector<std::thread> workers;
    for (int t = 0; t < threads; t++)
        workers.emplace_back([&, t] {
            auto stream = c10::cuda::getStreamFromPool();
            void *blocks[live];
            size_t size[live];
            auto go = [&](int count) {
                for (int i = 0; i < count; i++) {
                    int at = i % live;
                    if (blocks[at]) release(blocks[at], size[at], stream.stream());
                    size[at] = sizes[i % 5];
                    blocks[at] = alloc(size[at], stream.stream());
                }
            };
            std::fill(blocks, blocks + live, nullptr);
            go(1000);
            auto begin = std::chrono::steady_clock::now();
            go(pairs);
            std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
            for (int i = 0; i < live; i++) release(blocks[i], size[i], stream.stream());
            results[t] = took.count() / pairs;
        });
    for (auto &worker : workers) worker.join();
    std::sort(results.begin(), results.end());
    return results[results.size() / 2];
}

extern "C" double churn_torch(int threads, int pairs) {
    namespace caching = c10::cuda::CUDACachingAllocator;
    return run(
        threads, pairs, [](size_t size, cudaStream_t stream) { return caching::raw_alloc_with_stream(size, stream); },
        [](void *p, size_t, cudaStream_t) { caching::raw_delete(p); });
}

extern "C" double churn_callbacks(int threads, int pairs, Alloc *alloc, Free *release) {
    return run(
        threads, pairs, [=](size_t size, cudaStream_t stream) { return alloc(size, 0, stream); },
        [=](void *p, size_t size, cudaStream_t stream) { release(p, size, 0, stream); });
}
