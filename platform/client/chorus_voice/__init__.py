"""The command `chorus`: speech from a Chorus server. Needs nothing but Python."""

__version__ = "0.1.0"
