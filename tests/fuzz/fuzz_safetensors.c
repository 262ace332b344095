/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of .safetensors. What is accepted lies inside the file, each
 * tensor as large as its shape says; what is refused leaves nothing.
 *
 * The length of the header stands first in the file and is hardly ever guessed,
 * so the input's first byte says whether it is the input's own or made to fit.
 */
#include "demo/safetensors.h"

#include "fuzz.h"

static void check_tensor(const safetensors *file, const safetensors_tensor *t, const uint8_t *bytes, size_t size) {
    size_t elements = 1;
    size_t sum = 0;
    FUZZ_CHECK(t->data >= bytes + 8 && t->size <= size && t->data <= bytes + size - t->size, "\"%s\" is outside",
               t->name);
    FUZZ_CHECK(t->rank <= SAFETENSORS_RANK_MAX, "\"%s\" has rank %zu", t->name, t->rank);
    for (size_t i = 0; i < t->rank; i++)
        elements *= t->shape[i];
    FUZZ_CHECK(elements == 0 ? t->size == 0 : t->size % elements == 0 && t->size / elements <= 8,
               "\"%s\": %zu bytes, %zu elements", t->name, t->size, elements);
    for (size_t i = 0; i < t->size; i++) /* AddressSanitizer looks on */
        sum += t->data[i];
    FUZZ_CHECK(sum <= 255 * t->size && safetensors_find(file, t->name) == t, "\"%s\" is not found", t->name);
}

/* [choice][cut: two bytes][header and data] to [length of the header][header and data]. */
static uint8_t *make_file(const uint8_t *data, size_t size, size_t *made) {
    uint64_t length = (uint64_t)data[1] << 8 | data[2];
    *made = size - 3 + 8;
    uint8_t *file = malloc(*made);
    FUZZ_CHECK(file != NULL, "no memory for the input");
    if (length > size - 3) length = size - 3;
    for (size_t i = 0; i < 8; i++)
        file[i] = (uint8_t)(length >> 8 * i);
    memcpy(file + 8, data + 3, size - 3);
    return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char error[160] = "";
    safetensors file;
    if (size < 3) return 0;
    uint8_t *bytes;
    if (data[0] % 8 != 0) {
        bytes = make_file(data, size, &size);
    } else {
        size--;
        bytes = fuzz_copy(data + 1, size);
    }
    if (safetensors_parse(bytes, size, &file, error, sizeof error)) {
        for (size_t i = 0; i < file.count; i++)
            check_tensor(&file, &file.tensors[i], bytes, size);
        (void)safetensors_metadata(&file, "format");
        if (file.count != 0) fuzz_reached_the_end();
    } else {
        FUZZ_CHECK(error[0] != '\0', "refused without a word");
        FUZZ_CHECK(file.count == 0 && file.tensors == NULL && file.header == NULL, "a refused file is not empty");
    }
    safetensors_free(&file);
    free(bytes);
    return 0;
}
