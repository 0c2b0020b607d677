"""Columns that Django has no field for."""

from __future__ import annotations

import ipaddress
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext as _


def normal_network(value: str) -> str:
    """ "10.0.0.0/8" of "10.0.0.1/8", and a single address without a length; ValueError for what is neither, and for an
    address with a zone ("fe80::1%eth0"), which means something on one machine only.

    IPv4 that is written as IPv6 ("::ffff:10.0.0.1") is what callers are compared as: IPv4.
    """
    network = ipaddress.ip_network(value.strip(), strict=False)
    if isinstance(network, ipaddress.IPv6Network):
        if network.network_address.scope_id is not None:
            raise ValueError(value)
        mapped = network.network_address.ipv4_mapped
        if mapped is not None and network.prefixlen >= 96:
            network = ipaddress.ip_network((mapped, network.prefixlen - 96))
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
