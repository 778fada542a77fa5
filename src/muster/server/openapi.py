"""The API described in OpenAPI 3.1, from the table of routes and the types that it answers with."""

import re
from collections.abc import Sequence
from typing import Any, get_type_hints

import msgspec

from muster import __version__
from muster.server.answers import Error
from muster.server.http import Route

_REF = "#/components/schemas/{name}"
_VARIABLE = re.compile(r"\{(\w+)\}")
_ERRORS = {
    400: "What was asked can't be understood, or can't be right.",
    401: "A token is missing, unknown or too old.",
    403: "You may not do that.",
    404: "There is no such thing.",
    409: "Not in the state that it is in.",
    413: "More was sent than is read.",
    507: "What can't be written down is not accepted.",
}


def describe(routes: Sequence[Route]) -> dict[str, Any]:
    """The whole document."""
    good = [kind for route in routes for _, kind in _good(route)]
    types = [t for t in (*good, *(route.body for route in routes)) if isinstance(t, type)]
    _, components = msgspec.json.schema_components([*types, Error], ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Muster", "version": __version__, "license": {"name": "Apache-2.0"}},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": route.summary,
        "parameters": [*_path_parameters(route), *_query_parameters(route)],
        "responses": {str(status): _answer(kind) for status, kind in _good(route)} | _errors(route),
    }
    if route.body is not None:
        content = {"application/json": {"schema": _ref(route.body)}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    names = _VARIABLE.findall(route.path)
    return [{"name": n, "in": "path", "required": True, "schema": {"type": "string"}} for n in names]


def _query_parameters(route: Route) -> list[dict[str, Any]]:
    hints = get_type_hints(route.query)
    parameters = []
    for field in msgspec.structs.fields(route.query):
        schema = msgspec.json.schema(hints[field.name])
        parameters.append({"name": field.name, "in": "query", "required": field.required, "schema": schema})
    return parameters


def _good(route: Route) -> list[tuple[int, Any]]:
    """The answers that are no errors: status and type, or the content type of a stream."""
    return [(route.status, route.answer), *route.besides]


def _answer(kind: Any) -> dict[str, Any]:
    if isinstance(kind, str):
        return {"description": "A stream.", "content": {kind: {"schema": {"type": "string"}}}}
    schema = {"type": "object"} if kind is dict else _ref(kind)
    return {"description": "Done.", "content": {"application/json": {"schema": schema}}}


def _errors(route: Route) -> dict[str, Any]:
    statuses = sorted({400, 401, *route.errors, *((404,) if "{" in route.path else ()), 500})
    content = {"application/json": {"schema": _ref(Error)}}
    said = _ERRORS | {500: "Something went wrong inside Muster."}
    return {str(s): {"description": said[s], "content": content} for s in statuses}


def _ref(kind: type) -> dict[str, str]:
    return {"$ref": _REF.format(name=kind.__name__)}
