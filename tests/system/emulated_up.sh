#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Emulated hosts with an sshd each: parc up starts their kernels from one of them, 1,000 ranks talk to their neighbours and to
# rank 0, every kernel knows all of them, and parc down ends the kernels. Where times are asked for, it says what parc up of one host and of all takes.
# Usage: emulated_up.sh BIN PROGRAMS [HOSTS [times]]. 77: this system allows no emulation; the reason is printed.
set -euo pipefail
bin=$1 programs=$2 count=${3:-4} times=${4:-}
# shellcheck source=tests/support/emulated_sshd.sh
. "$(dirname "$0")/../support/emulated_sshd.sh"

if [ -z "${PARC_UP_INSIDE:-}" ]; then
  reason=$("$bin/wanlink" run -- true 2>&1) || { echo "skipped: $reason"; exit 77; }
  if reason=$(no_sshd); then echo "skipped: $reason"; exit 77; fi
  work=$(mktemp -d)
  trap 'rm -rf "$work"; remove_sshd_directory' EXIT
  make_sshd_directory
  PARC_UP_INSIDE=$work "$bin/wanlink" run --preset gigabit --hosts "$count" --closed b:c -- "$0" "$@"
  exit
fi

work=$PARC_UP_INSIDE
on() { "$bin/wanlink" exec "$@"; }
make_ssh_keys "$work"
ssh=(ssh -F "$work/ssh_config")
export PARC_SSH="${ssh[*]}"
servers=()
trap 'on a -- "$bin/parc" stop >"$work/stopped"; kill "${servers[@]}"; wait' EXIT
others=()
for host in $(printf '%s\n' {a..z} | head -n "$count" | tail -n +2); do
  others+=("$host")
  mkdir -m 700 "$work/$host" "$work/$host"/{config,state}
  sshd_settings "$work" HOME="$work/$host" XDG_CONFIG_HOME="$work/$host/config" XDG_STATE_HOME="$work/$host/state" \
    PARC_RUNTIME_DIR="$(on "$host" -- printenv PARC_RUNTIME_DIR)" >"$work/$host/sshd_config"
  on "$host" -- /usr/sbin/sshd -D -e -f "$work/$host/sshd_config" 2>"$work/$host/sshd.log" &
  servers+=($!)
done
for host in "${others[@]}"; do
  for try in $(seq 600); do
    on a -- "${ssh[@]}" "$host" true 2>"$work/errors" && break
    [ "$try" != 600 ] || { echo "FAILED: sshd of $host: $(cat "$work/errors")"; exit 1; }
    sleep 0.05
  done
done
all=$(IFS=,; echo "${others[*]}")
listening=(-- --listen 0.0.0.0 --port 41000-41010)
on a -- "$bin/parcd" --detach "${listening[@]:1}"

seconds() { # COMMAND...: what it takes
  local begin=$EPOCHREALTIME
  "$@" >"$work/output"
  awk "BEGIN {printf \"%.3f\n\", $EPOCHREALTIME - $begin}"
}
all_by_ssh() { # COMMAND...: on all of them at the same time
  local sessions=() host
  for host in "${others[@]}"; do
    on a -- "${ssh[@]}" "$host" "$@" &
    sessions+=($!)
  done
  wait "${sessions[@]}"
}
if [ -n "$times" ]; then
  for _ in 1 2 3 4 5; do
    one=$(seconds on a -- "$bin/parc" up --hosts b "${listening[@]}")
    on a -- "$bin/parc" down --hosts b >"$work/output"
    many=$(seconds on a -- "$bin/parc" up --hosts "$all" "${listening[@]}")
    on a -- "$bin/parc" down --hosts "$all" >"$work/output"
    plain=$(seconds all_by_ssh true)
    echo "parc up of one host: $one s, of ${#others[@]}: $many s; ssh to these and true: $plain s"
  done
fi

# b cannot dial c, which can dial b.
on a -- "$bin/parc" up --hosts "$all" "${listening[@]}" | tee "$work/up"
grep -q "^all [0-9]* pairs of these hosts reach each other$" "$work/up" ||
  { echo "FAILED: some hosts do not reach each other, or not directly"; exit 1; }
on a -- "$bin/parc" hosts
heard=$(on a -- "$bin/parc" run -n 1000 --hosts "a,$all" "$programs/gather")
[ "$heard" = "heard 999" ] || { echo "FAILED: 1,000 ranks: $heard"; exit 1; }
# From one of the others, too: its kernel has been told where they are.
[ "$(on b -- "$bin/parc" run --hosts "a,$all" "$programs/gather")" = "heard $((count - 1))" ]
for host in a "${others[@]}"; do
  knows=$(on "$host" -- "$bin/parc" hosts | grep -cw up)
  [ "$knows" = "$count" ] || { echo "FAILED: host $host knows $knows kernels of $count"; exit 1; }
done
on a -- "$bin/parc" down --hosts "$all"
left=$(on a -- "$bin/parc" hosts --hosts "$all" 2>"$work/errors" | grep -cw up || true)
[ "$left" = 0 ] || { echo "FAILED: $left kernels are up after parc down"; exit 1; }
