"""Whatever keeps a command from its work, the exit code is 2 and there is a sentence: never 0 for nothing examined."""

import os
import re
import signal
import subprocess
import sys

import pytest

from cli.commands import MODULE, environment, program
from softscope._text import LANGS
from softscope.cli import program as whole
from softscope.doctor import Record, Site

CHINESE = re.compile(r"[\u3400-\u9fff]")

CODE = """
import torch
from torch import nn

class Silent(Exception):
    def __str__(self):
        raise SystemExit(0)

class Odd(BaseException):
    pass

def fail(place):
    if place == {place!r}:
        {raises}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 8, 0.0, batch_first=True)

    def forward(self, x):
        fail("forward")
        return self.layer(x)

class Backward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        fail("backward")
        return gradient

class Optimizer(torch.optim.SGD):
    def step(self, *_):
        fail("optimizer")

def loss(output, batch):
    fail("loss")
    return Backward.apply(output).sum()

def build():
    fail("build")
    model = Model()
    return model, torch.randn(6, 5, 8), loss, Optimizer(model.parameters(), lr=0.1)

fail("import")
"""
PLACES = ("import", "build", "forward", "loss", "backward", "optimizer")
RAISED = (
    "raise SystemExit", "raise SystemExit(0)", "__import__('sys').exit()", "raise KeyboardInterrupt",
    "raise GeneratorExit", "raise StopIteration", "raise RecursionError", "raise MemoryError", "raise BrokenPipeError",
    "raise Silent", "raise Odd",
)  # fmt: skip


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(text):
        (tmp_path / "absent_minded.py").write_text(text, "utf-8")
        sys.modules.pop("absent_minded", None)
        return "absent_minded:build"

    yield write
    sys.modules.pop("absent_minded", None)


def one_sentence(answer, lang="en"):
    code, out, err = answer
    assert (code, out) == (2, ""), (code, err)
    assert err.startswith("softscope: ")
    assert err.count("\n") == 1, err
    assert bool(CHINESE.search(err)) == (lang == "zh")
    return err


def test_the_model_is_fine_otherwise(run, module):
    pytest.importorskip("torch")
    assert run("checkup", module(CODE.format(place="nowhere", raises="pass")))[0] == 0


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("raises", RAISED)
def test_the_users_code_raises(run, module, place, raises):
    pytest.importorskip("torch")
    word = module(CODE.format(place=place, raises=raises))
    for lang in LANGS:
        sys.modules.pop("absent_minded", None)
        err = one_sentence(run("checkup", word, "--lang", lang), lang)
        assert re.search(r"SystemExit|KeyboardInterrupt|GeneratorExit|StopIteration|Error|Silent|Odd", err)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("def build(): return Model(), [], loss", "got an empty list"),
        ("def build(): return Model(), torch.randn(6, 5, 8), lambda output, batch: None", "but got NoneType"),
        ("def build(): return nn.Linear(8, 8), torch.randn(6, 5, 8)", "no attention was found"),
        ("def build(): return None", "but got NoneType"),
        ("def build(): return (torch.randn(2) for _ in range(2))", "but got generator"),
        ("def build(n): return n", "TypeError"),
        ("del build", "has no function build"),
    ],
)
def test_there_is_nothing_to_examine(run, module, code, told):
    pytest.importorskip("torch")
    assert told in one_sentence(run("checkup", module(CODE.format(place="nowhere", raises="pass") + "\n" + code)))


def test_ctrl_c_in_the_users_code_is_still_ctrl_c(module, tmp_path):
    """A KeyboardInterrupt that the code raises is its failure, that of the keyboard is the user's wish."""
    pytest.importorskip("torch")
    word = module("import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n")
    done = program("checkup", word, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (130, "")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("lang", LANGS)
def test_a_record_without_readings(run, tmp_path, lang):
    with Record(tmp_path / "begun.db") as record:
        record.sites([Site("encoder.0", "sdpa", heads=2, kv_heads=2, scale=0.125, head_size=64)])
    with Record(tmp_path / "bare.db"):
        pass
    for name in ("begun.db", "bare.db"):
        for form in ("text", "json", "html"):
            err = one_sentence(run("checkup", tmp_path / name, "--format", form, "--exit-zero", "--lang", lang), lang)
            assert lang == "zh" or "holds no readings yet" in err


@pytest.mark.parametrize("words", [("S1-03", "--text", "004"), ("--text", "001", "S0-01", "--fast")])
def test_no_claim_was_checked(run, words):
    for lang in LANGS:
        one_sentence(run("claims", *words, "--lang", lang), lang)


@pytest.mark.parametrize("command", whole.COMMANDS)
@pytest.mark.parametrize(
    "error", [SystemExit(0), SystemExit(), GeneratorExit(), RuntimeError("no"), MemoryError()], ids=repr
)
def test_a_command_that_is_left_in_the_middle(run, monkeypatch, command, error):
    """The last line of defence, for whatever a command does not expect; Python's own 1 would mean findings."""
    import importlib

    def leave(*_):
        raise error

    monkeypatch.setattr(importlib.import_module(whole.COMMANDS[command]), "run", leave)
    for lang in LANGS:
        code, out, err = run(command, "--lang", lang)
        assert (code, out) == (2, "")
        *trace, last = err.splitlines()
        assert last.startswith("softscope: ")
        assert type(error).__name__ in last
        assert bool(trace) == (not isinstance(error, SystemExit)), "a bug comes with its traceback"


def test_a_reader_that_leaves_does_not_turn_findings_into_success(tmp_path):
    """`softscope checkup … | head -0` in a shell with pipefail."""
    pytest.importorskip("torch")
    (tmp_path / "patient.py").write_text(
        "import torch\nfrom torch import nn\n"
        "def build():\n"
        "    torch.manual_seed(0)\n"
        "    model = nn.TransformerEncoderLayer(16, 4, 16, 0.0, batch_first=True)\n"
        "    with torch.no_grad():\n"
        "        model.self_attn.in_proj_weight[:32] *= 100\n"
        "    return model, torch.randn(6, 12, 16), lambda output, batch: (output - batch.roll(1, 1)).pow(2).mean()\n",
        "utf-8",
    )
    words = [*MODULE, "checkup", "patient:build", "--fail-on", "informative"]
    reader, writer = os.pipe()
    os.close(reader)
    for form in ("text", "html"):
        ways = {"cwd": tmp_path, "env": environment(), "stdout": writer, "stderr": subprocess.PIPE}
        done = subprocess.run([*words, "--format", form], **ways, timeout=120)
        assert (done.returncode, done.stderr) == (1, b"")
    os.close(writer)


def test_an_answer_that_leaves_is_not_passed(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOFTSCOPE_HOME", str(tmp_path / "home"))
    assert run("homework", "start", "5")[0] == 0
    (path,) = tmp_path.glob("*.py")
    for answer in ("import sys\nsys.exit(0)\n", "import os\nos._exit(0)\n", "raise KeyboardInterrupt\n", ""):
        path.write_text(answer, "utf-8")
        assert run("homework", "check", "5")[0] == 1, answer
