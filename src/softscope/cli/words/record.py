"""Words of `softscope watch` and `softscope export`, and of record errors."""

from softscope._text import Text

RECORD: dict[str, Text] = {
    "record.argument": Text(en="The file that the run records into.", zh="训练过程写入的记录文件。"),
    "record.names": Text(
        en="{command} takes {wanted}, but got {count} file name(s); see --help",
        zh="{command} 的参数是 {wanted}，却收到了 {count} 个文件名；用法见 --help",
    ),
    "record.missing": Text(
        en="there is no file {path}; name the file that the run writes, or start the run first",
        zh="没有 {path} 这个文件；请写训练过程的记录文件，或先开始训练",
    ),
    "record.folder": Text(en="{path} is a folder; name the record in it", zh="{path} 是文件夹；请写出其中的记录文件名"),
    "record.empty": Text(
        en="{path} is empty: its run has not begun to record; try again in a moment",
        zh="{path} 还是空的：训练尚未开始记录；请稍后再试",
    ),
    "record.foreign": Text(
        en="{path} is no softscope record; name the file that was given to softscope.doctor.record.Record",
        zh="{path} 不是 softscope 的记录；请写交给 softscope.doctor.record.Record 的那个文件",
    ),
    "record.newer": Text(
        en="{path} is a record of version {found}, and this softscope reads up to version {known}; "
        "update it: pip install -U softscope",
        zh="{path} 是第 {found} 版的记录，而这个 softscope 最多能读第 {known} 版；请升级：pip install -U softscope",
    ),
    "record.older": Text(
        en="{path} is a record of version {found}, and this softscope reads version {known}; "
        "read it with the softscope that wrote it",
        zh="{path} 是第 {found} 版的记录，而这个 softscope 读的是第 {known} 版；请用写它的那个 softscope 来读",
    ),
    "record.damaged": Text(
        en="{path} is damaged ({detail}); "
        "copy it again from where it was written, together with {path}-wal if that exists",
        zh="{path} 已损坏（{detail}）；请从原处重新复制，如果有 {path}-wal 也要一起复制",
    ),
    "record.unreadable": Text(
        en="{path} cannot be read ({detail}); try again, or copy it to a place where you may read and write",
        zh="无法读取 {path}（{detail}）；请再试一次，或把它复制到可以读写的地方",
    ),
    "record.part": Text(
        en="{path} has {parts} part(s), and part {part} was asked for; they count from 0",
        zh="{path} 有 {parts} 个部分，要的却是第 {part} 个；从 0 数起",
    ),
    "watch.summary": Text(en="Follow a run from another terminal, head by head.", zh="在另一个终端里逐头跟踪训练。"),
    "watch.description": Text(
        en="Shows the newest readings of a run that is being recorded: for each attention site a row, for each head "
        "the share of query rows that are blocked (in percent: too little of what the loss wants reaches q and k), and "
        "the least transmission among the heads. Without a loss that cannot be judged, and sharpness is shown. On a "
        "terminal the table is drawn over itself; elsewhere each reading is a line. It ends with the run, or "
        "with Ctrl-C.",
        zh="显示正在记录的训练的最新读数：每个注意力位置一行，每个头一格，写的是被阻断的 query 行所占的百分比"
        "（损失想要的改变几乎传不到 q 和 k），行末是各头中最小的传导率。没有损失就无法判断，这时显示尖锐度。"
        "在终端里表格原地刷新；在别处每次读数写一行。训练结束或按 Ctrl-C 时停止。",
    ),
    "watch.option.once": Text(en="Show the newest readings and stop.", zh="只显示最新读数，然后退出。"),
    "watch.example.follow": Text(en="Follow it; Ctrl-C stops.", zh="持续跟踪；按 Ctrl-C 停止。"),
    "watch.example.once": Text(en="One look, also after the run.", zh="看一眼，训练结束后也可以。"),
    "watch.example.pipe": Text(en="Plain lines, kept in a file.", zh="纯文本行，同时存入文件。"),
    "watch.step": Text(en="step {step}  {seconds} s", zh="第 {step} 步  {seconds} 秒"),
    "watch.step.loss": Text(en="step {step}  loss {loss}  {seconds} s", zh="第 {step} 步  损失 {loss}  {seconds} 秒"),
    "watch.what.moving": Text(
        en="blocked rows of each head, % (over 10 is many), then the least transmission",
        zh="每个头被阻断的行（%），超过 10 就算多；行末是最小传导率",
    ),
    "watch.what.still": Text(
        en="sharpness of each head, % (no loss seen: what is blocked cannot be judged)",
        zh="每个头的尖锐度（%）（没有看到损失，无法判断是否被阻断）",
    ),
    "watch.hidden": Text(
        en="and {count} more site(s), none of them worse; a taller window shows them",
        zh="另有 {count} 个位置，都不比上面的差；把窗口拉高可以看到",
    ),
    "watch.nothing": Text(en="{path}: the run has begun, nothing is read yet", zh="{path}：训练已开始，还没有读数"),
    "watch.line.nothing": Text(en="nothing could be read", zh="没有可用的读数"),
    "watch.line.moving": Text(
        en="blocked: {count} of {heads} heads over 10%, most {value} in {site} head {head}",
        zh="被阻断：{heads} 个头中有 {count} 个超过 10%，最多的是 {site} 第 {head} 头，{value}",
    ),
    "watch.line.still": Text(
        en="no loss seen; sharpest {value} in {site} head {head}",
        zh="没有看到损失；最尖锐的是 {site} 第 {head} 头，{value}",
    ),
    "watch.ended": Text(en="The run has ended.", zh="训练已结束。"),
    "watch.ended.error": Text(en="The run has ended with {error}.", zh="训练因 {error} 而结束。"),
    "watch.stop": Text(en="Ctrl-C stops watching, not the run.", zh="按 Ctrl-C 停止查看，训练不受影响。"),
    "watch.silent": Text(en="No news for {seconds} s. ", zh="已有 {seconds} 秒没有新读数。"),
    "export.summary": Text(en="Write a record as CSV, JSON or Parquet.", zh="把记录写成 CSV、JSON 或 Parquet。"),
    "export.description": Text(
        en="Writes every reading of a record as one row: step, site, head, reading, value. Loss and seconds come with "
        "site and head empty. Also while the run goes on.",
        zh="把记录中的每个读数写成一行：step、site、head、reading、value。损失和秒数的 site 与 head 为空。"
        "训练进行中也可以导出。",
    ),
    "export.argument.file": Text(
        en="Where to: a name that ends in .csv, .json or .parquet (this one needs pyarrow).",
        zh="写到哪里：以 .csv、.json 或 .parquet 结尾的文件名（最后一种需要 pyarrow）。",
    ),
    "export.example.csv": Text(en="For spreadsheets and scripts.", zh="用于电子表格和脚本。"),
    "export.example.parquet": Text(en="For pandas, Polars, DuckDB.", zh="用于 pandas、Polars、DuckDB。"),
    "export.suffix": Text(
        en="the file must end in one of {known}, but got {path}; rename it",
        zh="文件名必须以 {known} 之一结尾，收到的却是 {path}；请改名",
    ),
    "export.missing": Text(
        en="{path} needs pyarrow, which is not installed; pip install 'softscope[parquet]' installs it",
        zh="写 {path} 需要 pyarrow，但没有安装；请运行 pip install 'softscope[parquet]'",
    ),
    "export.unwritable": Text(en="{path} cannot be written: {reason}", zh="无法写入 {path}：{reason}"),
    "export.done": Text(
        en="{steps} steps of {sites} sites are in {path}.", zh="{path} 中有 {sites} 个位置的 {steps} 步。"
    ),
}
