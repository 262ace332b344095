/* SPDX-License-Identifier: Apache-2.0 */
#include "device_sharing.h"

const char *cli_proof_name(onuma_proof proof) {
    static const char *const names[] = {"none", "not_needed", "assumed", "unprovable", "cached", "measured", "failed"};
    return proof < sizeof names / sizeof *names ? names[proof] : "unknown";
}

void cli_json_sharing_notes(cJSON *device, const onuma_device_info *info) {
    static const char *const names[] = {"not_offered", "slower", "less",       "no_imports",
                                        "no_kernels",  "hangs",  "small_pages"};
    cJSON *notes = cJSON_AddArrayToObject(device, "sharing_notes");
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (info->sharing_notes & 1u << i) cli_json_append_text(notes, names[i]);
}

bool cli_sharing_was_tried(const onuma_device_info *info) {
    return info->proof == ONUMA_PROOF_CACHED || info->proof == ONUMA_PROOF_MEASURED ||
           info->proof == ONUMA_PROOF_FAILED;
}

const char *cli_imports_text(const onuma_device_info *info) {
    if (info->import_zero_copy) return "zero-copy";
    if (!cli_sharing_was_tried(info)) return "unknown";
    return info->sharing_notes & ONUMA_SHARING_NO_IMPORTS ? "refused" : "perhaps copied";
}
