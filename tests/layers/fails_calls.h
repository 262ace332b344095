/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry points that the layer `fails` can make fail: what the library calls, and what keeps its objects alive.
 * One list makes wrappers, names and counts.
 *
 *     CODE(function, class, (parameters), (arguments))     returns a cl_int
 *     OBJECT(type, ...)                                     returns an object, the code through its last parameter
 *     class: what a success does to the count of live objects: MAKES_, RETAINS_, RELEASES_, or QUEUED, which makes an
 *            event if the caller wants one; ASKS_ answers that may be wrong; DOES neither
 */
#define FAILS_CODES(CODE)                                                                                              \
    CODE(clGetPlatformIDs, ASKS_NUMBER, (cl_uint n, cl_platform_id * ids, cl_uint * number), (n, ids, number))         \
    CODE(clGetPlatformInfo, ASKS_SIZE,                                                                                 \
         (cl_platform_id p, cl_platform_info what, size_t size, void *value, size_t *ret),                             \
         (p, what, size, value, ret))                                                                                  \
    CODE(clGetDeviceIDs, ASKS_NUMBER,                                                                                  \
         (cl_platform_id p, cl_device_type type, cl_uint n, cl_device_id * ids, cl_uint * number),                     \
         (p, type, n, ids, number))                                                                                    \
    CODE(clGetDeviceInfo, ASKS_SIZE, (cl_device_id d, cl_device_info what, size_t size, void *value, size_t *ret),     \
         (d, what, size, value, ret))                                                                                  \
    CODE(clRetainContext, RETAINS_CONTEXT, (cl_context c), (c))                                                        \
    CODE(clReleaseContext, RELEASES_CONTEXT, (cl_context c), (c))                                                      \
    CODE(clGetContextInfo, ASKS_SIZE, (cl_context c, cl_context_info what, size_t size, void *value, size_t *ret),     \
         (c, what, size, value, ret))                                                                                  \
    CODE(clRetainCommandQueue, RETAINS_QUEUE, (cl_command_queue q), (q))                                               \
    CODE(clReleaseCommandQueue, RELEASES_QUEUE, (cl_command_queue q), (q))                                             \
    CODE(clGetCommandQueueInfo, ASKS_SIZE,                                                                             \
         (cl_command_queue q, cl_command_queue_info what, size_t size, void *value, size_t *ret),                      \
         (q, what, size, value, ret))                                                                                  \
    CODE(clFlush, DOES, (cl_command_queue q), (q))                                                                     \
    CODE(clFinish, DOES, (cl_command_queue q), (q))                                                                    \
    CODE(clRetainMemObject, RETAINS_BUFFER, (cl_mem m), (m))                                                           \
    CODE(clReleaseMemObject, RELEASES_BUFFER, (cl_mem m), (m))                                                         \
    CODE(clGetMemObjectInfo, ASKS_SIZE, (cl_mem m, cl_mem_info what, size_t size, void *value, size_t *ret),           \
         (m, what, size, value, ret))                                                                                  \
    CODE(clSetMemObjectDestructorCallback, DOES, (cl_mem m, void(CL_CALLBACK * done)(cl_mem, void *), void *user),     \
         (m, done, user))                                                                                              \
    CODE(clWaitForEvents, DOES, (cl_uint n, const cl_event *list), (n, list))                                          \
    CODE(clRetainEvent, RETAINS_EVENT, (cl_event e), (e))                                                              \
    CODE(clReleaseEvent, RELEASES_EVENT, (cl_event e), (e))                                                            \
    CODE(clEnqueueUnmapMemObject, QUEUED,                                                                              \
         (cl_command_queue q, cl_mem m, void *mapped, cl_uint n, const cl_event *list, cl_event *event),               \
         (q, m, mapped, n, list, event))                                                                               \
    CODE(clEnqueueMarkerWithWaitList, QUEUED, (cl_command_queue q, cl_uint n, const cl_event *list, cl_event *event),  \
         (q, n, list, event))                                                                                          \
    CODE(clEnqueueBarrierWithWaitList, QUEUED, (cl_command_queue q, cl_uint n, const cl_event *list, cl_event *event), \
         (q, n, list, event))                                                                                          \
    CODE(clEnqueueSVMMap, QUEUED,                                                                                      \
         (cl_command_queue q, cl_bool blocking, cl_map_flags flags, void *pointer, size_t size, cl_uint n,             \
          const cl_event *list, cl_event *event),                                                                      \
         (q, blocking, flags, pointer, size, n, list, event))                                                          \
    CODE(clEnqueueSVMUnmap, QUEUED,                                                                                    \
         (cl_command_queue q, void *pointer, cl_uint n, const cl_event *list, cl_event *event),                        \
         (q, pointer, n, list, event))

#define FAILS_OBJECTS(OBJECT)                                                                                          \
    OBJECT(cl_context, clCreateContext, MAKES_CONTEXT,                                                                 \
           (const cl_context_properties *list, cl_uint n, const cl_device_id *ids,                                     \
            void(CL_CALLBACK * told)(const char *, const void *, size_t, void *), void *user, cl_int *code),           \
           (list, n, ids, told, user, code))                                                                           \
    OBJECT(cl_command_queue, clCreateCommandQueue, MAKES_QUEUE,                                                        \
           (cl_context c, cl_device_id d, cl_command_queue_properties how, cl_int * code), (c, d, how, code))          \
    OBJECT(cl_mem, clCreateBuffer, MAKES_BUFFER,                                                                       \
           (cl_context c, cl_mem_flags flags, size_t size, void *host, cl_int *code), (c, flags, size, host, code))    \
    OBJECT(cl_mem, clCreateSubBuffer, MAKES_BUFFER,                                                                    \
           (cl_mem m, cl_mem_flags flags, cl_buffer_create_type type, const void *region, cl_int *code),               \
           (m, flags, type, region, code))
