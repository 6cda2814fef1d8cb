#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# installed.sh BUILD: what is installed of the bindings is all that the heat equation in Python and in Fortran needs.
# Fortran is built by pkg-config and by CMake's find_package.
set -euo pipefail
build=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/parc-bindings.XXXXXX")
prefix=$scratch/prefix
end() {
  "$prefix/bin/parc" stop >/dev/null 2>&1 || true
  rm -rf "$scratch"
}
trap end EXIT
mkdir -m 700 "$scratch"/{runtime,config,state,outside}
export PARC_RUNTIME_DIR=$scratch/runtime XDG_CONFIG_HOME=$scratch/config XDG_STATE_HOME=$scratch/state
unset PYTHONPATH LD_LIBRARY_PATH
cmake --install "$build" --prefix "$prefix" >"$scratch/installed"

heat() { # heat COMMAND...
  local said
  said=$("$prefix/bin/parc" run -n 2 "$@" 2>&1 || true)
  [ "$said" = "2 ranks: equal to what one calculates alone, bit for bit" ] || {
    echo "$* says: $said"
    exit 1
  }
}

"$prefix/bin/parcd" --detach --port 0
packages=$(echo "$prefix"/lib/python3*/*-packages)
cp "$source/examples/heat/heat".{py,f90} "$scratch/outside/"
cd "$scratch/outside"
# Its library lies where the package expects it.
heat --env PYTHONPATH="$packages" /usr/bin/python3 -B heat.py
PYTHONPATH=$packages /usr/bin/python3 -B - <<'END'
import importlib.metadata
import parc
assert importlib.metadata.version("parc") == parc.__version__, importlib.metadata.version("parc")
END

[ -e "$prefix/lib/libparc-fortran.a" ] || { echo "no Fortran here: the rest is not tried"; exit 0; }
read -ra flags <<<"$(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs parc-fortran)"
gfortran -O2 -ffp-contract=off heat.f90 "${flags[@]}" -Wl,-rpath,"$prefix/lib" -o heat
heat ./heat
cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(outside Fortran)
find_package(parc REQUIRED)
add_executable(heat heat.f90)
target_compile_options(heat PRIVATE -ffp-contract=off)
target_link_libraries(heat PRIVATE parc::fortran)
END
cmake -G Ninja -B built -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release . >configured
cmake --build built >>configured || { cat configured; exit 1; }
heat built/heat
