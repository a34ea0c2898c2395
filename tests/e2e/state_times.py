# SPDX-License-Identifier: GPL-2.0-only
"""Checks that the times in a report add up. All tests that make or find a recording use this check.

  state_times.check(report)            the object that `report --format json` prints
  state_times.report(program, path)    runs this command on a recording, checks and returns its result
"""
import json
import subprocess


REPORTED = (0, 5)  # a report was made; 5: too little was observed to say that there was no stall


class Unbalanced(AssertionError):
    """Times that do not sum to the time that passed."""


def check(report, hotplug=False):
    """Raises Unbalanced unless all state times sum to wall time to the nanosecond. `hotplug`: a vCPU
    may have been unplugged and plugged again."""
    accounts = [(v["vm"], v["vcpu"]) for v in report["vcpus"]]
    if len(set(accounts)) != len(accounts) and not hotplug:
        raise Unbalanced(f"a vCPU's account has gaps: {accounts}")
    for v in report["vcpus"]:
        wall, total = v["end_ns"] - v["begin_ns"], sum(v["states_ns"].values())
        if total != wall or min(v["states_ns"].values()) < 0:
            raise Unbalanced(f"VM {v['vm']}, vCPU {v['vcpu']}: its states sum to {total} ns, "
                             f"{wall} ns passed: {v['states_ns']}")
        if v["observed_ns"] != wall - v["states_ns"]["unknown"] or \
                sum(v["unknown_ns"].values()) < v["states_ns"]["unknown"]:
            raise Unbalanced(f"VM {v['vm']}, vCPU {v['vcpu']}: {v['states_ns']['unknown']} of {wall} ns "
                             f"are unknown, {v['observed_ns']} observed, reasons {v['unknown_ns']}")
        if not report["begin_ns"] <= v["begin_ns"] <= v["end_ns"] <= report["end_ns"]:
            raise Unbalanced(f"VM {v['vm']}, vCPU {v['vcpu']}: its account reaches beyond the "
                             "recording")
    for i in report["incidents"]:
        total = sum(i["breakdown_ns"].values())
        if total != i["duration_ns"] or total != i["end_ns"] - i["begin_ns"] or \
                min(i["breakdown_ns"].values()) < 0:
            raise Unbalanced(f"VM {i['vm']}, guest CPU {i['guest_cpu']}: the breakdown of its stall "
                             f"sums to {total} ns of {i['duration_ns']}")
    return report


def report(program, recording, *more, **run):
    """The report of a recording, as an object. `run`: passed on to subprocess.run."""
    done = subprocess.run([program, "report", recording, "--format", "json", *more],
                          capture_output=True, text=True, **{"timeout": 120, **run})
    if done.returncode not in REPORTED:
        done.check_returncode()
    found = check(json.loads(done.stdout))
    if found["coverage"]["supported"] != (done.returncode == 0):
        raise Unbalanced(f"exit code {done.returncode} with coverage {found['coverage']}")
    return found
