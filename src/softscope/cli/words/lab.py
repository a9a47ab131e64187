"""Words of `softscope lab`; the pages' own texts are in `softscope.lab`."""

from softscope._text import Text

LAB: dict[str, Text] = {
    "lab.summary": Text(
        en="Take the course in the browser: ten hands-on lessons.", zh="在浏览器里上课：十节动手做的课。"
    ),
    "lab.description": Text(
        en="Opens the course in the browser: ten lessons in Chinese and English, with pictures to drag and every "
        "number computed as you watch. It runs only on this computer and sends no requests elsewhere. Your "
        "progress is saved.",
        zh="在浏览器里打开课程：十节中英双语的课，图形可以拖动，数字当场算出。只在这台电脑上运行，不向外发送任何请求。"
        "学习进度会保存。",
    ),
    "lab.option.port": Text(en="The port; default: a free one.", zh="端口；默认自动选一个空闲的。"),
    "lab.option.no_browser": Text(en="Print the address without opening the browser.", zh="只打印地址，不打开浏览器。"),
    "lab.example.plain": Text(en="Start the course; Ctrl-C stops it.", zh="开始上课；按 Ctrl-C 结束。"),
    "lab.example.port": Text(en="In Chinese, on a port of your choice.", zh="中文界面，指定端口。"),
    "lab.example.no_browser": Text(en="Open the browser yourself.", zh="自己打开浏览器。"),
    "lab.ready": Text(en="The lab is running at", zh="实验室已经启动，地址："),
    "lab.stop": Text(
        en="Ctrl-C stops it. The address contains an access token: do not share it.",
        zh="按 Ctrl-C 停止。地址里有访问令牌，请不要给别人。",
    ),
    "lab.stopped": Text(en="Stopped. Your progress is saved.", zh="已停止，学习进度已保存。"),
    "lab.stopped.unkept": Text(
        en="Stopped. Your progress could not be saved in {folder}: {reason}",
        zh="已停止，学习进度没能保存到 {folder}：{reason}",
    ),
    "lab.unkept": Text(
        en="Your progress cannot be saved in {folder}: {reason}", zh="学习进度无法保存到 {folder}：{reason}"
    ),
    "lab.spoilt": Text(
        en="Your progress file could not be read; it was renamed to {path}, and a new one was started.",
        zh="无法读取进度记录；已把它改名为 {path}，并重新开始记录。",
    ),
    "lab.port": Text(
        en="--port must be a whole number from 0 to {highest}, but got {value}",
        zh="--port 必须是 0 到 {highest} 之间的整数，收到的却是 {value}",
    ),
    "lab.taken": Text(
        en="cannot use port {port} ({reason}); leave --port out to get a free one",
        zh="端口 {port} 用不了（{reason}）；不写 --port 就会自动找一个空闲的",
    ),
    "lab.missing": Text(
        en="the lab needs {package}: pip install 'softscope[lab]'",
        zh="实验室需要 {package}：pip install 'softscope[lab]'",
    ),
}
