"""Words of `softscope homework`: its help, its frame and its usage errors; exercises bring their own."""

from softscope._text import Text, same

HOMEWORK: dict[str, Text] = {
    "homework.summary": Text(
        en="Eight exercises, answered in files and graded automatically.", zh="八道自动批改的练习，答案写在文件里。"
    ),
    "homework.description": Text(
        en="Eight exercises on softmax and attention. start writes a file to complete, and check grades it. The "
        "answer runs in its own process, with no access to files, the network or other processes. Every message "
        "names the property that fails and an input that shows it. Exit code 0: passed; 1: not yet; 2: usage error.",
        zh="八道关于 softmax 和注意力的练习。start 写出一个待完成的文件，check 批改它。答案在单独的进程里运行，碰不到"
        "文件、网络和别的进程。每条意见都说明哪条性质不成立，并给出反例。退出码 0：通过；1：还没有；2：用法有误。",
    ),
    "homework.argument.action": Text(
        en="list: show all exercises; start: write the file; check: grade it; hint: give one more hint; next: show "
        "what comes next.",
        zh="list：列出全部；start：写出文件；check：批改；hint：多给一条提示；next：下一道是什么。",
    ),
    "homework.argument.exercise": Text(
        en="Its number or name; default: the next one you have not passed. check also takes a file.",
        zh="练习的编号或名字；默认是下一道还没通过的。check 也可以写文件名。",
    ),
    "homework.option.answers": Text(en="The answers to the quiz, such as abcd.", zh="选择题的答案，如 abcd。"),
    "homework.option.seed": Text(
        en="Seed for the random inputs; default: a new one each time.", zh="随机输入的种子；默认每次不同。"
    ),
    "homework.option.skip": Text(en="With next: skip the next one for now.", zh="与 next 合用：先跳过下一道。"),
    "homework.example.list": Text(en="See the exercises and your progress.", zh="查看有哪些练习，做到哪里了。"),
    "homework.example.start": Text(en="Write the file of the first exercise.", zh="写出第一道练习的文件。"),
    "homework.example.check": Text(en="Grade it.", zh="批改它。"),
    "homework.state.new": same(""),
    "homework.state.tried": Text(en="tried", zh="做过"),
    "homework.state.skipped": Text(en="skipped", zh="已跳过"),
    "homework.state.passed": Text(en="passed", zh="已通过"),
    "homework.minutes": Text(en="{minutes} min", zh="{minutes} 分钟"),
    "homework.count": Text(en="Passed: {passed} of {all}.", zh="已通过 {passed} 道，共 {all} 道。"),
    "homework.head": Text(en="Exercise {number} of {all} · {title}", zh="第 {number} 道，共 {all} 道 · {title}"),
    "homework.file.check": Text(en="Check it with: {command}", zh="写好后运行：{command}"),
    "homework.asked": Text(en="Functions to write: {functions}", zh="要写的函数：{functions}"),
    "homework.written": Text(
        en="Wrote {file}; complete it, then check it.", zh="已写出文件 {file}；请完成它，然后批改。"
    ),
    "homework.quiz.how": Text(
        en="No file is needed: answer in the terminal, or pass the letters.",
        zh="不需要文件：在终端里回答，或直接写出字母。",
    ),
    "homework.quiz.ask": Text(en="Your answer ({letters}): ", zh="你的答案（{letters}）："),
    "homework.passed": Text(en="Passed: {title}", zh="通过：{title}"),
    "homework.not_yet": Text(en="Not yet: {title}", zh="还没有通过：{title}"),
    "homework.notice": Text(en="What to notice: {notice}", zh="值得注意：{notice}"),
    "homework.printed": Text(en="It printed:", zh="它打印了："),
    "homework.seed": Text(
        en="Took {seconds} s; the random inputs have seed {seed}.", zh="用时 {seconds} 秒；随机输入的种子是 {seed}。"
    ),
    "homework.hint": Text(en="Hint {place} of {all}: {hint}", zh="提示 {place}，共 {all} 条：{hint}"),
    "homework.hint.last": Text(en="That was the last hint.", zh="提示到此为止。"),
    "homework.hint.more": Text(en="For a hint: {command}", zh="需要提示：{command}"),
    "homework.next": Text(en="Next: {title}", zh="下一道：{title}"),
    "homework.skipped": Text(en="Skipped for now: {title}", zh="先跳过：{title}"),
    "homework.finish": Text(
        en="You have passed all {all}. You have written softmax, its logarithm, its derivative, a sparse rival and "
        "the one-pass form that attention uses. To see how other claims stand up to measurement: softscope claims",
        zh="{all} 道全部通过。softmax、它的对数、它的导数、一个稀疏的对手，以及注意力所用的一遍扫描的写法，你都亲手写"
        "过了。其他说法经不经得起实测，见：softscope claims",
    ),
    "homework.spoilt": Text(
        en="Your progress file could not be read; it was renamed to {path}, and a new one was started.",
        zh="无法读取进度记录；已把它改名为 {path}，并重新开始记录。",
    ),
    "homework.unkept": Text(en="Your progress could not be saved: {reason}", zh="无法保存进度：{reason}"),
    "homework.action.none": Text(
        en="no action was given; write one of {known} after homework",
        zh="没有写要做什么；请在 homework 后面写 {known} 之一",
    ),
    "homework.action.unknown": Text(
        en="homework has no action {value}; write one of {known}",
        zh="homework 没有 {value} 这个操作；请写 {known} 之一",
    ),
    "homework.several": Text(
        en="one exercise at a time, but got {value} as well; leave it out",
        zh="一次只能做一道练习，却又收到了 {value}；请去掉它",
    ),
    "homework.unknown": Text(
        en="there is no exercise {value}; choose 1 to {all}, or {known}",
        zh="没有 {value} 这道练习；可以写 1 到 {all}，或 {known}",
    ),
    "homework.list.alone": Text(
        en="list takes no exercise, but got {value}; leave it out",
        zh="list 不需要写练习，却收到了 {value}；请去掉它",
    ),
    "homework.exists": Text(
        en="{file} already exists and was not changed; check it, or move it away",
        zh="{file} 已经存在，没有改动；请批改它，或把它移走",
    ),
    "homework.unwritable": Text(en="cannot write {file}: {reason}", zh="无法写入 {file}：{reason}"),
    "homework.unreadable": Text(en="cannot read {file}: {reason}", zh="无法读取 {file}：{reason}"),
    "homework.encoding": Text(
        en="{file} is not in UTF-8, but in {found}; save it again with the encoding UTF-8",
        zh="{file} 的编码不是 UTF-8，而是 {found}；请用 UTF-8 编码另存一次",
    ),
    "homework.no_text": Text(
        en="{file} is not a text file; save your answer as Python text, in UTF-8",
        zh="{file} 不是文本文件；请把答案存成 Python 文本，编码为 UTF-8",
    ),
    "homework.absent": Text(
        en="there is no {file} here; softscope homework start {number} writes it",
        zh="这里没有 {file}；用 softscope homework start {number} 写出它",
    ),
    "homework.whose": Text(
        en="{file} does not say which exercise it answers; name the exercise instead",
        zh="看不出 {file} 是哪道练习的答案；请改写练习的编号",
    ),
    "homework.answers.needed": Text(
        en="this exercise is a quiz; pass --answers with {count} letters, such as {example}",
        zh="这道练习是选择题；请用 --answers 写出 {count} 个字母，如 {example}",
    ),
    "homework.answers.needless": Text(
        en="--answers is for the quiz, but {title} asks for code; leave it out",
        zh="--answers 只用于选择题，而 {title} 要写代码；请去掉它",
    ),
    "homework.option.elsewhere": Text(
        en="{option} goes only with {action}; leave it out", zh="{option} 只能与 {action} 合用；请去掉它"
    ),
    "homework.all_passed": Text(
        en="you have passed all exercises; name one to see it again", zh="所有练习都已通过；请写出要重看的那一道"
    ),
    "homework.unsupported": Text(
        en="answers run only on Linux and macOS, where processes can be restricted",
        zh="答案只能在 Linux 和 macOS 上运行，那里可以限制进程",
    ),
}
