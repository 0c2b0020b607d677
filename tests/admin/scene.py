"""A service that has been used for a while, for the browser's tests: every page has something on it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from django.utils import timezone

from accounts.operators import Operator
from accounts.services import alerts, grants, prices, quotas
from synthesis.models import SynthesisRequest, Worker
from synthesis.services import dispatch, misuse, pools, rollup, verification, workers
from tests import factories
from tests.admin import generate

BY = Operator.command()
MADE = dispatch.Made("key", "audio/mpeg", 10, "0" * 64, 4.5, 24_000)


@dataclass
class Scene:
    """Who is there."""

    alice: factories.Person
    bob: factories.Person
    charlie: factories.Person


def play(*, history: int = 0) -> Scene:
    """Two teams, three workers, requests of every state; `history` requests over the last year."""
    if history:
        generate.year(history, teams=4, ledger=True)
    alice = factories.owner("Alice", team="Harbour Audio")
    bob = factories.colleague(alice, "Bob")
    charlie = factories.owner("Charlie", team="Night Radio")
    for number, state in enumerate(("idle", "busy", "busy")):
        workers.beat(
            name=f"gpu-1:{number}",
            engine="hibari",
            host="gpu-1",
            pid=100 + number,
            state=state,
            rss_bytes=1_400_000_000,
            requests_done=1_200 * number,
        )
    for person, code in ((alice, "engine_error"), (charlie, "engine_error"), (alice, "storage")):
        factories.submit(person)
        (claimed,) = dispatch.claim(worker="gpu-1:0", engine="hibari")
        dispatch.fail(claimed, code=code, message=f"The {code} of a test.", retryable=False)
    for person in (alice, bob, charlie):
        factories.submit(person, text="A sentence that is spoken, and charged. " * 3)
        (claimed,) = dispatch.claim(worker="gpu-1:1", engine="hibari")
        dispatch.complete(claimed, MADE)
    for person in (alice, charlie):
        factories.submit(person, text="Being spoken right now. " * 4)
    for number in (1, 2):
        dispatch.claim(worker=f"gpu-1:{number}", engine="hibari")
    waiting = [factories.submit(person) for person in (alice, bob, charlie, alice)]
    SynthesisRequest.objects.filter(pk=waiting[3].pk).update(not_before=timezone.now() + timedelta(minutes=5))
    quotas.change(by=BY, targets=[charlie.actor.team], values={"concurrent_requests": 1}, reason="Trial")
    grants.give(by=BY, team=alice.actor.team, characters=5_000, reason="Launch")
    pools.create(by=BY, name="gold", note="Contract 7")
    rates = {"per_audio_hour": Decimal(3), "per_engine_hour": Decimal(2)}
    prices.set_price(
        by=BY,
        plan=None,
        valid_from=timezone.now().date() - timedelta(days=200),
        per_million_characters=Decimal(12),
        **rates,
    )
    alerts.save_rule(by=BY, team=None, percent=80, emails=["money@example.org"])
    misuse.report(
        actor=bob.actor,
        voice_id=factories.preset().pk,
        kind="deception",
        details="Somebody called my mother with it.",
    )
    Worker.objects.filter(name="gpu-1:2").update(
        last_error="RuntimeError: CUDA out of memory", last_seen=timezone.now() - timedelta(minutes=3)
    )
    verification.record(by=Operator.sweep(), result=verification.verify())
    rollup.roll_up()
    return Scene(alice, bob, charlie)
