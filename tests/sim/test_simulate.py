# SPDX-License-Identifier: GPL-2.0-only
"""`simulate --vms N --vcpus N`: the stall is in the VM that the truth names, the reports name it there and
nowhere else, and the recording has all VMs and vCPUs. `--protected KIND`: the same verdicts, but none that joins
both sides is decided, and the clock sections say why."""
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


TITLES = {"sev": "AMD SEV", "sev-es": "AMD SEV-ES", "sev-snp": "AMD SEV-SNP", "tdx": "Intel TDX",
          "software": "KVM's software-protected VM"}


def protected_guest(vcpuscope, folder, scenario, seed):
    """Simulated, because no machine of the tests protects guests."""
    path = os.path.join(folder, "protected.vcs")

    def report(*more):
        run([vcpuscope, "simulate", scenario, "--seed", str(seed), *more, "-o", path])
        out = json.loads(run([vcpuscope, "report", path, "--format", "json"]).stdout)
        return out, out["clock"][0]

    def verdicts(out):
        return sorted((i["vm"], i["vcpu"], i["verdict"]) for i in out["incidents"])

    plain, clock = report()
    expect(f"{scenario}: an open guest has verdicts that join both sides and are decided",
           any(i["kind"] != "unknown" and i["confidence"] == "decided" for i in plain["incidents"]), plain["incidents"])
    expect(f"{scenario}: nothing says that it is protected", "protection" not in clock, clock)
    for kind, title in TITLES.items():
        what = f"{scenario}, protected by {kind}"
        out, clock = report("--protected", kind)
        expect(f"{what}: round trips convert", (clock["method"], clock.get("protection")) == ("echo", kind), clock)
        expect(f"{what}: the verdicts are those of the open guest", verdicts(out) == verdicts(plain),
               (verdicts(out), verdicts(plain)))
        for i in out["incidents"]:
            expect(f"{what}: the verdict says what is missing", "clock_proof" in i["missing"], i["missing"])
            expect(f"{what}: no verdict that joins both sides is decided",
                   i["kind"] == "unknown" or i["confidence"] == "likely", (i["kind"], i["confidence"]))
        # Lines are wrapped.
        text = " ".join(run([vcpuscope, "report", path]).stdout.split())
        expect(f"{what}: the report's clock section says why", f"the guest is protected ({title})" in text, text[-600:])
        text = run([vcpuscope, "clock", path]).stdout
        expect(f"{what}: `clock` says it", f"protected   {title}" in text, text)
        vm = json.loads(run([vcpuscope, "clock", path, "--format", "json"]).stdout)["vms"][0]
        expect(f"{what}: `clock --format json` says it", vm.get("protection") == kind, vm)
    done = run([vcpuscope, "simulate", scenario, "--protected", "tpm", "-o", path], (2,))
    expect("an unknown kind is refused", "sev-snp" in done.stderr, done.stderr)


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
        for scenario in ("vmm_lock", "guest_spin.irqs_off", "lock_holder_preempted.spin"):
            protected_guest(vcpuscope, folder, scenario, 2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
