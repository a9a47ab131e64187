"""Words of `softscope watch`."""

from softscope._text import Text

WATCH: dict[str, Text] = {
    "watch.summary": Text(en="Follow a run from another terminal, head by head.", zh="在另一个终端里逐头跟踪训练。"),
    "watch.description": Text(
        en="Shows the newest readings of a run while it is being recorded. Each attention site is a row. Each head "
        "has the percentage of its query rows that are blocked (almost nothing of what the loss wants reaches q "
        "and k) and a letter for its state; the legend below names the letters. The row ends with the smallest "
        "transmission among the heads. Without a loss nothing can be judged, so sharpness is shown instead. A finding "
        "or tip that appears, changes or ends is a line of its own. In a terminal the table refreshes in place; "
        "elsewhere each reading is a line. Of a run on several ranks it tells which are read. It stops when the run "
        "ends, when its process on this machine is gone, or with Ctrl-C. With --fail-on, the exit code is 1 as soon as "
        "there is a finding at or above that severity, 0 if the run ends without one, and 2 for a usage error or a "
        "record that cannot be read or judged. Checks muted under [tool.softscope] in pyproject.toml are muted here, "
        "too.",
        zh="显示正在记录的训练的最新读数。每个注意力位置一行，每个头一格，写的是被阻断的 query 行所占的百分比（损失想"
        "要的改变几乎传不到 q 和 k）和表示状态的字母，字母的含义见表下的图例；行末是各头中最小的传导率。没有损失就无"
        "法判断，这时显示尖锐度。问题或建议出现、变化、结束时，另写一行。在终端里表格原地刷新；在别处每次读数写一行。"
        "训练用了多个 rank 时，说明读到了几个。训练结束、它在本机的进程已不在，或按 Ctrl-C 时停止。写了 --fail-on "
        "时，一有达到这一级的问题，退出码就是 1；训练结束时没有，则为 0；用法有误、记录读不出或无从判断为 2。"
        "pyproject.toml 的 [tool.softscope] 里静音的检查，在这里也静音。",
    ),
    "watch.option.once": Text(en="Show the newest readings and stop.", zh="只显示最新读数，然后退出。"),
    "watch.option.fail_on": Text(
        en="Stop with exit code 1 once there is a finding at or above this severity: finding, tip or informative.",
        zh="一有达到这一级的问题就停止，退出码为 1：finding、tip 或 informative。",
    ),
    "watch.example.follow": Text(en="Follow it; Ctrl-C stops.", zh="持续跟踪；按 Ctrl-C 停止。"),
    "watch.example.once": Text(en="Look once; works after the run too.", zh="看一眼，训练结束后也可以。"),
    "watch.example.pipe": Text(en="Plain lines, also saved to a file.", zh="纯文本行，同时存入文件。"),
    "watch.example.fail": Text(
        en="For scripts: exits with 1 as soon as there is a finding.",
        zh="用于脚本：一有问题就以退出码 1 结束。",
    ),
    "watch.step": Text(en="step {step}  {seconds} s", zh="第 {step} 步  {seconds} 秒"),
    "watch.step.loss": Text(en="step {step}  loss {loss}  {seconds} s", zh="第 {step} 步  损失 {loss}  {seconds} 秒"),
    "watch.what.moving": Text(
        en="blocked rows of each head, % (over 10 is many), its state, then the smallest transmission",
        zh="每个头被阻断的行（%），超过 10 就算多；再是它的状态；行末是最小传导率",
    ),
    "watch.what.still": Text(
        en="sharpness of each head, % (no loss seen, so we cannot tell what is blocked)",
        zh="每个头的尖锐度（%）（没有看到损失，无法判断是否被阻断）",
    ),
    "watch.legend": Text(en="{letter} {state} {count}", zh="{letter} {state} {count} 个"),
    "watch.legend.none": Text(en="no letter: {state} {count}", zh="无字母：{state} {count} 个"),
    "watch.hidden": Text(
        en="and {count} more site(s), none of them worse; enlarge the window to see them",
        zh="另有 {count} 个位置，都不比上面的差；把窗口拉高可以看到",
    ),
    "watch.nothing": Text(
        en="{path}: the run has started, but there are no readings yet", zh="{path}：训练已开始，还没有读数"
    ),
    "watch.line.nothing": Text(en="no usable readings", zh="没有可用的读数"),
    "watch.line.state": Text(en="{count} {state}", zh="{count} 个{state}"),
    "watch.line.moving": Text(
        en="heads: {states}; most blocked {value} in {site} head {head}",
        zh="各头：{states}；被阻断最多的是 {site} 第 {head} 头，{value}",
    ),
    "watch.line.still": Text(
        en="no loss seen; sharpest {value} in {site} head {head}",
        zh="没有看到损失；最尖锐的是 {site} 第 {head} 头，{value}",
    ),
    "watch.event.appeared": Text(
        en="step {step}  {severity}: {code} {title}  {told}", zh="第 {step} 步  {severity}：{code} {title}  {told}"
    ),
    "watch.event.changed": Text(
        en="step {step}  now a {severity}: {code} {title}  {told}",
        zh="第 {step} 步  变为{severity}：{code} {title}  {told}",
    ),
    "watch.event.ended": Text(
        en="step {step}  ended: {code} {title}  {told}", zh="第 {step} 步  结束：{code} {title}  {told}"
    ),
    "watch.event.more": Text(en="{told}; and {count} more", zh="{told}；另有 {count} 处"),
    "watch.severity.finding": Text(en="finding", zh="问题"),
    "watch.severity.tip": Text(en="tip", zh="建议"),
    "watch.severity.informative": Text(en="note", zh="说明"),
    "watch.failed": Text(
        en="--fail-on {severity}: there is one, so the exit code is 1.", zh="--fail-on {severity}：有，退出码为 1。"
    ),
    "watch.passed": Text(en="--fail-on {severity}: there is none.", zh="--fail-on {severity}：没有。"),
    "watch.ended": Text(en="The run has ended.", zh="训练已结束。"),
    "watch.ended.error": Text(en="The run ended with {error}.", zh="训练因 {error} 而结束。"),
    "watch.gone": Text(
        en="The run was killed, or ended without closing its record: its process is gone. It last wrote {ago} ago.",
        zh="训练被强制结束了，或没有关闭记录就退出了：它的进程已不在。最后一次写入在 {ago}前。",
    ),
    "watch.ago.seconds": Text(en="{count} s", zh="{count} 秒"),
    "watch.ago.minutes": Text(en="{count} min", zh="{count} 分钟"),
    "watch.ago.hours": Text(en="{count} h", zh="{count} 小时"),
    "watch.ago.days": Text(en="{count} d", zh="{count} 天"),
    "watch.ranks": Text(en="ranks: {read} of {size}", zh="{size} 个 rank 中读到 {read} 个"),
    "watch.ranks.behind": Text(
        en="{told}; rank {rank} was last read at step {step}", zh="{told}；rank {rank} 最后读到的是第 {step} 步"
    ),
    "watch.ranks.never": Text(en="{told}; rank {rank} was never read", zh="{told}；rank {rank} 从未读到"),
    "watch.ranks.more": Text(en="{told}; and {count} more", zh="{told}；另有 {count} 个"),
    "watch.stop": Text(en="Ctrl-C stops watching, not the run.", zh="按 Ctrl-C 停止查看，训练不受影响。"),
    "watch.silent": Text(en="No new readings for {seconds} s. ", zh="已有 {seconds} 秒没有新读数。"),
}
