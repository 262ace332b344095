/* SPDX-License-Identifier: Apache-2.0 */
/* A file's pages as a block: one copy in the page cache for all processes, and for the device. */
#include "native.h"

#if defined(_WIN32)

PyObject *onumapy_map_file(PyObject *module, PyObject *args) {
    PyErr_SetString(PyExc_NotImplementedError, "mapping files is not supported on Windows yet");
    return NULL;
}

#else

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct {
    void *start;
    size_t size;
} mapping;

/* Called by the library once no queue uses the block, on whichever thread notices. */
static void unmap(void *user, void *ptr) {
    mapping *mapped = user;
    munmap(mapped->start, mapped->size);
    free(mapped);
}

/* The whole pages that hold [offset, offset + size) of the file, imported read-only. */
static onuma_result import_pages(onuma_device *device, int file, off_t offset, size_t size, void **out) {
    mapping *mapped = malloc(sizeof *mapped);
    if (!mapped) return ONUMA_ERROR_OUT_OF_MEMORY;
    *mapped = (mapping){.size = size};
    mapped->start = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, offset);
    if (mapped->start == MAP_FAILED) {
        free(mapped);
        return ONUMA_ERROR_IO;
    }
    onuma_import_desc desc = ONUMA_IMPORT_DESC_INIT;
    desc.read_only = true;
    desc.deleter = unmap;
    desc.user = mapped;
    onuma_result result = onuma_import(device, mapped->start, size, &desc, out);
    if (result != ONUMA_OK) unmap(mapped, NULL);
    return result;
}

PyObject *onumapy_map_file(PyObject *module, PyObject *args) {
    onumapy_state *state = PyModule_GetState(module);
    DeviceObject *device;
    int file;
    size_t offset, size;
    if (!PyArg_ParseTuple(args, "O!iO&O&:map_file", state->device, &device, &file, onumapy_size_argument, &offset,
                          onumapy_size_argument, &size))
        return NULL;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), before = offset % page;
    if (size == 0 || size > PY_SSIZE_T_MAX - 2 * page || offset > PY_SSIZE_T_MAX - size) {
        PyErr_Format(PyExc_ValueError, "%zu bytes from offset %zu on cannot be mapped", size, offset);
        return NULL;
    }
    const size_t held = before + size;
    void *base = NULL;
    onuma_result result;
    Py_BEGIN_ALLOW_THREADS result =
        import_pages(device->core->device, file, (off_t)(offset - before), (held + page - 1) / page * page, &base);
    Py_END_ALLOW_THREADS if (result == ONUMA_ERROR_IO) return PyErr_SetFromErrno(PyExc_OSError);
    if (result != ONUMA_OK) return onumapy_raise(result);
    onumapy_holding *holding = onumapy_holding_new(&(onumapy_holding){.base = base,
                                                                      .size = held,
                                                                      .kind = ONUMA_KIND_SHARED,
                                                                      .read_only = true,
                                                                      .device = onumapy_device_keep(device->core)});
    if (!holding) {
        onuma_free(base, NULL);
        onumapy_device_drop(device->core);
        return PyErr_NoMemory();
    }
    PyObject *block = onumapy_block_object(state, holding, device);
    return block ? Py_BuildValue("(Nn)", block, (Py_ssize_t)before) : NULL;
}

#endif
