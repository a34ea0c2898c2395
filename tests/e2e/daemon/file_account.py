# SPDX-License-Identifier: GPL-2.0-only
"""Compares the totals of a recording with its own batches."""
import json
import subprocess

from daemon_rig import BUILD, report_json

BATCH_RANGES = BUILD / "tests/e2e/daemon/batch-ranges"


def file_account(name, path):
    """One recording: what the report says of its guest, and of each boot of its machine, the newest
    last, the id and {CPU: (its totals before its first and with its last batch, events)}, read without
    the report's code. (Problems, both); the report's part is None if nothing of the guest is in it."""
    said = next((v for k, v in report_json(path)["loss"].items() if k != "host"), None)
    held = json.loads(subprocess.run([BATCH_RANGES, path], check=True, capture_output=True,
                                     text=True).stdout)
    boots = [(b["boot"], {cpu: counts for cpu, *counts in b["cpus"]})
             for b in (*reversed(held["before"]), held) if b["cpus"]]
    cpus = [counts for _, cpus in boots for counts in cpus.values()]
    if not said:
        return [f"{name}: {path}: the report does not know of {cpus}"] if cpus else [], None, boots
    parts = said["delivered"] + said["dropped_kernel"] + said["dropped_user"] + said["lost_channel"]
    problems = []
    if said["emitted"] != sum(last - first for first, last, _ in cpus):
        problems.append(f"{name}: {path}: its totals say {cpus}, the report {said['emitted']}")
    if said["delivered"] != sum(events for _, _, events in cpus):
        problems.append(f"{name}: {path}: it holds {cpus}, the report says {said['delivered']}")
    if parts != said["emitted"] or said["overdelivered"]:
        problems.append(f"{name}: {path}: the parts sum to {parts} of {said['emitted']}")
    for part in ("dropped_kernel", "dropped_user", "lost_channel"):
        if sum(span[part] for span in said["spans"]) != said[part]:
            problems.append(f"{name}: {path}: the spans of {part} do not sum to it")
    return problems, said, boots
