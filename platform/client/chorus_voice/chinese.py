"""Chinese for every sentence of the command, and for those of argparse that people meet."""

CHINESE = {
    # argparse
    "usage: ": "用法：",
    "options": "选项",
    "positional arguments": "参数",
    "show this help message and exit": "显示此帮助后退出",
    "argument %(argument_name)s: %(message)s": "参数 %(argument_name)s：%(message)s",
    "the following arguments are required: %s": "缺少参数：%s",
    "unrecognized arguments: %s": "无法识别的参数：%s",
    "expected one argument": "需要一个值",
    "invalid %(type)s value: %(value)r": "%(value)r 不是有效的 %(type)s",
    "invalid choice: %(value)r (choose from %(choices)s)": "没有 %(value)r 这个选项（可选：%(choices)s）",
    "ambiguous option: %(option)s could match %(matches)s": "选项 %(option)s 不明确，可能是 %(matches)s",
    "ignored explicit argument %r": "不接受值 %r",
    # help
    "Speech from a Chorus server.": "从 Chorus 服务器获取语音。",
    "keep the address of a server and a key": "保存服务器地址和密钥",
    "forget them": "删除已保存的地址和密钥",
    "the server's address; the key is asked for, or read from standard input": (
        "服务器地址；密钥会另行询问，或从标准输入读取"
    ),
    "speak a text into a file": "把文本合成为声音文件",
    "speak each row of a CSV or JSON Lines file": "合成 CSV 或 JSON Lines 文件中的每一行",
    "list, add and delete voices": "列出、添加、删除音色",
    "what is left of the month, and what was used": "本月余量与用量",
    "no progress bar": "不显示进度条",
    "seconds that a lost connection is waited for (default: {n})": "连接中断后最多等待的秒数（默认 {n}）",
    "what a line is about (default: day)": "按什么分行（默认：day）",
    "first day": "起始日期",
    "last day": "结束日期",
    "as the API has it": "按 API 的格式输出",
    "of the sound": "声音格式",
    "a factor, such as 0.9": "倍数，例如 0.9",
    "such as en-US or zh; by default as the text is written": "例如 en-US 或 zh；默认按文本判断",
    "how to say it, for engines that follow instructions": "朗读方式（需引擎支持指令）",
    "the same seed says it the same way": "相同的种子得到相同的结果",
    "what to say; “-” or nothing: standard input": "要朗读的文本；“-”或省略：标准输入",
    "a file with the text": "文本文件",
    "name or id of a voice": "音色的名字或编号",
    "the file to write; its ending says the format; “-”: standard output": (
        "要写入的文件，由扩展名决定格式；“-”：标准输出"
    ),
    "a name for the team's history": "在团队历史记录中的标题",
    "with the columns text, voice, format, speed, …": "包含 text、voice、format、speed 等列",
    "the folder to write to (default: named as the file)": "写入的文件夹（默认与文件同名）",
    "for rows that name none": "用于没有指定音色的行",
    "a name for the batch (default: the file's)": "批次名称（默认用文件名）",
    "try again the rows that failed": "重试失败的行",
    "only check the file": "只检查文件",
    "print the batch's id and leave": "输出批次编号后退出",
    "the voices that you can use": "您可以使用的音色",
    "part of the name": "名字的一部分",
    "such as en or zh": "例如 en 或 zh",
    "clone a voice from a recording": "用录音克隆音色",
    "3 seconds to 10 minutes of one speaker: m4a, mp3, wav, …": "单人录音，3 秒到 10 分钟：m4a、mp3、wav 等",
    "of the voice (default: the file's)": "音色名字（默认用文件名）",
    "of the recording, such as en-US or zh": "录音的语言，例如 en-US 或 zh",
    "what the recording says, word for word": "录音内容的逐字文本",
    "it is your own voice, or you have the speaker's permission": "这是您本人的声音，或您已得到说话人的许可",
    "remove one of your team's voices": "删除团队自己的音色",
    "name or id": "名字或编号",
    "without a question": "不再询问",
    "from 0 to 86400": "应为 0 到 86400",
    # signing in
    "Address of the server [{default}]: ": "服务器地址 [{default}]：",
    "API key (it is not shown): ": "API 密钥（不会显示）：",
    "No key was given: type it, or send it on standard input.": "没有提供密钥：请输入，或从标准输入传入。",
    "Signed in to {url}. The key is in {path}.": "已登录 {url}。密钥保存在 {path}。",
    "Note: {url} is not encrypted; whoever listens on the way learns the key.": (
        "注意：{url} 未加密，途中的窃听者可以得到密钥。"
    ),
    "Forgotten.": "已删除。",
    "There was nothing to forget.": "没有保存任何内容。",
    "There is no key for {url}: run `chorus login`, or set CHORUS_API_KEY.": (
        "没有 {url} 的密钥：请运行 `chorus login`，或设置 CHORUS_API_KEY。"
    ),
    "This is no API key: it holds characters that no key has.": "这不是 API 密钥：含有密钥中不会出现的字符。",
    "“{url}” is no address of a server, such as {example}.": "“{url}”不是服务器地址，正确的例如 {example}。",
    "{path} cannot be read: run `chorus login` again.": "无法读取 {path}：请重新运行 `chorus login`。",
    # the connection
    "The connection is lost; trying again": "连接中断，正在重试",
    "The connection is lost; trying again did not help.": "连接中断，重试未能恢复。",
    "{url} answers, but not as a Chorus server does. Check CHORUS_URL.": (
        "{url} 有应答，但不是 Chorus 服务器。请检查 CHORUS_URL。"
    ),
    "{url} cannot be reached: {reason}.": "无法连接 {url}：{reason}。",
    "no answer in {seconds} s": "{seconds} 秒内没有应答",
    "The server is not ready.": "服务器尚未就绪。",
    "The storage answers {status}.": "存储返回 {status}。",
    "{file} arrived damaged. Try again.": "{file} 在传输中损坏，请重试。",
    "Interrupted.": "已中断。",
    "The disk is full.": "磁盘已满。",
    "An error in this program: {error}. CHORUS_TRACEBACK=1 shows where.": (
        "程序出错：{error}。设置 CHORUS_TRACEBACK=1 可查看位置。"
    ),
    # say
    "Give the text or a file, not both.": "文本和文件只能给一个。",
    "Say what to speak: a text, -f FILE, or standard input.": "请给出要朗读的内容：文本、-f 文件，或标准输入。",
    "The text is not UTF-8.": "文本不是 UTF-8 编码。",
    "The text is larger than {max} KiB. Split it.": "文本超过 {max} KiB，请拆分。",
    "“{ending}” is no format. There are: {all}.": "没有“{ending}”这种格式。可用的有：{all}。",
    "Still in the folder, and not of this batch: {names}": "文件夹里还有不属于这一批的文件：{names}",
    "Give the file a name with an ending, or say --format. There are: {all}.": (
        "请给文件名加上扩展名，或用 --format 指定格式。可用的有：{all}。"
    ),
    "There is no folder {folder}.": "没有文件夹 {folder}。",
    "It was cancelled.": "已取消。",
    "waiting": "排队中",
    "waiting, {ahead} before it": "排队中，前面还有 {ahead} 个",
    "no worker is there": "没有可用的工作进程",
    "{time} left": "剩余 {time}",
    "{file} · {time} · {characters} characters": "{file} · {time} · {characters} 个字符",
    # batch
    "{rows} rows · {characters} characters": "{rows} 行 · {characters} 个字符",
    "{folder} · {count} of {all} rows · {time} · {characters} characters": (
        "{folder} · 共 {all} 行，完成 {count} 行 · {time} · {characters} 个字符"
    ),
    "{count} failed": "{count} 行失败",
    "Row {row} (line {line}): {message}": "第 {row} 条（文件第 {line} 行）：{message}",
    "{count} rows were not spoken. The same command with --retry tries those that failed again.": (
        "有 {count} 行没有合成。在同一命令后加 --retry 可重试失败的行。"
    ),
    "The server names a file in a way that is not safe: {name}": "服务器给出的文件名不安全：{name}",
    # voices
    "own": "自有",
    "preset": "预设",
    "Add --consent when this is your own voice, or when you have the speaker's permission to clone it.": (
        "如果这是您本人的声音，或您已得到说话人的克隆许可，请加上 --consent。"
    ),
    "Add --yes to delete without a question.": "加上 --yes 可直接删除而不询问。",
    "Delete “{name}” for the whole team? [y/N] ": "要为整个团队删除“{name}”吗？[y/N] ",
    "“{name}” is deleted.": "“{name}”已删除。",
    "Your team has no voice “{name}” of its own.": "您的团队没有名为“{name}”的自有音色。",
    # usage
    "{used} of {limit} characters used, {reserved} reserved; counted anew from {reset}.": (
        "已用 {used} / {limit} 个字符，预留 {reserved}；{reset} 起重新计数。"
    ),
    "characters": "字符",
    "requests": "请求",
    "minutes": "分钟",
    "day": "日期",
    "month": "月份",
    "user": "成员",
    "key": "密钥",
    "voice": "音色",
    "model": "模型",
}
