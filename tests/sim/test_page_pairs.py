# SPDX-License-Identifier: GPL-2.0-only
"""What the HTML page shows of chosen events and of pairs is what text reports and `query` say: the calls of each pair,
their times together and their heat map; in each timeline the number of marks of each event and of spans of each pair,
and their times together. The recordings are simulated (jobs that the host hands to the guest), without losses and with
1 % and 20 % of all events lost, and one of a real guest. The page stays small. More pairs need no further reading of the
recording."""
import argparse
import collections
import ctypes
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

JOBS = "host:jobs:job_issue", "guest:jobs:job_done"
SOFTIRQ = "guest:irq:softirq_entry", "guest:irq:softirq_exit"
PAGE_BYTES = 3 << 20


IN_CLOSE_NOWRITE, IN_OPEN = 0x10, 0x20


class Wrong(Exception):
    pass


def want(true, what):
    if not true:
        raise Wrong(what)


class Recording:
    def __init__(self, program, path, events, a, b, key):
        self.program, self.path, self.events, self.a, self.b, self.key = program, path, events, a, b, key

    def run(self, *words, codes=(0, 5)):
        done = subprocess.run([self.program, *words], capture_output=True, text=True, check=False)
        want(done.returncode in codes, f"{' '.join(words)}: exit {done.returncode}: {done.stderr}")
        return done.stdout

    def page(self, *more):
        html = self.run("report", self.path, "--format", "html", *more)
        want(len(html.encode()) <= PAGE_BYTES, f"the page has {len(html)} characters")
        return json.loads(re.search(r'id="data">(.*?)</script>', html, re.S)[1])

    def query(self, sql):
        return json.loads(self.run("query", self.path, sql, "--format", "json"))


def readings(r, *words):
    """How often the command opens the recording."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.inotify_init1(os.O_NONBLOCK)
    # Two openings in a row would be one event.
    want(fd >= 0 and libc.inotify_add_watch(fd, os.fsencode(r.path), IN_OPEN | IN_CLOSE_NOWRITE) >= 0, "no inotify")
    try:
        r.run(*words)
        events = os.read(fd, 1 << 16)
    finally:
        os.close(fd)
    return sum(1 for at in range(0, len(events), 16) if struct.unpack_from("iI", events, at)[1] & IN_OPEN)


def readings_check(r):
    """One pair needs one more reading, and 16 pairs need no more than one."""
    def pairs(n):
        return [word for i in range(n) for word in ("--pair", f"p{i}[{r.key}]={r.a}..{r.b}")]

    for command in "report", "summarize":
        none, one, many = (readings(r, command, r.path, *pairs(n)) for n in (0, 1, 16))
        want(none >= 2 and one == many == none + 1, f"{command} reads the recording {none}, {one}, {many} times")


def pair_check(r, page):
    """The figures of the pair. Returns the rows of `query` that are calls."""
    [pair] = page["pairs"]
    report = json.loads(r.run("report", r.path, "pairs", "-e", r.a, "-e", r.b, "--key", r.key, "--format", "json"))
    [row] = [t["rows"] for t in [report] + report.get("tables", []) if t["table"] == "pairs"][0]
    ours = row["calls"], row["total_ns"], row["unpaired_from"], row["unpaired_to"], row["incomplete"], row["ambiguous"]
    theirs = tuple(pair[k] for k in ("count", "total_ns", "unpaired_from", "unpaired_to", "incomplete", "ambiguous"))
    want(ours == theirs, f"report pairs: {ours}, the page: {theirs}")
    if row["calls"]:
        want([row[k] for k in ("p50_ns", "p95_ns", "p99_ns", "p99_9_ns", "max_ns")] == pair["quantiles"], (row, pair["quantiles"]))
    cells = pair["cells"]
    want(sum(cells[2::3]) == row["calls"], f"{sum(cells[2::3])} in the heat map, {row['calls']} calls")
    rows = [p for p in r.query(f"SELECT * FROM pairs('{r.a}', '{r.b}', '{r.key}')")
            if (row["past_losses"] or not p["past_losses"]) and (row["past_both"] or not p["past_both"])]
    want(len(rows) == row["calls"], f"{len(rows)} rows, {row['calls']} calls")
    edges = page["latencies"]["rows_ns"]
    counted = collections.Counter(max(i for i, edge in enumerate(edges[:-1]) if edge <= p["duration_ns"]) for p in rows)
    drawn = collections.Counter()
    for _, level, n in zip(*[iter(cells)] * 3):
        drawn[level] += n
    want(counted == drawn, f"the heat map has other lengths: {drawn}, not {counted}")
    return rows


def lanes_of(marks):
    """[(begin, length)] as (number, times together)."""
    return len(marks), sum(ns for _, ns in marks)


def scenes_check(r, page, rows):
    """Marks and spans of each timeline. Returns their numbers, and how many were folded."""
    origin, n_events, n_pairs, folded = page["report"]["begin_ns"], 0, 0, 0
    events = r.query("SELECT side, event, t_ns, vm, vcpu FROM events WHERE event IN (" +
                     ", ".join(f"'{e}'" for e in r.events) + ")") if r.events else []
    for scene in page["scenes"]:
        begin, end = origin + scene["begin"], origin + scene["begin"] + scene["length"]
        wanted = collections.defaultdict(list)
        for e in events:
            if begin <= e["t_ns"] <= end:
                wanted["event", f"{e['side']}:{e['event']}", e["vcpu"]].append((e["t_ns"], 0))
        for p in rows:
            if p["begin_ns"] <= end and p["begin_ns"] + p["duration_ns"] >= begin:
                wanted["pair", "the-pair", p["vcpu"]].append((p["begin_ns"], p["duration_ns"]))
        want(not scene["marks_left_out"], scene["marks_left_out"])
        shown = {}
        for lane in scene["lanes"]:
            marks = list(zip(*[iter(lane["marks"])] * 4))
            want([m[0] for m in marks] == sorted(m[0] for m in marks), "marks are not in order")
            key = lane["kind"], lane["name"], lane.get("vcpu")
            shown[key] = sum(m[2] for m in marks), sum(m[3] for m in marks)
            folded += sum(m[2] > 1 for m in marks)
            n_events += (lane["kind"] == "event") * shown[key][0]
            n_pairs += (lane["kind"] == "pair") * shown[key][0]
            want(not lane["cut"], f"{key}: older marks were not kept")
            for at, ns, n, sum_ns in marks:
                want((origin + scene["begin"] + at, ns) in wanted[key], f"{key}: {at}, {ns} is no event or pair")
                want(n >= 1 and (n > 1 or sum_ns == ns), f"{key}: {n} marks of {sum_ns} ns")
        want(shown == {k: lanes_of(v) for k, v in wanted.items() if v},
             f"lanes {shown}, not { {k: lanes_of(v) for k, v in wanted.items()} }")
    return n_events, n_pairs, folded


def evidence_check(r):
    """The line about the pair in each stall. Returns their number."""
    words = "report", r.path, "--pair", f"the-pair[{r.key}]={r.a}..{r.b}"
    report = json.loads(r.run(*words, "--format", "json"))
    text = "".join(r.run(*words).split())
    rows, found = r.query(f"SELECT * FROM pairs('{r.a}', '{r.b}', '{r.key}')"), 0
    for i in report["incidents"]:
        lines = [e for e in i["evidence"] if e["text"].startswith("pair ")]
        over = [p for p in rows if (p["vm"], p["vcpu"]) == (i["vm"], i["vcpu"]) and p["begin_ns"] <= i["end_ns"] and
                p["begin_ns"] + p["duration_ns"] >= i["begin_ns"]]
        want(len(lines) <= 1 and (lines or not over), f"stall {i['number']}: {lines}, {len(over)} pairs")
        for line in lines:
            found += 1
            number = re.search("the longest (that was kept )?of (\\d+)", line["text"])
            longest = max(over, key=lambda p: p["duration_ns"])
            want(line["text"].startswith(f"pair the-pair, {r.a} to {r.b}, key "), line["text"])
            # A stall like another one is a line of it.
            want("".join(line["text"].split()) in text or "also" in text and found > 1, f"not in the text: {line['text']}")
            if number and number[1]:
                want(int(number[2]) <= len(over), f"{line['text']}: {len(over)} pairs")
            else:
                want((line["duration_ns"], len(over)) == (longest["duration_ns"], int(number[2]) if number else 1),
                     f"{line}, not {longest}, {len(over)} pairs")
    want(not any("pair " in e["text"][:5] for i in json.loads(r.run("report", r.path, "--format", "json"))["incidents"]
                 for e in i["evidence"]), "pairs that nobody named are evidence")
    return found


def recording_check(r, name):
    page = r.page("--pair", f"the-pair[{r.key}]={r.a}..{r.b}")
    rows = pair_check(r, page)
    n_events, n_pairs, folded = scenes_check(r, page, rows)
    print(f"{name}: {len(rows)} calls; in {len(page['scenes'])} timelines {n_events} events and {n_pairs} pairs, "
          f"{folded} marks stand for several")
    want(page["scenes"] and n_pairs, "there is nothing to compare")
    want(n_events or not r.events, "no chosen event is in a timeline")
    lines = evidence_check(r)
    print(f"{name}: {lines} stalls have the pair as evidence")
    want(lines or not r.events, "no stall has the pair as evidence")
    shown = [[e["text"] for e in i["evidence"] if e["text"].startswith("pair ")] for i in page["report"]["incidents"]]
    want(sum(map(len, shown)) == lines or page["incidents_left_out"], "the page has other evidence")
    alone = r.page()
    want(not alone["pairs"] and not any(x["kind"] == "pair" for s in alone["scenes"] for x in s["lanes"]),
         "pairs that nobody named")


def refusals(r):
    for words, says, codes in ((["vcpu", "--pair", "x=irq:softirq_entry..irq:softirq_exit"], "omit TABLE", (2,)),
                               (["--pair", "nothing"], "NAME=A..B", (2,)),
                               (["--pair", "x[cpu=irq:softirq_entry..irq:softirq_exit"], "NAME[KEY]=A..B", (2,)),
                               (["--pair", f"x[{'c' * 300}]=a:b..a:c"], "key", (2,)),
                               # The report is made, and says what is missing.
                               (["--pair", "x=irq:nothing..irq:softirq_exit"], "irq:nothing", (0, 5)),
                               (["--pair", "x[nokey]=irq:softirq_entry..irq:softirq_exit"], "nokey", (0, 5))):
        done = subprocess.run([r.program, "report", r.path, *words], capture_output=True, text=True, check=False)
        want(done.returncode in codes and sum(says in line for line in done.stderr.splitlines()) == 1,
             f"{words}: exit {done.returncode}: {done.stderr}")


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--vcpuscope", required=True)
    p.add_argument("--simulate", required=True)
    a = p.parse_args()
    program = os.path.abspath(a.vcpuscope)
    if subprocess.run([program, "query", "x", "SELECT 1"], capture_output=True, check=False).returncode == 3:
        print("this build has no SQLite")
        return 77
    bad = 0
    with tempfile.TemporaryDirectory(prefix="vcpuscope-page.") as folder:
        todo = []
        for scenario, loss in (("vcpu_not_scheduled.crowd", "0"), ("vcpu_not_scheduled.crowd", "0.01"),
                               ("vm_paused.signal", "0.2")):
            path = os.path.join(folder, f"{scenario}-{loss}.vcs")
            subprocess.run([os.path.abspath(a.simulate), scenario, "--jobs", "--seed", "3", "--loss", loss, "-o", path],
                           check=True)
            todo.append((f"{scenario}, loss {loss}", Recording(program, path, ("jobs:job_issue", "jobs:job_done"), *JOBS, "slot")))
        real = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "bed-a.vcs")
        todo.append(("bed-a", Recording(program, real, (), *SOFTIRQ, "cpu")))
        for name, r in todo:
            try:
                recording_check(r, name)
            except Wrong as e:
                bad += 1
                print(f"{name}: {str(e)[:800]}")
        try:
            refusals(todo[-1][1])
            readings_check(todo[0][1])
        except Wrong as e:
            bad += 1
            print(str(e)[:600])
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
