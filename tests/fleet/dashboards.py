# SPDX-License-Identifier: GPL-2.0-only
"""deploy/fleet/dashboards: what Grafana needs to import them, and the queries of their panels. Grafana is not run."""
import json
import pathlib
import subprocess
import tempfile

import engine

FOLDER = engine.FLEET / "dashboards"
# A variable's text, that of nobody's incident, which leaves the quotes in some engine if they are not escaped.
HOSTILE = ("' OR 1 = 1 OR '' = '", "\\' OR 1 = 1 -- ", "\\\\' OR 1 = 1 -- ", "x' UNION ALL SELECT 1 -- ")
KINDS = {"host": "prometheus", "fleet": "grafana-clickhouse-datasource", "incident": "grafana-clickhouse-datasource"}


def overlap(a, b):
    return (a["x"] < b["x"] + b["w"] and b["x"] < a["x"] + a["w"]
            and a["y"] < b["y"] + b["h"] and b["y"] < a["y"] + a["h"])


def check_format(dashboard, kind):
    """The fields that an import into Grafana 10 or newer needs. All data sources are the variable."""
    for key, sort in (("title", str), ("uid", str), ("schemaVersion", int), ("panels", list), ("templating", dict),
                      ("time", dict), ("__requires", list)):
        assert isinstance(dashboard.get(key), sort), key
    assert dashboard["id"] is None and len(dashboard["uid"]) <= 40 and dashboard["schemaVersion"] == 38
    variables = {v["name"]: v for v in dashboard["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource" and variables["datasource"]["query"] == kind
    wanted = {"type": kind, "uid": "${datasource}"}
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids) and all(isinstance(i, int) and i > 0 for i in ids), ids
    required = {r["id"] for r in dashboard["__requires"]}
    assert {"grafana", kind} <= required, required
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        assert all(isinstance(at[key], int) for key in "xywh") and 0 <= at["x"] <= 24 - at["w"], at
        others = [p["gridPos"] for p in dashboard["panels"] if p is not panel]
        assert not any(overlap(at, other) for other in others), (panel["title"], at)
        assert panel["title"] and panel["type"] in required, panel["title"]
        assert panel["datasource"] == wanted and panel["targets"], panel["title"]
        references = [target["refId"] for target in panel["targets"]]
        assert len(set(references)) == len(references), references
        assert all(target["datasource"] == wanted for target in panel["targets"]), panel["title"]
        assert {"defaults", "overrides"} <= set(panel["fieldConfig"]) and "options" in panel, panel["title"]


def check_files():
    """The files are what `make` writes, and are made for Grafana."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([FOLDER / "make", folder], check=True)
        for name, kind in KINDS.items():
            text = (FOLDER / f"{name}.json").read_text()
            assert text == (pathlib.Path(folder) / f"{name}.json").read_text(), f"{name}.json: run {FOLDER}/make"
            check_format(json.loads(text), kind)
    uids = {json.loads((FOLDER / f"{name}.json").read_text())["uid"] for name in KINDS}
    assert len(uids) == len(KINDS), uids


def columns_named(panel):
    """Columns to which a panel refers by name."""
    names = {o["matcher"]["options"] for o in panel["fieldConfig"]["overrides"] if o["matcher"]["id"] == "byName"}
    for transformation in panel.get("transformations", []):
        assert transformation["id"] == "filterFieldsByName", f"{panel['title']}: {transformation['id']} is not checked"
        names.update(transformation["options"]["include"]["names"])
    return names


def check_queries(e, variables):
    """Each query is that of a file in ../queries, runs, and returns the columns that its panel names."""
    files = {engine.statements(path.read_text())[-1]: path.stem for path in engine.QUERIES}
    used = set()
    for name, kind in KINDS.items():
        for panel in json.loads((FOLDER / f"{name}.json").read_text())["panels"] if kind != "prometheus" else []:
            sql, = (target["rawSql"] for target in panel["targets"])
            assert sql in files, f"{name}.json: {panel['title']}: its query is not that of a file"
            used.add(files[sql])
            rows = e.query(engine.with_variables(sql, variables))
            missing = columns_named(panel) - set(e.answer["columns"])
            assert not missing and columns_named(panel), f"{e.name}: {name}.json: {panel['title']}: no {missing}"
            assert rows or files[sql] == "ongoing", f"{e.name}: {name}.json: {panel['title']}: no rows"
            for text in HOSTILE if "${incident_id" in sql else ():
                rows = e.query(engine.with_variables(sql, {"incident_id": text}))
                assert all(v in (None, 0) for row in rows for v in row.values()), (e.name, files[sql], text, rows)
    unused = {path.stem for path in engine.QUERIES} - used - {"host-runs"}
    assert not unused, f"no panel shows {unused}"
    print(f"{e.name}: dashboards: {len(used)} queries")
