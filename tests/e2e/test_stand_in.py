#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests that VMs of any VMM are found by KVM's descriptors. A stand-in with real descriptors (the VMM of the
micro-guest) runs under the names of Firecracker, Cloud Hypervisor, crosvm and QEMU, in this PID namespace and
in others. The pauses of these VMMs are recognised. Uses this machine's KVM, or else that of bed B.
"""
import itertools
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/beds")
import bed  # noqa: E402

PAUSE_S, PAUSE_MIN_NS = 0.5, 300_000_000
STAND_IN = "tests/e2e/microguest/standin-vmm"
LIVES_S = 200
# (program, its options for a VM of this name, how it calls vCPU threads, what it is shown as)
VMMS = (
    ("firecracker", "--id {name} --api-sock /run/api.sock", "fc_vcpu ", "Firecracker"),
    ("cloud-hypervisor", "--api-socket path=/run/vms/{name}.sock", "vcpu", "Cloud Hypervisor"),
    ("crosvm", "run --name {name}", "crosvm_vcpu", "crosvm"),
    # As QEMU without debug-threads=on.
    ("qemu-system-x86_64", "-name guest={name} -uuid 11111111-2222-3333-4444-555555555555", "", "QEMU"),
    # One that nobody knows, whose threads lie: KVM's word counts.
    ("ourvmm", "", "CPU 7/KVM ", "ourvmm"),
)


class Here:
    """This machine."""
    collector, slower = "", 1

    def __init__(self, build):
        self.folder = tempfile.mkdtemp(prefix="vcpuscope-standin-")
        self.collector = f"{build}/host-collector/vcpuscope"
        self.stand_in = f"{build}/{STAND_IN}"

    def run(self, command):
        done = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=120)
        return done.returncode, done.stdout


class Nested:
    """Bed B's host."""
    folder, collector, stand_in = "/tmp/standin", "vcpuscope", "/usr/bin/standin-vmm"
    slower = 3  # an emulated machine

    def __init__(self, host):
        self._host = host

    def run(self, command):
        status, output = self._host.run_bytes(command, timeout_s=60)
        return status, output.decode(errors="replace")


class Failure(Exception):
    pass


def want(condition, text):
    if not condition:
        raise Failure(text)


def done(place, command):
    status, output = place.run(command)
    want(not status, f"`{command}` ended with {status}: {output}")
    return output


def start(place, program, options, name, thread, *, apart, extra=""):
    """Returns the VM's name as it is to be found, and its pid."""
    out = f"{place.folder}/{name}.out"
    way = "unshare -p -f -m -n " if apart else ""
    done(place, f"cp {place.stand_in} {place.folder}/{program} 2>/dev/null; chmod 755 {place.folder}; "
                f"(sleep {LIVES_S} | STANDIN_THREAD='{thread}' {extra} {way}{place.folder}/{program} "
                f"{options.format(name=name)}) >{out} 2>&1 & "
                f"for i in $(seq 100); do grep -q . {out} && break; sleep 0.1; done; grep -x ready {out}"
                f" || {{ cat {out}; false; }}")


def listed(place):
    reply = json.loads(done(place, f"{place.collector} list --all --format json"))
    want(reply["by"] == "bpf", "the kernel was not asked")
    return {vm["pid"]: vm for vm in reply["vms"] if vm["kvm"]}


def record(place, by, run, for_s=1):
    return f"{place.collector} record {by} --no-guest --for {for_s}s -o {run}"


def vcpus_check(place, vms, debugfs=True):
    """vms: {how it is chosen: its name}. Records them and compares with what the stand-in does: vCPU 1
    wakes nine times as often."""
    for _ in range(5):  # a busy machine may leave the stand-ins no CPU
        runs = {by: f"{place.folder}/{name}.run.vcs" for by, name in vms.items()}
        commands = [record(place, by, run) for by, run in runs.items()]
        # An emulated machine is too slow for all at once.
        command = " && ".join(commands) if place.slower > 1 else " & ".join(commands) + " & wait"
        if not debugfs:  # then BPF has to tell which thread is which vCPU
            command = f"unshare -m sh -c 'umount -l /sys/kernel/debug; {command}'"
        said = done(place, command)
        want(said.count("(2 vCPUs)") == len(vms), said)
        tables = {by: json.loads(done(place, f"{place.collector} report {run} vcpu --format json 2>/dev/null"))
                  for by, run in runs.items()}
        rows = {by: [row for row in table["rows"] if row["cause"] == "wake-up"] for by, table in tables.items()}
        waits = {by: {row["vcpu"]: row["waits"] for row in of} for by, of in rows.items()}
        if all(sum(of.values()) >= 40 for of in waits.values()):
            break
    for by, name in vms.items():
        print(f"{by}: wake-ups by vCPU {waits[by]}, as {rows[by][0]['vm']}", flush=True)
        want(rows[by][0]["vm"] == name, f"{by}: recorded as {rows[by][0]['vm']}, not {name}")
        want(set(waits[by]) == {0, 1} and waits[by][1] > 2 * waits[by][0] > 0,
             f"{by}: vCPUs are confused: {waits[by]}")


def end(place):
    """Ends all stand-ins."""
    place.run(f"for p in /proc/[0-9]*; do case $(readlink $p/exe) in {place.folder}/*) "
              "kill -9 ${p#/proc/};; esac; done")


def found_check(place, vmms, apart):
    """VMMs in this PID, mount and network namespace, or each in its own."""
    before = set(listed(place))
    for program, options, thread, _ in vmms:
        start(place, program, options, f"si-{program}", thread, apart=apart)
    new = {vm["vmm"]: (pid, vm) for pid, vm in listed(place).items() if pid not in before}
    want(set(new) == {shown for *_, shown in vmms}, f"found {new}")
    by_name = {}
    for program, options, _, shown in vmms:
        pid, vm = new[shown]
        name = f"si-{program}" if options else f"{program}-{pid}"
        want((vm["name"], vm["vcpus"], vm["own_pid_namespace"], vm["uid"]) == (name, 2, apart, 0),
             f"{name}: {vm}")
        want(("uuid" in vm) == (program[0] == "q"), f"{name}: {vm}")
        by_name[f"--vm {name}"] = name
    vcpus_check(place, by_name)
    if not apart and "ourvmm" in new:
        pid, vm = new["ourvmm"]
        vcpus_check(place, {f"--pid {pid}": vm["name"]}, debugfs=False)
    end(place)


def liar_check(place):
    """A monitor that says what KVM refutes, and one that speaks for another process."""
    before = set(listed(place))
    socket = f"{place.folder}/qmp"
    start(place, "firecracker", "--id liar", "liar", "", apart=True,
          extra=f"STANDIN_CHILD=1 STANDIN_QMP={socket}")
    start(place, "crosvm", "run --name other", "other", "", apart=False)
    new = [pid for pid, vm in listed(place).items() if pid not in before and vm["vmm"] == "Firecracker"]
    other, = [pid for pid, vm in listed(place).items() if vm["name"] == "other"]
    want(len(new) == 1, f"the holder of foreign descriptors is taken for a VM: {new}")
    lied = record(place, f"--qmp {socket}", f"{place.folder}/liar.vcs")
    for more, says in (("", "KVM says that this thread runs none"),
                       (f" --pid {other}", f"not by --pid {other}")):
        status, said = place.run(lied + more)
        print(f"lying monitor: {said.strip()}", flush=True)
        want(status and says in said, f"{more}: status {status}: {said}")
    vcpus_check(place, {f"--pid {new[0]}": "liar"})


def pauses_check(place):
    """Three VMMs pause their VMs, each in its way, and then a signal stops them."""
    pids, known = {}, set(listed(place))
    for program, options, thread, _ in VMMS[:3]:
        start(place, program, options, f"{program}-vm", thread, apart=program == "firecracker",
              extra=f"STANDIN_PAUSE={program}")
        pids[program], = set(listed(place)) - known - set(pids.values())
    files = {program: f"{place.folder}/{program}.vcs" for program in pids}
    signals = " ".join(map(str, pids.values()))
    done(place, "".join(record(place, f"--pid {pid}", files[program], 5 * place.slower) + " & "
                        for program, pid in pids.items())
         + "".join(f"i=0; until [ -s {file} ] || [ $i -gt 300 ]; do sleep 0.1; i=$((i + 1)); done; "
                   for file in files.values())
         + f"sleep {place.slower}; "
         + "".join(f"kill -{signal} {signals}; sleep {PAUSE_S}; "
                   for signal in ("USR1", "USR2", "STOP", "CONT")) + "wait")
    for program, file in files.items():
        # It ends with another status than 0, because a guest without an agent cannot be judged.
        _, text = place.run(f"{place.collector} report {file} --format json 2>/dev/null")
        found = json.loads(text)["incidents"]
        paused = [stall for stall in found if stall["verdict"] == "vm_paused"
                  and stall["duration_ns"] > PAUSE_MIN_NS]
        print(f"{program}: {[(stall['because'], stall['confidence']) for stall in paused]}", flush=True)
        for says in ("the VM was paused by its VMM for ", "the vCPU thread was stopped for "):
            of = [stall["vcpu"] for stall in paused if stall["because"].startswith(says)
                  and stall["confidence"] == "decided"]
            want(sorted(of) == [0, 1], f"{program}: `{says}` of vCPUs {of}: {found}")
    end(place)


def wait_for(place, ctl, what, test):
    """The daemon's VMs by name, once `test` holds of them."""
    vms = {}
    for _ in range(60):
        status, reply = place.run(f"{ctl} list --format json")
        want(not status or "timed out" in reply, reply)  # on a machine without a free CPU it may
        vms = vms if status else {vm["vm"]: vm for vm in json.loads(reply)["vms"]}
        if not status and test(vms):
            print(f"daemon: {what}: {sorted(vms)}", flush=True)
            return vms
        done(place, "sleep 0.5")
    raise Failure(f"{what}: {vms}; its log:\n" + place.run(f"cat {place.folder}/daemon.log")[1])


def running(vms, names):
    return set(vms) == set(names) and all(vm["state"] == "running" for vm in vms.values())


def daemon_check(place):
    """discover = kvm: users, slots, names that are taken, who gives way to whom."""
    control = f"{place.folder}/control.sock"
    ctl = f"{place.collector} ctl --control {control}"
    done(place, f"printf '[daemon]\\ncontrol = {control}\\ndirectory = {place.folder}/kept\\n"
                "discover = libvirt,kvm\\ndiscover_users = 65534\\ndiscover_per_user = 2\\n"
                f"libvirt = no\\n' >{place.folder}/conf")
    before = set(listed(place))
    pids = []
    for program, options, name, user in (("firecracker", "--id {name}", "web1", 65534),
                                         ("crosvm", "run --name web1", "web1-too", 65534),
                                         ("firecracker", "--id {name}", "web3", 65534),
                                         ("firecracker", "--id {name}", "roots", 0)):
        start(place, program, options, name, "", apart=False, extra=f"STANDIN_UID={user}")
        pids += [pid for pid in listed(place) if pid not in before and pid not in pids]
    want([listed(place)[pid]["uid"] for pid in pids] == [65534, 65534, 65534, 0], "users")
    done(place, f"{place.collector} daemon --config {place.folder}/conf >{place.folder}/daemon.log 2>&1 & "
                f"for i in $(seq 100); do [ -S {control} ] && break; sleep 0.1; done")
    second = f"crosvm-{pids[1]}"
    # The first has the name, the second is watched by its number, the third has no slot.
    vms = wait_for(place, ctl, "found", lambda vms: running(vms, ["web1", second]))
    want([(vms[name]["qemu_pid"], vms[name]["origin"], vms[name]["uid"], vms[name]["claimed_name"],
           vms[name]["vcpus"]) for name in ("web1", second)]
         == [(pids[0], "kvm", 65534, "web1", 2), (pids[1], "kvm", 65534, "web1", 2)], str(vms))
    # A name that somebody attaches is his; who claimed it goes on under its number.
    done(place, f"{ctl} attach web1 pid={pids[3]}")
    first = f"firecracker-{pids[0]}"
    vms = wait_for(place, ctl, "attached", lambda vms: running(vms, ["web1", first, second]))
    want((vms["web1"]["qemu_pid"], vms["web1"]["origin"]) == (pids[3], "ctl"), str(vms["web1"]))
    # So is a process.
    done(place, f"{ctl} attach mine pid={pids[1]}")
    want(second not in wait_for(place, ctl, "attached", lambda vms: "mine" in vms), second)
    # One that ends leaves its slot. One that is detached by hand stays so.
    done(place, f"kill {pids[0]}")
    vms = wait_for(place, ctl, "ended", lambda vms: running(vms, ["web1", "mine", "web3"]))
    done(place, f"{ctl} detach web3; sleep 7")
    want("web3" not in wait_for(place, ctl, "detached", lambda vms: True), "web3 is back")
    log = done(place, f"{ctl} stop; cat {place.folder}/daemon.log")
    for says in (f"crosvm {pids[1]} of uid 65534 calls itself web1, as another VM is called",
                 "uid 65534 has 2 VMs already (discover_per_user)"):
        want(log.count(says) == 1, f"`{says}` is said {log.count(says)} times:\n{log}")


def check(place):
    done(place, f"mkdir -p {place.folder}")
    try:
        # An emulated machine breaks under many VMs.
        groups = [(vmm,) for vmm in VMMS] if place.slower > 1 else [VMMS]
        for vmms, apart in itertools.product(groups, (False, True)):
            found_check(place, vmms, apart)
        liar_check(place)
        end(place)
        pauses_check(place)
        daemon_check(place)
        status, said = place.run(record(place, "--vm nosuch", "x"))
        want(status and "list --all" in said, said)
    finally:
        end(place)
        place.run(f"rm -rf {place.folder}")


def nested(builder):
    files = [(f"{builder.build}/{STAND_IN}", "/usr/bin/standin-vmm")]
    with bed.boot_b(builder, files=files) as host:
        check(Nested(host))


def main():
    builds = os.environ.get("VCPUSCOPE_BUILD", f"{bed.REPOSITORY}/build")
    full = os.environ.get("VCPUSCOPE_TEST_FULL") == "1"
    real = os.access("/dev/kvm", os.R_OK | os.W_OK)
    series = sys.argv[1:] or (("6.1", "6.12") if full else () if real else ("6.1",))
    try:
        if real and not sys.argv[1:]:
            print("on this machine's KVM", flush=True)
            check(Here(builds))
        for each in series:
            print(f"inside bed B, Linux {each}", flush=True)
            bed.machine.retry_emulator(lambda: nested(bed.Builder(series=each)))
    except Failure as failure:
        print(f"failed: {failure}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
