#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The micro-guest's test inside bed B's host: another KVM (kvm_amd, a module), other kernels than
this machine's, TSC offsets that take effect."""
import subprocess
import sys
import os

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/beds")
import bed  # noqa: E402

TEST = "tests/e2e/microguest/test_microguest"


def libraries(program):
    """Paths of the shared libraries that the loader maps for it."""
    listing = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return [line.split("=>")[-1].split()[0] for line in listing.splitlines() if "/" in line]


def run(series):
    builder = bed.Builder(series=series)
    program = f"{builder.build}/{TEST}"
    files = [(program, "/usr/bin/test_microguest")] + [(path, path) for path in libraries(program)]
    with bed.boot_b(builder, files=files) as host:
        try:
            status, output = host.run_bytes("test_microguest 2>&1", timeout_s=240)
        except bed.machine.MachineError:
            print(f"console of the host with Linux {series}:\n{host.serial()[-8000:]}", flush=True)
            raise
    print(f"KVM of Linux {series}, nested:\n{output.decode(errors='replace')}", flush=True)
    return status


def main():
    failed = [series for series in sys.argv[1:] or ("6.1", "6.12")
              if bed.machine.retry_emulator(lambda: run(series))]
    if failed:
        print(f"failed inside the host with Linux {', '.join(failed)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
