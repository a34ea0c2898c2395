# SPDX-License-Identifier: GPL-2.0-only
"""Hostile texts in each field of the records that somebody else chooses (names of tasks, VMs, users, labels): the loader
and the queries of both engines keep them as they are, and they change nothing else."""
import json
import pathlib
import tempfile

import dashboards
import engine

TEXTS = dashboards.HOSTILE + (
    "two '' quotes", 'double " quotes ""', "'; DROP TABLE incidents; --", '"); DROP TABLE figures; --', "a\nb", "a\r\n\tb",
    "\\", "C:\\n\\u0041\\x41\\", "\x01\x02\x1b[31mred\x7f", "\u202etxt\u2028\u2029\ufeff", "\U0001f4a5 \u00fc \ufffd", "nul\0",
    "${incident_id}", "%27 %s {0} $1", '{"a": [1', "null", "[]", "/* -- #", "`x`", "x" * 63)
# What vcpuscope itself writes; the queries know these words.
FIXED = ("schema", "record", "verdict", "level", "side")
# Query, and the column that shows each text in one of its rows.
SHOWN = {"blind-hosts": "host_name", "culprit-pairs": "culprit", "culprits": "worst_victim_name", "host-runs": "kernel",
         "ongoing": "vm_name", "recent-incidents": "vm", "recurrence": "name", "run-delay-by-build": "build",
         "storage-stalls": "node", "top-hosts": "host_name", "verdicts-by-ring": "ring"}
# The same of the queries about one incident.
SHOWN_OF_ONE = {"incident": "guest_text", "incident-culprits": "culprit_comm", "incident-same-vm": "host_name"}
NULL_TEXTS = ("guest_text", "guest_task", "storage_driver", "storage_server", "storage_pool", "storage_source",
              "storage_mount", "storage_device")
LINE_MAX = 16383  # of an incident, docs/fleet.md
PLACE = "@@"


def texts_set(value, text):
    """VALUE with TEXT in each text of it."""
    if isinstance(value, dict):
        return {key: one if key in FIXED else texts_set(one, text) for key, one in value.items()}
    if isinstance(value, list):
        return [texts_set(one, text) for one in value]
    return text if isinstance(value, str) else value


def record_of(example, text, **more):
    one = texts_set(example, text)
    one["labels"] = {"ring": text, "zone": text, text: text}
    for culprit in one.get("culprits", []):
        culprit["vm_uuid"] = "thief " + text
    one.update({key: text for key in NULL_TEXTS if key in one})
    return {**one, **more}


def line_of(record, ascii_only=True):
    return json.dumps(record, ensure_ascii=ascii_only, separators=(",", ":")).encode()


def lines_write(folder, kind, number, lines):
    path = folder / f"{kind}-{0:032x}-{0:032x}-{number:016x}.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in lines))


def number_of(i, more):
    return f"{i:031x}{more:x}"


def count(e):
    return tuple(e.query(f"SELECT count(*) AS n FROM {table}")[0]["n"] for table in ("distinct_incidents", "distinct_figures"))


def check_texts(e, folder, incident, figures):
    """Two incidents of each text, one of which lasts, spelled in two ways, and an interval of figures."""
    before = count(e)
    lines_write(folder, "incidents", 1, [
        line_of(record_of(incident, text, incident_id=number_of(i, lasts), ongoing=bool(lasts)), bool(lasts))
        for i, text in enumerate(TEXTS) for lasts in (0, 1)])
    lines_write(folder, "figures", 1, [
        line_of(record_of(figures, text, figures_id=number_of(i, 0))) for i, text in enumerate(TEXTS)])
    e.load(folder)
    assert count(e) == (before[0] + 2 * len(TEXTS), before[1] + len(TEXTS)), f"{e.name}: {before} became {count(e)}"
    rows = e.query("SELECT * FROM distinct_incidents WHERE vm_uuid = vm_name")
    for i, text in enumerate(TEXTS):
        for lasts in (0, 1):
            row, = (one for one in rows if one["incident_id"] == number_of(i, lasts))
            wrong = {key: row[key] for key, value in record_of(incident, text).items()
                     if isinstance(value, str) and key not in FIXED + ("incident_id",) and row[key] != text}
            assert not wrong, f"{e.name}: {text!r} became {wrong}"
    for name, column in SHOWN.items():
        values = {row[column] for row in e.run(engine.FLEET / f"queries/{name}.sql")}
        assert set(TEXTS) <= values, f"{e.name}: {name}: {column} lacks {set(TEXTS) - values}"
    for i, text in enumerate(TEXTS):
        variables = {"incident_id": number_of(i, 0)}
        for name, column in SHOWN_OF_ONE.items():
            values = {row[column] for row in e.run(engine.FLEET / f"queries/{name}.sql", variables)}
            assert values == {text}, f"{e.name}: {name}: {column} is {values} instead of {text!r}"
        for name in ("incident-breakdown", "incident-recurrence"):
            assert len(e.run(engine.FLEET / f"queries/{name}.sql", variables)) == 1, (e.name, name, text)
    unknown = {query.stem for query in engine.QUERIES} - set(SHOWN) - set(SHOWN_OF_ONE) - {
        "incident-breakdown", "incident-recurrence"}
    assert not unknown, f"no hostile text is looked for in {unknown}"


def check_long(e, folder, incident):
    """Lines of the greatest length, whose texts are spelled with six characters for each, or with one."""
    lines = []
    for i, unit in enumerate((b"\\u0001", b"'")):
        line = line_of(record_of(incident, "x", incident_id=f"{i:032x}", vm_cgroup=PLACE))
        n = (LINE_MAX - len(line) + len(PLACE)) // len(unit)
        lines.append(line.replace(PLACE.encode(), unit * n))
        assert LINE_MAX - len(unit) < len(lines[-1]) <= LINE_MAX
    lines_write(folder, "incidents", 1, lines)
    e.load(folder)
    rows = e.query("SELECT vm_cgroup, length(vm_cgroup) AS n FROM distinct_incidents WHERE vm_name = 'x' ORDER BY incident_id")
    assert [set(row["vm_cgroup"]) for row in rows] == [{"\x01"}, {"'"}], f"{e.name}: long texts became others"
    assert rows[0]["n"] > LINE_MAX // 6 - 1000 and rows[1]["n"] > LINE_MAX - 6000, (e.name, rows[0]["n"], rows[1]["n"])


def check_broken(e, folder, incident):
    """Lines that vcpuscope does not write. Of DuckDB's loader they are refused and counted, one by one. ClickHouse takes
    bytes that are not UTF-8 as they are, and refuses a segment with a line that is not JSON: `ship` says so."""
    good = [line_of(record_of(incident, f"good {i}", incident_id=f"{i:032x}")) for i in range(3)]
    strange = line_of(record_of(incident, "strange", incident_id=f"{3:032x}", vm_name=PLACE)).replace(
        PLACE.encode(), b"a\xff\xfe\xc3(b")
    before = count(e)[0]
    lines_write(folder, "incidents", 1, [good[0], strange, good[1]])
    e.load(folder)
    loaded = 2 if e.name == "duckdb" else 3
    assert count(e)[0] == before + loaded, f"{e.name}: {count(e)[0] - before} lines of 3 with one that is not UTF-8"
    if e.name == "clickhouse":
        row, = e.query(f"SELECT hex(vm_name) AS h FROM distinct_incidents WHERE incident_id = '{3:032x}'")
        assert row["h"] == "61FFFEC32862", row
    lines_write(folder, "incidents", 2, [good[2][:100], good[2], b"\xde\xad\xbe\xef", b"null"])
    try:
        e.load(folder)
        loaded += 1
        assert e.name == "duckdb"
        refused = e.query("SELECT sum(refused) AS n FROM segments")[0]["n"]
        assert refused == 4, f"{refused} lines are refused instead of 4"
    except RuntimeError as error:
        assert e.name == "clickhouse" and "Cannot parse" in str(error), error
    assert count(e)[0] == before + loaded, f"{e.name}: {count(e)[0] - before} lines instead of {loaded}"


def check(open_engine, segments):
    """SEGMENTS: folder with lines to start from."""
    examples = {}
    for kind in ("incidents", "figures"):
        path = next(iter(sorted(segments.glob(f"{kind}-*.jsonl"))))
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        # An incident with a culprit that is a VM, and an interval with waits.
        examples[kind] = next(one for one in lines if (one["culprits"] and one["culprits"][0]["vm_uuid"] if kind == "incidents"
                                                       else one.get("run_delay_wakeup_counts")))
    for part in (check_texts, check_long, check_broken):
        with tempfile.TemporaryDirectory(suffix=" it's") as folder:
            folder = pathlib.Path(folder)
            (folder / "out'box").mkdir()
            e = open_engine(folder)
            e.time_stop()
            arguments = [examples["incidents"]] + ([examples["figures"]] if part is check_texts else [])
            part(e, folder / "out'box", *arguments)
            e.close()
    print(f"{e.name}: {len(TEXTS)} hostile texts in {len(engine.QUERIES)} queries")
