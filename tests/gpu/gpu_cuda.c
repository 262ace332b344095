/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is CUDA's own, on a real GPU: memory that goes back to the card, memory that is used up, graphs that allocate and free
 * while they are captured, default streams, imports, the time until the other side can use 256 MiB, and a device that is
 * lost.
 *
 *     test_gpu_cuda DEVICE          all but the last
 *     test_gpu_cuda DEVICE lost     a kernel that reaches where nothing is; in a process of its own
 */
#define _GNU_SOURCE /* aligned_alloc, clock_gettime */
#include "cuda/loader.h"
#include "device.h"
#include "driver_library.h"

#include <time.h>

typedef struct cuda_graph_object *cuda_graph;
typedef struct cuda_executable_object *cuda_executable;

/* What the command has no use for. */
static struct {
    int (*begin_capture)(cli_cuda_stream stream, int mode);
    int (*end_capture)(cli_cuda_stream stream, cuda_graph *graph);
    int (*instantiate)(cuda_executable *out, cuda_graph graph, unsigned long long flags);
    int (*launch)(cuda_executable executable, cli_cuda_stream stream);
    int (*executable_destroy)(cuda_executable executable);
    int (*graph_destroy)(cuda_graph graph);
    int (*get_current)(cli_cuda_context *out);
} graphs;

typedef struct context {
    onuma_device *device;
    onuma_device_info info;
    onuma_pool *shared, *own; /* kinds shared and device */
    runner run;
    const cli_cuda *cuda;
} context;

#define CUDA(call)                                                                                                     \
    do {                                                                                                               \
        const int cuda_ = (call);                                                                                      \
        if (cuda_ != 0) DIE("%s: CUDA error %d", #call, cuda_);                                                        \
    } while (0)

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void load_graphs(void) {
    char why[256];
    void *library = cli_library_open("libcuda.so.1", why, sizeof why);
    if (library == NULL) DIE("%s", why);
    cli_library_find(library, "cuStreamBeginCapture_v2", &graphs.begin_capture);
    cli_library_find(library, "cuStreamEndCapture", &graphs.end_capture);
    cli_library_find(library, "cuGraphInstantiateWithFlags", &graphs.instantiate);
    cli_library_find(library, "cuGraphLaunch", &graphs.launch);
    cli_library_find(library, "cuGraphExecDestroy", &graphs.executable_destroy);
    cli_library_find(library, "cuGraphDestroy", &graphs.graph_destroy);
    cli_library_find(library, "cuCtxGetCurrent", &graphs.get_current);
}

static void expect_number(context *c, uint32_t *block, size_t i, uint32_t expected, const char *what) {
    RUN(&c->run, runner_acquire(&c->run, block, (i + 1) * 4, ONUMA_ACCESS_READ));
    const uint32_t seen = block[i];
    RUN(&c->run, runner_release(&c->run, block, (i + 1) * 4, ONUMA_ACCESS_READ));
    if (seen != expected) DIE("%s: number %zu is %u, not %u", what, i, (unsigned)seen, (unsigned)expected);
}

/* --------------------------------------------------------------------- memory */

/* The driver keeps some of its own from the first use on, so each way is gone once before it is measured. */
static void memory_goes_back(context *c) {
    for (int turn = 0; turn < 2; turn++) {
        const uint64_t before = memory_free(c->device);
        void *blocks[8];
        for (size_t i = 0; i < 8; i++)
            blocks[i] = block_of(c->own, GIB - i * 12345, c->run.queue);
        const uint64_t amid = memory_free(c->device);
        for (size_t i = 0; i < 8; i++)
            OK(onuma_free(blocks[i], c->run.queue));
        OK(onuma_pool_trim(c->own, 0, NULL));
        const uint64_t after = memory_free(c->device);
        if (turn == 0) continue;
        if (before - amid < 8 * GIB - MIB || after != before)
            DIE("memory: %llu bytes free before, %llu amid, %llu after", (unsigned long long)before,
                (unsigned long long)amid, (unsigned long long)after);
        printf("memory: of 8 GiB taken by blocks, %.3f GiB were missing on the card, and after a trim none\n",
               (double)(before - amid) / (double)GIB);
    }
}

static void memory_ends(context *c) {
    enum { MOST = 64 };
    const size_t size = 4 * GIB;
    const uint64_t before = memory_free(c->device);
    void *blocks[MOST], *more = NULL;
    size_t count = 0;
    const double begin = now_us();
    onuma_result r = ONUMA_OK;
    while (count < MOST && (r = onuma_alloc(c->own, size, 0, c->run.queue, &blocks[count])) == ONUMA_OK)
        count++;
    const double took = now_us() - begin;
    if (r != ONUMA_ERROR_OUT_OF_MEMORY) DIE("exhaustion: %zu blocks, then %s", count, onuma_result_name(r));
    const uint64_t left = memory_free(c->device);
    if (left >= size + GIB) DIE("exhaustion: out of memory with %llu bytes free", (unsigned long long)left);
    /* All that was given works, to its last byte; and what is given back is had again. */
    for (size_t i = 0; i < count; i++)
        RUN(&c->run,
            runner_launch(&c->run, KERNEL_fill, MIB, ARGUMENTS(BLOCK((char *)blocks[i] + size - 4 * MIB), NUMBER(i))));
    RUN(&c->run, runner_finish(&c->run));
    OK(onuma_free(blocks[--count], c->run.queue));
    OK(onuma_alloc(c->own, size, 0, c->run.queue, &blocks[count]));
    count++;
    if (onuma_alloc(c->own, size, 0, NULL, &more) != ONUMA_ERROR_OUT_OF_MEMORY) DIE("exhaustion: a block too many");
    for (size_t i = 0; i < count; i++)
        OK(onuma_free(blocks[i], c->run.queue));
    OK(onuma_pool_trim(c->own, 0, NULL));
    if (memory_free(c->device) != before) DIE("exhaustion: the card has not all of its memory again");
    printf("exhaustion: %zu blocks of 4 GiB in %.0f ms, then OUT_OF_MEMORY with %.2f GiB free; all usable, all given "
           "back\n",
           count, took / 1e3, (double)left / (double)GIB);
}

static void imports(context *c) {
    const size_t size = 64 * MIB;
    uint32_t *mine = aligned_alloc(4096, size);
    void *block;
    if (mine == NULL) DIE("no memory");
    memset(mine, 0, size);
    OK(onuma_import(c->device, mine, size, NULL, &block));
    for (uint32_t i = 0; i < 5; i++)
        RUN(&c->run, runner_launch(&c->run, KERNEL_increment, size / 4, ARGUMENTS(BLOCK(mine))));
    expect_number(c, mine, size / 4 - 1, 5, "import");
    OK(onuma_free(block, NULL));
    free(mine);
    printf("import: 64 MiB of malloc's, used by kernels in place\n");
}

/* -------------------------------------------------------------------- streams */

static void default_streams(context *c) {
    for (uint64_t native = 0; native <= 2; native++) {
        onuma_queue *queue;
        OK(onuma_queue_wrap(c->device, ONUMA_API_CUDA, native, NULL, &queue));
        for (int i = 0; i < 100; i++) {
            void *block = block_of(c->own, 4 * MIB, queue);
            OK(onuma_free(block, queue));
        }
        OK(onuma_pool_trim(c->own, 0, NULL));
        if (stats_of(c->own).reserved_bytes != 0) DIE("stream %llu: memory stays", (unsigned long long)native);
        OK(onuma_queue_release(queue));
    }
    printf("streams: 0, legacy and per-thread are wrapped, marked and let go\n");
}

/*
 * x + 1 through blocks that live within the graph alone, in the strictest mode of capture, in which most calls of CUDA on
 * this thread would end it with an error.
 */
static void graph_allocates_and_frees(context *c) {
    const size_t count = MIB;
    cli_cuda_stream stream = (cli_cuda_stream)(uintptr_t)c->run.native_queue;
    cuda_graph graph;
    cuda_executable executable;
    uint32_t *in = block_of(c->shared, 4 * count, NULL), *out = block_of(c->shared, 4 * count, NULL);
    RUN(&c->run, runner_finish(&c->run));
    OK(onuma_pool_trim(c->own, 0, NULL));
    CUDA(c->cuda->push((cli_cuda_context)(uintptr_t)c->info.native_context));
    CUDA(graphs.begin_capture(stream, 0));
    runner_batch_begin(&c->run);
    uint32_t *from = in;
    for (int i = 0; i < 4; i++) {
        uint32_t *to = i == 3 ? out : block_of(c->own, 4 * count, c->run.queue);
        RUN(&c->run, runner_launch(&c->run, KERNEL_copy, count, ARGUMENTS(BLOCK(from), BLOCK(to))));
        RUN(&c->run, runner_launch(&c->run, KERNEL_increment, count, ARGUMENTS(BLOCK(to))));
        if (from != in) OK(onuma_free(from, c->run.queue));
        from = to;
    }
    RUN(&c->run, runner_batch_end(&c->run));
    OK(onuma_pool_trim(c->own, 0, NULL));
    const uint64_t held = stats_of(c->own).reserved_bytes;
    CUDA(graphs.end_capture(stream, &graph));
    if (held == 0) DIE("capture: memory of the graph went back during the capture");
    CUDA(graphs.instantiate(&executable, graph, 0));
    for (uint32_t value = 0; value < 20; value++) {
        RUN(&c->run, runner_launch(&c->run, KERNEL_fill, count, ARGUMENTS(BLOCK(in), NUMBER(value))));
        OK(onuma_use(c->run.queue, out, ONUMA_ACCESS_WRITE));
        CUDA(graphs.launch(executable, stream));
        OK(onuma_submitted(c->run.queue, NULL));
        expect_number(c, out, count - 1, (uint32_t)(count - 1) * 2654435769u + value + 4, "capture");
    }
    CUDA(graphs.executable_destroy(executable));
    CUDA(graphs.graph_destroy(graph));
    cli_cuda_context ours;
    CUDA(c->cuda->pop(&ours));
    OK(onuma_free(in, NULL));
    OK(onuma_free(out, NULL));
    OK(onuma_pool_trim(c->own, 0, NULL));
    if (stats_of(c->own).reserved_bytes != 0) DIE("capture: memory stays after the graph");
    printf("capture: a graph that allocates and frees inside, in the strictest mode, right in 20 launches\n");
}

/* ----------------------------------------------------------------------- time */

enum { TIMES = 15 };
static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
static double median(double *values) {
    qsort(values, TIMES, sizeof *values, by_value);
    return values[TIMES / 2];
}

/* Until the other side can use 256 MiB: copies from ordinary and from pinned memory, and one set of bytes. */
static void handing_over(context *c) {
    const size_t size = 256 * MIB;
    double to[3][TIMES], back[3][TIMES];
    void *pageable = malloc(size), *pinned;
    cli_cuda_stream stream = (cli_cuda_stream)(uintptr_t)c->run.native_queue;
    cli_cuda_pointer device;
    char *block = block_of(c->shared, size, NULL);
    if (pageable == NULL) DIE("no memory");
    CUDA(c->cuda->push((cli_cuda_context)(uintptr_t)c->info.native_context));
    CUDA(c->cuda->host_allocate(&pinned, size, 0));
    CUDA(c->cuda->memory_allocate(&device, size));
    memset(pageable, 1, size);
    memset(pinned, 2, size);
    for (int i = 0; i < TIMES; i++) {
        void *const sources[] = {pageable, pinned};
        for (int s = 0; s < 2; s++) {
            double begin = now_us();
            CUDA(c->cuda->copy_to_device(device, sources[s], size, stream));
            CUDA(c->cuda->stream_synchronize(stream));
            to[s][i] = now_us() - begin;
            begin = now_us();
            CUDA(c->cuda->copy_to_host(sources[s], device, size, stream));
            CUDA(c->cuda->stream_synchronize(stream));
            back[s][i] = now_us() - begin;
        }
        OK(onuma_host_acquire(block, size, ONUMA_ACCESS_WRITE, ONUMA_TIMEOUT_INFINITE));
        block[i] = (char)i;
        double begin = now_us();
        OK(onuma_host_release(block, size, ONUMA_ACCESS_WRITE));
        OK(onuma_use(c->run.queue, block, ONUMA_ACCESS_READ_WRITE));
        to[2][i] = now_us() - begin;
        OK(onuma_submitted(c->run.queue, NULL));
        RUN(&c->run, runner_launch(&c->run, KERNEL_increment, 1024, ARGUMENTS(BLOCK(block))));
        RUN(&c->run, runner_finish(&c->run));
        begin = now_us();
        OK(onuma_host_acquire(block, size, ONUMA_ACCESS_READ, ONUMA_TIMEOUT_INFINITE));
        back[2][i] = now_us() - begin;
        OK(onuma_host_release(block, size, ONUMA_ACCESS_READ));
    }
    CUDA(c->cuda->memory_free(device));
    CUDA(c->cuda->host_free(pinned));
    cli_cuda_context ours;
    CUDA(c->cuda->pop(&ours));
    free(pageable);
    OK(onuma_free(block, NULL));
    printf(
        "256 MiB to the device: %.3f ms from ordinary memory, %.3f ms from pinned, %.6f ms shared; back: %.3f, %.3f, "
        "%.6f ms (medians of %d)\n",
        median(to[0]) / 1e3, median(to[1]) / 1e3, median(to[2]) / 1e3, median(back[0]) / 1e3, median(back[1]) / 1e3,
        median(back[2]) / 1e3, TIMES);
}

/* ----------------------------------------------------------------------- lost */

/* After a kernel went wrong everything answers with an error, nothing hangs, and the process ends as others do. */
static int lose_device(context *c) {
    onuma_view view = ONUMA_VIEW_INIT;
    uint32_t *block = block_of(c->shared, MIB, NULL);
    OK(onuma_view_get(block, c->device, ONUMA_API_CUDA, &view));
    runner_binding bindings[2] = {{.kind = RUNNER_BLOCK, .view = view}, {.kind = RUNNER_BLOCK, .view = view}};
    bindings[1].view.pointer = 16; /* where nothing is */
    OK(onuma_use(c->run.queue, block, ONUMA_ACCESS_READ));
    RUN(&c->run, c->run.ops->enqueue(&c->run, KERNEL_copy, 1024, bindings));
    OK(onuma_submitted(c->run.queue, NULL));
    const onuma_result r = onuma_host_acquire(block, MIB, ONUMA_ACCESS_WRITE, UINT64_C(5000000000));
    onuma_device_info info = ONUMA_DEVICE_INFO_INIT;
    const onuma_result again = onuma_device_get_info(c->device, &info);
    if (r != ONUMA_ERROR_DEVICE_LOST || again != ONUMA_ERROR_DEVICE_LOST)
        DIE("lost: %s, then %s: %s", onuma_result_name(r), onuma_result_name(again), onuma_last_error());
    printf("lost: a kernel went wrong, and then: %s\n", onuma_last_error());
    (void)onuma_free(block, c->run.queue);
    return 0;
}

int main(int argc, char **argv) {
    onuma_runtime *rt;
    const char *why = "";
    context c = {.info = ONUMA_DEVICE_INFO_INIT};
    c.device = find_device(&rt, argc > 1 ? argv[1] : "cuda:0");
    c.shared = pool_of(c.device, ONUMA_KIND_SHARED);
    c.own = pool_of(c.device, ONUMA_KIND_DEVICE);
    OK(onuma_device_get_info(c.device, &c.info));
    RUN(&c.run, runner_open(&c.run, c.device, demo_fault_find(NULL)));
    c.cuda = cli_cuda_load(&why);
    if (c.cuda == NULL) DIE("%s", why);
    load_graphs();
    if (argc > 2) {
        const int status = lose_device(&c);
        onuma_runtime_destroy(rt);
        return status;
    }
    cli_cuda_context before = NULL, after = NULL;
    CUDA(graphs.get_current(&before));
    memory_goes_back(&c);
    memory_ends(&c);
    imports(&c);
    default_streams(&c);
    graph_allocates_and_frees(&c);
    handing_over(&c);
    CUDA(graphs.get_current(&after));
    if (before != after) DIE("the thread's context is another");
    runner_close(&c.run);
    end_pool(c.shared);
    end_pool(c.own);
    onuma_runtime_destroy(rt);
    return 0;
}
