"""`python -m benchmarks`; `./chorus bench` installs first what it needs."""

import sys

from benchmarks.runner import main

sys.exit(main(sys.argv[1:]))
