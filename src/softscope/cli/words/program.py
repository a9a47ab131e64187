"""Words of the program itself: its help and its usage errors."""

from softscope._text import Text

PROGRAM: dict[str, Text] = {
    "help.usage": Text(en="Usage: ", zh="用法："),
    "help.commands": Text(en="Commands", zh="命令"),
    "help.arguments": Text(en="Arguments", zh="参数"),
    "help.options": Text(en="Options", zh="选项"),
    "help.examples": Text(en="Examples", zh="示例"),
    "option.lang": Text(en="Chinese or English; default: from the locale.", zh="中文或英文；默认由系统区域设置决定。"),
    "option.help": Text(en="Show this help.", zh="显示本帮助。"),
    "option.version": Text(en="Show the version.", zh="显示版本号。"),
    "softscope.description": Text(
        en="See how sharp a softmax is, know whether that sharpness costs you anything, and temper it.",
        zh="看清 softmax 有多尖锐，弄清这种尖锐有没有代价，再用温度把它调好。",
    ),
    "softscope.example.checkup": Text(
        en="Train two small models while you watch; the doctor says which one starves, and why.",
        zh="现场训练两个小模型，由医生说出哪个在挨饿、为什么。",
    ),
    "softscope.example.tour": Text(
        en="See what the library does in six short stops, computed as you watch.",
        zh="六个小站看完本库能做什么，数字都是现场算出来的。",
    ),
    "softscope.example.explain": Text(
        en="See what softmax does to three numbers, and what the temperature changes.",
        zh="softmax 怎样处理三个数，温度又改变了什么。",
    ),
    "softscope.example.help": Text(en="More about one command.", zh="某个命令的详细说明。"),
    "env.summary": Text(en="Show the versions to include in a bug report.", zh="显示报告问题时需要附上的版本信息。"),
    "env.description": Text(
        en="Shows the versions to include in a bug report, without paths, environment variables or user names.",
        zh="显示报告问题时需要附上的版本信息，不含路径、环境变量和用户名。",
    ),
    "command.unknown": Text(
        en="there is no command {command}; choose from {known}, or see --help",
        zh="没有 {command} 这个命令；可用的命令有 {known}，以及 --help",
    ),
    "argument.unexpected": Text(
        en="{command} takes no argument, but got {argument}; leave it out",
        zh="{command} 不接受参数，却收到了 {argument}；请去掉它",
    ),
    "option.unknown": Text(
        en="{command} has no option {option}; see --help for its options",
        zh="{command} 没有 {option} 这个选项；可用的选项见 --help",
    ),
    "option.value": Text(
        en="{option} needs a value after it, but got none; see --help",
        zh="{option} 后面要跟一个值，却没有收到；用法见 --help",
    ),
    "option.wrong": Text(
        en="an option is used wrongly ({message}); see --help", zh="选项用法有误（{message}）；用法见 --help"
    ),
    "lang.unknown": Text(
        en="--lang must be zh or en, but got {value}", zh="--lang 只能是 zh 或 en，收到的却是 {value}"
    ),
    "seed.wrong": Text(
        en="--seed must be a whole number of at least 0, but got {value}",
        zh="--seed 必须是不小于 0 的整数，收到的却是 {value}",
    ),
    "program.left": Text(
        en="the command was left before it had finished ({reason}), so it says nothing; find out who called sys.exit",
        zh="命令没有做完就被退出了（{reason}），因此没有结论；请找出是谁调用了 sys.exit",
    ),
    "program.failed": Text(
        en="the command failed in a way that it should not ({reason}); please report it with the lines above and "
        "the output of softscope env",
        zh="命令意外出错（{reason}）；请连同上面几行和 softscope env 的输出一起报告",
    ),
    "write.failed": Text(en="cannot write the output: {reason}", zh="无法写入输出：{reason}"),
}
