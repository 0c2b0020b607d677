"""What the launcher tells a person who started it: one line that says what to do, never a traceback."""

import sys


class LauncherError(Exception):
    """A start that cannot go on. The message is one line and names the way out."""


def fail(line: object) -> int:
    """Say on standard error, in one line, why the launcher ends; the exit status."""
    sys.stderr.write(f"chorus: {' '.join(str(line).split())}\n")
    sys.stderr.flush()
    return 1
