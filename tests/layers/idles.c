/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver that does not do what it is given. Settings:
 *
 *     kernel    skip   success, an event that ends well, and nothing has run: Intel's driver without its hardware
 *               hang   it never ends, nor does what comes after it in its queue
 *     map, unmap, copy   hang   the same of those commands
 *     after     so many of such commands work first
 *     compiler  none   the device says that it has none
 *               fails  every build fails
 *
 * What hangs waits for an event that nobody sets, on the driver's own queue; so a driver's functions that wait for
 * work (clFinish, some releases) hang too, as they would. layer_let_go ends it, and counts anew.
 */
#include "layer.h"

#include <pthread.h>
#include <stdlib.h>

static struct {
    pthread_mutex_t lock; /* guards all of it */
    cl_event *gates;      /* that something waits for */
    size_t count;
    size_t commands; /* that were concerned */
} now = {.lock = PTHREAD_MUTEX_INITIALIZER};

LAYER_EXPORT void layer_let_go(void);
void layer_let_go(void) {
    pthread_mutex_lock(&now.lock);
    for (size_t i = 0; i < now.count; i++) {
        layer_next.clSetUserEventStatus(now.gates[i], CL_COMPLETE);
        layer_next.clReleaseEvent(now.gates[i]);
    }
    free(now.gates);
    now.gates = NULL;
    now.count = now.commands = 0;
    pthread_mutex_unlock(&now.lock);
}

/* Whether this command is one of those that do not work any more. */
static bool concerned(const char *key, const char *value) {
    if (!layer_says(key, value)) return false;
    pthread_mutex_lock(&now.lock);
    const bool late = ++now.commands > layer_number("after", 0);
    pthread_mutex_unlock(&now.lock);
    return late;
}

/* An event that is never set, in the context of the queue. NULL: none can be made, and the command works. */
static cl_event make_gate(cl_command_queue queue) {
    cl_context context = NULL;
    cl_int code = layer_next.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(cl_context), &context, NULL);
    cl_event gate = code == CL_SUCCESS ? layer_next.clCreateUserEvent(context, &code) : NULL;
    if (code != CL_SUCCESS) return NULL;
    pthread_mutex_lock(&now.lock);
    cl_event *grown = realloc(now.gates, (now.count + 1) * sizeof(cl_event));
    if (grown) {
        now.gates = grown;
        now.gates[now.count++] = gate;
    }
    pthread_mutex_unlock(&now.lock);
    return grown ? gate : NULL;
}

/* A wait list for a command of this queue: as it came, or with a gate more. To be freed with free(*made). */
static const cl_event *list_of(cl_command_queue queue, const char *key, cl_uint *count, const cl_event *list,
                               cl_event **made) {
    *made = NULL;
    cl_event gate = concerned(key, "hang") ? make_gate(queue) : NULL;
    if (!gate || (*made = malloc((*count + 1u) * sizeof(cl_event))) == NULL) return list;
    if (*count) memcpy(*made, list, *count * sizeof(cl_event));
    (*made)[(*count)++] = gate;
    return *made;
}

/* ---------------------------------------------------------------- commands */

static CL_API_ENTRY cl_int CL_API_CALL run(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                           const size_t *offset, const size_t *global, const size_t *local,
                                           cl_uint count, const cl_event *list, cl_event *event) {
    if (concerned("kernel", "skip")) return layer_next.clEnqueueMarkerWithWaitList(queue, count, list, event);
    cl_event *made;
    list = list_of(queue, "kernel", &count, list, &made);
    const cl_int code =
        layer_next.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, count, list, event);
    free(made);
    return code;
}

static CL_API_ENTRY void *CL_API_CALL map(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags,
                                          size_t offset, size_t size, cl_uint count, const cl_event *list,
                                          cl_event *event, cl_int *code) {
    cl_event *made;
    list = list_of(queue, "map", &count, list, &made);
    void *mapped =
        layer_next.clEnqueueMapBuffer(queue, buffer, blocking, flags, offset, size, count, list, event, code);
    free(made);
    return mapped;
}

static CL_API_ENTRY cl_int CL_API_CALL unmap(cl_command_queue queue, cl_mem buffer, void *mapped, cl_uint count,
                                             const cl_event *list, cl_event *event) {
    cl_event *made;
    list = list_of(queue, "unmap", &count, list, &made);
    const cl_int code = layer_next.clEnqueueUnmapMemObject(queue, buffer, mapped, count, list, event);
    free(made);
    return code;
}

static CL_API_ENTRY cl_int CL_API_CALL map_svm(cl_command_queue queue, cl_bool blocking, cl_map_flags flags,
                                               void *pointer, size_t size, cl_uint count, const cl_event *list,
                                               cl_event *event) {
    cl_event *made;
    list = list_of(queue, "map", &count, list, &made);
    const cl_int code = layer_next.clEnqueueSVMMap(queue, blocking, flags, pointer, size, count, list, event);
    free(made);
    return code;
}

static CL_API_ENTRY cl_int CL_API_CALL unmap_svm(cl_command_queue queue, void *pointer, cl_uint count,
                                                 const cl_event *list, cl_event *event) {
    cl_event *made;
    list = list_of(queue, "unmap", &count, list, &made);
    const cl_int code = layer_next.clEnqueueSVMUnmap(queue, pointer, count, list, event);
    free(made);
    return code;
}

static CL_API_ENTRY cl_int CL_API_CALL write_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                                    size_t offset, size_t size, const void *from, cl_uint count,
                                                    const cl_event *list, cl_event *event) {
    cl_event *made;
    list = list_of(queue, "copy", &count, list, &made);
    const cl_int code =
        layer_next.clEnqueueWriteBuffer(queue, buffer, blocking, offset, size, from, count, list, event);
    free(made);
    return code;
}

static CL_API_ENTRY cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                                   size_t offset, size_t size, void *to, cl_uint count,
                                                   const cl_event *list, cl_event *event) {
    cl_event *made;
    list = list_of(queue, "copy", &count, list, &made);
    const cl_int code = layer_next.clEnqueueReadBuffer(queue, buffer, blocking, offset, size, to, count, list, event);
    free(made);
    return code;
}

/* ---------------------------------------------------------------- compiler */

static CL_API_ENTRY cl_int CL_API_CALL build(cl_program program, cl_uint count, const cl_device_id *devices,
                                             const char *options, void(CL_CALLBACK *done)(cl_program, void *),
                                             void *user) {
    if (layer_says("compiler", "fails")) return CL_BUILD_PROGRAM_FAILURE;
    return layer_next.clBuildProgram(program, count, devices, options, done, user);
}

static CL_API_ENTRY cl_int CL_API_CALL ask_device(cl_device_id device, cl_device_info what, size_t size, void *value,
                                                  size_t *size_ret) {
    const cl_int code = layer_next.clGetDeviceInfo(device, what, size, value, size_ret);
    const cl_bool none = CL_FALSE;
    if (code == CL_SUCCESS && value && what == CL_DEVICE_COMPILER_AVAILABLE && layer_says("compiler", "none"))
        memcpy(value, &none, sizeof none);
    return code;
}

void layer_install(cl_icd_dispatch *mine) {
    mine->clEnqueueNDRangeKernel = run;
    mine->clEnqueueMapBuffer = map;
    mine->clEnqueueUnmapMemObject = unmap;
    mine->clEnqueueSVMMap = map_svm;
    mine->clEnqueueSVMUnmap = unmap_svm;
    mine->clEnqueueWriteBuffer = write_buffer;
    mine->clEnqueueReadBuffer = read_buffer;
    mine->clBuildProgram = build;
    mine->clGetDeviceInfo = ask_device;
}
