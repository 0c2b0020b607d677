"""The chart: linted and rendered by Helm itself, each resource held against its own schema."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import yaml
from django.db import connection
from django.utils import timezone

from accounts.models import Team
from config import settings as ours
from synthesis.models import Pool, SynthesisRequest, TeamPool
from synthesis.services import dispatch
from tests import factories
from tests.ops import tools

CHART = tools.ROOT / "docker" / "helm" / "chorus"
#: Workers of some teams only.
GOLD = {
    "enabled": True,
    "image": "gpuWorker",
    "replicas": 1,
    "resources": {"limits": {"memory": "24Gi"}},
    "terminationGracePeriodSeconds": 180,
    "env": {"CHORUS_POOL": "gold"},
    "autoscaling": {"enabled": False},
}
EVERYTHING = {
    "engine": "cosyvoice3",
    "workerPools": {
        "gpu": {"enabled": True, "autoscaling": {"enabled": True, "minReplicas": 0}},
        "gold": GOLD,
    },
    "backup": {"enabled": True, "keep": 30},
    "ingress": {"enabled": True, "className": "nginx"},
    "httpRoute": {"enabled": True, "parentRefs": [{"name": "public"}]},
    "email": {"host": "smtp.example.org", "passwordFromSecret": True},
    "trustedProxies": ["10.0.0.0/8"],
    "env": {"CHORUS_LOG_LEVEL": "WARNING"},
    "monitoring": {
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "prometheusRule": {"enabled": True},
        "dashboard": {"enabled": True},
    },
}
_SCALING = {"requestsPerWorker": 4, "charactersPerWorker": 6000, "pollingInterval": 10, "cooldownPeriod": 300}
THEIRS = {"keda.sh/v1alpha1", "monitoring.coreos.com/v1", "gateway.networking.k8s.io/v1"}


def render(tmp_path, values, *more):
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    argv = [tools.helm(), "template", "voice", CHART, "--values", file, "--kube-version", "1.37.0", *more]
    done = subprocess.run([str(part) for part in argv], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    return render(tmp_path_factory.mktemp("helm"), EVERYTHING)


@pytest.fixture(scope="module")
def defaults(tmp_path_factory):
    return render(tmp_path_factory.mktemp("helm"), {})


def of(documents, kind):
    return {document["metadata"]["name"]: document for document in documents if document["kind"] == kind}


def pods(documents):
    for document in documents:
        if document["kind"] in {"Deployment", "Job"}:
            yield document["metadata"]["name"], document["spec"]["template"]["spec"]
        if document["kind"] == "CronJob":
            yield document["metadata"]["name"], document["spec"]["jobTemplate"]["spec"]["template"]["spec"]


def test_helm_lint(tmp_path):
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(EVERYTHING))
    tools.run(tools.helm(), "lint", "--strict", CHART, "--values", file)


def test_resources_match_kubernetes_schemas(everything, tmp_path):
    script = (
        "import json, sys, kubernetes_validate\n"
        "for resource in json.load(sys.stdin):\n"
        "    kubernetes_validate.validate(resource, '1.37', strict=True)\n"
        "    print(resource['kind'])\n"
    )
    native = [document for document in everything if document["apiVersion"] not in THEIRS]
    path = os.pathsep.join([str(tools.kubernetes_validate()), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(native),
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == len(native) > 10


def test_other_resources_match_their_own_schemas(everything):
    theirs = [document for document in everything if document["apiVersion"] in THEIRS]
    done = subprocess.run(
        ["node", str(tools.ROOT / "tests" / "ops" / "validate.mjs"), str(tools.kubernetes_models())],
        input=json.dumps(theirs),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("valid ") == len(theirs) == 5


def test_the_validator_refuses(everything):
    [scaled] = of(everything, "ScaledObject").values()
    broken = {**scaled, "spec": {**scaled["spec"], "minReplicaCount": "none"}}
    done = subprocess.run(
        ["node", str(tools.ROOT / "tests" / "ops" / "validate.mjs"), str(tools.kubernetes_models())],
        input=json.dumps([broken]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "minReplicaCount" in done.stdout


@pytest.mark.parametrize(
    "wrong",
    [
        {"engine": "espeak"},
        {"baseUrl": "chorus.example.org"},
        {"workerPools": {"gpu": {"terminationGracePeriodSeconds": 5}}},
        {"workerPools": {"cpu": {"enabled": "perhaps"}}},
        {"backup": {"keep": -1}},
        {"networkPolicy": {"egressPorts": [70000]}},
        {"replicaCount": 2},
    ],
)
def test_values_that_make_no_sense_are_refused(tmp_path, wrong):
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(wrong))
    done = tools.run(tools.helm(), "template", "x", CHART, "--values", file, check=False)
    assert done.returncode != 0
    assert "schema" in done.stdout


def test_every_pod_is_confined(everything):
    for name, pod in pods(everything):
        assert pod["securityContext"]["runAsNonRoot"], name
        assert pod["automountServiceAccountToken"] is False, name
        for container in pod["containers"]:
            security = container["securityContext"]
            assert security["readOnlyRootFilesystem"], name
            assert security["capabilities"]["drop"] == ["ALL"], name
            assert container["resources"]["limits"]["memory"], name


def test_secrets_come_as_files(everything):
    for name, pod in pods(everything):
        [container] = pod["containers"]
        for variable in container["env"]:
            assert "valueFrom" not in variable, name
        files = {v["name"]: v["value"] for v in container["env"] if v["name"].endswith("_FILE")}
        assert "DATABASE_URL_FILE" in files, name
        assert all(path.startswith("/secrets/") for path in files.values())


def test_the_example_secret_has_every_key(everything):
    text = (CHART / "values.yaml").read_text()
    for _name, pod in pods(everything):
        for variable in pod["containers"][0]["env"]:
            if variable["name"].endswith("_FILE"):
                assert variable["value"].removeprefix("/secrets/") in text


def test_workers_finish_what_they_have_in_hand(everything):
    for name, pod in pods(everything):
        if "worker" in name:
            assert pod["terminationGracePeriodSeconds"] >= 120, name
            assert pod["containers"][0]["command"][:3] == ["python", "-m", "gpu_worker"]


def test_the_autoscaler_owns_the_number_of_its_pods(everything):
    deployments = of(everything, "Deployment")
    assert "replicas" not in deployments["voice-worker-gpu"]["spec"]
    assert deployments["voice-worker-gold"]["spec"]["replicas"] == 1
    [scaled] = of(everything, "ScaledObject").values()
    assert scaled["spec"]["minReplicaCount"] == 0
    assert scaled["spec"]["scaleTargetRef"]["name"] == "voice-worker-gpu"


@pytest.mark.parametrize(
    ("engine", "pool"), [("kokoro", "cpu"), ("hibari", "cpu"), ("remote", "cpu"), ("cosyvoice3", "gpu")]
)
def test_the_engine_chooses_the_pool(tmp_path, engine, pool):
    deployments = of(render(tmp_path, {"engine": engine}), "Deployment")
    assert {name for name in deployments if "worker" in name} == {f"voice-worker-{pool}"}


@pytest.mark.parametrize(("engine", "pool"), [("kokoro", "gpu"), ("cosyvoice3", "cpu")])
def test_a_pool_that_cannot_speak_with_the_engine_is_refused(tmp_path, engine, pool):
    given = (f"engine={engine}", f"workerPools.{pool}.enabled=true")
    done = tools.run(tools.helm(), "template", "x", CHART, "--set", ",".join(given), check=False)
    assert done.returncode != 0
    assert f"workerPools.{pool}: the image {pool}Worker cannot speak with the engine {engine}" in done.stdout


def test_backups_are_kept_in_a_volume(everything, defaults):
    [job] = of(everything, "CronJob").values()
    assert job["spec"]["concurrencyPolicy"] == "Forbid"
    pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert container["command"] == ["python", "manage.py", "backup", "/backups", "--keep", "30"]
    [claim] = [v for v in pod["volumes"] if "persistentVolumeClaim" in v]
    assert {"name": claim["name"], "mountPath": "/backups"} in container["volumeMounts"]
    assert not of(defaults, "CronJob")


def test_every_deployment_has_a_budget_but_the_sweep(everything):
    budgets = {
        tuple(sorted(budget["spec"]["selector"]["matchLabels"].items()))
        for budget in of(everything, "PodDisruptionBudget").values()
    }
    for name, deployment in of(everything, "Deployment").items():
        labels = tuple(sorted(deployment["spec"]["selector"]["matchLabels"].items()))
        assert (labels in budgets) == (not name.endswith("sweep")), name


def test_probes_do_not_ask_for_workers(everything):
    for name in ("voice-web", "voice-streams"):
        [container] = of(everything, "Deployment")[name]["spec"]["template"]["spec"]["containers"]
        assert container["readinessProbe"]["httpGet"]["path"] == "/readyz?without=workers"
        assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"


def test_migrations_come_first(everything):
    [job] = of(everything, "Job").values()
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"


def test_what_waits_goes_to_streams(everything):
    [ingress] = of(everything, "Ingress").values()
    [rule] = ingress["spec"]["rules"]
    routes = {
        path["path"]: path["backend"]["service"]["name"].removeprefix("voice-")
        for path in rule["http"]["paths"]
    }
    assert routes == {
        "/": "web",
        "/events": "streams",
        "/v1/audio/speech": "streams",
        "/v1/conversions": "streams",
        "/v1/syntheses": "streams",
        "/v1/text-to-speech": "streams",
    }
    [route] = of(everything, "HTTPRoute").values()
    assert route["spec"]["rules"][0]["timeouts"]["request"] == "960s"


def test_only_named_pods_are_reached(everything):
    policies = of(everything, "NetworkPolicy")
    assert policies["voice"]["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in policies["voice"]["spec"]
    [rule] = policies["voice-http"]["spec"]["ingress"]
    assert rule["from"]


def egress(documents):
    [rule] = of(documents, "NetworkPolicy")["voice"]["spec"]["egress"]
    return {(entry["protocol"], entry["port"]) for entry in rule["ports"]}


def test_what_settings_name_can_be_reached(tmp_path, defaults):
    """Mail with and without STARTTLS, webhooks, traces, names; and the ports of the addresses that are given."""
    usual = egress(defaults)
    assert {("UDP", 53), *(("TCP", port) for port in (53, 443, 465, 587, 4318, 5432, 6379))} <= usual
    values = {
        "s3": {"endpointUrl": "http://minio.storage:9090"},
        "email": {"host": "smtp.example.org", "port": 2525},
        "env": {"CHORUS_OTLP_ENDPOINT": "http://collector:4319"},
        "workerPools": {"cpu": {"env": {"CHORUS_REMOTE_URLS": "http://a:8001/v1, http://b/v1"}}},
    }
    added = egress(render(tmp_path, values)) - usual
    assert added == {("TCP", port) for port in (9090, 2525, 4319, 8001, 80)}


def test_a_plain_installation_needs_no_operators(defaults):
    assert {document["apiVersion"] for document in defaults} & THEIRS == set()


def test_variables_are_read(everything):
    """Every variable of the chart is one that the program reads."""
    sources = "".join(
        path.read_text()
        for folder in ("accounts", "synthesis", "gpu_worker", "platform")
        for path in (tools.ROOT / folder).rglob("*.py")
    )
    for _name, pod in pods(everything):
        for variable in pod["containers"][0]["env"]:
            assert f'"{variable["name"].removesuffix("_FILE")}"' in sources, variable


@pytest.mark.django_db
def test_the_autoscaler_s_queries_count_what_the_workers_may_take(tmp_path, alice, charlie):
    """Run as they are, on rows: those that wait and that are spoken, and the characters of those that wait."""
    TeamPool.objects.create(team=charlie.actor.team, pool=Pool.objects.create(name="gold"))
    factories.submit(alice, "Twelve chars")
    factories.submit(alice, "Twelve chars")
    dispatch.claim(worker="w", engine="hibari")
    done = factories.submit(alice, "Twelve chars")
    dispatch.cancel(done.id)
    for _one in range(3):
        factories.submit(charlie, "Twelve chars")
    suspended = factories.owner("Dora")
    factories.submit(suspended, "Twelve chars")
    Team.objects.filter(id=suspended.actor.team.id).update(suspended_at=timezone.now())
    factories.submit(alice, "Of another engine")
    SynthesisRequest.objects.exclude(text="Of another engine").update(engine="cosyvoice3")
    scaling = {"autoscaling": {"enabled": True, "minReplicas": 0, "maxReplicas": 2} | _SCALING}
    documents = render(tmp_path, EVERYTHING | {"workerPools": {"gpu": scaling, "gold": GOLD | scaling}})
    assert {name: counted(scaled) for name, scaled in of(documents, "ScaledObject").items()} == {
        "voice-worker-gpu": {"requests": 2, "characters": 12},
        "voice-worker-gold": {"requests": 3, "characters": 36},
    }


def counted(scaled):
    """What the autoscaler would find."""
    found = {}
    with connection.cursor() as cursor:
        for trigger in scaled["spec"]["triggers"]:
            cursor.execute(trigger["metadata"]["query"])
            found[trigger["name"]] = cursor.fetchone()[0]
    return found


def test_alerts_lead_to_the_documentation_of_the_installation(everything):
    [rules] = of(everything, "PrometheusRule").values()
    links = [
        rule["annotations"]["runbook_url"] for group in rules["spec"]["groups"] for rule in group["rules"]
    ]
    assert links
    assert all(link.startswith("https://chorus.example.org/docs/") for link in links)


def test_the_version_is_the_program_s():
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == ours.CHORUS_VERSION
