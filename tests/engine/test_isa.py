"""Which instruction set is used, and that each one passes every kernel test."""

import os
import pathlib
import platform
import subprocess
import sys

import pytest

from softscope import _engine

HERE = pathlib.Path(__file__).parent


def python(*arguments, isa):
    environment = {k: v for k, v in os.environ.items() if k != "SOFTSCOPE_ISA"}
    if isa is not None:
        environment["SOFTSCOPE_ISA"] = isa
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def isa_with(isa):
    done = python("-c", "from softscope import _engine; print(_engine.isa())", isa=isa)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_lowest_level_is_always_there():
    arm = platform.machine() in ("aarch64", "arm64")  # every such processor has NEON
    assert _engine.isas()[0] == ("neon" if arm else "baseline")
    assert _engine.isa() in _engine.isas()


LEVELS = {"avx2": {"avx2", "fma", "f16c"}, "avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl"}}


@pytest.mark.parametrize("isa", LEVELS)
def test_a_level_is_there_where_the_processor_has_it(isa):
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    flags = set(cpuinfo.read_text().split()) if cpuinfo.exists() else set()
    if platform.machine() != "x86_64" or "avx2" not in flags:  # emulated, a processor shows the flags of the real one
        pytest.skip("needs an x86 processor with AVX2, under Linux")
    assert (isa in _engine.isas()) == (LEVELS[isa] <= flags)


@pytest.mark.parametrize("unset", [None, ""])
def test_the_best_is_the_default(unset):
    assert isa_with(unset) == _engine.isas()[-1]


@pytest.mark.parametrize("isa", _engine.isas())
def test_each_can_be_forced(isa):
    assert isa_with(isa) == isa


OTHERS = [isa for isa in _engine.isas() if isa != _engine.isa()]  # the one in use passes them in this run
FORWARD = ("kernels", "attention_kernels", "reading_rows", "sparse_attention")
BACK = ("float64_logs", "sparse_kernels", "products", "attention_gradients", "sparse_attention_gradients")
EXACT = ("softmax", "readings", "sparse", "jacobian", "losses")


def passes(isa, folder, names):
    tests = [folder / f"test_{name}.py" for name in names]
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", "not fork")  # forks do not depend on the set
    done = python("-m", "pytest", *options, *tests, isa=isa)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.parametrize("isa", OTHERS)
def test_the_others_pass_the_tests_of_the_kernels_too(isa):
    passes(isa, HERE, FORWARD)


@pytest.mark.slow
@pytest.mark.parametrize("isa", OTHERS)
def test_the_others_find_roots_and_the_way_back(isa):
    passes(isa, HERE, BACK)


@pytest.mark.slow
@pytest.mark.parametrize("isa", OTHERS)
def test_the_others_are_as_exact(isa):
    passes(isa, HERE.parent / "exactness", EXACT)


@pytest.mark.parametrize("isa", ["avx1024", "AVX2", "baseline "])
def test_an_unknown_one_is_an_import_error_in_one_sentence(isa):
    done = python("-c", "from softscope import _engine", isa=isa)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: SOFTSCOPE_ISA is '{isa}', but this build on this processor can run only: "
        f"{', '.join(_engine.isas())}; unset it for the best of them."
    )
