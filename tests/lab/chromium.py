"""The system's chromium, headless, and the lab in its own process."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
)


def found():
    """The path of chromium, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextlib.contextmanager
def browser():
    """A browser; without one the test is skipped, and the message says how to install it."""
    path = found()
    if path is None:
        pytest.skip(
            "NO CHROMIUM: the lab's pages are not tested in a browser; install it (Debian: apt install chromium)"
        )
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        made = started.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield made
        finally:
            made.close()


class Lab:
    """A running `softscope lab`."""

    def __init__(self, state, *options):
        environment = {**os.environ, "SOFTSCOPE_HOME": str(state), "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"}
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "softscope.cli", "lab", "--no-browser", "--lang", "en", *options],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=pathlib.Path(state),
        )  # fmt: skip
        self.said = ""
        while "Ctrl-C" not in self.said:
            line = self.process.stdout.readline()
            assert line, self.process.stderr.read()
            self.said += line
        self.seconds = time.monotonic() - self.started
        self.address = re.search(r"http://\S+", self.said).group()
        self.port = int(re.search(r":(\d+)/", self.address).group(1))
        self.token = re.search(r"token=(\S+)", self.address).group(1)
        self.origin = f"http://127.0.0.1:{self.port}"

    def stop(self):
        """Press Ctrl-C; return the last output, the errors and the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        said, errors = self.process.communicate(timeout=20)
        return said, errors, self.process.returncode


@contextlib.contextmanager
def lab(state, *options):
    running = Lab(state, *options)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.stop()
