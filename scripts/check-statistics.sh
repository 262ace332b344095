#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check-statistics.sh COMMAND...: a simulated replay of the traces kept here gives the same statistics on every system, to
# the byte; only times may differ. Each COMMAND is an `opennuma` of another build, with what runs it in front, as one
# argument ("scripts/qemu-aarch64.sh build/aarch64/opennuma"). The first one's figures are what the others must give.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 2 ] || { sed -n '3,6s/^# //p' "$0" >&2; exit 2; }

statistics() {
    local command
    read -ra command <<<"$1"
    OPENNUMA_CONF=backends:host "${command[@]}" replay "$2" --simulate --source "$3" --json |
        python3 -c 'import json, sys; all = json.load(sys.stdin); del all["ns_per_op"]; print(json.dumps(all, sort_keys=True))'
}

status=0
for trace in tests/data/traces/*.csv.gz; do
    for source in range segments; do
        wanted=$(statistics "$1" "$trace" "$source")
        for command in "${@:2}"; do
            got=$(statistics "$command" "$trace" "$source")
            [ "$got" = "$wanted" ] && continue
            printf 'statistics: %s, %s\n%s: %s\n%s: %s\n' "$trace" "$source" "$1" "$wanted" "$command" "$got"
            status=1
        done
    done
done
[ "$status" != 0 ] || echo "statistics: the same from $# commands"
exit $status
