"""Each thing that operators do, done in a browser from the first page on."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from accounts.errors import NotAllowed
from accounts.models import AuditEntry, Grant, QuotaChange, TeamQuota, User
from accounts.services import keys
from synthesis.models import MisuseReport, Pool, Status, SynthesisRequest, TeamPool, Voice, Worker
from synthesis.services import pools
from tests.admin import scene, staff

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _fresh_pools():
    pools.forget()
    yield
    pools.forget()


@pytest.fixture
def played():
    return scene.play()


def carry_out(page, button, **fields):
    """Fill the form of an operation in, look at what it would do where it says so, and do it."""
    for label, value in fields.items():
        page.get_by_label(label.replace("_", " "), exact=False).first.fill(value)
    ask = page.get_by_role("button", name="Show what this would do")
    if ask.count():
        ask.click()
        page.get_by_role("button", name="Apply").click()
    else:
        page.locator(".panel-form").get_by_role("button", name=button, exact=True).click()


def said(page, words):
    page.get_by_role("status").get_by_text(words).wait_for()


# --- Quotas -----------------------------------------------------------------------------------------------------


def test_two_teams_are_changed_at_once_and_both_changes_undone(panel, played):
    page = panel("/admin/accounts/team/", staff.person())
    page.locator("#action-toggle").check()
    page.locator("select[name=action]").select_option("limits")
    page.get_by_role("button", name="Go").click()
    page.get_by_text("2 chosen").wait_for()
    page.get_by_label("Stored voices").fill("7")
    page.get_by_role("button", name="Show what this would do").click()
    page.get_by_role("heading", name="What this would do").wait_for()
    assert page.locator("tbody tr").count() == 2
    page.get_by_role("button", name="Apply").click()
    said(page, "Changed.")
    assert set(TeamQuota.objects.values_list("stored_voices", flat=True)) == {7}
    page.goto("/admin/accounts/quotachange/")
    for box in page.locator("input.action-select").all()[:2]:
        box.check()
    page.locator("select[name=action]").select_option("undo")
    page.get_by_role("button", name="Go").click()
    page.get_by_role("button", name="Apply").click()
    said(page, "Undone.")
    assert set(TeamQuota.objects.values_list("stored_voices", flat=True)) == {None}
    assert QuotaChange.objects.filter(undone_by__isnull=False).count() == 2


def test_characters_are_granted_and_revoked(panel, played):
    page = panel("/admin/accounts/team/", staff.person())
    page.get_by_role("link", name="Night Radio").click()
    page.get_by_role("link", name="Grant characters").click()
    page.get_by_label("Expires at the end of").fill("2099-01-31")
    carry_out(page, "Grant characters", Characters="12345", Reason="A festival")
    page.get_by_text("12,345").first.wait_for()
    given = Grant.objects.get(team=played.charlie.actor.team)
    assert (given.characters, given.expires_at.year) == (12_345, 2099)
    page.goto(f"/admin/accounts/grant/{given.pk}/")
    page.get_by_role("link", name="Revoke").click()
    carry_out(page, "Revoke", Reason="Called off")
    said(page, "Revoked: 12,345 characters were left.")


def test_a_team_is_suspended_and_restored(panel, played):
    page = panel("/admin/accounts/team/", staff.person())
    page.get_by_role("link", name="Harbour Audio").click()
    page.get_by_role("link", name="Suspend").click()
    carry_out(page, "Suspend", Reason="Unpaid")
    page.locator(".badge", has_text="suspended").wait_for()
    with pytest.raises(NotAllowed):
        keys.authenticate(played.alice.secret, ip="127.0.0.1")
    theirs = panel("/", played.alice.user)
    theirs.get_by_text("suspended").first.wait_for()
    page.get_by_role("link", name="Restore").click()
    carry_out(page, "Restore")
    page.locator(".badge", has_text="active").wait_for()
    keys.authenticate(played.alice.secret, ip="127.0.0.1")


# --- Usage ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "by", "show", "export", "head"),
    [("en", "Person", "Show", "Export", "day"), ("zh", "成员", "显示", "导出", "day")],
)
def test_a_report_is_read_and_exported(panel, played, language, by, show, export, head):
    page = panel("/admin/usage/", staff.person(), language=language)
    assert page.locator("svg.chart rect").count() >= 1
    page.locator("select[name=by]").select_option(label=by)
    page.get_by_role("button", name=show, exact=True).click()
    page.get_by_role("link", name="alice@example.org").wait_for()
    page.get_by_text(export, exact=True).click()
    with page.expect_download() as waiting:
        page.get_by_role("link", name="CSV").first.click()
    rows = list(csv.reader(Path(waiting.value.path()).read_text("utf-8-sig").splitlines()))
    assert rows[0][0] == head
    assert {row[2] for row in rows[1:]} == {"alice@example.org", "bob@example.org", "charlie@example.org"}
    assert waiting.value.suggested_filename.endswith(".csv")


def test_the_ledger_is_checked_from_the_panel(panel, played):
    page = panel("/admin/synthesis/ledgercheck/", staff.person())
    page.get_by_text("Everything adds up: no difference.").first.wait_for()
    page.get_by_role("link", name="Check now").click()
    carry_out(page, "Check now")
    said(page, "Everything adds up: no difference.")
    page.locator("#result_list").get_by_text("root@chorus.example").wait_for()


# --- The queue and the workers ----------------------------------------------------------------------------------


def test_the_queue_says_why_and_requests_are_moved_and_canceled(panel, played):
    page = panel("/admin/queue/", staff.person())
    page.get_by_text("limit of 1 at once").first.wait_for()
    page.get_by_text("pauses for").first.wait_for()
    waiting = page.get_by_role("region", name="Waiting")
    moved = waiting.locator("tbody tr").nth(1).get_by_role("link").first.inner_text().rstrip("…")
    waiting.locator("tbody tr").nth(1).get_by_role("link", name="Priority").click()
    carry_out(page, "Priority", Priority="50", Reason="They wait on the phone")
    said(page, "Moved.")
    (found,) = list(SynthesisRequest.objects.filter(priority=50))
    assert str(found.pk).startswith(moved)
    page.goto("/admin/queue/")
    row = page.get_by_role("region", name="Waiting").locator("tbody tr", has_text=moved)
    row.get_by_role("link", name="Cancel").click()
    carry_out(page, "Cancel", Reason="Asked for")
    said(page, "Canceled without charge: 1.")
    found.refresh_from_db()
    assert found.status == Status.CANCELED
    page.get_by_role("link", name="Try again").click()
    carry_out(page, "Try again")
    said(page, "Submitted again: 1 of 1.")
    assert SynthesisRequest.objects.filter(retry_of=found, status=Status.QUEUED).exists()


def test_a_group_of_failures_is_tried_again_with_one_press(panel, played):
    page = panel("/admin/failures/", staff.person())
    group = page.get_by_role("region", name="engine_error")
    group.get_by_role("button", name="Try 2 again").click()
    said(page, "Submitted again: 2.")
    assert (
        SynthesisRequest.objects.filter(retry_of__error_code="engine_error", status=Status.QUEUED).count()
        == 2
    )
    assert group.get_by_role("button").count() == 0
    page.get_by_role("region", name="storage").get_by_role("button", name="Try 1 again").wait_for()


def test_workers_are_given_orders(panel, played):
    page = panel("/admin/synthesis/worker/", staff.person())
    page.get_by_text("CUDA out of memory").wait_for()
    page.get_by_role("link", name="gpu-1:1").click()
    page.get_by_role("region", name="In hand").get_by_role("link").first.wait_for()
    for label, order, words in (
        ("Pause", "pause", "takes nothing more"),
        ("Stop at once", "stop", "goes back to the queue"),
        ("Load the engine anew", "recycle", "loaded anew"),
        ("Restart", "restart", "starts it anew"),
    ):
        page.get_by_role("link", name=label).click()
        carry_out(page, label, Reason="An update")
        said(page, words)
        assert Worker.objects.get(name="gpu-1:1").order == order
        if order in {"pause", "stop"}:
            page.get_by_role("link", name="Resume").click()
            carry_out(page, "Resume")
            said(page, "It goes on.")
            assert Worker.objects.get(name="gpu-1:1").order == ""
        Worker.objects.update(order="")  # it has done so
        page.reload()


def test_a_team_gets_workers_of_its_own(panel, played):
    page = panel("/admin/synthesis/pool/", staff.person())
    page.get_by_role("link", name="New pool").click()
    carry_out(page, "New pool", Name="silver")
    said(page, "CHORUS_POOL=silver")
    assert Pool.objects.filter(name="silver").exists()
    page.goto(f"/admin/accounts/team/{played.alice.actor.team.pk}/")
    page.get_by_role("link", name="Pool", exact=True).click()
    page.locator("select[name=pool]").select_option("silver")
    page.get_by_role("button", name="Show what this would do").click()
    page.get_by_text("would wait").wait_for()
    page.get_by_role("button", name="Apply").click()
    assert page.get_by_role("heading", name="Harbour Audio").is_visible()
    assert TeamPool.objects.get(team=played.alice.actor.team).pool_id == "silver"


# --- People -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "act", "reason", "notice", "stop"),
    [
        ("en", "Act as", "Reason", "act as alice@example.org. They were told.", "Stop"),
        ("zh", "代为操作", "原因", "alice@example.org", "停止"),
    ],
)
def test_acting_as_somebody_is_told_and_ends(panel, played, mailoutbox, language, act, reason, notice, stop):
    page = panel("/admin/accounts/user/", staff.person(), language=language)
    page.get_by_role("link", name="alice@example.org").click()
    page.get_by_role("link", name=act).click()
    page.get_by_label(reason).fill("She asked for help")
    page.locator(".panel-form button").click()
    page.get_by_text(notice).first.wait_for()
    assert mailoutbox[0].to == ["alice@example.org"]
    assert "She asked for help" in mailoutbox[0].body
    page.goto("/voices/")
    page.get_by_text(notice).first.wait_for()
    page.get_by_role("button", name=stop, exact=True).click()
    page.wait_for_url("**/admin/**")
    assert AuditEntry.objects.filter(action="user.acted_as_ended").exists()


def test_a_person_is_exported_and_erased_with_a_report(panel, played):
    page = panel(f"/admin/accounts/user/{played.bob.user.pk}/", staff.person())
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Export their data").click()
    assert Path(waiting.value.path()).read_bytes()[:2] == b"PK"
    page.get_by_role("link", name="Erase").click()
    page.get_by_label("to confirm").fill("bob@example.org")
    carry_out(page, "Erase", Reason="Asked for")
    said(page, "Erased. Removed:")
    assert "texts" in page.locator("#toasts").inner_text()
    assert User.objects.get(pk=played.bob.user.pk).email.endswith("@erased.invalid")
    assert SynthesisRequest.objects.filter(user=played.bob.user).exclude(text="").count() == 0


# --- Voices -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "report", "wrong", "happened", "send", "thanks"),
    [
        ("en", "Report misuse of this voice", "deceive", "What happened?", "Send the report", "Thank you"),
        ("zh", "举报这个音色被滥用", "欺骗", "发生了什么？", "提交举报", "谢谢"),
    ],
)
def test_a_voice_is_reported_by_a_member_and_blocked_by_staff(
    panel, played, mailoutbox, language, report, wrong, happened, send, thanks
):
    theirs = panel("/voices/", played.charlie.user, language=language)
    theirs.get_by_role("link", name="Hibari", exact=True).click()
    theirs.get_by_role("link", name=report).click()
    theirs.get_by_text(wrong).click()
    theirs.get_by_label(happened).fill("A caller used it to get my password.")
    theirs.get_by_role("button", name=send).click()
    theirs.get_by_text(thanks).first.wait_for()
    assert MisuseReport.objects.filter(decided_at=None).count() == 2
    page = panel("/admin/", staff.person("Trust", roles=["trust"]))
    page.get_by_role("link", name="2 reports of misuse wait for a decision.").click()
    page.get_by_role("link", name="Hibari").first.click()
    page.get_by_role("link", name="Block the voice").click()
    page.get_by_label("Answer").fill("Thank you, it was used so.")
    carry_out(page, "Block the voice", Reason="Used to deceive")
    said(page, "Blocked. Unfinished requests that were ended: 6.")
    assert Voice.objects.get(name="Hibari").taken_down_reason == "Used to deceive"
    assert not MisuseReport.objects.filter(decided_at=None).exists()
    assert {to for message in mailoutbox for to in message.to} >= {"charlie@example.org", "bob@example.org"}


def test_a_voice_is_allowed_again(panel, played):
    voice = Voice.objects.get(name="Hibari")
    page = panel(f"/admin/synthesis/voice/{voice.pk}/", staff.person())
    page.get_by_role("link", name="Block", exact=True).click()
    carry_out(page, "Block", Reason="A mistake")
    page.get_by_role("link", name="Allow again").click()
    carry_out(page, "Allow again", Reason="It was one")
    said(page, "The voice can be used again.")
    page.locator("audio").wait_for(state="attached")


# --- Settings ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "notice", "working", "speak"),
    [("en", "Announcement", "Maintenance", "Speak"), ("zh", "公告", "维护", "生成语音")],
)
def test_an_announcement_and_maintenance_reach_everybody(panel, played, language, notice, working, speak):
    page = panel("/admin/settings/", staff.person(), language=language)
    page.get_by_label(notice, exact=True).fill("New voices on Monday.")
    page.get_by_label(working, exact=True).check()
    page.locator("#id_maintenance_message").fill("Back at nine.")
    page.locator(".panel-form button").click()
    page.get_by_role("status").first.wait_for()
    entry = AuditEntry.objects.get(action="setting.changed", data__key="maintenance")
    assert entry.data["after"] is True
    theirs = panel("/", played.alice.user, language=language)
    theirs.get_by_text("New voices on Monday.").wait_for()
    theirs.get_by_text("Back at nine.").wait_for()
    before = SynthesisRequest.objects.count()
    theirs.locator("textarea[name=text]").fill("Not now.")
    theirs.get_by_role("button", name=speak, exact=True).click()
    theirs.get_by_text("Back at nine.").nth(1).wait_for()
    assert SynthesisRequest.objects.count() == before
    page.get_by_label(working, exact=True).uncheck()
    page.locator(".panel-form button").click()
    page.get_by_role("status").first.wait_for()


def test_a_setting_that_makes_no_sense_is_refused_with_words(panel):
    page = panel("/admin/settings/", staff.person())
    page.get_by_label("Allowed e-mail domains").fill("not a domain!")
    page.locator(".panel-form button").click()
    page.get_by_text("is not a domain. An example: example.org.").first.wait_for()
