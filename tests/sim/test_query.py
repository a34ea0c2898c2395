#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""`vcpuscope query` and `export --to sqlite`: the rows are those of reports, tables, `report events` and CSV; conditions
that are passed down to the reader give what SQLite alone finds; a query can neither write nor open anything; Ctrl-C ends it.
"""
import argparse
import csv
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

REFUSED = ("ATTACH 'x.db' AS x", "PRAGMA temp_store_directory = '/tmp'", "PRAGMA journal_mode = WAL",
           "PRAGMA writable_schema = 1", "CREATE TABLE t(a)", "CREATE TEMP TABLE t(a)",
           "CREATE VIRTUAL TABLE t USING events", "INSERT INTO events(t_ns) VALUES (1)", "DELETE FROM events",
           "DROP TABLE events", "SELECT load_extension('x')", "VACUUM INTO 'x.db'", "DETACH main", "BEGIN",
           "SELECT 1; SELECT 2", "SELECT nothing FROM events", "SELEC 1", "")


class Bad(Exception):
    pass


def expect(what, is_right):
    if not is_right:
        raise Bad(what)


class Program:
    def __init__(self, path, folder):
        self.path, self.folder = os.path.abspath(path), folder

    def run(self, *words):
        return subprocess.run([self.path, *words], capture_output=True, text=True, cwd=self.folder, check=False,
                              timeout=120)

    def read(self, *words):
        done = self.run(*words)
        expect(f"{' '.join(words)}: exit {done.returncode}: {done.stderr}", done.returncode in (0, 5))
        return done.stdout

    def rows(self, recording, sql):
        return json.loads(self.read("query", recording, sql, "--format", "json"))

    def tables(self, recording, table):
        page = json.loads(self.read("report", recording, table, "--top", "0", "--format", "json"))
        return {t["table"]: t["rows"] for t in [page] + page.get("tables", [])}


def pairs_check(program, recording):
    """As `report pairs`."""
    a, b = "guest:irq:softirq_entry", "guest:irq:softirq_exit"
    page = json.loads(program.read("report", recording, "pairs", "-e", a, "-e", b, "--key", "cpu", "--top", "64",
                                   "--format", "json"))
    tables = {t["table"]: t["rows"] for t in [page] + page.get("tables", [])}
    row = tables["pairs"][0]
    made = program.rows(recording, f"SELECT * FROM pairs('{a}', '{b}', 'cpu') ORDER BY duration_ns DESC, begin_ns")
    certain = [r for r in made if not r["past_losses"]]
    expect("the calls differ", len(certain) + row["past_losses"] == row["calls"] and row["calls"])
    made = [r for r in made if (row["past_both"] or not r["past_both"]) and
            (row["past_losses"] or not r["past_losses"])]
    expect("their times differ", sum(r["duration_ns"] for r in made) == row["total_ns"])
    expect("the longest ones differ", [r["duration_ns"] for r in made[:64]] ==
           [r["duration_ns"] for r in tables["single_pairs"]])
    expect("their states differ", sum(r["guest_ns"] or 0 for r in made) == row["guest_ns"])
    expect("their events differ", {(r["from_event"], r["to_event"]) for r in made} == {(a, b)})
    expect("columns that are arguments are shown", "a" not in made[0] and "k" not in made[0])
    slow = program.rows(recording, f"SELECT count(*) AS n FROM pairs('{a}/vec == 1/', '{b}') WHERE duration_ns > 1000")
    expect("a filter", 0 < slow[0]["n"] < len(made))
    for sql, says in (("SELECT * FROM pairs", "two events"), (f"SELECT * FROM pairs('{a}')", "two events"),
                      (f"SELECT * FROM pairs('{a}', 'kvm')", "second event, at character 4"),
                      (f"SELECT * FROM pairs('{a}', '{b}', 'colour')", "key, at character 1")):
        done = program.run("query", recording, sql)
        expect(f"{sql}: exit {done.returncode}: {done.stderr}", done.returncode and says in done.stderr)


def agreement_check(program, recording):
    """With the report, its tables and the other exports."""
    report = json.loads(program.read("report", recording, "--format", "json"))
    keys = ("number", "vm", "vcpu", "guest_cpu", "begin_ns", "end_ns", "duration_ns", "verdict", "because", "denied")
    rows = program.rows(recording, f"SELECT {', '.join(keys)} FROM incidents")
    expect("incidents differ", rows == [{k: i[k] for k in keys} for i in report["incidents"]])
    row = program.rows(recording, "SELECT * FROM recording")[0]
    expect("recording differs", (row["begin_ns"], row["end_ns"]) == (report["begin_ns"], report["end_ns"]))

    sums = {(r["vm"], r["vcpu"], r["state"]): r["ns"] for r in program.rows(
        recording, "SELECT vm, vcpu, state, sum(duration_ns) AS ns FROM spans WHERE kind = 'vcpu' GROUP BY 1, 2, 3")}
    wanted = {(v["vm"], v["vcpu"], s): ns for v in report["vcpus"] for s, ns in v["states_ns"].items() if ns}
    expect("states of vCPUs differ from the report", {k: v for k, v in sums.items() if v} == wanted)
    for r in program.tables(recording, "vcpu")["vcpu"]:
        own = lambda *states, r=r: sum(sums.get((r["vm"], r["vcpu"], s), 0) for s in states)
        expect("states differ from the table vcpu", (r["ran_ns"], r["halted_ns"], r["unknown_ns"]) ==
               (own("guest", "kvm", "vmm"), own("halted"), own("unknown")))
    irq = {}
    for r in program.rows(recording, "SELECT state, interrupt, count(*) AS n FROM spans WHERE kind = 'interrupt' "
                          "GROUP BY 1, 2"):
        irq[r["interrupt"]] = irq.get(r["interrupt"], 0) + r["n"]
    wanted = {}
    for r in program.tables(recording, "irq")["irq"]:
        wanted[r["name"]] = wanted.get(r["name"], 0) + r["count"] + r["torn"]
    expect(f"interrupts differ from the table irq: {irq}, {wanted}", irq == wanted)

    lines = list(csv.DictReader(program.read("export", recording, "--to", "csv", "-o", "-").splitlines()))
    for kind in "vcpu", "guest_cpu", "interrupt":
        rows = program.rows(recording, f"SELECT state, begin_ns, end_ns, pid FROM spans WHERE kind = '{kind}'")
        expect(f"spans {kind} differ from CSV",
               [tuple("" if v is None else str(v) for v in r.values()) for r in rows] ==
               [(r["state"], r["begin_ns"], r["end_ns"], r["pid"]) for r in lines if r["kind"] == kind])

    listed = [json.loads(line) for line in program.read("report", recording, "events", "-e", "*:*", "--top", "0",
                                                         "--format", "json").splitlines()]
    rows = program.rows(recording, "SELECT * FROM events")
    expect(f"{len(rows)} events, {len(listed)} in the list", len(rows) == len(listed) > 0)
    for a, b in zip(rows, listed):
        expect(f"event {a} is {b} in the list",
               (a["t_ns"], a["side"] + ":" + a["event"], a["cpu"], a["vcpu"], a["tid"]) ==
               (b["t_ns"], b["event"], b["cpu"], b.get("vcpu"), b.get("tid")) and
               json.loads(a["fields"]) == b["fields"])


def pushed_check(program, recording):
    """A condition on an expression is not passed down: with and without, the rows are equal."""
    begin = program.rows(recording, "SELECT begin_ns FROM recording")[0]["begin_ns"]
    low, high = begin + 2 * 10**9, begin + 2 * 10**9 + 10**8
    for table, conditions in (
            ("events", (("t_ns >= {0} AND t_ns < {1}", "+t_ns >= {0} AND +t_ns < {1}"),
                        ("t_ns BETWEEN {0} AND {0} + 20000000", "+t_ns BETWEEN {0} AND {0} + 20000000"),
                        ("t_ns > {0}.5 AND t_ns <= {1}.5", "+t_ns > {0}.5 AND +t_ns <= {1}.5"),
                        ("event = 'sched:sched_switch' AND t_ns < {1}", "+event = 'sched:sched_switch' AND +t_ns < {1}"),
                        ("event = 'no:event'", "+event = 'no:event'"), ("event = 'kvm:*'", "+event = 'kvm:*'"),
                        ("vcpu = 0 AND vm = 'guest' AND t_ns < {1}", "+vcpu = 0 AND +vm = 'guest' AND +t_ns < {1}"),
                        ("vm = '1'", "+vm = '1'"), ("vcpu = 1", "+vcpu = 1"), ("vcpu IS NULL", "+vcpu IS NULL"))),
            ("spans", (("end_ns > {0} AND begin_ns < {1}", "+end_ns > {0} AND +begin_ns < {1}"),
                       ("begin_ns >= {0} AND begin_ns <= {1}", "+begin_ns >= {0} AND +begin_ns <= {1}"),
                       ("end_ns >= {0} AND end_ns <= {1}", "+end_ns >= {0} AND +end_ns <= {1}"),
                       ("end_ns < {0}", "+end_ns < {0}"), ("vcpu = 0 AND end_ns < {1}", "+vcpu = 0 AND +end_ns < {1}"),
                       ("vm = 'nobody'", "+vm = 'nobody'")))):
        for pushed, plain in conditions:
            a, b = (program.rows(recording, f"SELECT * FROM {table} WHERE " + c.format(low, high)) for c in (pushed, plain))
            expect(f"{table}: {pushed}: {len(a)} rows, {len(b)} by SQLite alone", a == b)
    rows = program.rows(recording, f"SELECT count(*) AS n, min(t_ns) AS low FROM events WHERE t_ns >= {low}")
    expect("no event was compared", rows[0]["n"] > 100 and rows[0]["low"] >= low)
    ordered = [r["t_ns"] for r in program.rows(recording, "SELECT t_ns FROM events ORDER BY t_ns")]
    expect("events are out of order", ordered == sorted(ordered))
    expect("LIMIT", len(program.rows(recording, "SELECT * FROM events LIMIT 3")) == 3)


def database_check(program, recording):
    path = os.path.join(program.folder, "run.db")
    program.read("export", recording, "--to", "sqlite", "-o", path)
    with sqlite3.connect(path) as db:
        for table in "events", "spans", "incidents", "recording":
            written = [list(row) for row in db.execute(f"SELECT * FROM {table}")]
            expect(f"table {table} differs in the file",
                   written == [list(r.values()) for r in program.rows(recording, f"SELECT * FROM {table}")])
        whole = db.execute("SELECT count(*) FROM events").fetchone()[0]
    program.read("export", recording, "--to", "sqlite", "-o", path, "--around", "1")
    with sqlite3.connect(path) as db:
        near = db.execute("SELECT count(*) FROM events").fetchone()[0]
    expect(f"--around writes {near} of {whole} events", 0 < near < whole)
    expect("a part is left", not os.path.exists(path + ".part"))
    expect("a database on standard output", program.run("export", recording, "--to", "sqlite", "-o", "-").returncode == 2)


def refusal_check(program, recording):
    for sql in REFUSED:
        before = set(os.listdir(program.folder))
        done = program.run("query", recording, sql)
        lines = done.stderr.splitlines()
        expect(f"{sql!r}: exit {done.returncode}: {lines} {done.stdout!r}",
               done.returncode == 2 and len(lines) == 1 and not done.stdout)
        expect(f"{sql!r} made a file", set(os.listdir(program.folder)) == before)
    for sql in "SELECT 1 FROM evnts", "SELECT nosuch FROM events":
        said = program.run("query", recording, sql).stderr
        expect(f"{sql!r}: {said}", f"; `vcpuscope query {recording}` lists the tables and columns\n" in said)
    big = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) " \
          "SELECT count(DISTINCT i || hex(randomblob(100000))) FROM n"
    done = program.run("query", recording, big)
    expect(f"unbounded memory: exit {done.returncode}: {done.stderr}",
           done.returncode == 1 and "MiB" in done.stderr and not done.stdout)
    expect("PRAGMA table_info", program.rows(recording, "PRAGMA table_info(events)"))
    expect("the schema", "CREATE TABLE spans" in program.read("query", recording))
    text = program.read("query", recording, "SELECT char(27) || '[31m' AS a, 1 AS b")
    expect("an escape sequence reaches the terminal", "\x1b" not in text)


def interrupt_check(program, recording):
    """Endless, once in SQLite and once in the reader."""
    for sql in ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
                "SELECT count(*) FROM events a, events b, events c"):
        with subprocess.Popen([program.path, "query", recording, sql], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as running:
            time.sleep(1.5)
            expect(f"{sql}: ended by itself", running.poll() is None)
            running.send_signal(signal.SIGINT)
            try:
                out, err = running.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                running.kill()
                raise Bad(f"{sql}: goes on after Ctrl-C") from None
            expect(f"{sql}: exit {running.returncode}: {out!r} {err!r}",
                   running.returncode == 1 and not out and "interrupted" in err)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--vcpuscope", required=True)
    args = p.parse_args()
    data = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")
    bad = 0
    with tempfile.TemporaryDirectory(prefix="vcpuscope-query.") as folder:
        program = Program(args.vcpuscope, folder)
        if program.run("query", os.path.join(data, "sim-lock.vcs"), "SELECT 1").returncode == 3:
            print("this build has no SQLite")
            return 77
        for what, name in ((agreement_check, "quickstart.vcs"), (agreement_check, "sim-mixture-loss.vcs"),
                           (agreement_check, "bed-b-migration.vcs"), (pushed_check, "quickstart.vcs"),
                           (pairs_check, "quickstart.vcs"), (pairs_check, "sim-mixture-loss.vcs"),
                           (database_check, "quickstart.vcs"), (refusal_check, "sim-lock.vcs"),
                           (interrupt_check, "quickstart.vcs")):
            try:
                what(program, os.path.abspath(os.path.join(data, name)))
            except Bad as e:
                bad += 1
                print(f"{what.__name__} {name}: {str(e)[:600]}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
