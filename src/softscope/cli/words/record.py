"""Words of `softscope export`, and of record errors."""

from softscope._text import Text

RECORD: dict[str, Text] = {
    "record.argument": Text(en="The file that the run records to.", zh="训练过程写入的记录文件。"),
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
        en="{path} is empty: its run has not recorded anything yet; try again in a moment",
        zh="{path} 还是空的：训练尚未开始记录；请稍后再试",
    ),
    "record.foreign": Text(
        en="{path} is not a softscope record; name the file that was passed to softscope.doctor.Record",
        zh="{path} 不是 softscope 的记录；请写交给 softscope.doctor.Record 的那个文件",
    ),
    "record.newer": Text(
        en="{path} is a record of version {found}, but this softscope only reads up to version {known}; update it: "
        "pip install -U softscope",
        zh="{path} 是第 {found} 版的记录，而这个 softscope 最多能读第 {known} 版；请升级：pip install -U softscope",
    ),
    "record.older": Text(
        en="{path} is a record of version {found}, but this softscope reads version {known}; read it with the "
        "softscope that wrote it",
        zh="{path} 是第 {found} 版的记录，而这个 softscope 读的是第 {known} 版；请用写它的那个 softscope 来读",
    ),
    "record.damaged": Text(
        en="{path} is damaged ({detail}); copy it again from the original, together with {path}-wal if that exists",
        zh="{path} 已损坏（{detail}）；请从原处重新复制，如果有 {path}-wal 也要一起复制",
    ),
    "record.unreadable": Text(
        en="cannot read {path} ({detail}); try again, or copy it to a place where you can read and write",
        zh="无法读取 {path}（{detail}）；请再试一次，或把它复制到可以读写的地方",
    ),
    "record.special": Text(
        en="{path} is a pipe or a device, not a file; name the file that the run writes",
        zh="{path} 是管道或设备，不是文件；请写训练过程的记录文件",
    ),
    "record.altered": Text(
        en="{path} holds {detail}, which softscope does not write; use the original, or remove what was added",
        zh="{path} 里有 softscope 不会写入的内容（{detail}）；请用原来的文件，或删去添加的内容",
    ),
    "record.unfinished": Text(
        en="{path} was being written when its run was killed, and {path}-journal must be applied first; resume the "
        "run, or open and close the file once with softscope.doctor.Record",
        zh="写入 {path} 时训练被强制结束，要先恢复 {path}-journal；请续训，或用 softscope.doctor.Record 打开并关闭一次",
    ),
    "record.excessive": Text(
        en="{path} asks for more than a record of its size can hold ({detail}); use the original",
        zh="{path} 要求的内容超过了这么大的记录所能容纳的（{detail}）；请用原来的文件",
    ),
    "record.part": Text(
        en="{path} has {parts} part(s), but part {part} was asked for; parts count from 0",
        zh="{path} 有 {parts} 个部分，要的却是第 {part} 个；从 0 数起",
    ),
    "export.summary": Text(en="Export a record as CSV, JSON or Parquet.", zh="把记录导出为 CSV、JSON 或 Parquet。"),
    "export.description": Text(
        en="Writes every reading of a record as one row: step, site, head, reading, value. For loss and seconds, site "
        "and head are empty. You can export while the run goes on.",
        zh="把记录中的每个读数写成一行：step、site、head、reading、value。损失和秒数的 site 与 head 为空。训练进行中也"
        "可以导出。",
    ),
    "export.argument.file": Text(
        en="The file to write: its name ends in .csv, .json or .parquet (the last needs pyarrow).",
        zh="要写的文件：文件名以 .csv、.json 或 .parquet 结尾（最后一种需要 pyarrow）。",
    ),
    "export.example.csv": Text(en="For spreadsheets and scripts.", zh="用于电子表格和脚本。"),
    "export.example.parquet": Text(en="For pandas, Polars, DuckDB.", zh="用于 pandas、Polars、DuckDB。"),
    "export.suffix": Text(
        en="the file must end in one of {known}, but got {path}; rename it",
        zh="文件名必须以 {known} 之一结尾，收到的却是 {path}；请改名",
    ),
    "export.missing": Text(
        en="{path} needs pyarrow, which is not installed; run pip install 'softscope[parquet]'",
        zh="写 {path} 需要 pyarrow，但没有安装；请运行 pip install 'softscope[parquet]'",
    ),
    "export.unwritable": Text(en="cannot write {path}: {reason}", zh="无法写入 {path}：{reason}"),
    "export.done": Text(
        en="Wrote {steps} steps of {sites} sites to {path}.", zh="已把 {sites} 个位置的 {steps} 步写入 {path}。"
    ),
}
