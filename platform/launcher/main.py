"""The command line of `./chorus`."""

from __future__ import annotations

import argparse
import errno
import os
import sys
import traceback
from pathlib import Path

from launcher import cosyvoice
from launcher.errors import LauncherError, fail
from launcher.files import read_json
from launcher.folder import DataFolder, stop_owner
from launcher.install import ENGINE_EXTRAS
from launcher.processes import FINISH_SECONDS

#: Commands that hand their arguments to manage.py, and what they put before them.
_MANAGE: dict[str, tuple[str, ...]] = {"manage": (), "admin": ("admin",), "ledger": ("admin", "ledger")}
#: Commands for callers of any server: the same as the wheel of `platform/client/` installs.
_CALLERS = ("login", "logout", "say", "voices", "batch", "usage")


def main(root: str, arguments: list[str]) -> int:
    """Run one command; whatever goes wrong is one line on standard error and a status that is not 0."""
    home = Path(root)
    if arguments and arguments[0] in _CALLERS:
        sys.path.insert(0, str(home / "platform" / "client"))
        from chorus_voice.main import main as caller

        return caller(arguments)
    _keep_bytecode(home)
    options, rest = _parser(home).parse_known_args(arguments)
    if rest and options.command not in {"test", "bench", *_MANAGE}:
        _parser(home).error(f"unknown arguments: {' '.join(rest)}")
    try:
        return _run(home, options, rest)
    except LauncherError as error:
        return fail(error)
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return fail("the disk is full: free some space and start again")
        return fail(_bug(options, error))
    except Exception as error:  # noqa: BLE001  a person gets one line; the log has the rest
        return fail(_bug(options, error))


def _keep_bytecode(root: Path) -> None:
    """Where Python is told to write no bytecode (containers often do), have our processes keep theirs in .venv.

    Each of them would else compile every module anew when it starts: 3.4 s instead of 1.4 s of processor time.
    """
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        os.environ.setdefault("PYTHONPYCACHEPREFIX", str(root / ".venv" / "pycache"))


def _run(root: Path, options: argparse.Namespace, rest: list[str]) -> int:
    if options.command == "up":
        from launcher.up import Options, Up

        chosen = Options(
            data=options.data,
            host=options.host,
            port=options.port,
            workers=options.workers,
            engine=options.engine,
            asr=options.asr,
        )
        return Up(root, chosen).run()
    if options.command in {"cosyvoice", "doctor"}:
        return cosyvoice.run(root, options)
    if options.command == "test":
        from launcher.checks import run_checks

        return run_checks(root, rest)
    if options.command == "bench":
        from launcher.bench import run_bench

        return run_bench(root, rest)
    folder = DataFolder(options.data)
    owner = folder.owner()
    if owner is None:
        raise LauncherError(
            f"Chorus does not run on {folder.path}: start it with ./chorus up --data {folder.path}"
        )
    if options.command == "stop":
        stop_owner(folder, owner, patience=FINISH_SECONDS + 40)
        return 0
    environment = read_json(folder.environment_file)
    python = root / ".venv" / "bin" / "python"
    os.execve(python, [str(python), str(root / "manage.py"), *_MANAGE[options.command], *rest], environment)  # noqa: S606


def _parser(root: Path) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./chorus",
        description="Chorus: a voice service for teams.",
        epilog="For callers of a server: login, say, voices, batch, usage; --help after each says more.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(
        dest="command",
        required=True,
        metavar="up | test | bench | stop | manage | admin | ledger | cosyvoice | doctor",
    )
    data = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    data.add_argument(
        "--data",
        type=Path,
        default=root / ".chorus",
        metavar="DIR",
        help="folder for databases, secrets and logs (default: .chorus beside this program)",
    )
    up = commands.add_parser(
        "up", parents=[data], help="install what is needed, start everything, stay until Ctrl-C"
    )
    up.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: %(default)s; 0.0.0.0: all)"
    )
    up.add_argument(
        "--port", type=_port, default=8000, help="port to listen on (default: %(default)s; 0: any free)"
    )
    up.add_argument(
        "--workers", type=_count, default=1, metavar="N", help="speech processes on this machine (default: 1)"
    )
    up.add_argument(
        "--engine", choices=sorted(ENGINE_EXTRAS), default="kokoro", help="what speaks (default: %(default)s)"
    )
    up.add_argument(
        "--asr",
        action="store_true",
        help="suggest transcripts of uploaded clips (speech recognition, 400 MB)",
    )
    commands.add_parser("stop", parents=[data], help="stop what `up` started on a data folder")
    commands.add_parser("test", add_help=False, help="run every check, or pytest with the arguments given")
    commands.add_parser(
        "bench",
        add_help=False,
        help="measure the service: each number beside a reference (--help lists them)",
    )
    commands.add_parser(
        "manage", parents=[data], add_help=False, help="run manage.py on a data folder that is up"
    )
    commands.add_parser(
        "admin", parents=[data], add_help=False, help="quotas, teams, people, reports, for scripts"
    )
    commands.add_parser(
        "ledger", parents=[data], add_help=False, help="`ledger verify`: find any difference in the ledger"
    )
    cosyvoice.add_arguments(commands, root)
    return parser


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError("a port is a number from 0 to 65535")
    return int(text)


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 <= int(text) <= 64:
        raise argparse.ArgumentTypeError("from 0 (workers on other machines) to 64")
    return int(text)


def _bug(options: argparse.Namespace, error: Exception) -> str:
    """Keep the traceback where it can be found; the line that points there."""
    text = "".join(traceback.format_exception(error))
    target = Path(getattr(options, "data", ".")).absolute() / "logs" / "launcher.log"
    try:
        with target.open("a", encoding="utf-8") as log:
            log.write(text)
    except OSError:
        return f"an error in the launcher itself: {error!r}"
    return f"an error in the launcher itself ({error!r}); please report it with {target}"
