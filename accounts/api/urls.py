"""Addresses; added below."""

urlpatterns: list = []
