"""`python -m chorus_voice`."""

import sys

from chorus_voice.main import main

sys.exit(main())
