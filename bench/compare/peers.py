# SPDX-License-Identifier: BSD-3-Clause
"""The peers and their ways, from peers/*.toml: what is installed and built, and how two ranks are started."""

import os
import shutil
import subprocess
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

here = Path(__file__).resolve().parent
_order = ["parc", "parc-mpi", "openmpi", "mpich", "pvm", "zeromq", "sockets"]


def names():
    return _order


@dataclass
class Peer:
    name: str
    settings: dict
    program: str = ""
    version: str = ""
    missing: str = ""  # why it cannot be measured
    ways: list = field(default_factory=list)


def _say(text):
    print(f"compare: {text}", flush=True)


def _packages_missing(packages):
    absent = []
    for package in packages:
        known = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status}", package], capture_output=True, text=True)
        if known.stdout != "installed":
            absent.append(package)
    return absent


def _install(packages):
    """Why it could not be done, or nothing."""
    absent = _packages_missing(packages)
    if not absent:
        return ""
    if os.geteuid() != 0:
        return f"install {' '.join(absent)} first, which takes root"
    _say(f"installs {' '.join(absent)}")
    done = subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *absent], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
                          env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    return "" if done.returncode == 0 else f"cannot install {' '.join(absent)}: {done.stderr.strip().splitlines()[-1:]}"


def _versions(packages):
    shown = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version}\n", *packages], capture_output=True, text=True)
    return ", ".join(shown.stdout.split("\n")[:1])  # of the one that the others belong to


def make(name, work, binaries, install):
    """Built into `work`; what is in the way is said, and in the result."""
    with open(here / "peers" / f"{name}.toml", "rb") as file:
        settings = tomllib.load(file)
    peer = Peer(name, settings, ways=settings["way"])
    packages = settings.get("packages", [])
    if install and packages:
        peer.missing = _install(packages)
    elif _packages_missing(packages):
        peer.missing = f"{' '.join(_packages_missing(packages))}: not installed"
    if not peer.missing:
        peer.program = str(work / f"work-{name}")
        into = {"include": here / "../../include", "lib": binaries.parent / "lib"}
        command = [word.format(**into) for word in settings["compile"]]
        command += ["-std=gnu11", "-O2", f"-I{here}", str(here / "work.c"), str(here / "transports" / f"{settings['transport']}.c"),
                    "-o", peer.program, *settings.get("libraries", [])]
        if shutil.which(command[0]) is None:
            peer.missing = f"there is no {command[0]}"
        else:
            built = subprocess.run(command, capture_output=True, text=True)
            if built.returncode != 0:
                peer.missing = f"does not compile: {built.stderr.strip().splitlines()[0]}"
    if peer.missing:
        _say(f"{settings['title']} is left out: {peer.missing}")
    else:
        peer.version = _versions(packages) if packages else ""
    return peer
