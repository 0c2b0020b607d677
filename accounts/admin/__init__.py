"""What the panel shows of accounts. Importing the modules registers them."""

from django.contrib import admin
from django.contrib.auth.models import Group
from django_otp.plugins.otp_static.models import StaticDevice
from django_otp.plugins.otp_totp.models import TOTPDevice

from accounts.admin import audit, changes, keys, people, plans, prices, settings, teams, usage

# Roles are written in code (`accounts.services.staff`), and the secrets of second factors are nobody's to see.
for model in (Group, StaticDevice, TOTPDevice):
    if admin.site.is_registered(model):
        admin.site.unregister(model)

__all__ = ["audit", "changes", "keys", "people", "plans", "prices", "settings", "teams", "usage"]
