"""Alert rules and dashboard: right for the real tools, and only of metrics that exist."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import timedelta

import pytest
import yaml
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from synthesis import tally
from synthesis.services import dispatch, workers
from tests import factories
from tests.ops import tools

MONITORING = tools.ROOT / "docker" / "monitoring"
_NAME = re.compile(r"\bchorus_[a-z0-9_]+")
_SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}


def expressions():
    """Every PromQL expression: (where it stands, expression)."""
    for group in yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]
    for panel in json.loads((MONITORING / "dashboard.json").read_text())["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]


@pytest.fixture
def existing(alice, client):
    """The names of all series that a scrape can hold, as Prometheus stores them."""
    families = text_string_to_metric_families(client.get("/metrics").content.decode())
    return {family.name + suffix for family in families for suffix in _SUFFIXES[family.type]}


def test_every_metric_that_is_used_exists(existing):
    used = {(where, name) for where, expression in expressions() for name in _NAME.findall(expression)}
    assert {(where, name) for where, name in used if name not in existing} == set()


def test_every_metric_is_on_the_dashboard_or_in_an_alert(existing):
    shown = {name for _where, expression in expressions() for name in _NAME.findall(expression)}
    bases = {re.sub("_(total|bucket|sum|count)$", "", name) for name in existing}
    assert bases - {re.sub("_(total|bucket|sum|count)$", "", name) for name in shown} == {"chorus_build_info"}


def test_labels_that_are_used_exist(alice, client):
    """Each label of a rule is one that its metrics have."""
    factories.submit(alice)
    factories.submit(alice)
    [claimed] = dispatch.claim(worker="w", engine="hibari")
    dispatch.fail(claimed, code="engine_error", message="x", retryable=False)
    type(claimed).objects.filter(id=claimed.id).update(completed_at=timezone.now() - timedelta(seconds=9))
    from accounts.redis import client as redis

    redis().set("metrics:until", (timezone.now() - timedelta(minutes=1)).timestamp())
    tally.note_claim(0.1)
    workers.beat(name="w", engine="hibari", host="h", pid=1, state="idle", gpu="0", gpu_percent=1)
    known: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(client.get("/metrics").content.decode()):
        for sample in family.samples:
            known.setdefault(sample.name, set()).update(sample.labels)
    for where, expression in expressions():
        for name, matchers in re.findall(r"\b(chorus_[a-z0-9_]+)\{([^}]*)\}", expression):
            used = set(re.findall(r"([a-z_]+)\s*(?:=~|!~|!=|=)", matchers))
            assert name not in known or used <= known[name], (where, name)


def test_rules_pass_promtool():
    tools.run(tools.promtool(), "check", "rules", MONITORING / "alerts.yml")


def test_rules_do_what_they_should():
    tools.run(tools.promtool(), "test", "rules", MONITORING / "alerts.test.yml")


def test_configuration_passes_promtool():
    tools.run(tools.promtool(), "check", "config", "--syntax-only", MONITORING / "prometheus.yml")


def test_alerts_reach_alertmanager():
    prometheus = yaml.safe_load((MONITORING / "prometheus.yml").read_text())
    [found] = prometheus["alerting"]["alertmanagers"][0]["static_configs"]
    compose = yaml.safe_load((MONITORING.parent / "compose.yml").read_text())
    assert found["targets"] == ["alertmanager:9093"]
    assert "alertmanager" in compose["services"]
    # Who is told is the operator's to say; what their messages link to is filled in by Prometheus.
    assert "CHORUS_BASE_URL" in compose["services"]["prometheus"]["environment"]
    assert prometheus["global"]["external_labels"] == {"installation": "${CHORUS_BASE_URL}"}


def test_the_configuration_of_alertmanager_is_right(tmp_path):
    """As it is, and with what its comments hold."""
    file = MONITORING / "alertmanager.yml"
    tools.run(tools.amtool(), "check-config", file)
    filled = tmp_path / "alertmanager.yml"
    lines = re.sub(r"^  # (  |- |routes)", r"  \1", file.read_text(), flags=re.MULTILINE)
    filled.write_text(lines)
    said = tools.run(tools.amtool(), "check-config", filled).stdout
    assert "3 receivers" in said


def test_dashboard_queries_pass_promtool(tmp_path):
    rules = [
        {"record": f"test:{number}", "expr": expression.replace("$__rate_interval", "5m")}
        for number, (_where, expression) in enumerate(expressions())
    ]
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    tools.run(tools.promtool(), "check", "rules", file)


def test_the_dashboard_is_well_formed():
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids))
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        assert panel["type"] == "row" or panel["targets"]


def test_what_prometheus_gets_passes_promtool(alice, client):
    factories.submit(alice)
    body = client.get("/metrics").content
    done = subprocess.run(
        [tools.promtool(), "check", "metrics"], input=body, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()


_CHILD = """
import django
django.setup()
from config import metrics
metrics.REQUESTS.labels("GET", "shared", "200", "").inc(3)
metrics.SECONDS.labels("GET", "shared").observe(0.2)
"""
_READER = """
import django
django.setup()
from config import metrics
labels = {"method": "GET", "route": "shared", "status": "200", "code": ""}
print(metrics.registry().get_sample_value("chorus_http_requests_total", labels))
"""


def test_processes_of_a_machine_answer_for_one_another(tmp_path):
    import os

    environment = os.environ | {
        "PROMETHEUS_MULTIPROC_DIR": str(tmp_path / "metrics"),
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "PYTHONPATH": os.pathsep.join([str(tools.ROOT), str(tools.ROOT / "platform")]),
    }
    outputs = [
        tools.run(sys.executable, "-c", script, env=environment).stdout.strip()
        for script in (_CHILD, _CHILD, _READER)
    ]
    assert outputs[-1] == "6.0"
