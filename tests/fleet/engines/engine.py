# SPDX-License-Identifier: GPL-2.0-only
"""SQL engines for tests, real ones: DuckDB and ClickHouse from npm, pinned by package-lock.json, installed below
the build folder."""
import fcntl
import glob
import json
import pathlib
import re
import shutil
import subprocess
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
FLEET = HERE.parents[2] / "deploy/fleet"
# Schemas and the loader of the first version: a database that exists was made with them.
FIRST_VERSION = HERE.parents[2] / "tests/data/fleet/first-version"
QUERIES = sorted((FLEET / "queries").glob("*.sql"))


def installed(engine, build):
    """Returns the node_modules folder with the engine, after installing it if the lock file asks for another."""
    folder = pathlib.Path(build).resolve() / "fleet-engines" / engine
    folder.mkdir(parents=True, exist_ok=True)
    wanted = (HERE / engine / "package-lock.json").read_text()
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = folder / "installed"
        if not stamp.exists() or stamp.read_text() != wanted:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(HERE / engine / name, folder / name)
            # Not `npm ci`: it wants the packages of all other platforms in the lock file, too.
            done = subprocess.run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder,
                                  capture_output=True, text=True, timeout=600)
            if done.returncode:
                raise RuntimeError(f"npm install of {engine} failed:\n{done.stdout}{done.stderr}")
            stamp.write_text(wanted)
    return folder / "node_modules"


def statements(text):
    """A file's statements: each ends with ';' at the end of a line."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("--")]
    return [s for s in "\n".join(lines).replace(";\n", ";\0").rstrip(";").split(";\0") if s.strip()]


def with_variables(sql, variables):
    """SQL with Grafana's variables replaced as Grafana does; each needs a value. Of Grafana's formats, only
    percentencode is safe between quotes in each engine: ClickHouse takes a backslash for an escape, which neither
    sqlstring nor singlequote escape."""
    def value(match):
        name, form = match.groups()
        assert form == "percentencode" and sql[match.start() - 1] == sql[match.end()] == "'", match[0]
        return urllib.parse.quote(variables[name], safe="-_.~")

    return re.sub(r"\$\{(\w+)(?::(\w+))?\}", value, sql)


class Engine:
    """One database of one engine, in a process of its own. Rows are dictionaries. FILES: FLEET or FIRST_VERSION"""
    def __init__(self, name, build, database, files):
        self.name = name
        self.files = files / name
        self.process = subprocess.Popen(["node", HERE / "engine.mjs", name, installed(name, build), database],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.answer = None

    def query(self, sql):
        self.process.stdin.write(json.dumps({"sql": sql}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended ({self.process.wait()}) at: {sql}")
        self.answer = json.loads(line)
        if "error" in self.answer:
            raise RuntimeError(f"{self.name}: {self.answer['error']}\nat: {sql}")
        return [{key: number(value) for key, value in row.items()} for row in self.answer["rows"]]

    def run(self, path, variables=None):
        """Returns the rows of a file's last statement. VARIABLES: {name of a variable of Grafana: its value}"""
        rows = []
        for statement in statements(pathlib.Path(path).read_text()):
            rows = self.query(with_variables(statement, variables or {}))
        return rows

    def schemas_apply(self):
        for schema in sorted(self.files.glob("schema-*.sql")):
            self.run(schema)
        self.refresh()

    def upgrade(self):
        """From the first version to that of today."""
        self.files = FLEET / self.name
        self.schemas_apply()

    def text(self, text):
        """TEXT in SQL."""
        text = text.replace("'", "''")
        return "'" + (text.replace("\\", "\\\\") if self.name == "clickhouse" else text) + "'"

    def time_stop(self):
        """Every record is of the last hour for the queries."""
        self.query("CREATE OR REPLACE MACRO vcpuscope_hours_ago(h) AS 0" if self.name == "duckdb" else
                   "CREATE OR REPLACE FUNCTION vcpuscope_hours_ago AS (h) -> 0")

    def refresh(self):
        """Computes what the engine computes from time to time."""

    def close(self):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


def number(value):
    """Both engines quote integers of 64 bits."""
    if isinstance(value, str) and value.lstrip("-").isdigit() and len(value) < 20:
        return int(value)
    return value


class DuckDB(Engine):
    def __init__(self, build, database=":memory:", files=FLEET):
        super().__init__("duckdb", build, database, files)
        self.schemas_apply()

    def load(self, folder):
        self.query(f"SET VARIABLE outbox = {self.text(str(folder))}")
        self.run(self.files / "load.sql")

    def load_incident_1(self, folders):
        self.query(f"SET VARIABLE folders = '{folders}'")
        self.run(self.files / "load-incident-1.sql")


class ClickHouse(Engine):
    def __init__(self, build, database, files=FLEET):
        super().__init__("clickhouse", build, database, files)
        self.schemas_apply()
        self.query("USE vcpuscope")

    def load(self, folder):
        """As ship/http does, one INSERT for each segment."""
        for path in sorted(pathlib.Path(folder).glob("*.jsonl")):
            table = path.name.split("-")[0]
            self.query("SET input_format_skip_unknown_fields = 1")
            self.query(f"INSERT INTO vcpuscope.{table} FROM INFILE {self.text(str(path))} "
                       f"SETTINGS insert_deduplication_token = '{path.name}' FORMAT JSONEachRow")
        self.refresh()

    def load_incident_1(self, folders):
        for path in glob.glob(f"{folders}/incident.json"):
            self.query(f"INSERT INTO vcpuscope.incidents_1 FORMAT JSONEachRow {pathlib.Path(path).read_text()}")

    def refresh(self):
        there = {row["view"] for row in self.query("SELECT view FROM system.view_refreshes WHERE database = 'vcpuscope'")}
        for view in ("host_hours_refresh", "histogram_hours_refresh", "histogram_six_hours_refresh"):
            if view in there:  # the first version lacks one
                self.query(f"SYSTEM REFRESH VIEW vcpuscope.{view}")
                self.query(f"SYSTEM WAIT VIEW vcpuscope.{view}")

