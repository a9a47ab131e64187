"""Words of `softscope checkup`: its help, its errors, and the frame around the doctor's verdict."""

from softscope._text import Text

CHECKUP: dict[str, Text] = {
    "checkup.summary": Text(
        en="Show which attention heads starve, why, and what helps.", zh="哪些注意力头在挨饿，为什么，怎么办。"
    ),
    "checkup.description": Text(
        en="Diagnoses a model's attention from its readings: which heads learn, which are already right, which rest, "
        "which starve, and what helps. Without a path it trains three built-in patients while you watch, treats "
        "them and trains them on; this takes well under two minutes and needs PyTorch. A model from a folder reads a "
        "text three times. Nothing is downloaded, and no code from the folder runs. Without a loss (anything but a "
        "causal language model), starvation is not judged. module:function names a function of yours. Called "
        "without arguments, it returns (model, batch), (model, batch, loss) or (model, batch, loss, optimizer). A "
        "batch is a tensor, a tuple of positional arguments, a dictionary of named ones, or a list of batches; "
        "loss(output, batch) returns the loss. Weights change only if there is an optimizer. The exit code is 0 if "
        "nothing was found, 1 for a finding at or above --fail-on, and 2 for a usage error; for the built-in "
        "patients it is 0 unless you pass --fail-on. You can set fail-on and mute under [tool.softscope] in "
        "pyproject.toml.",
        zh="根据注意力的读数诊断模型：哪些头在学，哪些已经读对，哪些在停歇，哪些在挨饿，以及怎么办。不给路径时，现场训"
        "练三个内置的病人，治疗以后接着训练；远不到两分钟，需要 PyTorch。目录里的模型把一段文字读三遍。不联网"
        "，也不运行目录里的代码。没有损失时（因果语言模型以外都没有）不判断挨饿。module:function 是你自己的函数：不"
        "带参数调用，返回 (model, batch)、(model, batch, loss) 或 (model, batch, loss, optimizer)。batch 可以是张量"
        "、按位置传的元组、按名字传的字典，或由它们组成的列表；loss(output, batch) 返回损失。只有给了 optimizer，权"
        "重才会改变。退出码：没有问题为 0，有达到 --fail-on 的问题为 1，用法有误为 2；内置的病人总是 0，除非写了 "
        "--fail-on。fail-on 和 mute 可以写在 pyproject.toml 的 [tool.softscope] 里。",
    ),
    "checkup.argument.path": Text(
        en="A recorded run, the folder of a Hugging Face model, or module:function; default: the three "
        "built-in patients.",
        zh="一次训练的记录、Hugging Face 模型的目录，或 module:function；默认用三个内置的病人。",
    ),
    "checkup.option.format": Text(en="Output format: text, json or html.", zh="输出格式：text、json 或 html。"),
    "checkup.option.report": Text(
        en="Also write the report to this file, as a page that opens offline.",
        zh="同时把报告写进这个文件：可离线打开的网页。",
    ),
    "checkup.option.fail_on": Text(
        en="Lowest severity that makes the exit code 1: finding (default), tip or informative.",
        zh="达到哪一级时退出码为 1：finding（默认）、tip 或 informative。",
    ),
    "checkup.option.exit_zero": Text(en="Exit with 0 whatever is found.", zh="不管发现什么，退出码都是 0。"),
    "checkup.option.mute": Text(
        en="Checks to mute, such as SS010 or SS004:encoder.*, separated by commas.",
        zh="要静音的检查，如 SS010 或 SS004:encoder.*，用逗号隔开。",
    ),
    "checkup.example.patients": Text(en="The three built-in patients.", zh="三个内置的病人。"),
    "checkup.example.record": Text(
        en="Diagnose a recorded run, and save the report as a page.", zh="诊断一次训练的记录，并把报告存为网页。"
    ),
    "checkup.example.fail": Text(en="For CI: a tip is enough to fail.", zh="用于 CI：有建议就算失败。"),
    "checkup.torch": Text(
        en="the built-in patients need PyTorch, which is not installed: pip install 'softscope[torch]'",
        zh="内置的病人需要 PyTorch，但没有安装：pip install 'softscope[torch]'",
    ),
    "checkup.several": Text(
        en="checkup takes one path, but got {count} arguments; leave the others out",
        zh="checkup 只接受一个路径，却收到了 {count} 个参数；请去掉多余的",
    ),
    "checkup.missing": Text(
        en="there is no file {path}; pass a recorded run, the folder of a model, module:function, or nothing for the "
        "three built-in patients",
        zh="没有 {path} 这个文件；请给出一次训练的记录、模型的目录或 module:function，或者什么都不写，用三个内置的病人",
    ),
    "checkup.record.none": Text(
        en="{path} holds no readings yet, so there is nothing to judge; try again once the run has made some",
        zh="{path} 里还没有任何读数，无从判断；请等训练有了读数再试",
    ),
    "checkup.kept.not": Text(
        en="The report cannot be kept in {path}: {reason}. --report FILE writes it elsewhere.",
        zh="报告无法存到 {path}：{reason}。可以用 --report FILE 写到别处。",
    ),
    "checkup.format.unknown": Text(
        en="--format must be text, json or html, but got {value}",
        zh="--format 只能是 text、json 或 html，收到的却是 {value}",
    ),
    "checkup.severity.unknown": Text(
        en="{where} must be finding, tip or informative, but got {value}",
        zh="{where} 只能是 finding、tip 或 informative，收到的却是 {value}",
    ),
    "checkup.mute.unknown": Text(
        en="{where} cannot mute {value}, there is no such check; choose from {known}",
        zh="{where} 无法静音 {value}，没有这项检查；可用的有 {known}",
    ),
    "checkup.settings.broken": Text(
        en="cannot read pyproject.toml: {reason}; fix it or run elsewhere",
        zh="无法读取 pyproject.toml：{reason}；请改正，或换个目录运行",
    ),
    "checkup.settings.unknown": Text(
        en="[tool.softscope] has no setting {name}; choose from {known}",
        zh="[tool.softscope] 没有 {name} 这项设置；可用的有 {known}",
    ),
    "checkup.settings.type": Text(
        en="mute in [tool.softscope] must be a list of strings such as SS010, but got {value}",
        zh="[tool.softscope] 的 mute 必须是字符串列表，如 SS010，收到的却是 {value}",
    ),
    "checkup.unwritable": Text(en="cannot write the report to {path}: {reason}", zh="无法把报告写入 {path}：{reason}"),
    "checkup.opening": Text(
        en="Three patients learn associative recall: d = {d}, {pairs} of {keys} keys in a sequence, {steps} steps. One "
        "is healthy, one starts with W_Q and W_K {gain} times too large, one lacks the factor 1/√d. The doctor reads "
        "their attention while they train.",
        zh="三个病人学联想检索：d = {d}，每个序列里有 {keys} 个键中的 {pairs} 个，训练 {steps} 步。一个健康，一个的 "
        "W_Q 和 W_K 一开始就大了 {gain} 倍，一个少了因子 1/√d。训练过程中，医生读取它们的注意力。",
    ),
    "checkup.column.patient": Text(en="patient", zh="病人"),
    "checkup.column.step": Text(en="step", zh="步"),
    "checkup.column.loss": Text(en="loss", zh="损失"),
    "checkup.column.blocked": Text(en="blocked", zh="被阻断"),
    "checkup.column.transmission": Text(en="transm.", zh="传导率"),
    "checkup.column.advantage": Text(en="advantage", zh="优势"),
    "checkup.column.state": Text(en="state", zh="状态"),
    "checkup.progress.on": Text(en="training on", zh="接着训练"),
    "checkup.course": Text(
        en="Prognosis: right answers now, and after {steps} more steps",
        zh="预后：现在答对多少，接着训练 {steps} 步以后答对多少",
    ),
    "checkup.course.now": Text(en="now", zh="现在"),
    "checkup.course.untreated": Text(en="untreated", zh="不治疗"),
    "checkup.course.treated": Text(en="treated", zh="治疗"),
    "checkup.course.chance": Text(
        en="Guessing one of the values shown gives {chance}. Treated: as prescribed. One run of each, on sequences "
        "not trained on.",
        zh="从出现过的值里猜一个，答对 {chance}。治疗：照处方。各训练一次，用没有训练过的序列来测。",
    ),
    "checkup.difference": Text(en="The difference", zh="差别在哪里"),
    "checkup.difference.start": Text(
        en="Rows blocked at step 0 ({shares}): if the scores lie far apart, a softmax is one-hot before it has learned "
        "anything.",
        zh="第 0 步被阻断的行（{shares}）：分数相差太大时，softmax 什么都还没学，就已经是 one-hot。",
    ),
    "checkup.difference.end": Text(
        en="Rows blocked in the end ({shares}): sharpness alone cannot tell who has learned. The advantage can "
        "({advantages}).",
        zh="最后被阻断的行（{shares}）：只看尖锐度，分不出谁学会了。优势分得出（{advantages}）。",
    ),
    "checkup.difference.keys": Text(
        en="Without 1/√d, how stuck a model gets depends on the task: here a sequence shows {pairs} of {keys} keys, "
        "so a wrong key is often absent, and the model learns without it. If the same {pairs} are always shown, rows "
        "that are blocked on a wrong key starve for good: softscope experiment learning shows where that flips.",
        zh="没有 1/√d 时，卡不卡住要看任务：这里每个序列只出现 {keys} 个键中的 {pairs} 个，错误的键常常不在，模型不靠 "
        "1/√d 也能学。如果每次都是同样的 {pairs} 个键，被阻断在错误的键上的行就一直挨饿：softscope experiment "
        "learning 显示转折点在哪里。",
    ),
    "checkup.report.written": Text(en="Report: {path}", zh="报告：{path}"),
}
