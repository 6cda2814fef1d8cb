#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The system test of wanlink: real hosts, real sockets, real kills. Usage: wanlink_test.sh root|rootless WANLINK TALK
# Every wait is for a condition and gives up after a while; 77 says that this system allows no emulation.
# Expansions in single quotes belong to the emulated host's shell; words of children and of echoed output are split on purpose.
# shellcheck disable=SC2016,SC2046,SC2086,SC2116,SC2143
set -u
user=$1 wanlink=$2 talk=$3

case $user in
root) [ "$(id -u)" = 0 ] || { echo "skipped: not root"; exit 77; } ;;
rootless)
  if [ "$(id -u)" = 0 ]; then
    # In a chroot neither mounts can be kept private nor user namespaces be made.
    unshare --mount --propagation private true || { echo "skipped: there are no private mounts here"; exit 77; }
    # As nobody, with a /dev/net/tun and a scratch directory that nobody may use: only in here.
    exec env -u XDG_CONFIG_HOME -u XDG_RUNTIME_DIR -u XDG_STATE_HOME TMPDIR=/mnt unshare --mount --propagation private bash -c '
      mount -t tmpfs -o mode=1777 none /mnt && mknod -m 666 /mnt/tun c 10 200 && touch /dev/net/tun && mount --bind /mnt/tun /dev/net/tun &&
      exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"' bash "$0" "$@"
    exit 77
  fi ;;
esac
reason=$("$wanlink" run -- true 2>&1) || { echo "skipped: $reason"; exit 77; }

export WANLINK_TEST_MARK=$$.$RANDOM
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
tests=0 failures=0

fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
# check WHAT CONDITION...: the condition holds.
check() {
  tests=$((tests + 1))
  local what=$1
  shift
  "$@" || fail "$what"
}
# is EXPECTED ACTUAL
is() { [ "$1" = "$2" ] || { echo "  expected: $1"; echo "  actual:   $2"; return 1; }; }
# contains TEXT PART
contains() { [[ $1 == *"$2"* ]] || { echo "  \"$2\" is not in: $1"; return 1; }; }
# await CONDITION...: true as soon as the condition holds.
await() {
  for _ in $(seq 600); do
    "$@" && return 0
    sleep 0.05
  done
  return 1
}
lines() { wc -l <"$1"; }
export -f await lines
export dir talk

# Processes that carry our mark, but for this script and its children of the moment. Never call it in a pipeline:
# the pipeline's other programs carry the mark, too, and are found whenever they start before the search does.
marked() {
  for environ in /proc/[0-9]*/environ; do
    pid=${environ#/proc/} pid=${pid%/environ}
    [ "$pid" != $$ ] && [ "$pid" != "$BASHPID" ] && grep -qsz "^WANLINK_TEST_MARK=$WANLINK_TEST_MARK\$" "$environ" && echo "$pid"
  done
}
# Namespaces of those processes that are not ours.
marked_namespaces() {
  local own
  own=$(readlink /proc/self/ns/*)
  for pid in $(marked); do readlink /proc/"$pid"/ns/* 2>/dev/null; done | sort -u | grep -vxF "$own"
}
# A namespace goes a moment after its last process.
namespace_gone() { ! readlink /proc/[0-9]*/ns/* 2>/dev/null | grep -qxF "$1"; }
nothing_marked() { [ -z "$(marked)" ]; }

echo "# exit status and errors"
"$wanlink" run -- sh -c 'exit 7'
check "status of the command" is 7 $?
"$wanlink" run -- sh -c 'kill -9 $$'
check "status of a killed command" is 137 $?
out=$("$wanlink" run -- /nonexistent/program 2>&1)
check "command not found" is 127 $?
contains "$out" "/nonexistent/program" || fail "the missing command is named"
"$wanlink" run -- /etc/passwd 2>/dev/null
check "command not executable" is 126 $?
"$wanlink" run -- wanlink exec b sh -c 'exit 9'
check "status through exec" is 9 $?
out=$("$wanlink" run --presett wan -- true 2>&1)
check "unknown option" is 125 $?
check "the nearest option is named" contains "$out" "did you mean --preset?"
out=$("$wanlink" statsu 2>&1)
check "unknown command" is 2 $?
check "the nearest command is named" contains "$out" "did you mean status?"
out=$("$wanlink" run -- wanlink exec nohost true 2>&1)
check "unknown host" is 125 $?
check "the hosts are named" contains "$out" "a, b"
out=$("$wanlink" status 2>&1)
check "status outside" is 1 $?
out=$("$wanlink" run --cc nosuchcc -- true 2>&1)
check "unknown congestion control" is 125 $?
check "the congestion control is named" contains "$out" "nosuchcc"

echo "# what a host has"
out=$("$wanlink" run --hosts left,right,third -- sh -c '
  for h in left right; do wanlink exec $h sh -c "
    uname -n; echo \$WANLINK_HOST; grep -c third /etc/hosts; echo \$PARC_RUNTIME_DIR
    stat -c %a \$PARC_RUNTIME_DIR \$XDG_CONFIG_HOME/parc/key; wc -c <\$XDG_CONFIG_HOME/parc/key
    touch \$PARC_RUNTIME_DIR/mine /dev/shm/mine-\$WANLINK_HOST; ls \$PARC_RUNTIME_DIR /dev/shm | tr \"\n\" \" \"; pwd"; done
  wanlink exec left wanlink exec third uname -n
  id -u; wanlink exec left id -u')
for h in left right; do
  expected+="$h $h 2 /dev/shm/wanlink/hosts/$h/run/parc 700 600 65 /dev/shm: mine-$h wanlink /dev/shm/wanlink/hosts/$h/run/parc: mine $PWD "
done
check "name, runtime directory, key, shared memory" is "${expected}third $(id -u) $(id -u)" "$(echo $out)"
check "nothing in /dev/shm outside" is "" "$(ls -d /dev/shm/wanlink /dev/shm/mine-* 2>/dev/null)"
"$wanlink" run -- sh -c 'wanlink exec a ipcmk -M 4096 >/dev/null && wanlink exec b ipcs -m | grep -q 4096'
check "System V objects stay on their host" is 1 $?
check "System V objects go with their host" is "" "$(ipcs -m | awk -v u="$(id -un)" '$3 == u && $5 == 4096')"

echo "# TCP between hosts"
for address in b b.v4 b.v6; do
  out=$(timeout 60 "$wanlink" run --preset metro -- bash -c '
    wanlink exec b "$talk" serve >"$dir/serve" & await test -s "$dir/serve"; rm "$dir/serve"
    wanlink exec a "$talk" bulk "$1" 5000000 && wanlink status' bash $address)
  check "5 MB there and back over $address" is 0 $?
  check "cubic over $address" is cubic "$(head -n 1 <<<"$out")"
done

echo "# set, down, up, loss"
timeout 100 "$wanlink" run --preset metro --hosts 3 -- bash -c '
  link() { wanlink status | grep "^$1 > $2"; }
  has() { [[ $(link $1 $2) == *"$3"* ]] || { echo "  no \"$3\" in: $(link $1 $2)"; return 1; }; }
  dropped() { [ "$(link a b | sed "s/.* loss, \([0-9]*\) down.*/\1/")" -ge $1 ]; }
  more_beats() { [ "$(lines "$dir/beat")" -gt $1 ]; }
  wanlink exec b "$talk" serve >"$dir/serve" & await test -s "$dir/serve"
  wanlink exec a "$talk" beat b >"$dir/beat" & await more_beats 20 || exit 10
  wanlink set a b --rate 10mbit:20mbit --delay 3ms: --loss :0.5% || exit 11
  has a b "up, 3 ms +- 0 ms, 10 Mbit/s, queue 1024 KiB, loss 0 %" || exit 12
  has b a "up, 1 ms +- 0 ms, 20 Mbit/s, queue 1024 KiB, loss 0.5 %" || exit 13
  has a c "up, 1 ms +- 0 ms, 1000 Mbit/s" || exit 14
  wanlink set b a --loss 0 || exit 15
  n=$(lines "$dir/beat"); await more_beats $((n + 20)) || exit 16
  wanlink down a b; has a b down || exit 17
  await dropped 2 || exit 18
  n=$(lines "$dir/beat"); await dropped 4 || exit 19
  [ "$(lines "$dir/beat")" = $n ] || exit 20
  wanlink up a b; await more_beats $((n + 20)) || exit 21
  wanlink set a b --loss 30%:0 --delay 0 --rate unlimited
  wanlink status --reset >/dev/null
  wanlink exec a bash -c "exec 3>/dev/udp/c/9; for i in {1..10}; do echo \$i >&3; done"
  lost() { link a b | sed "s/.* queue, \([0-9]*\) loss.*/\1/"; }
  passed() { link a b | sed "s/.* %; \([0-9]*\) packets.*/\1/"; }
  counted() { [ $(($(lost) + $(passed))) -ge $1 ]; }
  # Few at a time, as the queue of the device overflows where the relay is late. Nobody listens at the port: what
  # comes back of one datagram makes the next one fail, which is then sent again.
  for sent in {100..1000..100}; do
    wanlink exec a bash -c "exec 3>/dev/udp/b/9; for i in {1..100}; do until echo \$i >&3; do :; done; done" \
      2>/dev/null
    await counted $sent || exit 26
  done
  lost=$(lost)
  [ "$lost" -gt 200 ] && [ "$lost" -lt 400 ] || { echo "  lost $lost of 1000"; exit 22; }
  wanlink status --json | grep -q "\"schema\": 1" || exit 23
  wanlink set a b --rate fast 2>/dev/null && exit 24
  wanlink down a a 2>/dev/null && exit 25
  exit 0'
check "changing links while they are used (see the exit number)" is 0 $?

echo "# a direction in which no connection can be opened"
timeout 100 "$wanlink" run --closed b:a -- bash -c '
  dropped() { [ "$(wanlink status | sed -n "s/^b > a.* down, \([0-9]*\) closed.*/\1/p")" -ge 2 ]; }
  for h in a b; do wanlink exec $h "$talk" serve >"$dir/serve-$h" & await test -s "$dir/serve-$h"; done
  wanlink exec a "$talk" bulk b 1000000 || exit 10
  wanlink exec b "$talk" bulk a 1000 >"$dir/closed" 2>&1 & await dropped || exit 11
  kill -0 $! || exit 12
  wanlink status | grep -q "^b > a: closed," || exit 13
  wanlink exec a "$talk" bulk b 1000000 || exit 14
  exit 0' >/dev/null
check "who is asked answers, who asks is not heard (see the exit number)" is 0 $?
timeout 100 "$wanlink" run --closed b:a/22 -- bash -c '
  wanlink exec a bash -c "exec 3<>/dev/tcp/b/22" 2>&1 | grep -q refused || exit 10
  wanlink exec b bash -c "exec 3<>/dev/tcp/a/22" 2>&1 | grep -q refused || exit 11
  timeout 0.5 wanlink exec b bash -c "exec 3<>/dev/tcp/a/23"
  [ $? = 124 ] || exit 12'
check "a port that is let in is heard (see the exit number)" is 0 $?
for closed in b a:a a:z b:a/0; do
  "$wanlink" run --closed $closed -- true 2>"$dir/errors"
  check "--closed $closed is refused by name" grep -q -- "^wanlink: --closed.*$closed" "$dir/errors"
done

echo "# signals"
"$wanlink" run -- bash -c 'trap "exit 33" TERM; touch "$dir/trapped"; while :; do sleep 0.05; done' &
await test -e "$dir/trapped"
kill -TERM $!
wait $!
check "SIGTERM reaches the command, its status comes back" is 33 $?

echo "# nothing is left, whoever is killed"
for victim in caller relay command; do
  rm -f "$dir/pids"
  "$wanlink" run --hosts 3 -- bash -c '
    wanlink exec a setsid sleep 1000 & wanlink exec c "$talk" serve >/dev/null & (trap "" TERM; sleep 1001) &
    touch "$dir/pids"; wait' 2>/dev/null &
  caller=$!
  await test -e "$dir/pids"
  settled() { [ "$(wc -l <<<"$(marked)")" -ge 6 ]; }
  check "everything has started" await settled
  namespaces=$(marked_namespaces)
  check "there are namespaces to lose" test "$(wc -w <<<"$namespaces")" -ge 6
  relay=$(cat /proc/$caller/task/$caller/children)
  case $victim in
  caller) kill -9 $caller ;;
  relay) kill -9 $relay ;;
  command) kill -9 $(cat /proc/${relay% }/task/${relay% }/children) ;;
  esac
  wait $caller 2>/dev/null
  status=$?
  expected=137
  [ $victim = relay ] && expected=125
  check "status when the $victim is killed" is $expected $status
  check "no process after the kill of the $victim" await nothing_marked
  for namespace in $namespaces; do
    await namespace_gone "$namespace" || fail "$namespace is left after the kill of the $victim"
  done
done

echo "$tests checks, $failures failed"
[ $failures = 0 ]
