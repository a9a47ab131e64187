"""Small made-up runs: sites, snapshots, and code for processes that record."""

import contextlib
import math
import re
import subprocess
import sys
import textwrap
import warnings

import numpy as np

from softscope.doctor.listen.reasons import TOLD, Reason
from softscope.doctor.read.snapshot import FORWARD, GRADIENT, History, Site, Snapshot
from softscope.doctor.record import RecordWarning

SITES = (
    Site("blocks.0.attention", "sdpa", heads=4, kv_heads=2, scale=0.125, head_size=64, causal=True),
    Site("blocks.1.attention", "softmax", heads=3, kv_heads=3, scale=math.nan, head_size=0, fused=False, dropout=0.1),
)
UNSEEN = (("pooler", Reason(TOLD, ("no softmax seen",))),)


def snapshot(step, *, sites=SITES, loss=2.5, names=(*FORWARD, *GRADIENT)):
    """Readings that differ in every cell; NaN where a site has no such head."""
    rng = np.random.default_rng(step)
    heads = max(site.heads for site in sites)
    readings = {}
    for name in names:
        readings[name] = rng.standard_normal((len(sites), heads)).astype(np.float32)
        for row, site in enumerate(sites):
            readings[name][row, site.heads :] = np.nan
    return Snapshot(step, 0.25 * step, loss, readings)


def same(a, b):
    """Whether two snapshots are equal bit for bit, NaN included."""
    assert (a.step, a.seconds) == (b.step, b.seconds)
    assert a.loss == b.loss or (math.isnan(a.loss) and math.isnan(b.loss))
    assert a.readings.keys() == b.readings.keys()
    for name, reading in a.readings.items():
        np.testing.assert_array_equal(reading, b.readings[name])
        assert b.readings[name].dtype == np.float32
    return True


def history(steps=3):
    return History(SITES, tuple(snapshot(step) for step in range(steps)), UNSEEN, {"a": 1})


@contextlib.contextmanager
def one_warning(match):
    """The block must warn exactly once, with a message that matches."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught
    (only,) = caught
    assert only.category is RecordWarning
    assert re.search(match, str(only.message)), only.message


BEGIN = """
import resource, sys, time, warnings
from doctor.record.runs import SITES, snapshot
from softscope.doctor.record import Record
warnings.simplefilter("always")
"""


def process(code, *arguments, **options):
    """Run the code in a new process that can import the test modules."""
    path = f"import sys; sys.path[:0] = {sys.path!r}\n"
    code = path + BEGIN + textwrap.dedent(code)
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, **options,
    )  # fmt: skip


def finished(code, *arguments):
    """Everything such a process printed; it must exit successfully."""
    with process(code, *arguments) as running:
        out, err = running.communicate(timeout=60)
    assert running.returncode == 0, err
    return out, err
