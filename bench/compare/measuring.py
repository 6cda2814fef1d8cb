# SPDX-License-Identifier: BSD-3-Clause
"""Runs the work of all peers at all places: for each place one emulation, in which all ways take turns."""

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path

import places
import starting

SIZES = [1, 1024, 16384, 65536, 262144, 1048576, 4194304, 16777216]
QUICK_SIZES = [8, 65536, 1048576]
busy_share = 0.15  # of one core, before a run, from which on the machine is busy
patience = 3  # times to wait for a machine that is
seconds_to_end = 8  # when all rows are done
seconds_of_a_run = {True: 90, False: 240}


def measure(found, wanted, work, binaries, inside):
    """What the places' emulations have written, as JSON; also when it is interrupted, as far as it is."""
    began = time.time()
    whole = {"schema": 1, "about": about(wanted), "ways": [], "missing": {}, "places": {}}
    for peer in found:
        if peer.missing:
            whole["missing"][peer.settings["title"]] = peer.missing
        for way in peer.ways:
            whole["ways"].append({"name": way["name"], "settings": way["settings"], "peer": peer.settings["title"],
                                  "version": peer.version, "why": way.get("why", ""), "page": way.get("page", "")})
    built = [peer for peer in found if not peer.missing]
    whole["about"]["pass_s"] = calibrate(built[0].program) if built else 0
    for name in wanted.places:
        place = places.of(name)
        print(f"compare: {place.title} ({name})", flush=True)
        task = {"place": name, "quick": wanted.quick, "repeats": wanted.repeats, "work": str(work), "bin": str(binaries),
                "pass_s": whole["about"]["pass_s"], "peers": [asdict(peer) for peer in built]}
        order, result = work / f"{name}.order", work / f"{name}.result"
        order.write_text(json.dumps(task))
        # At real-time priority the relay would take the core of a rank that computes, where another is free.
        command = [str(binaries / "wanlink"), "run", "--no-realtime", "--hosts", "2", *place.link, "--", *inside, str(order)]
        interrupted = False
        try:
            ended = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            why = ended.stderr.strip().splitlines()[-1:] if ended.returncode else []
        except KeyboardInterrupt:
            interrupted, why = True, ["interrupted"]
        known = {"title": place.title, "exchange_ms": place.exchange_ms, "rows": {}, "failures": {}}
        if result.exists():
            known = json.loads(result.read_text())
        if why:
            known["failures"]["wanlink"] = why[0]
            print(f"compare: {why[0]}", flush=True)
        whole["places"][name] = known
        if interrupted:
            break
    whole["about"]["took_s"] = round(time.time() - began)
    return json.dumps(whole, indent=1)


def calibrate(program):
    """Seconds of a pass of work.c's calculation while both cores of two ranks make some."""
    both = [subprocess.Popen([program, "--calibrate"], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    return max(float(each.communicate(timeout=60)[0]) for each in both)


def about(wanted):
    cpu = [line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    memory = Path("/proc/meminfo").read_text().split()[1]
    return {"date": time.strftime("%Y-%m-%d"), "cpu": cpu[0] if cpu else "unknown", "cores": os.cpu_count(),
            "memory_gib": round(int(memory) / (1 << 20)), "system": " ".join(os.uname()[0:3:2]), "quick": wanted.quick,
            "repeats": wanted.repeats, "load_before": os.getloadavg()[0]}


# ---- Inside of the emulation


def inside(order):
    task = json.loads(order.read_text())
    place = places.of(task["place"])
    setting = starting.Setting(place, Path(task["work"]), Path(task["bin"]))
    result = order.with_suffix(".result")
    rows, failures = {}, {}
    ways = [(peer, way) for peer in task["peers"] for way in peer["ways"]]
    try:
        for repeat in range(task["repeats"]):
            turned = len(ways) * repeat // task["repeats"]  # nobody is always the first
            for peer, way in ways[turned:] + ways[:turned]:
                run_one(setting, peer, way, task, rows, failures, repeat)
                whole = {"title": place.title, "exchange_ms": place.exchange_ms, "rows": rows, "failures": failures}
                fresh = result.with_suffix(".fresh")
                fresh.write_text(json.dumps(whole))
                fresh.rename(result)
    finally:
        setting.sweep()
    return 0


def words(place, quick, pass_s):
    rows = [row for row in place.rows if row != "ticks" or not place.one_host]  # which cuts the link
    sizes = [size for size in (QUICK_SIZES if quick else SIZES) if size <= place.largest]
    work = place.work_ms[len(place.work_ms) // 2:][:1] if quick else place.work_ms
    long_bytes = place.long_bytes // 4 if quick else place.long_bytes
    return ["--rows", ",".join(rows), "--sizes", ",".join(map(str, sizes)), "--seconds", "0.05" if quick else "0.12",
            "--work", ",".join(map(str, work)), "--bytes", str(long_bytes), "--halo", str(place.halo),
            "--pass", str(pass_s)]


def run_one(setting, peer, way, task, rows, failures, repeat):
    late = failures.get(way["name"], "")
    if "is late" in late and "all rows" not in late:
        return  # it has had its time
    started = starting.of(setting, peer, way)
    if isinstance(started, str):  # there is no such thing here
        failures.setdefault(way["name"], started)
        return
    print(f"  {repeat + 1}/{task['repeats']} {way['name']} ...", end="", flush=True)
    began = time.monotonic()
    try:
        with started as run:
            busy = wait_until_idle()
            failure = one(setting, run, words(setting.place, task["quick"], task["pass_s"]), seconds_of_a_run[task["quick"]],
                          lambda row, size, value: note(rows, row, size, way["name"], value, busy))
    except (starting.Failed, OSError, subprocess.TimeoutExpired) as failed:
        failure = str(failed)
    setting.sweep()
    if failure:
        failures[way["name"]] = failure
    print(f" {time.monotonic() - began:.1f} s{': ' + failure if failure else ''}", flush=True)


def note(rows, row, size, way, value, busy):
    known = rows.setdefault(row, {}).setdefault(size, {}).setdefault(way, {"values": [], "busy": 0})
    known["values"].append(value)
    known["busy"] += busy


def used():
    """Of all cores, in seconds, with what a hypervisor took."""
    numbers = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return (sum(numbers) - numbers[3] - numbers[4] - sum(numbers[8:])) / os.sysconf("SC_CLK_TCK")


def wait_until_idle():
    """Whether the machine is still busy with something else."""
    for _ in range(patience):
        before = used()
        time.sleep(0.3)
        if (used() - before) / 0.3 < busy_share:
            return False
        time.sleep(1)
    return True


def cpu_of(processes):
    total = 0.0
    for process in processes:
        try:
            for task in Path(f"/proc/{process}/task").iterdir():
                total += int((task / "schedstat").read_text().split()[0]) / 1e9
        except OSError:
            pass
    return total


def cut(setting):
    time.sleep(1)
    setting.link("down")
    time.sleep(1)
    setting.link("up")


def lines_of(pipe, end):
    """As they come, until end() or the end of it. Nothing waits in a buffer behind what was seen."""
    rest = b""
    while select.select([pipe], [], [], max(0, end() - time.monotonic()))[0]:
        got = os.read(pipe.fileno(), 65536)
        if not got:
            return
        *whole, rest = (rest + got).split(b"\n")
        yield from (line.decode(errors="replace") for line in whole)


def one(setting, run, words_of_work, most, tell):
    """Runs the ranks to their end; rank 0 is the first. Returns what went wrong, or nothing."""
    errors = setting.work / "errors"
    ranks = []
    with open(errors, "w") as said:
        for command in run.commands(words_of_work):
            ranks.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=said, start_new_session=True,
                                          stdout=subprocess.DEVNULL if ranks else subprocess.PIPE))
    cutting, cpu, end, last = None, 0.0, time.monotonic() + most, "its start"
    for line in lines_of(ranks[0].stdout, lambda: end):
        try:
            row, size, value = line.split()
            size, value = float(size), float(value)
        except ValueError:
            continue
        last = row
        if row == "cpu-begin":
            cpu = cpu_of(run.daemons)
        elif row == "cpu-end":
            tell("cpu-daemons", size, (cpu_of(run.daemons) - cpu) / size)
        elif row == "end":
            end = min(end, time.monotonic() + seconds_to_end)
        elif row == "ticks-begin":
            cutting = threading.Thread(target=cut, args=(setting,))
            cutting.start()
        else:
            tell(row, size, value)
    if cutting:
        cutting.join()
    codes = [finish(rank, max(5, end - time.monotonic()) if rank is ranks[0] else 5) for rank in ranks]
    if all(code == 0 for code in codes):
        return ""
    text = [line for line in errors.read_text(errors="replace").splitlines() if line.strip(" -")]
    last = "all rows: it does not end" if last == "end" else last
    why = "is late" if "late" in codes else f"ends with {[code for code in codes if code != 0][0]}"
    return f"{why} behind {last}" + (f": {text[0][:160]}" if text else "")


def finish(rank, seconds):
    try:
        return rank.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(rank.pid, signal.SIGKILL)
        rank.wait()
        return "late"
