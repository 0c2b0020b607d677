"""The chart: linted and rendered by Helm itself, each resource held against its own schema."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import yaml

from config import settings as ours
from synthesis.models import SynthesisRequest
from synthesis.services import dispatch
from tests import factories
from tests.ops import tools

CHART = tools.ROOT / "docker" / "helm" / "chorus"
EVERYTHING = {
    "workerPools": {"gpu": {"enabled": True, "autoscaling": {"enabled": True, "minReplicas": 0}}},
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
    assert deployments["voice-worker-cpu"]["spec"]["replicas"] == 1
    [scaled] = of(everything, "ScaledObject").values()
    assert scaled["spec"]["minReplicaCount"] == 0
    assert scaled["spec"]["scaleTargetRef"]["name"] == "voice-worker-gpu"


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
def test_the_autoscaler_s_queries_count_what_they_should(everything, alice):
    """Run as they are, on rows: those that wait and that are spoken, and the characters of those that wait."""
    from django.db import connection

    factories.submit(alice, "Twelve chars")
    factories.submit(alice, "Twelve chars")
    dispatch.claim(worker="w", engine="hibari")
    done = factories.submit(alice, "Twelve chars")
    dispatch.cancel(done.id)
    SynthesisRequest.objects.update(engine="kokoro")
    [scaled] = of(everything, "ScaledObject").values()
    found = {}
    with connection.cursor() as cursor:
        for trigger in scaled["spec"]["triggers"]:
            cursor.execute(trigger["metadata"]["query"])
            found[trigger["name"]] = cursor.fetchone()[0]
    assert found == {"requests": 2, "characters": 12}


def test_the_version_is_the_program_s():
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == ours.CHORUS_VERSION
