"""The worker processes and their health."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Sum
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.admin.cells import badge, link, moment, number
from accounts.effects import Text
from accounts.operators import Operator
from accounts.panel.modeladmin import PanelAdmin, Table
from accounts.panel.operations import Operation
from accounts.panel.site import Entry, panel
from synthesis.models import Attempt, Status, SynthesisRequest, Worker
from synthesis.models.workers import ALIVE
from synthesis.services import workers

#: Orders that hold until they are taken back.
HOLDING = (Worker.Order.PAUSE, Worker.Order.STOP)


def _order(word: str, said: Text) -> Callable[[Operator, Sequence[Worker], dict[str, Any]], Text]:
    def run(by: Operator, objects: Sequence[Worker], values: dict[str, Any]) -> Text:
        for worker in objects:
            workers.order(by=by, name=worker.name, order=word, reason=values["reason"])
        return said

    return run


def _can_hear(worker: Worker) -> bool:
    return worker.state != Worker.State.GONE


@admin.register(Worker)
class WorkerAdmin(PanelAdmin):
    """What runs where."""

    intro = gettext_lazy(
        "Each process that speaks. One that has been silent for more than 16 seconds is taken for gone."
    )
    list_display = [
        "name",
        "health",
        "engine",
        "host",
        "gpu",
        "memory",
        "requests_done",
        "pace",
        moment("last_seen", gettext_lazy("last seen")),
        "error",
    ]
    list_filter = ["state", "engine", "pool"]
    search_fields = ["name", "host"]
    id_columns = []
    ordering = ["name"]
    operations = [
        Operation(
            "pause",
            gettext_lazy("Pause"),
            workers.PERMISSION,
            _order(
                Worker.Order.PAUSE, gettext_lazy("It finishes what it has in hand and takes nothing more.")
            ),
            applies=lambda worker: _can_hear(worker) and worker.order not in HOLDING,
            explain=gettext_lazy(
                "It finishes what it has in hand, keeps the engine loaded, and takes nothing more."
            ),
            bulk=True,
            icon="pause",
        ),
        Operation(
            "resume",
            gettext_lazy("Resume"),
            workers.PERMISSION,
            _order("", gettext_lazy("It goes on.")),
            applies=lambda worker: worker.order in HOLDING,
            bulk=True,
            icon="play",
        ),
        Operation(
            "recycle",
            gettext_lazy("Load the engine anew"),
            workers.PERMISSION,
            _order(Worker.Order.RECYCLE, gettext_lazy("The engine is loaded anew after what is in hand.")),
            applies=lambda worker: _can_hear(worker) and not worker.order,
            explain=gettext_lazy("After what is in hand, in a fresh process: for memory that has grown."),
            bulk=True,
            icon="again",
        ),
        Operation(
            "restart",
            gettext_lazy("Restart"),
            workers.PERMISSION,
            _order(
                Worker.Order.RESTART,
                gettext_lazy("It ends after what is in hand; its supervisor starts it anew."),
            ),
            applies=lambda worker: _can_hear(worker) and not worker.order,
            explain=gettext_lazy(
                "It ends after what is in hand, and its supervisor starts it anew: for new settings."
            ),
            bulk=True,
            icon="again",
        ),
        Operation(
            "stop",
            gettext_lazy("Stop at once"),
            workers.PERMISSION,
            _order(
                Worker.Order.STOP,
                gettext_lazy("What it had in hand goes back to the queue."),
            ),
            applies=lambda worker: _can_hear(worker) and worker.order != Worker.Order.STOP,
            explain=gettext_lazy(
                "What it has in hand goes back to the queue. It frees its memory and takes nothing more."
            ),
            bulk=True,
            danger=True,
            icon="close",
        ),
    ]
    facts = [
        "name",
        "health",
        "ordered",
        "pool",
        "engine",
        "host",
        "pid",
        "gpu",
        "load",
        "memory",
        "requests_done",
        "pace",
        "started_at",
        "last_seen",
        "last_error",
    ]

    @admin.display(description=gettext_lazy("health"))
    def health(self, worker: Worker) -> SafeString:
        """By its own word while it speaks, by its silence otherwise."""
        if worker.state == Worker.State.GONE:
            return badge(worker.get_state_display())
        if timezone.now() - worker.last_seen > ALIVE:
            return badge(_("silent"), "bad")
        kinds = {Worker.State.IDLE: "good", Worker.State.BUSY: "accent"}
        return badge(worker.get_state_display(), kinds.get(Worker.State(worker.state), "warn"))

    @admin.display(description=gettext_lazy("order"))
    def ordered(self, worker: Worker) -> str:
        """What it was told and has not carried out yet, or keeps to."""
        return worker.get_order_display() if worker.order else "—"

    @admin.display(description=gettext_lazy("GPU load"))
    def load(self, worker: Worker) -> str:
        """In percent, and memory."""
        if worker.gpu_percent is None:
            return "—"
        memory = f", {worker.gpu_memory_bytes / 2**30:.1f} GiB" if worker.gpu_memory_bytes else ""
        return f"{worker.gpu_percent} %{memory}"

    @admin.display(description=gettext_lazy("memory"))
    def memory(self, worker: Worker) -> str:
        """Of the process with the engine."""
        return f"{worker.rss_bytes / 2**20:,.0f} MiB"

    @admin.display(description=gettext_lazy("last error"))
    def error(self, worker: Worker) -> str:
        """Its beginning."""
        return worker.last_error[:80]

    def prepare(self, rows: list[Any]) -> None:
        """Engine and audio seconds of the last hour, once for the page."""
        lately = timezone.now() - timedelta(hours=1)
        sums = {
            worker: (engine, audio)
            for worker, engine, audio in SynthesisRequest.objects.filter(
                worker__in=[one.name for one in rows],
                status=Status.SUCCEEDED,
                completed_at__gt=lately,
                audio_seconds__gt=0,
            )
            .order_by()
            .values_list("worker")
            .annotate(engine=Sum("engine_seconds"), audio=Sum("audio_seconds"))
        }
        for one in rows:
            engine, audio = sums.get(one.name, (0, 0))
            one.real_time_factor = engine / audio if audio else None

    @admin.display(description=gettext_lazy("real-time factor, last hour"))
    def pace(self, worker: Any) -> str:
        """Engine seconds for a second of sound."""
        if not hasattr(worker, "real_time_factor"):
            self.prepare([worker])
        return "—" if worker.real_time_factor is None else f"{worker.real_time_factor:.2f}"

    def tables(self, request: HttpRequest, obj: Worker) -> list[Table]:
        """What it has in hand, and what it did lately."""
        if not request.user.has_perm("synthesis.view_synthesisrequest"):
            return []
        running = SynthesisRequest.objects.filter(worker=obj.name, status=Status.RUNNING).select_related(
            "team", "user"
        )
        now: list[list[Any]] = [
            [
                link(one, str(one.pk)),
                one.team.name,
                one.user.email,
                number(one.characters),
                f"{one.segments_done} / {one.segments_total}",
            ]
            for one in running
        ]
        columns = [_("Request"), _("Team"), _("Person"), _("Characters"), _("Segments")]
        since = timezone.now() - timedelta(days=1)
        attempts = (
            Attempt.objects.filter(worker=obj.name, started_at__gt=since)
            .select_related("request")
            .order_by("-id")[:20]
        )
        lately = [
            [
                f"{one.started_at:%H:%M:%S}",
                link(one.request, str(one.request_id)),
                one.get_outcome_display() or _("running"),
                f"{(one.ended_at - one.started_at).total_seconds():.1f} s" if one.ended_at else "—",
                one.error_code,
            ]
            for one in attempts
        ]
        return [
            Table(_("In hand"), columns, now, _("Nothing.")),
            Table(
                _("Lately"),
                [_("From"), _("Request"), _("Outcome"), _("Took"), _("Error")],
                lately,
                _("Nothing today."),
            ),
        ]


panel().add_entry(
    Entry(
        "work",
        "admin:synthesis_worker_changelist",
        gettext_lazy("Workers"),
        "server",
        "synthesis.view_worker",
        20,
    )
)
