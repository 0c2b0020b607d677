"""Scopes of a route."""

from __future__ import annotations

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from accounts.actors import Actor
from accounts.errors import NotAllowed, NotAuthenticated


class HasScope(BasePermission):
    """The view's `required_scopes` says what each method asks of the key: a scope, or None for any valid key.

    A method that a view answers without having declared it is refused.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        """Raises NotAuthenticated without a key and NotAllowed without the scope."""
        actor = request.auth
        if not isinstance(actor, Actor):
            raise NotAuthenticated
        method = "GET" if request.method == "HEAD" else str(request.method)
        if method in view.required_scopes:
            scope = view.required_scopes[method]
            if scope is not None:
                actor.require(scope)
        elif method in view.allowed_methods:
            raise NotAllowed
        return True
