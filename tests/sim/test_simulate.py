# SPDX-License-Identifier: GPL-2.0-only
"""`simulate --vms N --vcpus N`: the stall is in the VM that the truth names, the reports name it there and
nowhere else, and the recording has all VMs and vCPUs."""
import argparse
import json
import os
import subprocess
import sys
import tempfile


def run(args, status=(0,)):
    done = subprocess.run(args, capture_output=True, text=True, timeout=600)
    if done.returncode not in status:
        sys.exit(f"{' '.join(args)}: exit {done.returncode}: {done.stderr}")
    return done


def expect(what, condition, seen=""):
    if not condition:
        sys.exit(f"{what}: {seen}")


def read(path):
    with open(path, "rb") as f:
        return f.read()


def stall_is_in_one(vcpuscope, folder, scenario, vms, vcpus, seed):
    """The report's incidents are the truth's, and each VM has its vCPUs."""
    path = os.path.join(folder, "many.vcs")
    run([vcpuscope, "simulate", scenario, "--vms", str(vms), "--vcpus", str(vcpus), "--seed", str(seed),
         "-o", path])
    truth = json.loads(read(path + ".truth.json"))["incidents"]
    report = json.loads(run([vcpuscope, "report", path, "--format", "json"]).stdout)
    what = f"{scenario}, {vms} VMs of {vcpus} vCPUs"
    expect(f"{what}: the truth has its stall in the first VM", truth and
           {t["vm"] for t in truth} == {"simulated"}, truth)

    def places(incidents):
        return sorted((i["vm"], i["vcpu"], i["verdict"]) for i in incidents)

    expect(f"{what}: the report has the truth's stalls, no others",
           places(report["incidents"]) == places(truth), (places(report["incidents"]), places(truth)))
    rows = json.loads(run([vcpuscope, "report", path, "vcpu", "--format", "json", "--top", "0"]).stdout)["rows"]
    seen = {(row["vm"], row["vcpu"]) for row in rows}
    names = ["simulated"] + [f"simulated-{n}" for n in range(2, vms + 1)]
    expect(f"{what}: all of them were recorded", seen == {(vm, n) for vm in names for n in range(vcpus)}, seen)


def default_is_the_same(vcpuscope, folder):
    """One VM of two vCPUs is the default; equal seeds give equal runs."""
    runs = []
    for n, more in enumerate(([], ["--vms", "1", "--vcpus", "2"])):
        path = os.path.join(folder, f"same-{n}.vcs")
        run([vcpuscope, "simulate", "vmm_lock", "--seed", "3", *more, "-o", path])
        runs.append((read(path), read(path + ".truth.json")))
    expect("the default is one VM of two vCPUs", runs[0] == runs[1])


def wrong_sizes_are_refused(vcpuscope, folder):
    path = os.path.join(folder, "none.vcs")
    for scenario, more, said in (("vmm_lock", ["--vms", "0"], "from 1 to 16"),
                                 ("vmm_lock", ["--vms", "17"], "from 1 to 16"),
                                 ("vmm_lock", ["--vcpus", "0"], "from 1 to 32"),
                                 ("vmm_lock", ["--vcpus", "33"], "from 1 to 32"),
                                 ("lock_holder_preempted.spin", ["--vcpus", "1"], "--vcpus 2"),
                                 ("life.cpu_offline", ["--vcpus", "1"], "--vcpus 2")):
        done = run([vcpuscope, "simulate", scenario, *more, "-o", path], (2,))
        expect(f"{scenario} {more}: one line says why", said in done.stderr and done.stderr.count("\n") == 1,
               done.stderr)
        expect("nothing was written", not os.path.exists(path))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vcpuscope", required=True)
    vcpuscope = parser.parse_args().vcpuscope
    with tempfile.TemporaryDirectory(prefix="vcpuscope-simulate.") as folder:
        default_is_the_same(vcpuscope, folder)
        wrong_sizes_are_refused(vcpuscope, folder)
        for scenario, vms, vcpus in (("vmm_lock", 3, 1), ("vm_paused.signal", 2, 3), ("cgroup_throttled", 2, 4),
                                     ("host_lockup", 2, 2), ("lock_holder_preempted.spin", 8, 16),
                                     ("interrupt_lost", 8, 16), ("vcpu_not_scheduled.crowd", 16, 32)):
            stall_is_in_one(vcpuscope, folder, scenario, vms, vcpus, 5)
    return 0


if __name__ == "__main__":
    sys.exit(main())
