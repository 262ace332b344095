/* SPDX-License-Identifier: Apache-2.0 */
/* What a device's info says of sharing, in the words that all commands use. */
#ifndef CLI_DEVICE_SHARING_H
#define CLI_DEVICE_SHARING_H

#include <stdbool.h>

#include "json.h"
#include "opennuma/opennuma.h"

/* How it is known what is said of sharing: "measured", "not_needed", ... */
const char *cli_proof_name(onuma_proof proof);

/* Adds the member "sharing_notes": the words of the ONUMA_SHARING_ bits that are set. */
void cli_json_sharing_notes(cJSON *device, const onuma_device_info *info);

/* Whether a kernel has looked. */
bool cli_sharing_was_tried(const onuma_device_info *info);

/* "zero-copy", "perhaps copied", "refused", "unknown". */
const char *cli_imports_text(const onuma_device_info *info);

#endif
