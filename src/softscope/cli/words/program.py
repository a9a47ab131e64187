"""Words of the program itself: its help, and what it says of a wrong use."""

PROGRAM: dict[str, tuple[str, str]] = {
    "help.usage": ("Usage: ", "用法："),
    "help.commands": ("Commands", "命令"),
    "help.arguments": ("Arguments", "参数"),
    "help.options": ("Options", "选项"),
    "help.examples": ("Examples", "示例"),
    "option.lang": (
        "Chinese or English; without it the locale decides.",
        "中文或英文；不写则由系统区域设置决定。",
    ),
    "option.help": ("Show this help.", "显示本帮助。"),
    "option.version": ("Show the version.", "显示版本号。"),
    "softscope.description": (
        "See how sharp a softmax is, know whether that sharpness costs you anything, and temper it.",
        "看清 softmax 有多尖锐，弄清这种尖锐有没有代价，再用温度把它调好。",
    ),
    "softscope.example.checkup": (
        "Two small models are trained while you watch, and the doctor says which one starves, and why.",
        "现场训练两个小模型，由医生说出哪个在挨饿、为什么。",
    ),
    "softscope.example.tour": (
        "What the library does, in six short stops, computed as you watch.",
        "六个小站看完本库能做什么，数字都是现场算出来的。",
    ),
    "softscope.example.explain": (
        "What softmax makes of three numbers, and what the temperature does to it.",
        "softmax 怎样处理三个数，温度又改变了什么。",
    ),
    "softscope.example.help": ("More about one command.", "某个命令的详细说明。"),
    "env.summary": ("The versions that a bug report needs.", "报告问题时需要附上的版本信息。"),
    "env.description": (
        "The versions that a bug report needs. No paths, no variables, no names.",
        "报告问题时需要附上的版本信息。不含路径、环境变量和用户名。",
    ),
    "command.unknown": (
        "there is no command {command}; there are {known}, and --help",
        "没有 {command} 这个命令；可用的命令有 {known}，以及 --help",
    ),
    "argument.unexpected": (
        "{command} takes no argument, but {argument} came; leave it out",
        "{command} 不接受参数，却收到了 {argument}；请去掉它",
    ),
    "option.unknown": (
        "{command} has no option {option}; see --help for those it has",
        "{command} 没有 {option} 这个选项；可用的选项见 --help",
    ),
    "option.value": (
        "{option} needs a value after it, but none came; see --help",
        "{option} 后面要跟一个值，却没有收到；用法见 --help",
    ),
    "option.wrong": ("wrong use of an option ({message}); see --help", "选项用法有误（{message}）；用法见 --help"),
    "lang.unknown": ("--lang must be zh or en, but {value} came", "--lang 只能是 zh 或 en，收到的却是 {value}"),
    "seed.wrong": (
        "--seed must be a whole number of at least 0, but {value} came",
        "--seed 必须是不小于 0 的整数，收到的却是 {value}",
    ),
    "write.failed": ("the output could not be written: {reason}", "输出无法写入：{reason}"),
}
