"""The API described in OpenAPI 3.1, from the table of routes and the types that it answers with."""

import re
from collections.abc import Sequence
from typing import Any, get_args, get_type_hints

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
    types = [t for route in routes for t in (*_kinds(route), route.body) if isinstance(t, type)]
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
        "responses": {str(route.status): _answer(route)} | _errors(route),
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


def _answer(route: Route) -> dict[str, Any]:
    if isinstance(route.answer, str):
        return {"description": "A stream.", "content": {route.answer: {"schema": {"type": "string"}}}}
    kinds = [{"type": "object"} if kind is dict else _ref(kind) for kind in _kinds(route)]
    schema = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    return {"description": "Done.", "content": {"application/json": {"schema": schema}}}


def _kinds(route: Route) -> tuple[Any, ...]:
    """The types that it answers with: mostly one."""
    return get_args(route.answer) or (route.answer,)


def _errors(route: Route) -> dict[str, Any]:
    statuses = sorted({400, 401, *route.errors, *((404,) if "{" in route.path else ()), 500})
    content = {"application/json": {"schema": _ref(Error)}}
    said = _ERRORS | {500: "Something went wrong inside Muster."}
    return {str(s): {"description": said[s], "content": content} for s in statuses}


def _ref(kind: type) -> dict[str, str]:
    return {"$ref": _REF.format(name=kind.__name__)}
