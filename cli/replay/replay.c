/* SPDX-License-Identifier: Apache-2.0 */
/* replay: run an allocation trace of a real program through a pool, and say how tight and how fast it was. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "replay/file.h"
#include "replay/run.h"

/* With --decay the pool is left alone for three half-lives, and a little, for the thread's steps are coarse. */
#define DECAY_SETTINGS "decay.half_life:200ms,decay.thread:on"
#define DECAY_ALONE 700000000u

typedef struct request {
    const char *path, *device, *source, *kind, *config, *svg;
    bool simulate, verify, json, series, decay;
    double scale, limit; /* bytes; 0: none */
} request;

/* -------------------------------------------------------------- what fits */

typedef struct demand {
    uint64_t peak, largest; /* bytes, scaled */
} demand;

/*
 * How much of the room a trace may fill. The rest is for what the pool holds beyond the blocks, and for everybody
 * else on the machine; the scale that is advised leaves more, so that it still fits a moment later.
 */
static const double fill_at_most = 0.85, fill_advised = 0.75;

static onuma_kind kind_of(const request *q) {
    return strcmp(q->kind, "device") == 0 ? ONUMA_KIND_DEVICE
           : strcmp(q->kind, "host") == 0 ? ONUMA_KIND_HOST
                                          : ONUMA_KIND_SHARED;
}

/* The smaller of two figures of which 0 means that it is not told. */
static uint64_t smaller_told(uint64_t a, uint64_t b) {
    return a && (!b || a < b) ? a : b;
}

/* Bytes that a pool on the device could get; 0: nobody tells. */
static uint64_t room_on(const onuma_runtime *rt, const onuma_device_info *info, onuma_kind kind) {
    const bool own = info->type == ONUMA_DEVICE_DISCRETE && kind == ONUMA_KIND_DEVICE;
    uint64_t room = smaller_told(info->memory_free, info->memory_total);
    onuma_device *host;
    onuma_device_info system = ONUMA_DEVICE_INFO_INIT;
    /* All but discrete GPUs live in the system's memory, whatever their drivers say is free. What these share lies there,
     * too, where the driver does not move it about. */
    if (own || onuma_device_find(rt, "host", &host) != ONUMA_OK || onuma_device_get_info(host, &system) != ONUMA_OK)
        return room;
    return smaller_told(room, system.memory_free);
}

static double floor_to_two_digits(double value) {
    double step = pow(10, floor(log10(value)) - 1);
    return floor(value / step) * step;
}

/* The scale at which the trace would fit; 0: it fits as it is asked for. */
static double advised_scale(const request *q, const demand *need, uint64_t room, uint64_t largest_allowed) {
    double factor = HUGE_VAL;
    if (room && (double)need->peak > fill_at_most * (double)room)
        factor = fill_advised * (double)room / (double)need->peak;
    if (largest_allowed && need->largest > largest_allowed)
        factor = fmin(factor, fill_advised * (double)largest_allowed / (double)need->largest);
    return cli_is_finite(factor) ? floor_to_two_digits(q->scale * factor) : 0;
}

/* ------------------------------------------------------------------ output */

static cJSON *json_start(const request *q, const trace *t, const demand *need) {
    cJSON *object = cJSON_CreateObject();
    cli_json_text(object, "trace", q->path);
    cli_json_text(object, "device", q->device);
    cli_json_text(object, "source", q->source);
    cli_json_text(object, "kind", q->kind);
    cli_json_number(object, "scale", q->scale);
    cli_json_integer(object, "ops", t->op_count);
    cli_json_integer(object, "peak_requested", need->peak);
    return object;
}

static int report_too_large(const request *q, const trace *t, const demand *need, double scale) {
    if (q->json) {
        static const char *const unmeasured[] = {"peak_reserved", "ratio",       "metadata_peak", "ns_per_op",
                                                 "driver_calls",  "live_at_end", "end_reserved",  "errors"};
        cJSON *object = json_start(q, t, need);
        for (size_t i = 0; i < sizeof unmeasured / sizeof *unmeasured; i++)
            cJSON_AddNullToObject(object, unmeasured[i]);
        cli_json_number(object, "fitting_scale", scale);
        cli_json_print(object);
    }
    return cli_failed("%s holds %s at once, in blocks of up to %s, which is more than %s can take now; it fits with "
                      "--scale %.2g",
                      q->path, cli_bytes(need->peak).text, cli_bytes(need->largest).text, q->device, scale);
}

static void print_json(const request *q, const trace *t, const demand *need, const replay_result *result,
                       const series *over_time) {
    cJSON *object = json_start(q, t, need);
    cli_json_integer(object, "peak_reserved", result->peak_reserved);
    cli_json_number(object, "ratio", (double)result->peak_reserved / (double)need->peak);
    cli_json_integer(object, "metadata_peak", result->metadata_peak);
    cli_json_number(object, "ns_per_op", result->ns_per_op);
    cli_json_integer(object, "driver_calls", result->driver_calls);
    cli_json_integer(object, "live_at_end", result->live_at_end);
    cli_json_integer(object, "end_reserved", result->end_reserved);
    cli_json_integer(object, "errors", result->errors);
    cli_json_integer(object, "freed_reserved", result->freed_reserved);
    if (q->decay) cli_json_integer(object, "decayed_reserved", result->decayed_reserved);
    if (q->series) series_json(over_time, object);
    cJSON_AddBoolToObject(object, "simulated", q->simulate);
    cJSON_AddBoolToObject(object, "verified", q->verify);
    cli_json_print(object);
}

static void print_line(const char *name, const char *value) {
    printf("%-16s%s\n", name, value);
}

static void print_count(const char *name, uint64_t count) {
    printf("%-16s%llu\n", name, (unsigned long long)count);
}

static void print_text(const request *q, const trace *t, const demand *need, const replay_result *result,
                       const series *over_time) {
    print_line("trace", q->path);
    printf("%-16s%s, kind %s, source %s%s\n", "device", q->device, q->kind, q->source,
           q->simulate ? ", simulated"
           : q->verify ? ", every block verified"
                       : "");
    print_count("operations", t->op_count);
    print_line("peak requested", cli_bytes(need->peak).text);
    print_line("peak reserved", cli_bytes(result->peak_reserved).text);
    if (need->peak) printf("%-16s%.3f\n", "ratio", (double)result->peak_reserved / (double)need->peak);
    print_line("metadata peak", cli_bytes(result->metadata_peak).text);
    print_line("per operation", cli_nanoseconds(result->ns_per_op).text);
    print_count("driver calls", result->driver_calls);
    print_count("live at end", result->live_at_end);
    print_line("all freed", cli_bytes(result->freed_reserved).text);
    if (q->decay) print_line("decayed", cli_bytes(result->decayed_reserved).text);
    print_line("end reserved", cli_bytes(result->end_reserved).text);
    print_count("errors", result->errors);
    if (q->series) series_draw(over_time);
}

/* ------------------------------------------------------------------ running */

static int run_on_pool(const request *q, const trace *t, const demand *need, const onuma_runtime *rt,
                       onuma_device *device, onuma_pool *pool) {
    streams queues;
    onuma_result r = streams_create(rt, device, t, &queues);
    if (r != ONUMA_OK) return cli_library_error("cannot make a queue for each stream", r);
    replay_result result;
    series over_time = {.count = 0};
    const bool wanted = q->series || q->svg != NULL;
    const replay_wishes wishes = {.series = wanted ? &over_time : NULL, .alone = q->decay ? DECAY_ALONE : 0};
    replay_run(t, q->scale, q->verify, cli_now, pool, &queues, &wishes, &result);
    streams_destroy(&queues);
    if (q->svg != NULL && !series_write_svg(&over_time, q->svg))
        return cli_bad_request("--svg %s: cannot be written: %s", q->svg, strerror(errno));
    if (q->json)
        print_json(q, t, need, &result, &over_time);
    else
        print_text(q, t, need, &result, &over_time);
    return result.errors || result.end_reserved ? CLI_FAILED : CLI_HELD;
}

static int run_on_device(const request *q, const trace *t, const demand *need, const onuma_runtime *rt,
                         onuma_device *device) {
    onuma_device_info info = ONUMA_DEVICE_INFO_INIT;
    onuma_result r = onuma_device_get_info(device, &info);
    if (r != ONUMA_OK) return cli_library_error(q->device, r);
    const onuma_kind kind = kind_of(q);
    double scale = q->simulate ? 0 : advised_scale(q, need, room_on(rt, &info, kind), info.max_block);
    if (scale > 0) return report_too_large(q, t, need, scale);

    onuma_pool_desc desc = ONUMA_POOL_DESC_INIT;
    desc.name = "replay";
    desc.kind = kind;
    desc.simulate = q->simulate;
    desc.limit_bytes = (size_t)q->limit;
    desc.source = strcmp(q->source, "range") == 0      ? ONUMA_SOURCE_RANGE
                  : strcmp(q->source, "segments") == 0 ? ONUMA_SOURCE_SEGMENTS
                                                       : ONUMA_SOURCE_AUTO;
    onuma_pool *pool;
    r = onuma_pool_create(device, &desc, &pool);
    if (r != ONUMA_OK) return cli_library_error(q->device, r);
    int status = run_on_pool(q, t, need, rt, device, pool);
    r = onuma_pool_destroy(pool);
    if (r == ONUMA_OK) return status;
    return status == CLI_HELD ? cli_library_error("the pool is not empty at the end", r) : status;
}

/* Patience for simulated streams, unless the user has chosen it. NULL: no change. */
static char *patience(const request *q) {
    const char *environment = getenv("OPENNUMA_CONF");
    if (!q->simulate || (q->config && strstr(q->config, "pool.wait")) ||
        (environment && strstr(environment, "pool.wait")))
        return NULL;
    const char *given = q->config ? q->config : "";
    const size_t size = sizeof REPLAY_PATIENT "," + strlen(given);
    char *text = cli_allocate(size);
    snprintf(text, size, REPLAY_PATIENT "%s%s", *given ? "," : "", given);
    return text;
}

/* What the library is told; the caller frees it. */
static char *settings(const request *q) {
    char *patient = patience(q);
    const char *given = patient != NULL ? patient : q->config != NULL ? q->config : "";
    if (!q->decay) return patient != NULL ? patient : cli_copy_text(given);
    const size_t size = sizeof DECAY_SETTINGS "," + strlen(given);
    char *text = cli_allocate(size);
    snprintf(text, size, DECAY_SETTINGS ",%s", given);
    free(patient);
    return text;
}

static int run_on_trace(const request *q, const trace *t) {
    demand need;
    if (!trace_peak(t, q->scale, &need.peak, &need.largest))
        return cli_bad_request("--scale %g makes %s hold more than 2^64 bytes at once", q->scale, q->path);
    onuma_runtime_desc desc = ONUMA_RUNTIME_DESC_INIT;
    char *changed = settings(q);
    desc.config = changed;
    onuma_runtime *rt;
    onuma_result r = onuma_runtime_create(&desc, &rt);
    free(changed);
    if (r != ONUMA_OK) return cli_library_error("cannot start", r);
    onuma_device *device;
    r = onuma_device_find(rt, q->device, &device);
    int status = r == ONUMA_OK ? run_on_device(q, t, &need, rt, device) : cli_library_error("--device", r);
    onuma_runtime_destroy(rt);
    return status;
}

static const char summary[] =
    "Replay a trace, which is CSV, plain or gzip (\"-\": from standard input), of lines op,id,bytes,stream,time_us:\n"
    "a allocates, f frees, r tells that a later queue that still used the block at its f is done.\n"
    "Streams become queues. On the host device, which has no work of its own, a stream is done with what it was\n"
    "given one millisecond of the trace later; other devices' queues are real.\n"
    "Driver calls are counted to the trace's last operation. Blocks that the trace leaves alive are counted, freed,\n"
    "and the pool is trimmed to nothing: end reserved is what it holds then, and must be 0.\n"
    "At most 8388608 operations, 16777216 lines and 1 GiB of text are read.";

int cli_replay_main(int argc, char **argv) {
    request q = {.device = "host", .source = "auto", .kind = "shared", .scale = 1};
    const cli_option options[] = {
        {.name = "device",
         .value = "ID",
         .help = "where to allocate; opennuma info lists them (host)",
         .text = &q.device},
        {.name = "source",
         .value = "NAME",
         .help = "one range committed by page, or segments: range|segments|auto (auto)",
         .text = &q.source,
         .choices = "range|segments|auto"},
        {.name = "kind",
         .value = "NAME",
         .help = "what memory: shared|host|device (shared)",
         .text = &q.kind,
         .choices = "shared|host|device"},
        {.name = "simulate",
         .help = "addresses with no memory behind them, so that any trace fits",
         .flag = &q.simulate},
        {.name = "verify", .help = "fill every block, and check its bytes when it is freed", .flag = &q.verify},
        {.name = "scale", .value = "F", .help = "multiply all sizes (1)", .number = &q.scale},
        {.name = "limit", .value = "BYTES", .help = "most that the pool may reserve (no limit)", .number = &q.limit},
        {.name = "series",
         .help = "what was live and what was reserved over time: a picture, or numbers",
         .flag = &q.series},
        {.name = "svg", .value = "FILE", .help = "the same as a picture in a file", .text = &q.svg},
        {.name = "decay",
         .help = "leave the pool alone at the end, to see what decays (" DECAY_SETTINGS ")",
         .flag = &q.decay},
        {.name = "config",
         .value = "K:V,...",
         .help = "settings of the library; opennuma info --config lists them",
         .text = &q.config},
        CLI_OPTION_JSON(&q.json),
    };
    const cli_usage usage = {"replay", "FILE", summary, options, sizeof options / sizeof *options, 1};
    int status;
    if (!cli_options_parse(&usage, argc, argv, &q.path, &status)) return status;
    if (q.simulate && q.decay)
        return cli_bad_request("--decay takes time, of which a replay with --simulate knows nothing; drop one of them");
    if (q.simulate && q.verify)
        return cli_bad_request("--verify needs memory, and --simulate has none behind its addresses; drop one of them");
    if (q.verify && kind_of(&q) == ONUMA_KIND_DEVICE)
        return cli_bad_request("--verify is the CPU's, which device memory may not be in reach of; use --kind shared");
    if (q.limit >= 0x1p63)
        return cli_bad_request("--limit %g is more bytes than there can be; give less than 2^63", q.limit);
    trace t;
    char error[256];
    if (!trace_read_file(&t, q.path, error, sizeof error)) return cli_bad_request("%s: %s", q.path, error);
    status = run_on_trace(&q, &t);
    trace_drop(&t);
    return status;
}
