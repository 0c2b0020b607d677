"""What `./chorus admin …` can do: the panel's operations as commands, for scripts."""

from synthesis.console import customers, limiting, operating, reporting, trust
from synthesis.console.common import Verb

#: Every noun with its help and verbs.
NOUNS: dict[str, tuple[str, list[Verb]]] = {
    **limiting.NOUNS,
    **customers.NOUNS,
    **operating.NOUNS,
    **trust.NOUNS,
    **reporting.NOUNS,
}
