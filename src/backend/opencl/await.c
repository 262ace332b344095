/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting with a bound. OpenCL has no wait that ends by itself, so the end of a command is polled for. One that never
 * ends leaves all that it uses behind, since a device may still write there, and since drivers' releases wait for it.
 */
#include "backend/opencl/opencl.h"
#include "os/os.h"

/* Whether a command has ended cannot be told while the driver refuses the question, so it is asked again for a while. */
#define REFUSALS 100

/* Between looks: short at first, since a kernel of one line ends soon. */
#define SHORTEST 2000u
#define LONGEST 1000000u

onuma_result onuma__cl_await(onuma_backend_device *device, cl_command_queue queue, cl_event event, const char *what) {
    const onuma__cl *cl = device->cl;
    uint64_t pause = SHORTEST;
    cl_int status = CL_QUEUED, code = CL_SUCCESS;
    bool flushed = false;
    for (unsigned refusals = 0; status > CL_COMPLETE;) {
        code = flushed ? CL_SUCCESS : cl->clFlush(queue);
        flushed = code == CL_SUCCESS;
        if (flushed) code = cl->clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
        if (code == CL_SUCCESS && status <= CL_COMPLETE) break;
        refusals += code != CL_SUCCESS;
        if (refusals > REFUSALS || onuma__os_now() > device->deadline) {
            device->stuck = true;
            return device->host->fail(ONUMA_ERROR_TIMEOUT, "%s on \"%s\" did not end", what, device->facts.info.name);
        }
        onuma__os_sleep(pause);
        if (pause < LONGEST) pause *= 2;
    }
    cl->clReleaseEvent(event);
    return status == CL_COMPLETE ? ONUMA_OK
                                 : onuma__cl_fail(device->host, status, "%s on \"%s\"", what, device->facts.info.name);
}
