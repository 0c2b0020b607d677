"""Puts our site in the place of Django's own admin site."""

from django.contrib.admin.apps import SimpleAdminConfig


class PanelConfig(SimpleAdminConfig):
    """`django.contrib.admin` with the panel as its site; its pages are found by who serves them (`config.urls`)."""

    default_site = "accounts.panel.site.Panel"
