#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""deploy/fleet on real engines: schemas, queries, dashboards, and the alarms of generated fleets.

    test_queries.py --build BUILD                  DuckDB, one fleet with plants, one without
    VCPUSCOPE_TEST_FULL=1 test_queries.py ...      ClickHouse, too; 100 fleets of each kind
    test_queries.py ... --engine NAME --seeds A-B  a part of them, for machines with little time
    test_queries.py --build BUILD --update         writes the expected answers in tests/golden/fleet anew

The fleets are simulated (make_fleet.c), their records are made by the product's writers."""
import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "engines")]
import dashboards  # noqa: E402
import engine  # noqa: E402
import hostile  # noqa: E402

SOURCE = HERE.parents[1]
GOLDEN = SOURCE / "tests/golden/fleet"
# The incident of the golden segments that has culprits.
GOLDEN_INCIDENT = "9b1d3a5c7e9f0b2d4f6a8c0e1b3d5f70"
PLANTS = ("kernel", "storage", "thief", "blind")
# Query, and the column of its first row that names what is planted.
NAMES = (("run-delay-by-build", "build", "kernel"), ("storage-stalls", "node", "storage"),
         ("culprits", "thief", "thief"), ("blind-hosts", "host_id", "blind"))
# Fleets without a plant have other seeds than those with.
SEEDS_WITHOUT = 1000
FULL = os.environ.get("VCPUSCOPE_TEST_FULL") == "1"


def schema_columns(e):
    """The tables have each member of the records."""
    for schema, table in (("incident-2", "incidents"), ("figures-1", "figures")):
        members = set(json.loads((engine.FLEET / f"{schema}.schema.json").read_text())["properties"])
        columns = set(e.query(f"SELECT * FROM {table} LIMIT 1")[0])
        assert members <= columns, f"{e.name}: {table} lacks {members - columns}"


def same(a, b):
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return math.isclose(a, b, rel_tol=1e-6, abs_tol=0.11 if isinstance(a, float) or isinstance(b, float) else 0)
    return a == b


def rows_differ(wanted, rows):
    """What differs between two lists of rows, or None."""
    if len(wanted) != len(rows):
        return f"{len(rows)} rows instead of {len(wanted)}"
    for number, (a, b) in enumerate(zip(wanted, rows)):
        for key in a:
            if key not in b or not same(a[key], b[key]):
                return f"row {number}: {key} is {b.get(key)!r} instead of {a[key]!r}"
    return None


def golden_load(e):
    """Segments and incident.json, delivered twice."""
    with tempfile.TemporaryDirectory() as again:
        for path in (GOLDEN / "segments").iterdir():
            shutil.copy(path, pathlib.Path(again) / path.name.replace(".jsonl", "-again.jsonl"))
        for folder in (GOLDEN / "segments", again, GOLDEN / "segments"):
            e.load(folder)
    for _ in range(2):
        e.load_incident_1(GOLDEN / "*")


def golden_answers(e):
    """Of all queries, over all time."""
    e.time_stop()
    return {query.stem: e.run(query, {"incident_id": GOLDEN_INCIDENT}) for query in engine.QUERIES}


def golden_upgraded(open_engine, folder):
    """A database that the first version made and filled has, after the upgrade, the answers of a new one; also when
    the same lines are delivered to the loader of today."""
    e = open_engine(folder, engine.FIRST_VERSION)
    golden_load(e)
    first = e.query("SELECT max(version) AS version FROM schema_version")[0]["version"]
    assert first == 1, f"{e.name}: the first version is {first}"
    e.upgrade()
    golden_check(e, golden_answers(e))
    e.schemas_apply()
    golden_load(e)
    golden_check(e, golden_answers(e))
    e.close()


def golden(e, update):
    """Segments and incident.json of earlier versions stay readable by the queries of today."""
    golden_load(e)
    schema_columns(e)
    answers = golden_answers(e)
    file = GOLDEN / "answers.json"
    if update:
        file.write_text("{\n" + ",\n".join(
            f'"{name}": [' + ",".join("\n " + json.dumps(row) for row in rows) + "]"
            for name, rows in answers.items()) + "\n}\n")
    golden_check(e, answers)


def golden_check(e, answers):
    for name, wanted in json.loads((GOLDEN / "answers.json").read_text()).items():
        wrong = rows_differ(wanted, answers[name])
        assert not wrong, f"{e.name}: {name}: {wrong}"
    assert {"web1"} <= {row["victim"] for row in answers["culprit-pairs"]}, "the culprits of /2 are missing"
    kinds = e.query("SELECT DISTINCT schema FROM distinct_incidents ORDER BY schema")
    assert [row["schema"] for row in kinds] == ["vcpuscope.incident/1", "vcpuscope.incident/2"], kinds


def golden_list(build, update):
    """`vcpuscope incidents` lists the same segments as it did."""
    text = subprocess.run([f"{build}/host-collector/vcpuscope", "incidents", "--format", "csv", GOLDEN / "segments"],
                          capture_output=True, text=True, check=True).stdout
    file = GOLDEN / "incidents.csv"
    if update:
        file.write_text(text)
    assert text == file.read_text(), f"vcpuscope incidents lists {text}"


def make(build, folder, seed, plants):
    subprocess.run([f"{build}/tests/fleet/make_fleet", "--seed", str(seed),
                    *(word for plant in plants for word in ("--plant", plant)), folder], check=True)
    return json.loads((pathlib.Path(folder) / "truth.json").read_text())


def counted_once(e, truth):
    """Lines that are delivered twice, and older lines of an incident, count once."""
    count = e.query("SELECT sum(count) AS n, count(*) AS lines FROM distinct_incidents WHERE record <> 'loss'")[0]
    assert count["n"] == truth["incidents"], (e.name, count, truth)
    assert e.query("SELECT count(*) AS n FROM distinct_figures")[0]["n"] == truth["figures"]
    waits = e.query("SELECT sum(n) AS n FROM histograms WHERE name LIKE 'run_delay%'")[0]["n"]
    assert waits == truth["waits"], (e.name, waits, truth)
    assert e.query("SELECT count(*) AS n FROM distinct_incidents WHERE ongoing")[0]["n"] == 0


def compare_hosts(build, rows, build_of_hosts):
    done = subprocess.run([engine.FLEET / "compare-hosts", build_of_hosts], text=True, capture_output=True,
                          input="\n".join(map(json.dumps, rows)), timeout=300,
                          env={**os.environ, "VCPUSCOPE": f"{build}/host-collector/vcpuscope"})
    assert done.returncode in (0, 2), done
    return done.returncode == 2


def upgraded(e):
    """A database of the first version gets the sums of 6 hours when the second schema is applied."""
    def rows(table, begin):
        return e.query(f"SELECT {begin} - {begin} % 21600000000000 AS b, host_key, vmm_key, name, bucket, sum(n) AS total "
                       f"FROM {table} GROUP BY b, host_key, vmm_key, name, bucket ORDER BY b, host_key, vmm_key, name, bucket")

    wanted = rows("histograms", "hour_ns")
    assert wanted and rows("histogram_blocks", "block_ns") == wanted, f"{e.name}: blocks of 6 hours differ from their hours"
    if e.name == "duckdb":
        e.query("DELETE FROM histogram_blocks")
    else:
        e.query("TRUNCATE TABLE vcpuscope.histogram_six_hours")
    e.schemas_apply()
    assert rows("histogram_blocks", "block_ns") == wanted, f"{e.name}: schema-2.sql fills other blocks"


def stolen(e, truth):
    """Returns an incident that the planted thief caused, after asking what the dashboards ask about it."""
    sql = f"SELECT min(incident_id) AS id FROM culprits WHERE culprit_vm_uuid = '{truth['thief']}'"
    variables = {"incident_id": e.query(sql)[0]["id"]}
    record, culprits, breakdown, again, others = (
        e.run(engine.FLEET / f"queries/incident{name}.sql", variables)
        for name in ("", "-culprits", "-breakdown", "-recurrence", "-same-vm"))
    assert [row["incident_id"] for row in record] == [variables["incident_id"]], record
    assert culprits[0]["culprit_vm_uuid"] == truth["thief"], culprits
    assert math.isclose(sum(breakdown[0].values()), record[0]["duration_ms"], abs_tol=0.01), (breakdown, record)
    assert record[0]["verdict"] in {row["verdict"] for row in again}, (again, record)
    assert variables["incident_id"] in {row["incident_id"] for row in others}, others
    return variables["incident_id"]


def judge(e, build, truth):
    """(what is named first and alarms, what alarms, whether `compare` alarms)"""
    named, alarms = set(), set()
    for query, column, plant in NAMES:
        rows = e.run(engine.FLEET / f"queries/{query}.sql")
        if rows and rows[0]["alarm"]:
            alarms.add(plant)
            if rows[0][column] == truth[plant]:
                named.add(plant)
    rows = e.run(engine.FLEET / "queries/host-runs.sql")
    return named, alarms, compare_hosts(build, rows, f"kernel={truth['kernel']}")


def fleet(open_engine, build, seed, plants):
    with tempfile.TemporaryDirectory() as folder:
        outbox = pathlib.Path(folder) / "outbox"
        outbox.mkdir()
        truth = make(build, outbox, seed, plants)
        e = open_engine(folder)
        try:
            e.load(outbox)
            counted_once(e, truth)
            if plants and seed == 1:
                upgraded(e)
                dashboards.check_queries(e, {"incident_id": stolen(e, truth)})
            return judge(e, build, truth)
        finally:
            e.close()


def fleets(name, open_engine, build, seeds):
    """Alarms of the fleets of these seeds with all plants, and of as many others without."""
    n = len(seeds)
    with concurrent.futures.ThreadPoolExecutor(2) as workers:
        planted = list(workers.map(lambda seed: fleet(open_engine, build, seed, PLANTS), seeds))
        none = list(workers.map(lambda seed: fleet(open_engine, build, seed + SEEDS_WITHOUT, ()), seeds))
    found = sum(named == set(PLANTS) and compared for named, _, compared in planted)
    false = sum(bool(alarms) or compared for _, alarms, compared in none)
    for plant in PLANTS:
        print(f"{name}: {plant}: named first with alarm in {sum(plant in named for named, _, _ in planted)} of {n} "
              f"fleets, alarm without a plant in {sum(plant in alarms for _, alarms, _ in none)} of {n}")
    print(f"{name}: compare: {sum(c for _, _, c in planted)} of {n} with the kernel, {sum(c for _, _, c in none)} of "
          f"{n} without\n{name}: all of them: found in {found} of {n}, a false alarm in {false} of {n}", flush=True)
    missed = [seed for seed, (named, _, compared) in zip(seeds, planted) if named != set(PLANTS) or not compared]
    falsely = [seed + SEEDS_WITHOUT for seed, (_, alarms, compared) in zip(seeds, none) if alarms or compared]
    print(f"{name}: seeds {seeds[0]}-{seeds[-1]}: missed {missed}, false alarms {falsely}", flush=True)
    assert found >= math.ceil(0.95 * n) and false <= 0.05 * n


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--build", required=True)
    p.add_argument("--update", action="store_true", help="write the golden answers anew")
    p.add_argument("--engine", choices=("duckdb", "clickhouse"), help="this one only")
    p.add_argument("--seeds", metavar="A-B", help="the fleets of these seeds, without the other checks")
    a = p.parse_args()
    openers = {"duckdb": lambda folder, files=engine.FLEET: engine.DuckDB(a.build, files=files)}
    if FULL or a.engine:
        openers["clickhouse"] = lambda folder, files=engine.FLEET: engine.ClickHouse(
            a.build, str(pathlib.Path(folder) / "clickhouse"), files)
    if a.engine:
        openers = {a.engine: openers[a.engine]}
    if not a.seeds:
        dashboards.check_files()
        golden_list(a.build, a.update)
    for name, open_engine in openers.items():
        if a.seeds:
            first, last = map(int, a.seeds.split("-"))
            fleets(name, open_engine, a.build, range(first, last + 1))
            continue
        with tempfile.TemporaryDirectory() as folder:
            e = open_engine(folder)
            golden(e, a.update and name == "duckdb")
            e.close()
            golden_upgraded(open_engine, pathlib.Path(folder) / "first")
        hostile.check(open_engine, GOLDEN / "segments")
        count = 1 if not FULL else 100 if name == "duckdb" else 10
        fleets(name, open_engine, a.build, range(1, count + 1))


if __name__ == "__main__":
    main()
