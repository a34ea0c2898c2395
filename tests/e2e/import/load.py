#!/usr/bin/env python3
"""Runs a thread with the name of a vCPU thread. It shares its CPU with a hog, sleeps now and then, and is
stopped once.
"""
import ctypes
import os
import signal
import sys
import time


def called(name):
    ctypes.CDLL(None).prctl(15, name.encode())  # PR_SET_NAME


def child(name, cpu, work, seconds):
    pid = os.fork()
    if pid:
        return pid
    called(name)
    os.sched_setaffinity(0, {cpu})
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        work()
    os._exit(0)


def spin_and_sleep():
    until = time.monotonic() + 0.03
    while time.monotonic() < until:
        pass
    time.sleep(0.005)


def main():
    cpu = min(os.sched_getaffinity(0))
    vcpu = child("CPU 0/KVM", cpu, spin_and_sleep, 1.6)
    hog = child("a hog", cpu, lambda: None, 1.6)
    with open(sys.argv[1], "w") as f:
        f.write(str(vcpu))
    time.sleep(0.6)
    os.kill(vcpu, signal.SIGSTOP)
    time.sleep(0.3)
    os.kill(vcpu, signal.SIGCONT)
    os.waitpid(vcpu, 0)
    os.waitpid(hog, 0)


main()
