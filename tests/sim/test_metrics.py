#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Metrics of simulated recordings: promtool finds nothing wrong, and the numbers are the truth's; the
alerts in deploy/fleet fire when they should; the dashboard's expressions select what we export."""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
DASHBOARD = os.path.join(HERE, "../../deploy/fleet/dashboards/host.json")
RULES = os.path.join(HERE, "../../deploy/fleet/alerts/vcpuscope.yml")


def samples(text):
    """{series: value}"""
    return {m[1]: float(m[2]) for m in re.finditer(r"(?m)^([a-z_]+(?:\{.*\})?) (\S+)$", text)}


def check_scenario(tool, scenario, folder):
    path = os.path.join(folder, "run.vcs")
    subprocess.run([tool, "simulate", scenario, "--seed", "3", "-o", path], check=True)
    page = subprocess.run([tool, "metrics", path], check=True, capture_output=True, text=True).stdout
    said = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, text=True,
                          check=False)
    assert said.returncode == 0 and not said.stderr, f"{scenario}: promtool: {said.stderr}"
    with open(path + ".truth.json", encoding="utf-8") as f:
        truth = json.load(f)
    report = json.loads(subprocess.run([tool, "report", path, "--format", "json"],
                                       capture_output=True, text=True).stdout)
    series = samples(page)
    counted = {m[1]: v for s, v in series.items() if v and
               (m := re.fullmatch(r'vcpuscope_incidents_total\{.*verdict="(\w+)"\}', s))}
    expected = {}
    for i in report["incidents"]:
        expected[i["verdict"]] = expected.get(i["verdict"], 0) + 1
    assert counted == expected, f"{scenario}: {counted}, the report has {expected}"
    assert expected or not truth["incidents"], f"{scenario}: the report missed its incident"
    time = sum(v for s, v in series.items() if s.startswith("vcpuscope_vcpu_seconds_total{"))
    run = (truth["end_ns"] - truth["begin_ns"]) / 1e9
    vcpus = series['vcpuscope_vcpus{vm="simulated"}']
    assert abs(time - vcpus * run) < 0.02 * vcpus * run, f"{scenario}: {time} s of {vcpus} x {run} s"
    assert series['vcpuscope_agent_up{vm="simulated"}'] == 1
    print(f"{scenario}: {len(series)} series, {sum(counted.values()):.0f} incidents")
    assert len(series) < 170, "few series, whatever the VM does"
    check_sums(tool, path, series)


def check_sums(tool, path, of_vms):
    """Sums of the host are what the VMs' series sum to."""
    page = subprocess.run([tool, "metrics", path, "--host"], check=True, capture_output=True, text=True).stdout
    said = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, text=True,
                          check=False)
    assert said.returncode == 0 and not said.stderr, f"--host: promtool: {said.stderr}"
    series = samples(page)
    assert not any('vm="' in name for name in series), "--host has series of VMs"
    assert len(series) < 600, f"{len(series)} series"
    for name, value in series.items():
        family, labels = re.fullmatch(r"(\w+?)(\{.*\})?", name).groups()
        if "_info" in family or family.endswith("_bucket") or "agents" in family or family.endswith("_vms"):
            continue
        wanted = set(re.findall(r'\w+="[^"]*"', labels or ""))
        parts = [v for n, v in of_vms.items() if n.split("{")[0] == family.replace("_host_", "_")
                 and wanted <= set(re.findall(r'\w+="[^"]*"', n))]
        assert parts and abs(sum(parts) - value) <= 1e-6 * max(1, value), f"{name} {value}: {parts}"


def check_quantile(tool, folder):
    """Prometheus' own p50, p90 and p99 of a real recording's run delay against the exact ones."""
    path = os.path.join(HERE, "../data/quickstart.vcs")
    page = subprocess.run([tool, "metrics", path, "--host"], check=True, capture_output=True, text=True).stdout
    rows = json.loads(subprocess.run(
        [tool, "query", path, "SELECT duration_ns FROM spans WHERE kind = 'vcpu' AND state = 'runnable'",
         "--format", "json"], check=True, capture_output=True, text=True).stdout)
    waits = sorted(row["duration_ns"] for row in rows)
    assert len(waits) > 1000, len(waits)
    buckets = [(m[1], m[2]) for m in re.finditer(
        r'(?m)^vcpuscope_host_run_delay_seconds_bucket\{le="(\S+)"\} (\d+)$', page)]
    queries = []
    for share in (0.5, 0.9, 0.99):
        exact = waits[int(share * len(waits))] / 1e9
        queries.append(f"""
      - expr: abs(histogram_quantile({share}, b) / {exact} - 1) < bool 0.1
        eval_time: 0
        exp_samples: [{{labels: '{{}}', value: 1}}]""")
    test = os.path.join(folder, "quantile.yml")
    with open(test, "w", encoding="utf-8") as f:
        f.write("tests:\n  - interval: 1m\n    input_series:\n"
                + "".join(f"      - {{series: 'b{{le=\"{le}\"}}', values: '{n}'}}\n" for le, n in buckets)
                + "    promql_expr_test:" + "".join(queries) + "\n")
    subprocess.run(["promtool", "test", "rules", test], check=True)


def exported(tool):
    """The series of a real recording's pages, as NAME or NAME{LABELS}."""
    path = os.path.join(HERE, "../data/quickstart.vcs")
    page = "".join(subprocess.run([tool, "metrics", path, *options], check=True, capture_output=True, text=True).stdout
                   for options in ([], ["--host"]))
    # What the collector says about itself is in the pages of a daemon only.
    return list(dict.fromkeys([re.match(r"\w+(?:\{.*\})?", line)[0] for line in page.splitlines() if line[0] != "#"]
                              + ["vcpuscope_cpu_seconds_total", "vcpuscope_resident_memory_bytes"]))


def check_alerts(tool):
    """Prometheus takes the rules, each one fires when it should (alerts.yml), and selects series that we export."""
    with open(RULES, encoding="utf-8") as f:
        rules = f.read()
    with open(os.path.join(HERE, "alerts.yml"), encoding="utf-8") as f:
        tested = f.read()
    subprocess.run(["promtool", "check", "rules", RULES], check=True)
    subprocess.run(["promtool", "test", "rules", os.path.join(HERE, "alerts.yml")], check=True)
    for alert in re.findall(r"- alert: (\w+)", rules):
        assert f'alertname="{alert}", ' in tested, f"alerts.yml does not have {alert} fire"
    known = exported(tool)
    used = re.findall(r"(vcpuscope_\w+)(?:\{(\w+=\"\w+\")\})?", "".join(re.findall(r"(?m)^ +(?:expr: |  )(.*)$", rules)))
    assert len(used) > 15, used
    for name, label in used:
        assert any(series.split("{")[0] == name and label in series for series in known), f"no series {name}{{{label}}}"


def check_dashboard(tool, folder):
    """Prometheus takes the expressions of host.json, and each selects series that we export and has a result."""
    known = exported(tool)
    labels_of = {}
    for series in known:
        labels_of.setdefault(series.split("{")[0], set()).update(re.findall(r'(\w+)="', series))
    with open(DASHBOARD, encoding="utf-8") as f:
        dashboard = json.load(f)
    variable, = (v for v in dashboard["templating"]["list"] if v["type"] == "query")
    names, = re.findall(r"^label_values\((\w+), instance\)$", variable["query"]["query"])
    assert variable["name"] == "instance" and names in labels_of, variable
    rules, tests = [], []
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            expr = target["expr"]
            for name, selector in re.findall(r"(vcpuscope_\w+)\{([^}]*)\}", expr):
                wanted = set(re.findall(r'\w+="[^"]*"', selector)) - {'instance="$instance"'}
                assert 'instance="$instance"' in selector, f"{panel['title']}: {expr} is not of the host that is chosen"
                assert any(s.split("{")[0] == name and wanted <= set(re.findall(r'\w+="[^"]*"', s)) for s in known), \
                    f"{panel['title']}: no series {name}{{{selector}}}"
            used = re.findall(r"vcpuscope_\w+", expr)
            assert used and len(used) == len(re.findall(r"vcpuscope_\w+\{", expr)), f"{panel['title']}: {expr}"
            for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
                assert any(label in labels_of[name] for name in used), f"{panel['title']}: no label {label}"
            for name, value in (("$__rate_interval", "1m"), ("$__range", "5m"), ("$instance", "host1")):
                expr = expr.replace(name, value)
            assert "$" not in expr, f"{panel['title']}: {expr}"
            rules.append({"record": f"panel:{len(rules)}", "expr": expr})
            tests.append({"expr": f"count({expr}) > bool 0", "eval_time": "5m",
                          "exp_samples": [{"labels": "{}", "value": 1}]})
    # Counters that grow, and one agent that is silent.
    series = [{"series": (s[:-1] + "," if "{" in s else s + "{") + 'instance="host1"}',
               "values": "0x20" if "agent" in s and "up" in s else "1+1x20"} for s in known]
    written = (("rules.yml", {"groups": [{"name": "panels", "rules": rules}]}),
               ("results.yml", {"tests": [{"interval": "15s", "input_series": series, "promql_expr_test": tests}]}))
    for name, content in written:
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            json.dump(content, f)  # JSON is YAML
    subprocess.run(["promtool", "check", "rules", os.path.join(folder, "rules.yml")], check=True)
    subprocess.run(["promtool", "test", "rules", os.path.join(folder, "results.yml")], check=True)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--vcpuscope", required=True)
    a = p.parse_args()
    if not shutil.which("promtool"):
        print("skipped: no promtool here (Debian's package prometheus)")
        return 77
    with tempfile.TemporaryDirectory(prefix="vcpuscope-metrics.") as folder:
        for scenario in ("vmm_lock", "vm_paused.signal", "mixture.steal_then_lock", "decoy.idle"):
            check_scenario(a.vcpuscope, scenario, folder)
        check_alerts(a.vcpuscope)
        check_quantile(a.vcpuscope, folder)
        check_dashboard(a.vcpuscope, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
