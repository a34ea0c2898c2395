#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""`vcpuscope bugreport`: the archive has each promised part, and none of the secrets that were planted in the
configuration, the environment and the recordings; the report of its recording has the same stalls. Nothing is
overwritten, and nothing is left behind by a failure or a signal."""
import argparse
import io
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SECRET = "Hush"
PARTS = ["README.txt", "versions.txt", "doctor.txt", "vcpuscope.conf", "run.vcs"]
# Threads of kernels, QEMU and vcpuscope keep their names.
PUBLIC = re.compile(r"(swapper|kworker/|ksoftirqd/|migration/|cpuhp/|rcu|kthreadd|khugepaged|kswapd|kcompactd|vhost-|"
                    r"kvm|qemu-|CPU \d+/|irq/|IO mon|vcpuscope|watchdogd|ksmd|ktimers/)")


class Bad(Exception):
    pass


def expect(what, is_right):
    if not is_right:
        raise Bad(what)


class Bench:
    """The program, a folder, and a TMPDIR that must be empty after each run."""
    def __init__(self, program, folder):
        self.folder = folder
        os.chmod(folder, 0o755)
        # A copy: a process of it is one of this test, and any user can run it.
        self.built = program
        self.program = self.path("vcpuscope")
        shutil.copy(program, self.program)
        self.temporary = self.path("tmp")
        os.mkdir(self.temporary)
        os.chmod(self.temporary, 0o777)
        self.env = dict(os.environ, TMPDIR=self.temporary, TZ="UTC", SECRET_TOKEN=SECRET, HOSTNAME=SECRET)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def processes(self):
        """Those that run the copy."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{pid}/exe").startswith(self.program):
                    found.append(int(pid))
            except OSError:
                pass
        return found

    def run(self, *words, env=None, **more):
        done = subprocess.run([self.program, *map(str, words)], capture_output="stdout" not in more, check=False,
                              stdin=subprocess.DEVNULL, timeout=300, env=env or self.env,
                              **(dict(more, stderr=subprocess.PIPE) if "stdout" in more else more))
        expect(f"{words} left something in TMPDIR", not os.listdir(self.temporary))
        return done

    def refuses(self, code, pattern, *words, **more):
        """One line that says why and what to do."""
        done = self.run("bugreport", *words, **more)
        text = done.stderr.decode()
        expect(f"bugreport {words}: exit {done.returncode}, not {code}: {text}", done.returncode == code)
        expect(f"bugreport {words}: not one line like {pattern}: {text}",
               text.count("\n") == 1 and re.search(pattern, text))

    def archive(self, *words, **more):
        """name -> content of a new archive, and what was printed."""
        to = self.path("made.tar")
        done = self.run("bugreport", *words, "-o", to, **more)
        expect(f"bugreport {words}: exit {done.returncode}: {done.stderr}", done.returncode == 0)
        expect("only its owner can read the archive", stat.S_IMODE(os.stat(to).st_mode) == 0o600)
        files = unpack(to)
        os.unlink(to)
        return files, done.stderr.decode()

    def json(self, *words):
        done = self.run(*words, "--format", "json")
        expect(f"{words}: exit {done.returncode}: {done.stderr}", done.returncode in (0, 5))
        return json.loads(done.stdout)

    def names(self, recording):
        """All names of tasks, VMs and cgroups that a reader sees."""
        found = set()
        for sql in ("SELECT DISTINCT vm FROM events", "SELECT DISTINCT comm FROM events",
                    "SELECT DISTINCT task FROM spans", "SELECT DISTINCT other_task FROM spans"):
            done = self.run("query", recording, sql, "--format", "csv")
            expect(f"{sql}: {done.stderr}", done.returncode == 0)
            found |= {line.strip('"') for line in done.stdout.decode().splitlines()[1:]}
        return found - {"", "host", "guest", "?"}


def unpack(path):
    files = {}
    with tarfile.open(path) as tar:
        for member in tar:
            folder, name = os.path.split(member.name)
            expect(f"{member.name}: a plain file of root in one folder",
                   member.isreg() and folder == "vcpuscope-bugreport" and (member.uid, member.gid) == (0, 0) and
                   member.mode == 0o600 and not member.uname)
            files[name] = tar.extractfile(member).read()
    # GNU tar reads it, too.
    listed = subprocess.run(["tar", "-tf", path], capture_output=True, text=True, check=True).stdout.split()
    expect(f"tar lists {listed}", listed == [f"vcpuscope-bugreport/{name}" for name in files])
    return files


def configuration_with_secrets():
    """Every key of the manual, each with a secret as its value and in a comment."""
    with open(os.path.join(HERE, "..", "..", "docs", "daemon.md"), encoding="utf-8") as f:
        block = re.search(r"```ini\n(.*?)```", f.read(), re.S)[1]
    lines, n = [], 0
    for line in block.splitlines():
        section = re.match(r"\[(\w+)( \w+)?\]", line)
        key = re.match(r";?(\w+) =", line)
        if section:
            lines.append(f"[{section[1]}{f' {SECRET}name' if section[2] else ''}] ; {SECRET}")
        elif key:
            lines.append(f"{key[1]} = {SECRET}{n} ; {SECRET}")
            n += 1
    expect(f"the manual has {n} keys", n > 60)
    strange = [f"{SECRET}key = 1", f"  {SECRET}", f"[{SECRET}]", f"a = {SECRET}", SECRET, f"; {SECRET}", ""]
    return "\n".join(lines + strange)


VM = """
import sys, threading
def vcpu():
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as f:
        f.write("CPU 0/TCG")
    print("runs", flush=True)
    sys.stdin.read()
threading.Thread(target=vcpu).start()
"""


class FakeVm:
    """A process that doctor finds as QEMU with a VM whose name is a secret."""
    def __init__(self, bench):
        self.path = bench.path("qemu-system-x86_64")
        shutil.copy(os.path.realpath(sys.executable), self.path)

    def __enter__(self):
        self.process = subprocess.Popen([self.path, "-c", VM, "-name", f"guest={SECRET}vm,debug-threads=on"],
                                        env=dict(os.environ, PYTHONHOME=sys.base_prefix),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        expect("the process of a VM runs", self.process.stdout.readline() == b"runs\n")

    def __exit__(self, *_):
        self.process.communicate(timeout=10)
        os.unlink(self.path)


def secrets_check(bench):
    with FakeVm(bench):
        if os.geteuid() == 0:
            expect("doctor finds the VM", f"{SECRET}vm" in bench.run("doctor").stdout.decode())
        planted_check(bench)


def planted_check(bench):
    config = bench.path("secrets.conf")
    with open(config, "w", encoding="utf-8") as f:
        f.write(configuration_with_secrets())
    for words in ((), ("--names",)):
        files, _ = bench.archive("--config", config, *words)
        expect(f"parts: {list(files)}", list(files) == PARTS[:-1])
        names = {f"[vm {SECRET}name]", f"[pair {SECRET}name]"} if words else set()
        if words:
            files.pop("doctor.txt")  # it has the names of VMs
        for name, content in files.items():
            for line in content.decode().splitlines():
                expect(f"{words}: {name} has a secret: {line}", SECRET not in line or line in names)
            host = os.uname().nodename
            expect(f"{name} has the name of this host", len(host) < 6 or host not in content.decode())
        text = files["vcpuscope.conf"].decode()
        expect(f"the key of a PSK is there without its value: {text}", "\npsk = (removed)\n" in text)


def parts_check(bench):
    config = bench.path("good.conf")
    with open(config, "w", encoding="utf-8") as f:
        f.write("[daemon]\ndisk_budget = 20G\non_incident = mail me\n[vm guest]\nstall = 50ms\n")
    recording = os.path.join(HERE, "..", "data", "quickstart.vcs")
    files, said = bench.archive(recording, "--config", config)
    expect(f"parts: {list(files)}", list(files) == PARTS)
    expect(f"printed: {said}", "read it before you send it" in said)
    text = {name: content.decode() for name, content in files.items() if name != "run.vcs"}
    for name in PARTS:
        expect(f"README.txt names {name}", f"{name}: " in text["README.txt"])
    version = bench.run("--version").stdout.decode().split()[1]
    expect("versions", f"vcpuscope: {version}\n" in text["versions.txt"] and
           f"kernel: Linux {os.uname().release} " in text["versions.txt"] and "qemu-system-x86_64:\n" in
           text["versions.txt"])
    expect(f"doctor: {text['doctor.txt']}", text["doctor.txt"].startswith("kernel ") and
           "`vcpuscope record` can" in text["doctor.txt"])
    # A VM has one name in all files.
    section = re.search(r"\[vm (vm-\w+)\]\nstall = 50ms\n", text["vcpuscope.conf"])
    expect(f"configuration: {text['vcpuscope.conf']}", section and "disk_budget = 20G\non_incident = (removed)\n" in
           text["vcpuscope.conf"])
    cut = bench.path("cut.vcs")
    with open(cut, "wb") as f:
        f.write(files["run.vcs"])
    expect("the VM of the configuration is that of the recording", section[1] in bench.names(cut))
    files, said = bench.archive("--config", config)
    expect("without a recording, both places say so", list(files) == PARTS[:-1] and
           "run.vcs: no recording was named" in files["README.txt"].decode() and "missing: run.vcs" in said)


def stalls_of(report):
    return [(i["verdict"], i["confidence"], i["duration_ns"], i["vcpu"]) for i in report["incidents"]]


def recording_check(bench, recording):
    """Without names, but with the same stalls."""
    files, _ = bench.archive(recording)
    cut = bench.path("cut.vcs")
    with open(cut, "wb") as f:
        f.write(files["run.vcs"])
    before, after = bench.names(recording), bench.names(cut)
    for name in after:
        expect(f"{recording}: {name} is in the archive",
               re.fullmatch(r"(task|vm)-[a-z]+(, .*)?", name) or PUBLIC.match(name))
    private = {name for name in before if not PUBLIC.match(name)}
    expect(f"{recording}: has names", private)
    for name in private:
        # The names of the kernel's functions, which remain, have no dash.
        expect(f"{recording}: {name} is in the bytes", "-" not in name or name.encode() not in files["run.vcs"])
    expect(f"{recording}: other stalls", stalls_of(bench.json("report", recording)) ==
           stalls_of(bench.json("report", cut)))
    files, _ = bench.archive(recording, "--names")
    with open(cut, "wb") as f:
        f.write(files["run.vcs"])
    expect(f"{recording}: --names keeps names", bench.names(cut) == before)
    return len(private)


def window_check(bench):
    recording = os.path.join(HERE, "..", "data", "quickstart.vcs")
    whole = stalls_of(bench.json("report", recording))
    files, _ = bench.archive(recording, "--around", 2)
    expect("a part is smaller", len(files["run.vcs"]) < os.path.getsize(recording))
    cut = bench.path("cut.vcs")
    with open(cut, "wb") as f:
        f.write(files["run.vcs"])
    verdict, confidence, duration_ns, vcpu = whole[1]
    # The times of the guest were converted from fewer clock samples.
    same = [s for s in stalls_of(bench.json("report", cut)) if s[:2] == (verdict, confidence) and s[3] == vcpu and
            abs(s[2] - duration_ns) < 10_000]
    expect("the stall is in its part", len(same) == 1)


def chosen_events_check(bench):
    """Values of events that the user chose."""
    recording = bench.path("jobs.vcs")
    subprocess.run([bench.built, "simulate", "vmm_lock", "--jobs", "-o", recording], check=True)
    recording_check(bench, recording)
    files, _ = bench.archive(recording)
    cut = bench.path("cut.vcs")
    with open(cut, "wb") as f:
        f.write(files["run.vcs"])
    sql = "SELECT DISTINCT fields FROM events WHERE event LIKE 'jobs:%'"
    seen = [bench.run("query", path, sql, "--format", "csv").stdout.decode().splitlines()[1:]
            for path in (recording, cut)]
    expect(f"values were recorded, and only zeros remain: {seen[0][:3]}, {seen[1]}", len(seen[0]) > 3 and seen[1] and
           all(set(re.findall(r"=\s*(\w+)", line)) <= {"0", "0x0"} for line in seen[1]))


def refusals_check(bench):
    there = bench.path("there.tar")
    with open(there, "w", encoding="utf-8") as f:
        f.write("mine")
    os.symlink(bench.path("nowhere"), bench.path("link.tar"))
    for name in ("there.tar", "link.tar"):
        bench.refuses(1, r"exists already; remove it, or name another file", "-o", bench.path(name))
    with open(there, encoding="utf-8") as f:
        expect("an existing file is not touched", f.read() == "mine")
    expect("a link is not followed", not os.path.exists(bench.path("nowhere")))
    bench.refuses(1, r"cannot write: No such file", "-o", bench.path("no", "a.tar"))
    bench.refuses(2, r"--from, --to and --around .*RUN\.vcs", "--from", "+1s", "-o", bench.path("a.tar"))
    bench.refuses(1, r"gone\.vcs: ", bench.path("gone.vcs"), "-o", bench.path("a.tar"))
    bench.refuses(2, r"--around 99: .*3 stalls", os.path.join(HERE, "..", "data", "quickstart.vcs"), "--around", 99,
                  "-o", bench.path("a.tar"))
    fifo = bench.path("fifo.conf")
    os.mkfifo(fifo)
    for config in ("/dev/zero", fifo, bench.folder, bench.path("gone.conf")):
        bench.refuses(1, rf"--config {re.escape(config)}: ", "--config", config, "-o", bench.path("a.tar"))
    bench.refuses(1, r"no temporary file: .* set TMPDIR", "-o", bench.path("a.tar"),
                  env=dict(bench.env, TMPDIR=bench.path("gone")))
    with open("/dev/full", "wb") as full:
        bench.refuses(1, r"standard output: cannot write: No space", "-o", "-", stdout=full)
    expect("no archive remains", not os.path.exists(bench.path("a.tar")))


def standard_output_check(bench):
    done = bench.run("bugreport", "-o", "-")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as tar:
        names = [os.path.basename(name) for name in tar.getnames()]
    expect(f"standard output: exit {done.returncode}, {names}", done.returncode == 0 and names == PARTS[:-1])


def signals_check(bench):
    """At any moment: no file, no process remains, or the archive is complete."""
    to = bench.path("stopped.tar")
    recording = os.path.join(HERE, "..", "data", "bed-a-stacks.vcs")
    stopped = 0
    for n, number in enumerate([signal.SIGINT, signal.SIGTERM, signal.SIGHUP] * 3 + [signal.SIGKILL]):
        # Only this process gets the signal, not its group as from a terminal.
        with subprocess.Popen([bench.program, "bugreport", recording, "-o", to], env=bench.env,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            time.sleep(0.05 + 0.1 * n)
            process.send_signal(number)
            code = process.wait(60)
        if code == 0:
            expect("complete", list(unpack(to)) == PARTS)
            os.unlink(to)
        else:
            expect(f"ended by {number}: {code}", code == -number)
            stopped += 1
        until = time.monotonic() + 10
        while bench.processes() and time.monotonic() < until:
            time.sleep(0.02)
        expect(f"processes remain: {bench.processes()}", not bench.processes())
        expect("no archive remains", not os.path.exists(to))
        expect("no temporary file remains", not os.listdir(bench.temporary))
    expect("signals came in time", stopped)


def user_check(bench):
    """Without root it works and says what is missing."""
    if os.geteuid():
        user = {}
    else:
        user = {"user": 65534, "group": 65534, "extra_groups": []}
    config = bench.path("private.conf")
    with open(config, "w", encoding="utf-8") as f:
        f.write(f"[daemon]\non_incident = {SECRET}\n")
    os.chmod(config, 0)
    recording = bench.path("run.vcs")
    shutil.copy(os.path.join(HERE, "..", "data", "quickstart.vcs"), recording)
    os.chmod(recording, 0o644)
    home = bench.path("home")
    os.mkdir(home)
    os.chmod(home, 0o777)
    to = os.path.join(home, "mine.tar")
    done = bench.run("bugreport", recording, "-o", to, umask=0, **user)
    said = done.stderr.decode()
    expect(f"exit {done.returncode}: {said}", done.returncode == 0 and "missing: versions.txt, doctor.txt: not made as "
           "root" in said)
    expect("umask 0", stat.S_IMODE(os.stat(to).st_mode) == 0o600)
    files = unpack(to)
    expect(f"parts: {list(files)}", list(files) == PARTS and b"not made as root" in files["README.txt"])
    bench.refuses(3, r"--config .*: Permission denied: run it as root", "--config", config, "-o",
                  os.path.join(home, "b.tar"), **user)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vcpuscope", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bugreport-") as folder:
        bench = Bench(args.vcpuscope, folder)
        try:
            secrets_check(bench)
            parts_check(bench)
            n = sum(recording_check(bench, os.path.join(HERE, "..", "data", name + ".vcs")) for name in
                    ("quickstart", "bed-a-stacks", "bed-b-migration", "sim-lock", "sim-mixture-loss"))
            window_check(bench)
            chosen_events_check(bench)
            refusals_check(bench)
            standard_output_check(bench)
            signals_check(bench)
            user_check(bench)
        except Bad as bad:
            sys.exit(f"FAILED: {bad}")
    print(f"{n} names of tasks and VMs in 5 recordings are in no archive")


if __name__ == "__main__":
    main()
