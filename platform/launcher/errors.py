"""What the launcher tells a person who started it: one line that says what to do, never a traceback."""


class LauncherError(Exception):
    """A start that cannot go on. The message is one line and names the way out."""
