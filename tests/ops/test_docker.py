"""Images and compose.yml, checked by hadolint and Docker Compose itself, and against the settings that they set."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.ops import tools

DOCKER = tools.ROOT / "docker"
DOCKERFILES = sorted(DOCKER.glob("Dockerfile.*"))
#: Ends by itself, or is a tool of another image with a check of its own in compose.yml.
WITHOUT_CHECK = {
    *("secrets", "migrate", "sweep", "backup", "restore", "get-cosyvoice"),
    *("prometheus", "alertmanager", "grafana"),
}


@pytest.fixture(scope="module")
def composed(tmp_path_factory):
    """compose.yml as Docker Compose understands it, with .env.example and every profile."""
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    argv = [tools.compose(), "--env-file", ".env.example", "--profile", "*", "config", "--format", "json"]
    done = subprocess.run(argv, cwd=DOCKER, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr.lower()
    return json.loads(done.stdout)


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda path: path.name)
def test_hadolint(file):
    tools.run(tools.hadolint(), "--failure-threshold", "style", file)


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda path: path.name)
def test_images_are_pinned_unprivileged_and_checked(file):
    text = file.read_text()
    [base] = set(re.findall(r"^ARG PYTHON=(.*)$", text, re.MULTILINE))
    assert re.fullmatch(r"3\.\d+\.\d+-slim-[a-z]+", base)
    assert "\nUSER 10001:10001\n" in text
    assert "\nHEALTHCHECK " in text
    assert text.count("\nFROM ") == 2, "one stage builds, one stays"


def test_the_default_procedure_starts_everything():
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    argv = [tools.compose(), "--env-file", ".env.example", "config", "--services"]
    found = subprocess.run(argv, cwd=DOCKER, env=environment, capture_output=True, text=True, check=True)
    assert set(found.stdout.split()) == {
        *("secrets", "migrate", "web", "streams", "sweep", "cpu-worker", "nginx"),
        *("postgres", "valkey", "seaweedfs"),
    }


def test_every_image_has_a_version(composed):
    for name, service in composed["services"].items():
        image = service["image"]
        ours = image.startswith("chorus-")
        assert ours or not image.endswith(":latest"), name
        assert ":" in image, name
        assert image.count("/") <= 1, "no registry's host"


def test_every_container_is_confined(composed):
    for name, service in composed["services"].items():
        assert service.get("read_only"), name
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name


def test_servers_are_not_reached_from_outside(composed):
    published = {name for name, service in composed["services"].items() if service.get("ports")}
    assert published == {"nginx", "grafana"}
    [port] = composed["services"]["grafana"]["ports"]
    assert port["host_ip"] == "127.0.0.1"
    assert composed["networks"]["inside"]["internal"]
    for name in ("postgres", "valkey", "seaweedfs"):
        assert set(composed["services"][name]["networks"]) == {"inside"}


def test_health_is_watched(composed):
    for name, service in composed["services"].items():
        if name in WITHOUT_CHECK:
            continue
        built = (service.get("build") or {}).get("dockerfile")
        checked = "healthcheck" in service or (built and "HEALTHCHECK" in (tools.ROOT / built).read_text())
        assert checked, name


def test_the_database_is_asked_by_tcp(composed):
    """The server that initdb runs for a moment listens on its socket alone, and is no server to wait for."""
    assert "--host=127.0.0.1" in composed["services"]["postgres"]["healthcheck"]["test"]


def test_workers_may_finish(composed):
    """Longer than a segment takes: the supervisor passes SIGTERM on and waits."""
    for name in ("cpu-worker", "gpu-worker"):
        assert composed["services"][name]["stop_grace_period"] in {"2m0s", "3m0s"}


def test_no_secret_is_in_the_environment(composed):
    for name, service in composed["services"].items():
        for variable, value in (service.get("environment") or {}).items():
            secret = re.search("SECRET_KEY$|PEPPERS$|TOKEN$|PASSWORD$|DATABASE_URL$|REDIS_URL$", variable)
            assert not (secret and value), (name, variable)


def test_what_is_set_is_read(composed):
    """Every variable that compose.yml gives to our own images is one that the program reads."""
    sources = [
        path.read_text()
        for folder in ("accounts", "synthesis", "gpu_worker", "platform", "docker/image")
        for path in (tools.ROOT / folder).rglob("*.py")
    ]
    read = set(re.findall(r"[\"']([A-Z][A-Z0-9_]{3,})[\"']", "\n".join(sources)))
    read |= {f"CHORUS_COSYVOICE_{name}" for name in ("FP16", "CONCURRENCY")}
    for name, service in composed["services"].items():
        if service["image"].startswith("chorus-"):
            for variable in service.get("environment") or {}:
                assert variable.removesuffix("_FILE") in read, (name, variable)


#: What the images set themselves, or compose.yml in another way.
OWN = {
    *("CHORUS_DEBUG", "CHORUS_INSTANCE", "CHORUS_MODELS_DIR", "CHORUS_STATIC_MANIFEST", "CHORUS_STATIC_ROOT"),
    *("CHORUS_WORKERS", "CHORUS_COSYVOICE_PYTHON", "COSYVOICE_HOME", "COSYVOICE_MODEL"),
}


def test_every_setting_can_be_given():
    documented = set(
        re.findall(
            r"`((?:CHORUS|S3|DATABASE|REDIS|COSYVOICE)_[A-Z0-9_]+)`",
            (tools.ROOT / "docs" / "settings.md").read_text(),
        )
    )
    text = (DOCKER / "compose.yml").read_text()
    missing = {name for name in documented if not re.search(rf"\b{name.removesuffix('_FILE')}\b", text)}
    missing = {name for name in missing if not re.search(rf"\b{name}_FILE\b", text)}
    assert missing == OWN


def test_the_example_is_about_this_file():
    """Every variable in .env.example is used by compose.yml, and the other way round."""
    example = set(re.findall(r"^#? ?([A-Z][A-Z0-9_]+)=", (DOCKER / ".env.example").read_text(), re.MULTILINE))
    text = (DOCKER / "compose.yml").read_text()
    used = set(re.findall(r"(?<!\$)\$\{([A-Z][A-Z0-9_]+)", text)) | {"COMPOSE_PROFILES", "CHORUS_GPUS"}
    rare = {
        *("CHORUS_VERSION", "CHORUS_COSYVOICE_FP16", "CHORUS_COSYVOICE_CONCURRENCY"),
        "CHORUS_WORKER_MAX_REQUESTS",
    }
    assert example - used == set()
    assert used - example == rare


def test_grafana_and_prometheus_find_their_files(composed):
    for service in ("grafana", "prometheus", "alertmanager", "nginx"):
        for mount in composed["services"][service]["volumes"]:
            if mount["type"] == "bind":
                assert Path(mount["source"]).exists(), mount["source"]
    for file in (DOCKER / "monitoring" / "grafana").rglob("*.yml"):
        assert yaml.safe_load(file.read_text())["apiVersion"] == 1


class TestSecrets:
    """docker/image/make_secrets.py, as the first container runs it."""

    @pytest.fixture
    def make(self, tmp_path):
        def run(**given):
            environment = {
                "PATH": os.environ["PATH"],
                "SECRETS_ROOT": str(tmp_path),
                "CHORUS_DOMAIN": "voice.test",
            }
            tools.run(sys.executable, DOCKER / "image" / "make_secrets.py", env=environment | given)
            files = (path for path in tmp_path.rglob("*") if path.is_file())
            return {str(path.relative_to(tmp_path)): path.read_text().strip() for path in files}

        return run

    def test_what_is_made_fits_together(self, make):
        made = make()
        assert made["postgres/password"] in made["app/database_url"]
        assert made["valkey/password"] in made["app/redis_url"]
        assert made["valkey/valkey.conf"] == f"requirepass {made['valkey/password']}"
        [identity] = json.loads(made["s3/identities.json"])["identities"]
        [credentials] = identity["credentials"]
        assert credentials["secretKey"] == made["app/s3_secret_access_key"]
        assert made["app/peppers"].startswith("1:")
        assert "BEGIN CERTIFICATE" in made["tls/fullchain.pem"]

    def test_grafana_has_a_password_of_its_own(self, make, composed):
        made = make()
        assert len(made["grafana/password"]) >= 20
        grafana = composed["services"]["grafana"]
        assert grafana["environment"]["GF_SECURITY_ADMIN_PASSWORD__FILE"] == "/secrets/password"
        assert ("secrets-grafana", "/secrets") in {
            (mount["source"], mount["target"]) for mount in grafana["volumes"]
        }

    def test_a_second_start_changes_nothing(self, make):
        assert make() == make()

    def test_servers_elsewhere(self, make):
        made = make(DATABASE_URL="postgres://elsewhere/x", S3_ACCESS_KEY_ID="theirs")
        assert made["app/database_url"] == "postgres://elsewhere/x"
        assert made["app/s3_access_key_id"] == "theirs"

    def test_each_secret_is_where_compose_looks_for_it(self, make, composed):
        made = make()
        for name, service in composed["services"].items():
            for variable, value in (service.get("environment") or {}).items():
                if variable.endswith("_FILE") and value and service["image"].startswith("chorus-"):
                    assert value.removeprefix("/secrets/") in made, (name, variable)
                    volumes = {mount["target"] for mount in service["volumes"]}
                    assert str(Path(value).parent) in volumes, (name, variable)
        for file, content in made.items():
            assert content, file


def test_every_secret_has_a_folder_that_our_user_may_write_to(composed):
    """A volume gets the rights of the image's folder; without one it would be root's."""
    image = (DOCKER / "Dockerfile.web").read_text()
    for mount in composed["services"]["secrets"]["volumes"]:
        assert mount["target"] in image, mount["target"]


def test_the_health_check_of_the_images(tmp_path):
    script = DOCKER / "image" / "healthy.py"
    done = tools.run(sys.executable, script, env=os.environ | {"PORT": "9"}, check=False)
    assert done.returncode != 0
    assert "127.0.0.1:9/healthz" in done.stdout
