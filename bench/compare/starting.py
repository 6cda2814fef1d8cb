# SPDX-License-Identifier: BSD-3-Clause
"""How each peer's two ranks are started at a place, with the daemons that they need."""

import os
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

here = Path(__file__).resolve().parent
seconds_to_start = 15
_ports = iter(range(7500, 60000))  # each run has its own: what was closed may linger


class Failed(Exception):
    pass


class Setting:
    """A place, and where things are."""

    def __init__(self, place, work, binaries):
        self.place, self.work, self.binaries = place, work, binaries
        # What takes the place of rsh. PVM's daemons of one user keep apart by the directory for their files.
        self.agent = work / "agent"
        self.agent.write_text(f"""#!/bin/sh
host=$1
shift
while [ "$1" = -l ] || [ "$1" = -n ]; do [ "$1" = -l ] && shift; shift; done
mkdir -p {work}/pvm-$host
export PARC_BIN={binaries} PVM_ALLOW_ROOT=1 PVM_ROOT=/usr/lib/pvm3 PVM_TMP={work}/pvm-$host
exec {here}/../mpi/agent "$host" "$*"
""")
        self.agent.chmod(0o755)

    def on(self, host, command, environment=None):
        given = [f"{name}={value}" for name, value in (environment or {}).items()]
        return [str(self.binaries / "wanlink"), "exec", host, "--", "env", *given, *map(str, command)]

    def link(self, how):
        subprocess.run([str(self.binaries / "wanlink"), how, "a", "b"], check=False, stdin=subprocess.DEVNULL, timeout=10)

    def sweep(self):
        """Whatever has our directory in its command line or its environment, as PVM's daemons have, ends."""
        own, at = set(), os.getpid()
        while at > 1:
            own.add(at)
            at = int(Path(f"/proc/{at}/stat").read_text().rpartition(")")[2].split()[1])
        for process in Path("/proc").iterdir():
            if not process.name.isdigit() or int(process.name) in own:
                continue
            try:
                known_by = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
                if str(self.work).encode() in known_by:
                    os.kill(int(process.name), signal.SIGKILL)
            except OSError:
                pass


def of(setting, peer, way):
    """A context of the run, or why this way is none of this place."""
    settings = peer["settings"]
    if setting.place.loopback and settings.get("loopback_is_one_host"):
        return "has no other way on loopback than on one host"
    start = {"parc": _parc, "openmpi": _openmpi, "mpich": _mpich, "pvm": _pvm, "by-hand": _by_hand}[settings["start"]]
    return start(setting, peer, way)


@contextmanager
def _daemons(commands, said=subprocess.DEVNULL):
    started = []
    try:
        for command in commands:
            started.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said,
                                            start_new_session=True))
        yield started
    finally:
        for daemon in started:
            daemon.terminate()
        for daemon in started:
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


def _until(done, what):
    end = time.monotonic() + seconds_to_start
    while not done():
        if time.monotonic() > end:
            raise Failed(f"{what} does not answer")
        time.sleep(0.05)


def _answers(command, wanted=""):
    try:
        shown = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=seconds_to_start)
    except subprocess.TimeoutExpired:
        return False
    return shown.returncode == 0 and wanted in shown.stdout


@contextmanager
def _parc(setting, peer, way):
    """Two kernels, or one where both ranks are on one host."""
    place, work, port = setting.place, setting.work, next(_ports)
    options = ["--log-level", "warning", *way.get("kernel", [])]
    parcd, parc = setting.binaries / "parcd", setting.binaries / "parc"
    names = list(dict.fromkeys(("a", "b") if place.loopback else place.hosts))
    environments = {name: {"XDG_CONFIG_HOME": work / "config", "PARC_RUNTIME_DIR": work / f"run-{name}"} for name in names}
    for name in names:
        (work / f"run-{name}").mkdir(mode=0o700, exist_ok=True)
    config = work / "config" / "parc"
    config.mkdir(parents=True, exist_ok=True)
    listed = [f'{name} = "127.0.0.1:{port + i}"' for i, name in enumerate(names)] if place.loopback else []
    (config / "parcd.toml").write_text("\n".join(["[hosts]", *listed, ""]))
    for _ in names:
        next(_ports)
    commands = []
    for i, name in enumerate(names):
        where = ["--port", port + i] if place.loopback else ["--listen", "0.0.0.0"]
        commands.append(setting.on("a" if place.loopback else name, [parcd, "--name", name, *where, *options], environments[name]))
    hosts = ",".join(f"{name}:{2 // len(names)}" for name in names)
    on_first = lambda command: setting.on("a", command, environments[names[0]])  # noqa: E731
    sockets = [work / f"run-{name}" / "kernel.sock" for name in names]
    for socket in sockets:
        socket.unlink(missing_ok=True)
    with open(work / "parcd.said", "w+") as said, _daemons(commands, said) as kernels:
        try:
            _until(lambda: all(socket.exists() for socket in sockets), "parcd")  # parc run would start one of its own
            _until(lambda: _answers(on_first([parc, "run", "--hosts", hosts, "true"])), "parcd")
        except Failed as failed:
            raise Failed(f"{failed}: {(work / 'parcd.said').read_text().strip()[-200:]}") from None
        start = [parc, "run", *peer["settings"].get("program", []), "--hosts", hosts]
        yield SimpleNamespace(daemons=[kernel.pid for kernel in kernels],
                              commands=lambda words: [on_first([*start, peer["program"], *words])])


@contextmanager
def _openmpi(setting, peer, way):
    place = setting.place
    words = ["--oversubscribe", "--mca", "plm_rsh_agent", setting.agent, "--mca", "plm_rsh_no_tree_spawn", "1"]
    words += ["-np", "2", "--host", "a:2" if place.one_host else "a,b"]
    words += ["--bind-to", "none"]  # hosts share the cores, and each would bind to the first; nobody else is bound
    words += peer["settings"]["loopback"] if place.loopback else []
    root = {"OMPI_ALLOW_RUN_AS_ROOT": 1, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": 1}
    start = ["mpirun.openmpi", *words, *way.get("arguments", []), peer["program"]]
    yield SimpleNamespace(daemons=[], commands=lambda work: [setting.on("a", [*start, *work], root)])


@contextmanager
def _mpich(setting, peer, way):
    place = setting.place
    hosts = ["-hosts", "a" if place.one_host else "a,b"]
    environment = dict(way.get("environment", {}))
    environment |= peer["settings"]["loopback_environment"] if place.loopback else {}
    start = ["mpiexec.mpich", "-launcher", "rsh", "-launcher-exec", setting.agent, "-bind-to", "none", *hosts, "-n", "2"]
    # hydra's proxies inherit what the agent has, which mounts /sys
    run = lambda work: [[str(setting.agent), "a", *[f"{name}={value}" for name, value in environment.items()],  # noqa: E731
                         *map(str, start), peer["program"], *work]]
    yield SimpleNamespace(daemons=[], commands=run)


@contextmanager
def _pvm(setting, peer, way):
    place, work = setting.place, setting.work
    environment = {"PVM_ALLOW_ROOT": 1, "PVM_ROOT": "/usr/lib/pvm3", "PVM_RSH": setting.agent, "PVM_TMP": work / "pvm-a", "PVM_OTHER": place.hosts[1]}
    for host in ("a", "b"):
        (work / f"pvm-{host}").mkdir(exist_ok=True)
        for left in (work / f"pvm-{host}").iterdir():
            left.unlink()
    hosts = work / "pvm-hosts"
    hosts.write_text("".join(f"{host} dx=/usr/lib/pvm3/lib/pvmd\n" for host in dict.fromkeys(place.hosts)))
    console = lambda word: ["sh", "-c", f"echo {word} | pvm"]  # noqa: E731
    with _daemons([setting.on("a", ["/usr/lib/pvm3/lib/pvmd", "-na", hosts], environment)]):
        _until(lambda: (work / "pvm-a" / f"pvmd.{os.getuid()}").exists(), "pvmd")
        listed = f"{len(set(place.hosts))} host"
        _until(lambda: _answers(setting.on("a", console("conf"), environment), listed), "the second pvmd")
        daemons = [int(process.name) for process in Path("/proc").iterdir()
                   if process.name.isdigit() and _name_of(process) in ("pvmd3", "pvmd")]
        try:
            yield SimpleNamespace(daemons=daemons, commands=lambda words: [
                setting.on("a", [peer["program"], *words, "--", *way.get("words", [])], environment)])
        finally:
            _answers(setting.on("a", console("halt"), environment))


def _name_of(process):
    try:
        return (process / "comm").read_text().strip()
    except OSError:
        return ""


@contextmanager
def _by_hand(setting, peer, way):
    place, settings, port = setting.place, peer["settings"], next(_ports)
    address = settings["address"]
    if place.one_host and not place.loopback and way["settings"] == "best":
        address = settings.get("one_host_address", address)

    def commands(words):
        ranks = []
        for rank, host in enumerate(place.hosts):
            where = address.format(host="*" if rank == 0 else place.hosts[0], port=port, work=setting.work).split()
            ranks.append(setting.on(host, [peer["program"], *words, "--", rank, *where, *way.get("words", [])]))
        return ranks

    yield SimpleNamespace(daemons=[], commands=commands)
