#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# An emulated link that is cut and mended under programs that check every byte: packets are lost, not connections.
# And one that is slow, over which the origin of a job hears last of the rank that failed first.
# Usage: wan_outages.sh BIN PROGRAMS. 77: this system allows no emulation; the reason is printed.
set -euo pipefail
bin=$1 programs=$2

if [ -z "${PARC_OUTAGES_INSIDE:-}" ]; then
  reason=$("$bin/wanlink" run -- true 2>&1) || { echo "skipped: $reason"; exit 77; }
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  mkdir -m 700 "$work"/{config,state,run}
  export XDG_CONFIG_HOME=$work/config XDG_STATE_HOME=$work/state XDG_RUNTIME_DIR=$work/run
  unset PARC_RUNTIME_DIR
  PARC_OUTAGES_INSIDE=$work "$bin/wanlink" run --preset metro --hosts 3 -- "$0" "$@"
  exit
fi

work=$PARC_OUTAGES_INSIDE
on() { "$bin/wanlink" exec "$@"; }
kernels=()
for host in a b c; do
  on "$host" -- "$bin/parcd" --listen 0.0.0.0 2>"$work/$host.log" &
  kernels+=($!)
done
trap 'kill "${kernels[@]}" 2>/dev/null; wait' EXIT

await() { # COMMAND...: until it is true; a minute is more than any of it takes
  for _ in $(seq 1200); do
    "$@" && return
    sleep 0.05
  done
  echo "FAILED: never so: $*"
  cat "$work"/*.log
  exit 1
}
reachable() { on a -- "$bin/parc" run --hosts a,b,c true 2>/dev/null; }
ended() { ! kill -0 "$job" 2>/dev/null; }
passed() { on a -- "$bin/parc" status --json | sed -n 's/.*"bytes_in": \([0-9]*\),.*/\1/p' | head -n 1; }
moved() { ended || [ "$(passed)" -gt $(("$1" + 300000)) ]; }
lost() { "$bin/wanlink" status | sed -n 's/.* loss, \([0-9]*\) down.*/\1/p' | awk '{sum += $1} END {print sum}'; }
missed() { ended || [ "$(lost)" -gt $(("$1" + 5)) ]; } # packets: some were sent again in vain
await reachable

cuts=0
outages_under() { # OPTION PROGRAM...
  local before
  on a -- timeout 120 "$bin/parc" run --hosts a,b "$@" >"$work/output" 2>"$work/errors" &
  job=$!
  for _ in 1 2 3; do
    before=$(passed)
    await moved "$before"
    ended && break
    before=$(lost)
    "$bin/wanlink" down a b
    await missed "$before"
    "$bin/wanlink" up a b
    cuts=$((cuts + 1))
  done
  if ! wait "$job" || [ -s "$work/errors" ]; then
    echo "FAILED: $*"
    cat "$work/output" "$work/errors" "$work"/*.log
    exit 1
  fi
}
for level in off envelope full; do
  outages_under "--early-release=$level" "$programs/random_messages" 7 3000
  outages_under "--early-release=$level" "$bin/heat" --variant I.1 --check --nx 32 --ny 4000 --steps 1500
done
echo "$cuts cuts"
[ "$cuts" -ge 12 ] || { echo "FAILED: the programs had ended before"; exit 1; }

# Rank 1 fails because rank 0 has, and host a hears of rank 1 at once.
"$bin/wanlink" set a c --delay 200ms
status=0
on a -- timeout 120 "$bin/parc" run --hosts c,b,a "$programs/ring" 100 0 exit 0 9 >/dev/null 2>"$work/errors" || status=$?
[ "$status" -eq 9 ] || { echo "FAILED: rank 0 ended with 9 first, parc run with $status"; cat "$work/errors"; exit 1; }
