"""Puts our site in the place of Django's own admin site."""

from django.contrib.admin.apps import AdminConfig


class PanelConfig(AdminConfig):
    """`django.contrib.admin` with the panel as its site."""

    default_site = "accounts.panel.site.Panel"
