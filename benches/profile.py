"""Shows where the CPU time of each Envoy of the benchmark `probe` goes: samples its worker thread with perf
while the benchmark runs, and prints for each form the share of Envoy's own code, the kernel, V8, libc and the
native module. It needs perf, and the right to sample the whole machine (root, or
kernel.perf_event_paranoid below 1)."""

import collections
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "target/profile.data"
# The benchmark writes each Envoy's configuration into a folder with the name of the form.
CONFIG = re.compile(r"--config-path\0[^\0]*/([^/\0]+)/envoy\.json\0")
SAMPLE = re.compile(r"\s*(\d+)\s+[0-9a-f]+ .*\(([^()]*(?:\([^()]*\))?)\)\s*$")
PARTS = ["Envoy", "kernel", "V8", "libc", "module"]


def part(path):
    """Returns the part of PARTS that a mapped file belongs to."""
    name = path.rsplit("/", 1)[-1]
    if name == "envoy":
        return "Envoy"
    if name.startswith("[kernel") or name == "[vdso]":
        return "kernel"
    if name.startswith("perf-"):
        return "V8"
    if "app_health_filter" in name:
        return "module"
    return "libc"


def forms():
    """Returns the form of each Envoy that runs now, by process id."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            match = CONFIG.search(path.read_text(errors="replace"))
        except OSError:
            continue
        if match:
            found[int(path.parent.name)] = match.group(1)
    return found


def main(benchmark):
    command = ["perf", "record", "--quiet", "-F", "1500", "-e", "cpu-clock", "-a", "-o", DATA, "--", *benchmark]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as recording:
        envoys = {}
        while recording.poll() is None:
            envoys |= forms()
            time.sleep(0.5)
    if recording.returncode:
        sys.exit(f"perf or the benchmark failed with exit code {recording.returncode}")
    script = ["perf", "script", "-i", DATA, "--comm", "wrk:worker_0", "-F", "pid,ip,sym,dso"]
    samples = collections.defaultdict(collections.Counter)
    for line in subprocess.run(script, check=True, capture_output=True, text=True).stdout.splitlines():
        match = SAMPLE.match(line)
        if match and int(match.group(1)) in envoys:
            samples[envoys[int(match.group(1))]][part(match.group(2))] += 1
    if not samples:
        sys.exit("no samples of an Envoy: does this user have the right to sample the whole machine?")
    print(f"{'form':<14}{'samples':>9}" + "".join(f"{name:>9}" for name in PARTS))
    for form, counts in samples.items():
        total = counts.total()
        print(f"{form:<14}{total:>9}" + "".join(f"{100 * counts[name] / total:>8.1f}%" for name in PARTS))


if __name__ == "__main__":
    main(sys.argv[1:])
