"""Words of `softscope lab`; the pages' own texts are in `softscope.lab`."""

from softscope._text import Text

LAB: dict[str, Text] = {
    "lab.summary": Text(
        en="The course in the browser: ten lessons to play with.", zh="浏览器里的课程：十节可以动手玩的课。"
    ),
    "lab.description": Text(
        en="Opens the course in the browser: ten lessons in Chinese and English, with pictures to drag and every "
        "number computed while you look. It runs on this computer alone; no request leaves it. Progress is kept.",
        zh="在浏览器里打开课程：十节中英双语的课，图形可以拖动，数字当场算出。只在这台电脑上运行，没有请求离开它。"
        "学习进度会保留。",
    ),
    "lab.option.port": Text(en="The port; a free one without it.", zh="端口；不写则自动选一个空闲的。"),
    "lab.option.no_browser": Text(en="Print the address and leave the browser alone.", zh="只打印地址，不打开浏览器。"),
    "lab.example.plain": Text(en="Start the course; Ctrl-C stops it.", zh="开始上课；按 Ctrl-C 结束。"),
    "lab.example.port": Text(en="In Chinese, at a port of your own.", zh="中文界面，指定端口。"),
    "lab.example.no_browser": Text(en="For a browser that you open yourself.", zh="自己打开浏览器。"),
    "lab.ready": Text(en="The lab is open at", zh="实验室已经打开，地址："),
    "lab.stop": Text(
        en="Ctrl-C stops it. The address is a key: share it with nobody.",
        zh="按 Ctrl-C 停止。地址里有令牌，请不要给别人。",
    ),
    "lab.stopped": Text(en="Stopped. Your progress is kept.", zh="已停止，学习进度已保留。"),
    "lab.stopped.unkept": Text(
        en="Stopped. Your progress could not be kept in {folder}: {reason}",
        zh="已停止，学习进度没能保存到 {folder}：{reason}",
    ),
    "lab.unkept": Text(
        en="Your progress cannot be kept in {folder}: {reason}",
        zh="学习进度无法保存到 {folder}：{reason}",
    ),
    "lab.spoilt": Text(
        en="The record of your progress could not be read; it was put aside as {path}, and a new one begun.",
        zh="无法读取进度记录；已改名为 {path} 放在一旁，并重新开始记录。",
    ),
    "lab.port": Text(
        en="--port must be a whole number from 0 to {highest}, but got {value}",
        zh="--port 必须是 0 到 {highest} 之间的整数，收到的却是 {value}",
    ),
    "lab.taken": Text(
        en="port {port} cannot be used ({reason}); leave --port out and a free one is found",
        zh="端口 {port} 用不了（{reason}）；不写 --port 就会自动找一个空闲的",
    ),
    "lab.missing": Text(
        en="the lab needs {package}: pip install 'softscope[lab]'",
        zh="实验室需要 {package}：pip install 'softscope[lab]'",
    ),
}
