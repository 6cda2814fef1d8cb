#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Emulated hosts of which one cannot dial the other: what a third one relays for want of another way becomes direct where
# the other side can dial, and when a path that was cut is there again, under a program that checks every byte; and is
# relayed again where the direct way loses its bytes. And hosts of which [hosts] says who dials.
# Usage: emulated_ways.sh BIN PROGRAMS. 77: this system allows no emulation; the reason is printed.
set -euo pipefail
bin=$1 programs=$2

if [ -z "${PARC_WAYS_INSIDE:-}" ]; then
  reason=$("$bin/wanlink" run -- true 2>&1) || { echo "skipped: $reason"; exit 77; }
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  PARC_WAYS_INSIDE=$work "$bin/wanlink" run --preset gigabit --hosts 3 --closed b:c -- "$0" "$@"
  exit
fi

work=$PARC_WAYS_INSIDE
on() { "$bin/wanlink" exec "$@"; }
kernels=()
trap 'kill "${kernels[@]}" 2>/dev/null || true; wait' EXIT
fail() {
  echo "FAILED: $*"
  cat "$work"/*.log
  exit 1
}
await() { # COMMAND...: until it is true; a minute is more than any of it takes
  for _ in $(seq 600); do
    "$@" && return
    sleep 0.1
  done
  fail "never so: $*"
}
begin() { # the kernels, with the settings that are there
  kernels=()
  for host in a b c; do
    on "$host" -- "$bin/parcd" --listen 0.0.0.0 --connect-timeout-s 1 2>"$work/$host.log" &
    kernels+=($!)
  done
  for host in a b c; do await hears "$host"; done
}
end() {
  for host in a b c; do on "$host" -- "$bin/parc" stop >/dev/null; done
  wait "${kernels[@]}"
}
hears() { on "$1" -- "$bin/parc" status >/dev/null 2>&1; }
row() { on "$1" -- "$bin/parc" hosts --hosts "$2" --json 2>/dev/null || true; } # of host $2, as $1 sees it
is_way() { row "$1" "$2" | grep -q "\"way\": \"$3\""; }
is_up() { row "$1" "$2" | grep -q '"up": true'; }

begin
for host in b c; do await is_up a "$host"; done # which relays

# b cannot dial c, which can dial b, and does when it hears of it.
await is_way b c direct
grep -q "link to host c (.*relay" "$work/b.log" || fail "a did not relay first"

# A path that is cut, and is there again, under a program.
on b -- timeout 120 "$bin/parc" run --hosts b,c "$programs/random_messages" 5 4000 8 >"$work/output" 2>"$work/errors" &
job=$!
moves() { on b -- "$bin/parc" status --json | grep -q '"bytes_in": [0-9]\{7\}'; }
await moves
"$bin/wanlink" down b c
kill -0 "$job" 2>/dev/null || fail "the program ended too soon"
await is_way b c relay
"$bin/wanlink" up b c
await is_way b c direct
wait "$job" || fail "a program over a path that was cut: $(cat "$work/errors")"
end

# A way that is open and loses what is not short is left for the relay again.
"$bin/wanlink" set b c --largest-packet 1000
begin
for host in b c; do await is_up a "$host"; done
await is_up b c
on b -- timeout 120 "$bin/parc" run --hosts b,c "$programs/random_messages" 7 200 8 ||
  fail "a program where the direct way loses large packets"
connections=$(on b -- "$bin/parc" metrics | sed -n 's/^parc_link_connections_total{.*"c".*} \([0-9]*\)$/\1/p')
[ "${connections:-0}" -ge 3 ] || fail "b did not leave the relay and come back to it: $connections connections"
"$bin/wanlink" set b c --largest-packet 0
end

# Nobody dials c: b waits until it does, without a word on the network.
settings=$(on a -- printenv XDG_CONFIG_HOME)/parc/parcd.toml # of all of them
cat >"$settings" <<'END'
[hosts]
a = { address = "a" }
b = { address = "b" }
c = { address = "c", dial = "out" }
END
begin
row b c | grep -q "\[hosts\] says that nobody can dial it, and a host that calls itself c has not dialed this one" || fail "b: $(row b c)"
await is_up c b
is_way b c direct || fail "b does not know who has dialed it: $(row b c)"
on b -- timeout 60 "$bin/parc" run --hosts b,c "$programs/random_messages" 6 200 ||
  fail "a program over a link that the other side has dialed"
end

# c dials nobody.
sed -i 's/dial = "out"/dial = "in"/' "$settings"
begin
row c a | grep -q "\[hosts\] says that this host dials nobody, and a host that calls itself a has not dialed this one" || fail "c: $(row c a)"
await is_up a c
is_way c a direct || fail "c does not know who has dialed it: $(row c a)"
end
echo "ways: all is well"
