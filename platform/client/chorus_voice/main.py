"""The command line of `chorus` for callers."""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from chorus_voice import __version__, batch, config, errors, login, say, usage, voices, words
from chorus_voice.errors import CommandError
from chorus_voice.http import PATIENCE, Api
from chorus_voice.progress import Bar
from chorus_voice.words import _

#: What `./chorus` of a server's own folder hands on to this.
COMMANDS = ("login", "logout", "say", "voices", "batch", "usage")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; whatever goes wrong is one line on standard error and a status that tells what kind."""
    # argparse's own words, which it looks up by this name.
    argparse._ = words.translate  # type: ignore[attr-defined]
    try:
        options = _parser().parse_args(arguments)
        return _run(options)
    except CommandError as error:
        return _fail(str(error), error.status)
    except KeyboardInterrupt:
        return _fail(_("Interrupted."), errors.INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return _fail(_("The disk is full."), errors.BROKEN)
        return _fail(f"{error.filename or ''}: {error.strerror or error}".lstrip(": "), errors.BROKEN)
    except Exception as error:
        if os.environ.get("CHORUS_TRACEBACK"):
            raise
        return _fail(
            _("An error in this program: {error}. CHORUS_TRACEBACK=1 shows where.").format(error=repr(error)),
            errors.BROKEN,
        )


def _fail(message: str, status: int) -> int:
    print(f"chorus: {' '.join(message.split())}", file=sys.stderr)
    return status


def _run(options: argparse.Namespace) -> int:
    if options.command in {"login", "logout"}:
        return int(getattr(login, options.command)(options))
    bar = Bar(quiet=options.quiet)
    api = Api(config.load(), patience=options.patience, waiting=bar.waiting)
    run = {"say": say.run, "batch": batch.run, "voices": voices.run, "usage": usage.run}[options.command]
    try:
        return run(options, api, bar)
    finally:
        bar.close()


class _Parser(argparse.ArgumentParser):
    """Errors in one line."""

    def error(self, message: str) -> NoReturn:
        """Where more is to be read, and why."""
        print(f"{self.prog}: {message} ({self.prog} --help)", file=sys.stderr)
        sys.exit(errors.USAGE)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="chorus", description=_("Speech from a Chorus server."), allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"chorus-voice {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar=" | ".join(COMMANDS))
    common = _Parser(add_help=False, allow_abbrev=False)
    common.add_argument("-q", "--quiet", action="store_true", help=_("no progress bar"))
    common.add_argument(
        "--patience",
        type=_seconds,
        default=PATIENCE,
        metavar="S",
        help=_("seconds that a lost connection is waited for (default: {n})").format(n=int(PATIENCE)),
    )

    def command(name: str, help: str, **more: Any) -> argparse.ArgumentParser:
        added: argparse.ArgumentParser = commands.add_parser(
            name, help=help, description=help, allow_abbrev=False, **more
        )
        return added

    sign_in = command("login", _("keep the address of a server and a key"))
    sign_in.add_argument(
        "--url", help=_("the server's address; the key is asked for, or read from standard input")
    )
    command("logout", _("forget them"))
    _add_say(command("say", _("speak a text into a file"), parents=[common]))
    _add_batch(command("batch", _("speak each row of a CSV or JSON Lines file"), parents=[common]))
    _add_voices(command("voices", _("list, add and delete voices"), parents=[common]), common)
    used = command("usage", _("what is left of the month, and what was used"), parents=[common])
    used.add_argument("--by", choices=usage.BY, default="day", help=_("what a line is about (default: day)"))
    used.add_argument("--first", metavar="YYYY-MM-DD", help=_("first day"))
    used.add_argument("--last", metavar="YYYY-MM-DD", help=_("last day"))
    used.add_argument("--json", action="store_true", help=_("as the API has it"))
    return parser


def _add_manner(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=say.FORMATS, help=_("of the sound"))
    parser.add_argument("--speed", type=float, help=_("a factor, such as 0.9"))
    parser.add_argument("--language", help=_("such as en-US or zh; by default as the text is written"))
    parser.add_argument("--instruction", help=_("how to say it, for engines that follow instructions"))
    parser.add_argument("--seed", type=int, help=_("the same seed says it the same way"))


def _add_say(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", nargs="?", help=_("what to say; “-” or nothing: standard input"))
    parser.add_argument("-f", "--file", help=_("a file with the text"))
    parser.add_argument("-v", "--voice", required=True, help=_("name or id of a voice"))
    parser.add_argument(
        "-o", "--output", help=_("the file to write; its ending says the format; “-”: standard output")
    )
    _add_manner(parser)
    parser.add_argument("--title", help=_("a name for the team's history"))


def _add_batch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("script", help=_("with the columns text, voice, format, speed, …"))
    parser.add_argument("-o", "--output", help=_("the folder to write to (default: named as the file)"))
    parser.add_argument("-v", "--voice", help=_("for rows that name none"))
    _add_manner(parser)
    parser.add_argument("--name", help=_("a name for the batch (default: the file's)"))
    parser.add_argument("--retry", action="store_true", help=_("try again the rows that failed"))
    parser.add_argument("--dry-run", action="store_true", help=_("only check the file"))
    parser.add_argument("--no-wait", action="store_true", help=_("print the batch's id and leave"))


def _add_voices(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="list | add | delete")

    def action(name: str, help: str) -> argparse.ArgumentParser:
        added: argparse.ArgumentParser = actions.add_parser(
            name, help=help, description=help, allow_abbrev=False, parents=[common]
        )
        return added

    listed = action("list", _("the voices that you can use"))
    listed.add_argument("--search", help=_("part of the name"))
    listed.add_argument("--language", help=_("such as en or zh"))
    listed.add_argument("--kind", choices=["preset", "cloned"])
    listed.add_argument("--json", action="store_true", help=_("as the API has it"))
    added = action("add", _("clone a voice from a recording"))
    added.add_argument("clip", help=_("3 seconds to 10 minutes of one speaker: m4a, mp3, wav, …"))
    added.add_argument("--name", help=_("of the voice (default: the file's)"))
    added.add_argument("--language", required=True, help=_("of the recording, such as en-US or zh"))
    added.add_argument("--transcript", help=_("what the recording says, word for word"))
    added.add_argument("--gender", choices=["female", "male", "neutral"])
    added.add_argument(
        "--consent", action="store_true", help=_("it is your own voice, or you have the speaker's permission")
    )
    deleted = action("delete", _("remove one of your team's voices"))
    deleted.add_argument("voice", help=_("name or id"))
    deleted.add_argument("-y", "--yes", action="store_true", help=_("without a question"))


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 86_400:
        raise argparse.ArgumentTypeError(_("from 0 to 86400"))
    return value
