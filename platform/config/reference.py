"""The description of the API: `/v1/schema` for programs."""

from __future__ import annotations

from drf_spectacular.renderers import OpenApiJsonRenderer
from drf_spectacular.views import SpectacularAPIView


class SchemaView(SpectacularAPIView):
    """OpenAPI 3, the same for everybody and without a key."""

    authentication_classes = []
    permission_classes = []
    renderer_classes = [OpenApiJsonRenderer]
