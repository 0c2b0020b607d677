"""Addresses of the pages about people and teams."""

from django.contrib.auth import views
from django.urls import path

from accounts.web import acting, security, sign_up, signing, team, team_audit

urlpatterns = [
    path("sign-in/", signing.SignIn.as_view(), name="sign_in"),
    path("sign-out/", views.LogoutView.as_view(), name="sign_out"),
    path("password/reset/", signing.PasswordReset.as_view(), name="password_reset"),
    path(
        "password/reset/sent/",
        views.PasswordResetDoneView.as_view(template_name="accounts/password_reset_done.html"),
        name="password_reset_done",
    ),
    path(
        "password/reset/<uidb64>/<token>/",
        signing.PasswordResetConfirm.as_view(),
        name="password_reset_confirm",
    ),
    path(
        "password/reset/done/",
        views.PasswordResetCompleteView.as_view(template_name="accounts/password_reset_complete.html"),
        name="password_reset_complete",
    ),
    path("sign-up/", sign_up.ask, name="sign_up"),
    path("sign-up/<str:token>/", sign_up.complete, name="sign_up_complete"),
    path("acting/end/", acting.end, name="acting_end"),
    path("invitations/<str:token>/", signing.invitation, name="invitation"),
    path("language/", signing.set_language, name="set_language"),
    path("sign-in/code/", security.code, name="sign_in_code"),
    path("account/", signing.account, name="account"),
    path("account/two-factor/", security.second_factor, name="second_factor"),
    path("account/sessions/end/", security.sign_out_elsewhere, name="sign_out_elsewhere"),
    path("account/delete/", security.end, name="account_end"),
    path("team/", team.team, name="team"),
    path("team/audit/", team_audit.log, name="team_audit"),
    path("team/switch/", team.switch, name="switch_team"),
    path("team/invitations/", team.invite, name="invite"),
    path(
        "team/invitations/<uuid:invitation_id>/withdraw/",
        team.invitation_withdraw,
        name="invitation_withdraw",
    ),
    path("team/members/<uuid:membership_id>/role/", team.member_role, name="member_role"),
    path("team/members/<uuid:membership_id>/remove/", team.member_remove, name="member_remove"),
    path("team/keys/", team.key_create, name="key_create"),
    path("team/keys/<uuid:key_id>/", team.key_update, name="key_update"),
    path("team/keys/<uuid:key_id>/revoke/", team.key_revoke, name="key_revoke"),
]
