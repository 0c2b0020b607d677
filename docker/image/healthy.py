"""The images' health check: whether this container answers /healthz on its own port. Python, since slim images have no
curl."""

import os
import sys
import urllib.request

address = f"http://127.0.0.1:{os.environ.get('PORT', '8000')}/healthz"
try:
    with urllib.request.urlopen(address, timeout=4) as answer:
        sys.exit(0 if answer.status == 200 else 1)
except OSError as error:
    sys.exit(f"{address}: {error}")
