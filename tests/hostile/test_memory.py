"""Running out of memory or threads inside a kernel is an exception or a slower call, never the end of the process."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
PATIENCE = 600


@pytest.fixture(scope="module")
def failing(tmp_path_factory) -> str:
    """A library to preload, whose allocations and threads fail when told to."""
    path = tmp_path_factory.mktemp("failing") / "failing.so"
    compiler = os.environ.get("CXX", "c++")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", path, HERE / "failing.cc", "-ldl"], check=True)
    return str(path)


def run(source: str | pathlib.Path, preload: str = "") -> str:
    """Run a program; it must end well."""
    program = [sys.executable, str(source)] if isinstance(source, pathlib.Path) else [sys.executable, "-c", source]
    environment = os.environ | ({"LD_PRELOAD": preload} if preload else {})
    done = subprocess.run(program, capture_output=True, text=True, env=environment, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.xdist_group("out of memory")
def test_any_allocation_of_any_kernel_may_fail(failing):
    """The process survives, the error is MemoryError, and the next call is right; it used to abort or hang."""
    found = dict(re.findall(r"(.+): (\d+)", run(HERE / "out_of_memory.py", failing)))
    assert len(found) >= 26
    assert min(map(int, found.values())) >= 5  # allocations of a kernel that failed, one after the other


LIMITED = """
import os, resource, signal
import numpy as np
import softscope as ss

x = np.zeros((16, 1 << 21), np.float16)
ss.softmax([1.0])  # what is imported on demand
ss.set_num_threads(4)
size = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
outcomes = []
for room in (0, 1, 2, 5, 9, 12, 17, 25, 40):
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(120)
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (size + (room << 20), hard))
        try:
            ss.logsumexp(x)
            os.write(writer, b"fine")
        except MemoryError:
            os.write(writer, b"MemoryError")
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        assert np.all(ss.logsumexp(x) == np.float16(np.log(1 << 21)))
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0, room
    outcomes.append(os.read(reader, 20).decode())
print(*outcomes)
"""


def test_a_limited_address_space_is_a_memory_error():
    assert "MemoryError" in run(LIMITED).split()


THREADS = """
import ctypes
{imports}
import numpy as np
import softscope as ss

failing = ctypes.CDLL(None)
x = np.random.default_rng(0).normal(size=(640, 4096))
wanted = np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)
ss.set_num_threads(8)
for many in (0, 1, 3, -1):
    failing.limit_threads(many)
    assert np.allclose(ss.softmax(x), wanted, rtol=1e-13), many
    assert np.allclose(ss.softmax(x), wanted, rtol=1e-13), many
print("fine")
"""


@pytest.mark.parametrize("imports", ["", "import torch"])
def test_threads_that_cannot_be_started_are_done_without(failing, imports):
    """With PyTorch loaded too, whose OpenMP would end the process if it were asked for them."""
    assert run(THREADS.format(imports=imports), failing) == "fine\n"


LATE_THREADS = """
import ctypes
import numpy as np
import softscope as ss

failing = ctypes.CDLL(None)
x = np.random.default_rng(0).normal(size=(640, 4096))
ss.set_num_threads(1)
wanted = ss.softmax(x)
failing.hold_threads(1)
ss.set_num_threads(5)
for many in range(3):
    assert np.array_equal(ss.softmax(x), wanted)
failing.hold_threads(0)  # they come while later calls run
for many in range(300):
    assert np.array_equal(ss.softmax(x), wanted)
print("fine")
"""


def test_a_call_does_not_wait_for_helpers_that_get_no_core(failing):
    assert run(LATE_THREADS, failing) == "fine\n"


SUBINTERPRETER = """
import sys
import _xxsubinterpreters as interpreters

code = f'''
import sys, warnings
sys.path[:0] = {sys.path!r}
warnings.simplefilter("ignore")
import softscope
softscope.softmax([1.0, 2.0])
'''
try:
    interpreters.run_string(interpreters.create(), code)
except interpreters.RunFailedError as error:
    print(error)
"""


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="the module has another name there")
def test_a_subinterpreter_is_refused_in_a_sentence():
    """It used to wait for ever, with the lock of the wrong interpreter."""
    assert "softscope runs only in Python's main interpreter, but is imported in a subinterpreter" in run(
        SUBINTERPRETER
    )
