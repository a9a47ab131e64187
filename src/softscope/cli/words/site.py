"""Words of `softscope site`; the pages' own texts are in `softscope.site`."""

from softscope._text import Text

SITE: dict[str, Text] = {
    "site.summary": Text(
        en="Write the course as plain files that open with nothing installed.",
        zh="把课程写成一组文件，不用安装就能打开。",
    ),
    "site.description": Text(
        en="Writes a folder of plain files: a front page, the ten lessons, homework, the ledger of claims, a sample "
        "report, the glossary, benchmarks and the API reference, in Chinese and English. They open from the folder or "
        "from any web host and load nothing from elsewhere. It takes a few minutes: every number is computed now.",
        zh="写出一个文件夹：首页、十节课、练习、说法核对、体检报告样例、词汇表、速度和 API 参考，中英双语。"
        "可以直接打开，也可以放到任何网站上，不从别处加载任何东西。所有数字都要现算，需要几分钟。",
    ),
    "site.argument.folder": Text(en="A new or empty folder.", zh="一个新的或空的文件夹。"),
    "site.example.plain": Text(
        en="Then open public/index.html in a browser.", zh="然后用浏览器打开 public/index.html。"
    ),
    "site.one": Text(
        en="site takes one folder, but got {count}; name the folder to write, such as public",
        zh="site 需要一个文件夹，收到的却是 {count} 个；请写出要写入的文件夹，如 public",
    ),
    "site.missing": Text(
        en="the site needs {package}: pip install 'softscope[lab]'",
        zh="生成网站需要 {package}：pip install 'softscope[lab]'",
    ),
    "site.full": Text(
        en="the folder {folder} is not empty; empty it or name another one",
        zh="文件夹 {folder} 不是空的；请清空它，或换一个",
    ),
    "site.unwritable": Text(
        en="cannot write to {folder} ({reason}); name a folder that you may write to",
        zh="无法写入 {folder}（{reason}）；请换一个可以写入的文件夹",
    ),
    "site.absent": Text(
        en="Left out, because its source or package is not here: {page}.", zh="缺少来源或软件包，没有写出：{page}。"
    ),
    "site.written": Text(en="Open {page} in a browser.", zh="用浏览器打开 {page}。"),
}
