"""The program as a whole: help, version, languages, colours, pipes, and what it does not import."""

import os
import re
import subprocess
import sys

import pytest

import softscope
from cli.commands import COLOUR, MODULE, columns, environment, on_terminal, program, script
from softscope._text import LANGS
from softscope.cli.commands import COMMANDS

EXPLAIN = ("explain", "1", "2", "3")


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize(
    "words", [EXPLAIN, ("tour",), ("--help",), ("explain", "--help"), ("experiment", "--help"), ("watch", "--help")]
)
def test_fits_the_terminal(words, width, lang):
    code, text, errors = on_terminal(*words, "--lang", lang, width=width)
    assert (code, errors) == (0, "")
    lines = COLOUR.sub("", text).splitlines()
    assert lines
    assert max(map(columns, lines)) <= width
    if words[-1] != "--help":
        assert max(map(columns, lines)) > width - 12, "does not use the width"


def test_colour_on_a_terminal_only():
    assert COLOUR.search(on_terminal(*EXPLAIN)[1])
    assert not COLOUR.search(on_terminal(*EXPLAIN, NO_COLOR="1")[1])
    assert not COLOUR.search(on_terminal(*EXPLAIN, NO_COLOR="1", FORCE_COLOR="1")[1])
    assert not COLOUR.search(on_terminal(*EXPLAIN, TERM="dumb")[1])
    assert not COLOUR.search(on_terminal(*EXPLAIN, "--format", "json")[1])
    assert not COLOUR.search(program(*EXPLAIN).stdout)
    assert COLOUR.search(program(*EXPLAIN, env={"FORCE_COLOR": "1"}).stdout)
    assert COLOUR.sub("", on_terminal(*EXPLAIN)[1]) == program(*EXPLAIN).stdout


def test_a_terminal_without_numbers_is_not_waited_for():
    code, text, errors = on_terminal("explain")
    assert (code, text) == (2, "")
    assert errors.startswith("softscope: got no numbers")


@pytest.mark.parametrize("command", [MODULE, None])
def test_script_and_module(command):
    command = command or (script(),)
    assert program("--version", command=command).stdout == f"softscope {softscope.__version__}\n"
    result = program("explain", "-3", "-1", "0", command=command)
    assert (result.returncode, result.stderr) == (0, "")
    result = program("explain", "x", command=command)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)


def test_numbers_through_a_pipe():
    result = program("explain", "--format", "json", input="1 2 3")
    assert '"weight": 0.09003' in result.stdout


@pytest.mark.parametrize(
    ("env", "chinese"),
    [
        ({"LANG": "zh_CN.UTF-8"}, True),
        ({"LANG": "en_US.UTF-8"}, False),
        ({"LC_MESSAGES": "zh_CN.UTF-8", "LANG": "en_US.UTF-8"}, True),
        ({"LC_ALL": "C.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, False),
        ({"LC_ALL": "", "LANG": "zh_TW.UTF-8"}, True),
        ({"LANG": ""}, False),
    ],
)
def test_language_of_the_locale(env, chinese):
    result = program(*EXPLAIN, env=env | {"PYTHONIOENCODING": "utf-8"})
    assert ("权重" in result.stdout) == chinese
    other = program(*EXPLAIN, "--lang", "en" if chinese else "zh", env=env | {"PYTHONIOENCODING": "utf-8"})
    assert ("权重" in other.stdout) != chinese


def test_streams_that_cannot_bear_every_character():
    for lang in LANGS:
        result = program(*EXPLAIN, "-T", "2", "--lang", lang, env={"PYTHONIOENCODING": "ascii"})
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout.isascii()
        assert "?" not in result.stdout
        assert "######" in result.stdout
        assert "s(1-s)" in result.stdout
        assert program("tour", "--lang", lang, env={"PYTHONIOENCODING": "ascii"}).stdout.isascii()
    chinese = subprocess.run(
        [*MODULE, *EXPLAIN, "--lang", "zh"], env=environment(PYTHONIOENCODING="gb2312"), capture_output=True, check=True
    )
    assert "权重" in chinese.stdout.decode("gb2312")


@pytest.mark.parametrize("words", [("tour",), EXPLAIN, ("--help",), (*EXPLAIN, "--format", "json")])
def test_a_closed_pipe_ends_quietly(words):
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(
        [*MODULE, *words], stdout=writer, stderr=subprocess.PIPE, env=environment(), timeout=60, check=False
    )
    os.close(writer)
    assert (result.returncode, result.stderr) == (0, b"")


def test_head_takes_one_line_of_many():
    first = subprocess.Popen(
        [*MODULE, "explain", "--format", "json", *map(str, range(5000))],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(),
    )  # fmt: skip
    assert first.stdout.readline() == b"{\n"
    first.stdout.close()
    assert first.stderr.read() == b""
    first.stderr.close()
    assert first.wait(60) == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full, which Linux has")
def test_a_full_disk_is_one_line():
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [*MODULE, *EXPLAIN], stdout=full, stderr=subprocess.PIPE, env=environment(), timeout=60, check=False
        )
    assert result.returncode == 2
    assert result.stderr == b"softscope: cannot write the output: No space left on device\n"


def test_no_streams_at_all():
    for closed, code in ((">&-", 0), ("2>&-", 0), ("<&-", 0), (">&- 2>&- <&-", 0)):
        shell = ["/bin/sh", "-c", f'exec "$0" -m softscope.cli explain 1 2 {closed}', sys.executable]
        assert subprocess.run(shell, env=environment(), capture_output=True, timeout=60, check=False).returncode == code


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",)])
def test_help(run, words):
    text = run.text(*words)
    for command in COMMANDS:
        assert f"\n  {command} " in text
    assert "softscope explain 2.0 2.1 2.2 --temperature 0.5" in text
    assert "用法：" in run.text("--lang", "zh", *words)
    assert "用法：" in run.text(*words, "--lang", "zh")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command(run, command):
    assert run.text(command, "--help").startswith(f"Usage: softscope {command}")
    assert run.text(command, "-h", "--lang", "zh").startswith(f"用法：softscope {command}")
    assert run.text("--lang", "zh", command, "-h").startswith(f"用法：softscope {command}")


def test_help_names_every_option_and_its_examples_run(run, tmp_path, monkeypatch):
    import numpy as np

    from softscope.cli.explain import COMMAND

    monkeypatch.chdir(tmp_path)
    np.save("logits.npy", np.eye(4))
    text = run.text("explain", "--help")
    for option in COMMAND.options:
        assert f"  {option.flags[0]}" in text
    for typed, _ in COMMAND.examples:
        assert typed in text
        words = typed.rpartition("softscope ")[2].split()
        run.text(*words, stdin="1 2 3 4 5" if typed.startswith("seq") else None)


def test_env_says_versions_and_nothing_private(run):
    import numpy as np

    text = run.text("env")
    lines = dict(line.split(maxsplit=1) for line in text.splitlines())
    assert list(lines) == ["softscope", "python", "numpy", "torch", "transformers", "platform", "engine"]
    assert lines["softscope"] == softscope.__version__
    assert lines["numpy"] == np.__version__
    assert re.fullmatch(r"\d+\.\d+\S*|not installed", lines["torch"])
    assert os.uname().nodename not in text
    assert os.sep not in text
    assert run.text("env", "--lang", "zh") == text


def test_interrupt(run, monkeypatch):
    from softscope.cli import program as module

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "_run", interrupted)
    assert run("tour") == (130, "", "")


@pytest.mark.parametrize(
    "words",
    [["--help"], ["explain", "1", "2"], ["tour"], ["env"], ["claims", "S1-03"], ["experiment", "--list"],
     ["experiment", "overflow"], ["homework", "list"], ["glossary"]],
)  # fmt: skip
def test_torch_stays_unimported(words):
    code = f"import sys; from softscope.cli import main; main({words!r}); sys.exit('torch' in sys.modules)"
    assert program("-c", code, command=(sys.executable,)).returncode == 0


def test_commands_are_imported_when_called():
    code = "import sys; from softscope.cli import main; main(['--help']); print(*sys.modules)"
    modules = program("-c", code, command=(sys.executable,)).stdout.split()
    assert "softscope.cli.words" in modules
    names = COMMANDS
    assert not {f"softscope.cli.{name}" for name in names} & set(modules)
