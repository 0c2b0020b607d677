"""Columns that Django has no field for."""

from __future__ import annotations

import ipaddress
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext as _


def normal_network(value: str) -> str:
    """ "10.0.0.0/8" of "10.0.0.1/8", and a single address without a length; ValueError for what is neither."""
    network = ipaddress.ip_network(value.strip(), strict=False)
    return str(network.network_address) if network.num_addresses == 1 else str(network)


class NetworkField(models.GenericIPAddressField):
    """An IP address or a network of them ("10.0.0.0/8"), in PostgreSQL's `inet`, which holds both."""

    default_validators = []

    def to_python(self, value: Any) -> str | None:
        """As `normal_network` writes it; ValidationError."""
        if value is None:
            return None
        try:
            return normal_network(str(value))
        except ValueError:
            raise ValidationError(_("Write an IP address, or a network such as 10.0.0.0/8.")) from None

    def get_prep_value(self, value: Any) -> str | None:
        """As it is: the database checks it."""
        return None if value is None else str(value)

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> str | None:
        """Django's own would refuse the length of a network."""
        return self.get_prep_value(value)
