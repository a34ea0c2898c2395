# SPDX-License-Identifier: GPL-2.0-only
"""The JSON that vcpuscope writes fits the schemas of deploy/schemas, and has no member that they do not name."""
import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile

try:
    from schema_check import ROOT, Schemas
except ImportError:
    print("skipped: no python3-jsonschema here")
    sys.exit(77)

SCENARIOS = ("vmm_lock", "interrupt_lost", "lock_holder_preempted.spin", "cgroup_throttled", "guest_irq_storm",
             "clock_jump")
EVENTS = "guest:sched:sched_switch,guest:sched:sched_wakeup,host:kvm:kvm_exit,host:sched:sched_switch"
PAIR = ("-e", "guest:sched:sched_wakeup", "-e", "guest:sched:sched_switch", "--key", "vcpu")


class Check(Schemas):
    def __init__(self, vcpuscope, folder):
        super().__init__()
        self.vcpuscope, self.folder = vcpuscope, folder

    def run(self, *args):
        done = subprocess.run([self.vcpuscope, *args], cwd=self.folder, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)
        return done.stdout


def names_check(c):
    """The names in the schemas are the program's."""
    dump = [line.split("\t") for line in c.run("--dump-options").splitlines()]
    names = {kind: [r[1] for r in dump if r[0] == kind] for kind in ("verdict", "confidence", "missing", "state")}
    report = c.schemas["report-1"].schema["properties"]["incidents"]["items"]["properties"]
    c.wrong(report["verdict"]["enum"] != names["verdict"], "the verdicts of report-1")
    c.wrong(sorted(report["confidence"]["enum"]) != sorted(names["confidence"]), "the confidences of report-1")
    c.wrong(report["missing"]["items"]["enum"] != names["missing"], "the missing data of report-1")
    c.wrong(list(report["breakdown_ns"]["properties"]) != names["state"], "the states of report-1")


def sources_check(c):
    """Every schema that the program names has a file."""
    named = set()
    for path in glob.glob(os.path.join(ROOT, "host-collector/**/*.c"), recursive=True):
        with open(path, encoding="utf-8") as f:
            named |= set(re.findall(r'"?vcpuscope\.(\w+/\d+)\\?"', f.read()))
    fleet = {os.path.basename(p).removesuffix(".schema.json")
             for p in glob.glob(os.path.join(ROOT, "deploy/fleet/*.schema.json"))}
    for name in named:
        c.wrong(name.replace("/", "-") not in c.schemas.keys() | fleet, f"vcpuscope.{name} has no schema")


# The schemas of what each command writes with --format json. Those of deploy/fleet have tests of their own.
WRITTEN = {
    "report": "report-1 table-2 event-1 pair-1", "watch": "report-1 table-2 event-1 pair-1", "clock": "clock-1",
    "compare": "gate-1", "doctor": "doctor-1", "ctl": "control-1", "snapshot": "control-1",
    "list": "control-1 vms-1", "events": "table-2", "query": "query-1", "incidents": "incident-2",
}


def commands_check(c):
    """Every command with --format json has its schemas above."""
    command, found = None, set()
    for kind, *fields in (line.split("\t") for line in c.run("--dump-options").splitlines()):
        if kind == "command":
            command = fields[0]
        elif kind == "option" and fields[2] == "choice" and {"json", "jsonl"} & set(fields[3].split("|")):
            found.add(command)
    c.wrong(found != set(WRITTEN), f"{found ^ set(WRITTEN)}: which schemas do these commands have?")
    fleet = {"incident-2"}
    for command, names in WRITTEN.items():
        c.wrong(set(names.split()) - fleet - set(c.schemas), f"{command}: {names}: there is no such schema")


# Objects whose members no test can bring about together: (schema, where in it, functions that write it).
MEMBERS = (
    ("incident-1", [], ["daemon/incident_summary.c:incident_summary_json",
                       "daemon/incident_store.c:summary_write"]),
    ("vms-1", ["properties", "vms", "items"], ["cli/list_all.c:row_json"]),
    ("control-1", ["definitions", "vm"], ["daemon/commands.c:vm_describe", "daemon/kvm_feed.c:kvm_feed_describe"]),
    ("control-1", ["definitions", "link"], ["daemon/commands.c:channel_describe"]),
    ("control-1", ["definitions", "flight"], ["daemon/commands.c:flight_describe"]),
    ("control-1", ["definitions", "vcpu"], ["daemon/commands.c:vcpu_describe"]),
    ("control-1", ["definitions", "stall"], ["daemon/commands.c:stall_describe"]),
    ("control-1", ["definitions", "top_vm"], ["daemon/commands.c:do_top"]),
    ("control-1", ["definitions", "status"], ["daemon/commands.c:do_status", "daemon/control.c:line_serve"]),
    ("control-1", ["definitions", "status", "properties", "capture"], ["daemon/commands.c:captures_describe"]),
)
# A member that is on top of the answers whose functions are named above.
ELSEWHERE = {"vms", "error"}


def members_check(c):
    """The members in the source are those of the schema."""
    for name, where, functions in MEMBERS:
        members = set()
        for function in functions:
            path, function = function.split(":")
            with open(os.path.join(ROOT, "host-collector", path), encoding="utf-8") as f:
                body = re.search(rf"^[^\n;]*\b{function}\([^;]*?\n{{\n(.*?)^}}", f.read(), re.M | re.S)[1]
            members |= set(re.findall(r'_add(?:_\w+)?\(\s*(?:o|out|reply|summary),\s*"(\w+)"', body))
        schema = c.schemas[name].schema
        for step in where:
            schema = schema[step]
        differ = members ^ set(schema["properties"])
        c.wrong(not members or differ - (ELSEWHERE if name == "control-1" else set()),
                f"{name}: {'/'.join(where)}: {differ} are not in both the source and the schema")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vcpuscope", required=True)
    with tempfile.TemporaryDirectory() as folder:
        c = Check(os.path.abspath(parser.parse_args().vcpuscope), folder)
        names_check(c)
        sources_check(c)
        members_check(c)
        commands_check(c)
        recordings = sorted(glob.glob(os.path.join(ROOT, "tests/data/*.vcs")))
        for scenario in SCENARIOS:
            recordings.append(os.path.join(folder, f"{scenario}.vcs"))
            c.run("simulate", scenario, "--loss", "0.02", "-o", recordings[-1])
            with open(recordings[-1] + ".truth.json", encoding="utf-8") as f:
                c.fits("truth-1", f.read(), scenario)
        recordings.append(os.path.join(folder, "protected.vcs"))
        c.run("simulate", "vmm_lock", "--protected", "sev-snp", "-o", recordings[-1])
        with open(os.path.join(ROOT, "tests/golden/report-1.json"), encoding="utf-8") as f:
            c.fits("report-1", f.read(), "the golden report")
        for r in recordings:
            c.fits("report-1", c.run("report", r, "--all", "--than", "20ms", "--format", "json"), r)
            c.fits("clock-1", c.run("clock", r, "--format", "json"), r)
            for table in ("vcpu", "tasks", "irq", "exits", "steal", "slowest"):
                c.fits("table-2", c.run("report", r, table, "--format", "json"), f"{r} {table}")
            for line in c.run("report", r, "events", "-e", EVENTS, "--top", "500", "--format", "jsonl").splitlines():
                c.fits("event-1", line, f"{r} events")
            c.fits("table-2", c.run("events", r, "--format", "json"), f"events of {r}")
            for line in c.run("report", r, "pairs", *PAIR, "--format", "jsonl").splitlines():
                c.fits("pair-1", line, f"{r} pairs")
        c.fits("table-2", c.run("events", "--format", "json"), "events")
        for more in (["top"], ["rate"], ["dist", "--value", "vcpu"]):
            c.fits("table-2", c.run("report", recordings[0], *more, "-e", "host:kvm:kvm_exit", "--format", "json"),
                   f"report {more}")
        c.fits("table-2", c.run("report", recordings[0], "pairs", *PAIR, "--format", "json"), "pairs")
        c.fits("summary-1", c.run("summarize", *recordings[:2]), "summarize")
        for more in ([], ["--all"]):
            c.fits("gate-1", c.run("compare", recordings[0], "--against", recordings[1], "--format", "json", *more),
                   "compare")
        for sql in ("select * from incidents", "select * from events limit 200", "select 1, 2.5, null, x'00ff'",
                    "select * from spans limit 200", "select 1 where 0"):
            c.fits("query-1", c.run("query", recordings[0], sql, "--format", "json"), f"query {sql}")
        c.fits("doctor-1", c.run("doctor", "--format", "json"), "doctor")
        c.fits("vms-1", c.run("list", "--all", "--format", "json"), "list --all")
    for name in ("event-1", "pair-1"):
        c.wrong(not c.checked.get(name), f"no line was compared with {name}")
    print(f"{c.checked}: {c.bad} wrong")
    sys.exit(bool(c.bad))


if __name__ == "__main__":
    main()
