# SPDX-License-Identifier: GPL-2.0-only
"""The JSON that vcpuscope writes fits the schemas of deploy/schemas, and has no member that they do not name."""
import argparse
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:
    print("skipped: no python3-jsonschema here")
    sys.exit(77)

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
SCENARIOS = ("vmm_lock", "interrupt_lost", "lock_holder_preempted.spin", "cgroup_throttled", "guest_irq_storm",
             "clock_jump")
EVENTS = "guest:sched:sched_switch,guest:sched:sched_wakeup,host:kvm:kvm_exit,host:sched:sched_switch"
PAIR = ("-e", "guest:sched:sched_wakeup", "-e", "guest:sched:sched_switch", "--key", "vcpu")


def strict(schema):
    """The same without members that are not named: readers accept them, but a new one needs a name."""
    if isinstance(schema, list):
        return [strict(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: strict(value) for key, value in schema.items()}
    if "properties" in out and isinstance(out["properties"], dict):
        out.setdefault("additionalProperties", False)
    return out


class Check:
    def __init__(self, vcpuscope, folder):
        self.vcpuscope, self.folder, self.bad, self.checked = vcpuscope, folder, 0, {}
        self.schemas = {}
        for path in glob.glob(os.path.join(ROOT, "deploy/schemas/*.json")):
            with open(path, encoding="utf-8") as f:
                schema = json.load(f)
            jsonschema.Draft7Validator.check_schema(schema)
            name = os.path.basename(path).removesuffix(".schema.json")
            self.wrong(schema["title"] != "vcpuscope." + name.replace("-", "/"), f"{path}: its title")
            self.schemas[name] = jsonschema.Draft7Validator(strict(schema))

    def wrong(self, is_wrong, what):
        if is_wrong:
            print(f"wrong: {what}")
            self.bad += 1

    def run(self, *args):
        done = subprocess.run([self.vcpuscope, *args], cwd=self.folder, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)
        return done.stdout

    def fits(self, name, text, what):
        errors = list(self.schemas[name].iter_errors(json.loads(text)))
        for e in errors[:3]:
            self.wrong(True, f"{what}: {name}: {'/'.join(map(str, e.absolute_path))}: {e.message[:200]}")
        self.checked[name] = self.checked.get(name, 0) + 1


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


def members_check(c):
    """Objects that this test cannot have made here: their members in the source are those of the schema."""
    for name, path, function, where in (
            ("incident-1", "daemon/incident_summary.c", "incident_summary_json", []),
            ("vms-1", "cli/list_all.c", "row_json", ["properties", "vms", "items"])):
        with open(os.path.join(ROOT, "host-collector", path), encoding="utf-8") as f:
            body = re.search(rf"^[^\n;]*\b{function}\([^;]*?\n{{\n(.*?)^}}", f.read(), re.M | re.S)[1]
        schema = c.schemas[name].schema
        for step in where:
            schema = schema[step]
        members = set(re.findall(r'_add(?:_\w+)?\(\s*o,\s*"(\w+)"', body))
        c.wrong(not members or members != set(schema["properties"]),
                f"{name}: {members ^ set(schema['properties'])} are not in both the source and the schema")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vcpuscope", required=True)
    with tempfile.TemporaryDirectory() as folder:
        c = Check(os.path.abspath(parser.parse_args().vcpuscope), folder)
        names_check(c)
        sources_check(c)
        members_check(c)
        recordings = sorted(glob.glob(os.path.join(ROOT, "tests/data/*.vcs")))
        for scenario in SCENARIOS:
            recordings.append(os.path.join(folder, f"{scenario}.vcs"))
            c.run("simulate", scenario, "--loss", "0.02", "-o", recordings[-1])
            with open(recordings[-1] + ".truth.json", encoding="utf-8") as f:
                c.fits("truth-1", f.read(), scenario)
        with open(os.path.join(ROOT, "tests/golden/report-1.json"), encoding="utf-8") as f:
            c.fits("report-1", f.read(), "the golden report")
        for r in recordings:
            c.fits("report-1", c.run("report", r, "--all", "--than", "20ms", "--format", "json"), r)
            c.fits("clock-1", c.run("clock", r, "--format", "json"), r)
            for table in ("vcpu", "tasks", "irq", "exits", "steal", "slowest"):
                c.fits("table-2", c.run("report", r, table, "--format", "json"), f"{r} {table}")
            for line in c.run("report", r, "events", "-e", EVENTS, "--top", "500", "--format", "jsonl").splitlines():
                c.fits("event-1", line, f"{r} events")
            for line in c.run("report", r, "pairs", *PAIR, "--format", "jsonl").splitlines():
                c.fits("pair-1", line, f"{r} pairs")
        c.fits("summary-1", c.run("summarize", *recordings[:2]), "summarize")
        for more in ([], ["--all"]):
            c.fits("gate-1", c.run("compare", recordings[0], "--against", recordings[1], "--format", "json", *more),
                   "compare")
        c.fits("doctor-1", c.run("doctor", "--format", "json"), "doctor")
        c.fits("vms-1", c.run("list", "--all", "--format", "json"), "list --all")
    for name in ("event-1", "pair-1"):
        c.wrong(not c.checked.get(name), f"no line was compared with {name}")
    print(f"{c.checked}: {c.bad} wrong")
    sys.exit(bool(c.bad))


if __name__ == "__main__":
    main()
