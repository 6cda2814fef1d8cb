#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Two programs over libfabric on emulated hosts whose names nobody can resolve find each other by their addresses alone.
# Usage: without_names.sh BIN PROVIDERS PROGRAM; 77 says that this system allows no emulation.
set -u
bin=$1 providers=$2 program=$3
reason=$("$bin/wanlink" run -- true 2>&1) || { echo "skipped: $reason"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export bin program dir FI_PROVIDER_PATH=$providers XDG_CONFIG_HOME=$dir/config XDG_STATE_HOME=$dir/state
mkdir -m 700 "$dir/config" "$dir/state" "$dir/a" "$dir/b"

# shellcheck disable=SC2016 # it is for the emulated hosts' shell
"$bin/wanlink" run --preset metro -- bash -c '
  on() { PARC_RUNTIME_DIR=$dir/$1 "$bin/wanlink" exec "$@"; }
  status=0
  for host in a b; do
    on $host "$bin/parcd" --detach --name nobody-knows-$host --listen 0.0.0.0,:: || exit 1
  done
  on a timeout 60 "$program" "$dir" 0 &
  on b timeout 60 "$program" "$dir" 1 || status=2
  wait $! || status=3
  for host in a b; do on $host "$bin/parc" stop || status=4; done
  exit $status'
