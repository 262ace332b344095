/* SPDX-License-Identifier: Apache-2.0 */
#include "native.h"

/* The exception that a Python programmer would expect. */
static PyObject *exception_of(onuma_result result) {
    switch (result) {
    case ONUMA_ERROR_OUT_OF_MEMORY:
    case ONUMA_ERROR_LIMIT:
        return PyExc_MemoryError;
    case ONUMA_ERROR_INVALID_ARGUMENT:
    case ONUMA_ERROR_INVALID_POINTER:
    case ONUMA_ERROR_DOUBLE_FREE:
        return PyExc_ValueError;
    case ONUMA_ERROR_NOT_FOUND:
        return PyExc_LookupError;
    case ONUMA_ERROR_NOT_SUPPORTED:
        return PyExc_NotImplementedError;
    case ONUMA_ERROR_BUSY:
    case ONUMA_ERROR_CONFLICT:
        return PyExc_BufferError;
    case ONUMA_ERROR_TIMEOUT:
        return PyExc_TimeoutError;
    case ONUMA_ERROR_IO:
        return PyExc_OSError;
    default: /* a lost device, the parent's object after fork, a defect */
        return PyExc_RuntimeError;
    }
}

PyObject *onumapy_raise(onuma_result result) {
    const char *detail = onuma_last_error();
    PyErr_Format(exception_of(result), "%s [%s]", *detail ? detail : onuma_result_text(result),
                 onuma_result_name(result));
    return NULL;
}
