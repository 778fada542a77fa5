"""The API and its own description agree, whatever is asked.

Requests are made up from the OpenAPI document that the server tells: such as it allows, and such as it does
not. No answer is an accident (500), none has a status or a form that is not described, and what the document
forbids is refused.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from servers import Server

CONFORMS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
NEVER_ASKED = {"POST /api/v1/down", "GET /api/v1/events"}  # one ends the server, the other never ends
ANSWER_SECONDS = 10.0


def some(examples: int) -> settings:
    """The same few each time."""
    return settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


class Tcp:
    """A server that is spoken to over TCP, and jobs in it to speak about."""

    def __init__(self, server: Server) -> None:
        self.url = server.url
        self.session = requests.Session()
        with server.client() as client:
            self._token = client.token("boss", "admin")
            self.described: dict[str, Any] = client.get("/openapi.json")
            running = server.sh("sleep 60")["id"]
            held = server.sh("true", hold=True, array="1-3")["id"]
            ended = client.wait(server.sh("echo hello; exit 3")["id"])["id"]
        self.ids = st.sampled_from([running, held, f"{held}_1", f"{held}_[1-2]", ended, "999"])

    def operations(self) -> list[APIOperation]:
        schema = schemathesis.openapi.from_dict(self.described)
        found = [result.ok() for result in schema.get_all_operations()]
        return [operation for operation in found if operation.label not in NEVER_ASKED]

    def ask(self, case: Case, *, identified: bool) -> Any:
        if case.query and case.path.endswith("/log"):
            case.query.pop("follow", None)  # of a job that runs, it would end with the job
        token = {"Authorization": f"Bearer {self._token}"} if identified else {}
        return case.call(self.url, self.session, headers=token, timeout=ANSWER_SECONDS)


@pytest.fixture(scope="module")
def tcp() -> Iterator[Tcp]:
    with Server("--http", "127.0.0.1:0") as server:
        tcp = Tcp(server)
        yield tcp
        tcp.session.close()


def test_everything_is_described(tcp: Tcp) -> None:
    labels = {operation.label for operation in tcp.operations()} | NEVER_ASKED
    assert {"POST /api/v1/jobs", "GET /api/v1/jobs/{id}/log", "POST /api/v1/jobs/{id}/stop"} <= labels
    assert len(labels) >= 20


def test_what_is_allowed_is_answered_as_described(tcp: Tcp, subtests: pytest.Subtests) -> None:
    for operation in tcp.operations():

        @some(20)
        @given(case=operation.as_strategy(), job=tcp.ids, real=st.booleans())
        def holds(case: Case, job: str, real: bool) -> None:
            if real and case.path_parameters:
                case.path_parameters["id"] = job
            case.validate_response(tcp.ask(case, identified=True), checks=CONFORMS)

        with subtests.test(operation.label):
            holds()


def test_what_is_not_allowed_is_refused_as_described(tcp: Tcp, subtests: pytest.Subtests) -> None:
    for operation in tcp.operations():
        if not any(operation.iter_parameters()) and not operation.body:
            continue  # there is nothing that could be wrong

        @some(20)
        @given(case=operation.as_strategy(GenerationMode.NEGATIVE))
        def holds(case: Case) -> None:
            answer = tcp.ask(case, identified=True)
            case.validate_response(answer, checks=CONFORMS)
            if has_wrong_body(case):
                case.validate_response(answer, checks=[negative_data_rejection])

        with subtests.test(operation.label):
            holds()


def has_wrong_body(case: Case) -> bool:
    """A query that is wrong as a value may be right as the text that is sent: of bodies alone it is sure."""
    body = case.meta and case.meta.components.get(ParameterLocation.BODY)
    return bool(body and body.mode is GenerationMode.NEGATIVE)


def test_without_a_token_nothing_is_answered(tcp: Tcp, subtests: pytest.Subtests) -> None:
    for operation in tcp.operations():

        @some(3)
        @given(case=operation.as_strategy(), job=tcp.ids)
        def holds(case: Case, job: str) -> None:
            if case.path_parameters:
                case.path_parameters["id"] = job
            answer = tcp.ask(case, identified=False)
            case.validate_response(answer, checks=CONFORMS)
            assert answer.status_code == 401

        with subtests.test(operation.label):
            holds()
