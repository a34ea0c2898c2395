#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Runs the tests of the micro-guests inside bed B's host, which has another KVM (kvm_amd, a module), other
kernels, TSC offsets that take effect, and interrupts that (emulated) hardware injects.
"""
import subprocess
import sys
import os

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/beds")
import bed  # noqa: E402

FOLDER = "tests/e2e/microguest"
TESTS = ("test_microguest", "test_interrupts")


def libraries(program):
    """Paths of the shared libraries that the loader maps for it."""
    listing = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return [line.split("=>")[-1].split()[0] for line in listing.splitlines() if "/" in line]


def run(series):
    builder = bed.Builder(series=series)
    programs = {test: f"{builder.build}/{FOLDER}/{test}" for test in TESTS}
    files = [(path, f"/usr/bin/{test}") for test, path in programs.items()]
    files += {(path, path) for program in programs.values() for path in libraries(program)}
    failed = []
    with bed.boot_b(builder, files=files) as host:
        for test in TESTS:
            try:
                status, output = host.run_bytes(f"{test} 2>&1", timeout_s=240)
            except bed.machine.MachineError:
                print(f"console of the host with Linux {series}:\n{host.serial()[-8000:]}",
                      flush=True)
                raise
            print(f"{test}, KVM of Linux {series}, nested:\n{output.decode(errors='replace')}",
                  flush=True)
            if status:
                failed.append(test)
    return failed


def main():
    failed = [series for series in sys.argv[1:] or ("6.1", "6.12")
              if bed.machine.retry_emulator(lambda: run(series))]
    if failed:
        print(f"failed inside the host with Linux {', '.join(failed)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
