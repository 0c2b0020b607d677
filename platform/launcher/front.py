"""The one public address: Caddy, in front of the web and the streams process."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

#: Megabytes of one request; an upload may have 50 (CHORUS_MAX_UPLOAD_MB).
BODY_LIMIT_MB = 64
#: Characters of an address with its query; gunicorn takes a first line of so many and 190 more (`processes`).
ADDRESS_LIMIT = 8_000
#: Seconds for which a request waits for a web or streams process that is being started again: three seconds on an
#: idle machine, several times that on one whose cores are all speaking.
RETRY_SECONDS = 30
#: Seconds in which a page or an answer of the API has to begin.
WEB_SECONDS = 120

_STREAMS = (
    "/v1/audio/speech",
    "/v1/text-to-speech/*",
    "/events",
    "/events/*",
    "*/events",
    "*/events/",
    "*/stream",
    "*/stream/",
)

# What waits for long belongs to the streams process, where a waiting request costs almost nothing.
_CONFIGURATION = """\
{{
	admin off
	auto_https off
	persist_config off
	grace_period 3s
	log {{
		output stderr
		format json
		level WARN
	}}
	servers {{
		timeouts {{
			read_header 15s
			idle 2m
		}}
		{trusted_proxies}
	}}
}}

http://:{port} {{
	bind {host}
	request_body {{
		max_size {limit}MB
	}}
	header -Server

	# Before the web process, which would refuse it as a page of its own.
	@long expression `size({{http.request.orig_uri}}) > {longest}`
	@streams path {streams}
	@held {{
		method POST
		path /v1/syntheses /v1/conversions /v1/voices/*/preview
		header Prefer *wait*
	}}
	handle @long {{
		error 414
	}}
	handle @streams {{
		reverse_proxy unix/streams.sock {{
			flush_interval -1
			{upstream}
		}}
	}}
	handle @held {{
		reverse_proxy unix/streams.sock {{
			flush_interval -1
			{upstream}
		}}
	}}
	handle {{
		# Of an answer to HEAD it would tell the length of nothing, packed.
		@whole not method HEAD
		encode @whole zstd gzip
		reverse_proxy unix/web.sock {{
			{web_upstream}
		}}
	}}

	handle_errors {{
		header Cache-Control no-store
		header -Server
		header X-Request-Id {{http.request.uuid}}
		@api path /v1/* /v2/*
		@large expression `{{err.status_code}} == 413`
		@long_one expression `{{err.status_code}} == 414`
		handle @api {{
			header Content-Type application/json
			handle @large {{
				respond {large} 413
			}}
			handle @long_one {{
				respond {long} 414
			}}
			handle {{
				header Retry-After 2
				respond {unavailable} 503
			}}
		}}
		handle {{
			header Content-Type "text/html; charset=utf-8"
			handle @large {{
				respond {large_page} 413
			}}
			handle @long_one {{
				respond {long_page} 414
			}}
			handle {{
				header Retry-After 2
				respond {unavailable_page} 503
			}}
		}}
	}}
}}
"""

# A connection of its own for each request: over a kept one, a restart of the process behind it could lose a POST that
# must not be sent twice. To a Unix socket that costs some 50 µs.
_UPSTREAM = f"""lb_try_duration {RETRY_SECONDS}s
			lb_try_interval 100ms
			transport http {{
				dial_timeout 2s
				keepalive off
			}}"""

# The socket outlives the web process, so a request waits in its queue while that is started again; an end to the
# waiting, for when it is not. The longest page is an upload of ten minutes of sound, which takes some seconds.
_WEB_TIMEOUT = f"keepalive off\n\t\t\t\tresponse_header_timeout {WEB_SECONDS}s"

_LARGE = f"The request is larger than {BODY_LIMIT_MB} MB. Send a shorter recording."
_LONG = "The address is too long. Leave parts of it out, or send them in the body."
_UNAVAILABLE = "Chorus is just being started again. Try again in a few seconds."
_LARGE_ZH = f"请求超过 {BODY_LIMIT_MB} MB，请上传更短的录音。"
_LONG_ZH = "地址过长，请删去一部分，或放在请求体中发送。"
_UNAVAILABLE_ZH = "Chorus 正在重新启动，请几秒后再试。"


def configuration(*, host: str, port: int, trusted_proxies: str = "") -> str:
    """A Caddyfile. Sockets are relative: Caddy runs in the folder that holds them, whose path may be a long one.

    Caddy replaces X-Forwarded-* from everybody but `trusted_proxies` (addresses or networks, space-separated), so
    that a client cannot pretend another address.
    """
    return _CONFIGURATION.format(
        host=f"[{host}]" if ":" in host else host,
        port=port,
        limit=BODY_LIMIT_MB,
        longest=ADDRESS_LIMIT,
        trusted_proxies=f"trusted_proxies static {trusted_proxies}" if trusted_proxies else "",
        streams=" ".join(_STREAMS),
        upstream=_UPSTREAM,
        web_upstream=_UPSTREAM.replace("keepalive off", _WEB_TIMEOUT),
        large=_quoted(_problem(413, "request_too_large", "invalid_request_error", _LARGE)),
        unavailable=_quoted(_problem(503, "unavailable", "api_error", _UNAVAILABLE)),
        long=_quoted(_problem(414, "address_too_long", "invalid_request_error", _LONG)),
        long_page=_quoted(_page(_LONG, _LONG_ZH)),
        large_page=_quoted(_page(_LARGE, _LARGE_ZH)),
        unavailable_page=_quoted(_page(_UNAVAILABLE, _UNAVAILABLE_ZH)),
    )


def environment(folder: Path, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Caddy keeps whatever it keeps in the data folder, never in a home folder."""
    kept = dict(os.environ if base is None else base)
    return kept | {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}


def _problem(status: int, code: str, kind: str, message: str) -> str:
    """The shape that `config.errors` gives to errors of the API."""
    error = {"message": message, "type": kind, "param": None, "code": code}
    whole = {
        "error": error,
        "type": f"/docs/errors#{code}",
        "title": code,
        "status": status,
        "detail": message,
    }
    return json.dumps(whole)


def _page(english: str, chinese: str) -> str:
    """Both languages at once: nothing that could choose one is running."""
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        "<title>Chorus</title><style>body{font:16px/1.6 system-ui,sans-serif;max-width:34rem;margin:20vh auto;"
        "padding:0 1.5rem;color-scheme:light dark}</style>"
        f'<h1>Chorus</h1><p>{english}</p><p lang="zh-Hans">{chinese}</p></html>'
    )


def _quoted(body: str) -> str:
    """`body` as one Caddyfile token whose braces are not placeholders."""
    return "`" + body.replace("{", r"\{") + "`"
