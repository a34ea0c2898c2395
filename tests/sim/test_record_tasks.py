#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""`record` without a VM: the chosen events of threads, of a cgroup and of a command are recorded, those of other tasks
are not. The command's exit status is reported, a signal ends both, and each mistake is one line."""
import argparse
import json
import os
import pwd
import signal
import subprocess
import sys
import tempfile
import time

EXEC = "sched:sched_process_exec"
RENAME = "task:task_rename"
CGROUP_ROOTS = "/sys/fs/cgroup/unified", "/sys/fs/cgroup"


def cgroup_make():
    for root in CGROUP_ROOTS:
        if os.path.exists(f"{root}/cgroup.procs") and os.path.exists(f"{root}/cgroup.controllers"):
            path = f"{root}/vcpuscope-test-{os.getpid()}"
            try:
                os.makedirs(f"{path}/below")
                return path
            except OSError:
                pass
    return None


def recorder_wait(out):
    """The file grows regularly as soon as all events are attached."""
    sizes = set()
    while len(sizes) < 4:
        time.sleep(0.1)
        if os.path.exists(out):
            sizes.add(os.path.getsize(out))


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--vcpuscope", required=True)
    program = os.path.abspath(p.parse_args().vcpuscope)
    wrong = []

    def expect(what, right):
        if not right:
            wrong.append(what)

    def run(*words, before=()):
        return subprocess.run([*before, program, *words], capture_output=True, text=True, check=False, timeout=120)

    def hits(recording, event=EXEC):
        done = run("report", recording, "events", "-e", event, "--top", "0", "--format", "jsonl")
        expect(f"report of {recording}: {done.stderr}", done.returncode == 0)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def names(recording):
        return sorted(os.path.basename(h["fields"]["filename"]) for h in hits(recording))

    with tempfile.TemporaryDirectory(prefix="vcpuscope-tasks.") as folder:
        out = f"{folder}/run.vcs"
        mistakes = (
            (["--tid", "1", "-o", out], 2, "also give the events, with -e EVENT"),
            (["-e", EXEC, "--tid", "x", "-o", out], 2, "--tid: expected a thread ID"),
            (["-e", EXEC, "-o", out], 2, "the VM is missing"),
            (["-e", EXEC, "-o", out, "--tid", "1", "--sample-hz", "9"], 2, "need a VM"),
            (["-e", EXEC, "-e", "guest:" + EXEC, "--tid", "1", "-o", out], 2, "-e guest:... need a VM"),
            (["-o", out, "-e", EXEC, "--for", "1s", "true"], 2, "a command stands after --"),
            (["-e", EXEC, "-o", out, "--", "vcpuscope-no-such-program"], 1, "No such file"),
            (["-e", EXEC, "-o", out, "--", "/etc"], 3, "Permission denied"),
            (["-e", EXEC, "--tid", str(2 ** 31 - 1), "-o", out], 1, "there is no thread"),
            (["-e", EXEC, "--cgroup", "/proc", "-o", out], 1, "not a directory of cgroup v2"),
            (["-e", EXEC, "--cgroup", f"{folder}/none", "-o", out], 1, "No such file"),
        )
        for words, code, says in mistakes:
            done = run("record", *words)
            expect(f"{words}: {done}", done.returncode == code and says in done.stderr)
            expect(f"{words} are not one line: {done.stderr}", done.stderr.count("\n") == 1)
            expect(f"{words} wrote a file", not os.path.exists(out))
        if os.getuid():
            print("needs root")
            return 1 if wrong else 77
        done = run("record", "-e", EXEC, "-o", out, "--for", "1s", "--", "true")
        if done.returncode == 3:
            print(f"no BPF: {done.stderr}")
            return 1 if wrong else 77

        # Of a command: its first event, and those of all that it starts; nothing of others.
        other = subprocess.Popen(["sh", "-c", "while :; do /bin/uname >/dev/null; done"])
        try:
            done = run("record", "-e", EXEC, "-e", "sched:sched_process_exit", "-o", out, "--",
                       "sh", "-c", "/bin/true; (/bin/echo out; /usr/bin/env /bin/true) & wait; exit 7")
        finally:
            other.kill()
            other.wait()
        expect(f"a command that fails: {done}", done.returncode == 1 and "sh: exit status 7\n" in done.stderr)
        expect(f"the command's output: {done.stdout}", done.stdout == "out\n")
        expect(f"its programs: {names(out)}", names(out) == ["echo", "env", "sh", "true", "true"])
        ended = hits(out, "host:sched:sched_process_exit")
        # env, in the place of the subshell, becomes true.
        ended = sorted(h["comm"] for h in ended)
        expect(f"ends of processes: {ended}", ended == ["echo", "sh", "true", "true"])
        done = run("record", "-e", EXEC, "-o", out, "--", "true", "--help", "-x")
        expect(f"a command with options: {done}", done.returncode == 0 and "true: exit status 0\n" in done.stderr)
        done = run("record", "-e", EXEC, "-o", out, "--", "sh", "-c", "kill -SEGV $$")
        expect(f"a command that dies: {done}", done.returncode == 1 and "sh: ended by signal 11" in done.stderr)

        # A signal to `record`, and --for, end the command; what it wrote remains.
        for number in (signal.SIGINT, signal.SIGTERM, 0):
            # pylint: disable-next=consider-using-with
            recorder = subprocess.Popen([program, "record", "-e", EXEC, "-o", out, *([] if number else ["--for", "1s"]),
                                         "--", "sh", "-c", "echo $$; exec sleep 100"], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
            pid = int(recorder.stdout.readline())
            time.sleep(0.5)
            if number:
                recorder.send_signal(number)
            _, says = recorder.communicate(timeout=60)
            expect(f"after signal {number}: {recorder.returncode}: {says}", recorder.returncode == 0 and
                   "sh: ended by signal 15" in says)
            expect(f"the command goes on after {number}", not os.path.exists(f"/proc/{pid}"))
            expect(f"signal {number}: {names(out)}", names(out) == ["sh", "sleep"])

        # Of threads; it ends when they end.
        with subprocess.Popen(["sh", "-c", "read go; /bin/true; exec /bin/uname"], stdin=subprocess.PIPE,
                              stdout=subprocess.DEVNULL, text=True) as shell:
            os.unlink(out)
            # pylint: disable-next=consider-using-with
            recorder = subprocess.Popen([program, "record", "-e", EXEC, "--tid", str(shell.pid), "-o", out],
                                        stderr=subprocess.PIPE, text=True)
            recorder_wait(out)
            shell.communicate("go\n")
            _, says = recorder.communicate(timeout=60)
        expect(f"threads: {recorder.returncode}: {says}", recorder.returncode == 0 and
               "the threads have ended: the recording ends" in says)
        expect(f"of the thread only: {names(out)}", names(out) == ["uname"])

        # Of a cgroup and those below it.
        group = cgroup_make()
        if group:
            os.unlink(out)
            script = "read go; /bin/uname; echo $$ >%s/cgroup.procs; /bin/true"
            inside = [subprocess.Popen(["sh", "-c", script % where], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                       text=True) for where in (group, f"{group}/below")]
            # pylint: disable-next=consider-using-with
            recorder = subprocess.Popen([program, "record", "-e", EXEC, "--cgroup", group, "-o", out],
                                        stderr=subprocess.PIPE, text=True)
            recorder_wait(out)
            for shell in inside:
                shell.communicate("go\n")
            recorder.send_signal(signal.SIGINT)
            _, says = recorder.communicate(timeout=60)
            expect(f"a cgroup: {recorder.returncode}: {says}", recorder.returncode == 0)
            expect(f"of the cgroup: {names(out)}", names(out) == ["true", "true"])
            os.rmdir(f"{group}/below")
            os.rmdir(group)
        else:
            print("no cgroup v2 here: --cgroup was not tested")

        # A task renames itself twice, with its stack, and waits until its functions have names. A busy machine may
        # answer too late for the program's names, so there are several attempts.
        renames = "import time\nfor name in 'one', 'two': open('/proc/self/comm', 'w').write(name)\ntime.sleep(1)"
        named = 0
        for _ in range(5):
            done = run("record", "-e", f"{RENAME}//stack/", "-o", out, "--", sys.executable, "-c", renames)
            expect(f"with stacks: {done}", done.returncode == 0)
            own = [h for h in hits(out, f'{RENAME}/newcomm=="one" || newcomm=="two"/stack/')]
            expect(f"renames: {own}", len(own) == 2 and all("stack_number" not in h["fields"] for h in own))
            stacks = [h.get("stack", []) for h in own]
            expect(f"the kernel's part of the stacks: {stacks}", all("comm_write" in stack for stack in stacks))
            named = sum(any(name in ("write", "__write", "__libc_write") for name in stack) for stack in stacks)
            if named == 2:
                break
        expect(f"the program's part of the stacks: {stacks}", named == 2)
        done = run("report", out, "pairs", "-e", f'{RENAME}/newcomm=="one"/stack/', "-e", f'{RENAME}/newcomm=="two"/',
                   "--key", "tid", "--detail=samekey")
        expect(f"a pair with a stack: {done}", "     |         comm_write+0x" in done.stdout)
        done = run("record", "--backend", "perf", "-e", f"{RENAME}//stack,untraced/", "-o", out, "--for", "1s")
        expect(f"a stack through perf: {done}", done.returncode != 0 or "takes no stacks" in done.stderr)

        # With few descriptors allowed, it allows itself more, and not the command.
        limited = ["prlimit", "--nofile=24:4096"]
        done = run("record", "-e", EXEC, "-o", out, "--", "sh", "-c", "ulimit -S -n", before=limited)
        expect(f"few descriptors: {done}", done.returncode == 0 and done.stdout == "24\n")

        # Without rights: one line, and the command does not run.
        nobody = pwd.getpwnam("nobody").pw_uid
        os.unlink(out)
        done = run("record", "-e", EXEC, "-o", out, "--", "touch", "/tmp/vcpuscope-touched",
                   before=["setpriv", f"--reuid={nobody}", "--clear-groups"])
        expect(f"without rights: {done}", done.returncode == 3 and done.stderr.count("\n") == 1)
        expect("without rights, it ran", not os.path.exists("/tmp/vcpuscope-touched") and not os.path.exists(out))

        # Through perf it watches no tasks: it says so instead of recording nothing.
        done = run("record", "--backend", "perf", "-e", EXEC, "-o", out, "--", "true")
        expect(f"through perf: {done}", done.returncode == 3 and done.stderr.count("\n") == 1
               and ("needs BPF" in done.stderr or "perf" in done.stderr))

        # What reads it.
        done = run("record", "-e", EXEC, "-o", out, "--", "sh", "-c", "true; /bin/true; /bin/true")
        for words in (["report", out], ["events", out], ["report", out, "top", "-e", EXEC, "--by", "comm"],
                      ["report", out, "--format", "json"], ["query", out, "SELECT count(*) FROM events"]):
            done = run(*words)
            expect(f"{words}: {done}", done.returncode in (0, 5) and done.stdout)
    for w in wrong:
        print(w)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
