# SPDX-License-Identifier: GPL-2.0-only
"""Asks Perfetto's trace_processor about traces: see query.mjs, which runs it, and fetch, which gets it."""
import json
import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
DEFAULT = os.path.join(HERE, "..", "..", "..", ".deps", "trace_processor")


class TraceError(Exception):
    pass


def missing(folder):
    """Why there is none in this folder; None: there is one."""
    if not shutil.which("node"):
        return "node is missing: run deploy/install-deps"
    if not os.path.exists(os.path.join(folder, "complete")):
        return "trace_processor is missing: run tests/sim/trace_processor/fetch"
    return None


class TraceProcessor:
    """One process that reads one trace after the other."""

    def __init__(self, folder):
        self.process = subprocess.Popen(["node", os.path.join(HERE, "query.mjs"), folder], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def ask(self, trace, **sql):
        """{name: [row as a dictionary]} for each query by name. Raises TraceError."""
        print(json.dumps({"trace": os.path.abspath(trace), "sql": sql}), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise TraceError(f"trace_processor ended: exit code {self.process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise TraceError(answer["error"])
        return answer
