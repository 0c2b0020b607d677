"""Who may do what, and how much."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Users, teams, keys, quotas and the ledger."""

    name = "accounts"
