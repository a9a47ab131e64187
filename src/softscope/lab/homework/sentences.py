"""The grader's own messages, in Chinese and English side by side; exercises bring their own."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from softscope._text import Text, same

if TYPE_CHECKING:
    from softscope.lab.homework.answer_process import RaisedError

# Why an answer's process ended.
STOPPED: dict[str, Text] = {
    "syntax": Text(zh="这段代码不是合法的 Python：{where}{text}。", en="This is not valid Python: {where}{text}."),
    "slow": Text(
        zh="超过 {seconds} 秒还没有结果，已经停止：请看看循环会不会结束。",
        en="No result within {seconds} s, so it was stopped: look for a loop that never ends.",
    ),
    "output": Text(
        zh="打印的内容超过 {kilobytes} KB，已经停止：请去掉循环里的 print。",
        en="It printed more than {kilobytes} KB, so it was stopped: remove the print from the loop.",
    ),
    "large": Text(
        zh="返回的结果太大，已经停止：请检查它的形状。",
        en="The result is too large, so it was stopped: check its shape.",
    ),
    "garbled": Text(
        zh="评分用的管道里出现了不是评分程序写的内容：请不要直接读写文件描述符。",
        en="Something other than the grader wrote to its pipe: do not use file descriptors directly.",
    ),
    "closed": Text(
        zh="评分用的管道被关闭了：请不要关闭文件描述符。",
        en="The grader's pipe was closed: do not close file descriptors.",
    ),
    "exit": Text(
        zh="程序自己退出了（退出码 {code}），没有返回结果：请去掉 exit。",
        en="The program exited by itself (exit code {code}) before it returned a result: remove the exit.",
    ),
    "killed": Text(
        zh="程序崩溃了（{signal}）：多半是递归太深或内存用尽。",
        en="The program crashed ({signal}): most likely the recursion is too deep or memory ran out.",
    ),
    "long": Text(
        zh="代码超过 {most} 个字符，没有运行。", en="The code is longer than {most} characters, so it was not run."
    ),
}

MISSING = Text(
    zh="没有找到函数 {names}：请按题目给的名字定义它。",
    en="There is no function {names}: define it under the name given in the task.",
)


def raised(error: RaisedError) -> Text:
    """Explain an exception of the answer, as the second half of a sentence."""
    at = _line(error.line)
    if error.missing:
        root = error.missing.partition(".")[0]
        if root in sys.stdlib_module_names:
            return Text(
                zh=f"这道题不能用 {error.missing}{at.zh}",
                en=f"{error.missing} is not available in this exercise{at.en}",
            )
        return Text(
            zh=f"这道题不能用 {root}，只能用 NumPy 和标准库{at.zh}",
            en=f"{root} is not available in this exercise, only NumPy and the standard library{at.en}",
        )
    why = Text(zh=f"：{error.text}", en=f": {error.text}") if error.text else same("")
    if error.error == "MemoryError":
        return Text(zh=f"内存不够{at.zh}{why.zh}", en=f"there is not enough memory{at.en}{why.en}")
    if error.error in ("PermissionError", "gaierror"):  # a name lookup fails like this without a network
        return Text(
            zh=f"答案不能读写文件、联网、开新进程或发信号{at.zh}{why.zh}",
            en=f"an answer may not use files, the network, processes or signals{at.en}{why.en}",
        )
    return Text(zh=f"抛出了 {error!r}{at.zh}", en=f"it raised {error!r}{at.en}")


def unread(error: RaisedError) -> Text:
    """Explain what is wrong with a file that raises before we call any function."""
    told = raised(error)
    return Text(zh=f"文件无法运行：{told.zh}。", en=f"The file does not run: {told.en}.")


def _line(line: int | None) -> Text:
    return same("") if line is None else Text(zh=f"（第 {line} 行）", en=f" (line {line})")


def came_with(claim: Text, came: Text, shown: str) -> Text:
    """Describe a broken property: what must hold, what came instead, and for which input."""
    gap = " " if came.zh[0].isascii() else ""
    return given(Text(zh=f"{claim.zh}，但{gap}{came.zh}。", en=f"{claim.en}, but {came.en}."), shown)


def given(sentence: Text | str, shown: str) -> Text:
    """Return a sentence, followed by the input that shows it, if there is one."""
    text = same(sentence) if isinstance(sentence, str) else sentence
    return Text(zh=f"{text.zh}输入：{shown}", en=f"{text.en} Input: {shown}") if shown else text


def stopped(key: str, values: dict[str, object]) -> Text:
    """Explain why the process ended, with the values filled in."""
    line = values.get("line")
    where = Text(zh=f"第 {line} 行，", en=f"line {line}, ") if line else same("")
    return STOPPED[key].format(**{**values, "where": where})
