"""The settings as the type checker's Django plugin reads them: with made-up values, and without servers."""

import os

for _name, _value in {
    "CHORUS_SECRET_KEY": "only-for-the-type-checker",
    "CHORUS_PEPPERS": f"1:{'00' * 32}",
    "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
    "REDIS_URL": "redis://127.0.0.1:1/0",
}.items():
    os.environ.setdefault(_name, _value)

from config.settings import *  # noqa: E402, F403 (after the environment is set)
