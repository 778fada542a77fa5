"""Holds what Muster reads against what was the case: every fact of a situation, and what its prose
claims.

Nothing here knows a situation. A fact is compared by its name; prose by the words that have one meaning
wherever they stand (states, reasons, ``Restarts=2``, ``priority 0``). A field that no check knows is a
failure, too.
"""

import json
import re
from typing import Any

from slurm_facts import (
    ATTEMPTS,
    COMMANDS,
    FACTS,
    FACTS_OF_ATTEMPTS,
    HELD,
    JOB_WORDS,
    MEANINGS,
    NODE_CLAIMS,
    NODES,
    REASON_WORDS,
    by_time,
    code_of,
    column_of,
    ending,
    instant,
    kind_of,
    node_words,
    remark,
    says_errors,
    unasked,
)
from slurm_situations import Situation

from muster.engines.slurm import errors, reasons, states, texts
from muster.engines.slurm.answers import SlurmAttempt, SlurmJob, SlurmNode
from muster.engines.slurm.attempts import by_job, read_attempts, read_attempts_text
from muster.engines.slurm.jobs import read_jobs
from muster.engines.slurm.nodes import read_nodes
from muster.engines.slurm.notices import Notices
from muster.model.state import State

Problems = list[str]


def problems_of(situation: Situation) -> Problems | None:
    """What is read otherwise than it was. None: no answer in it is one that Muster asks for."""
    check = _Check(situation)
    checked = [step() for step in (check.jobs, check.attempts, check.nodes, check.others, check.faults)]
    if not any(checked):
        return None
    check.prose()
    check.problems += [f"a notice: {notice}" for notice in check.notices.take()]
    return check.problems


class _Check:
    def __init__(self, situation: Situation) -> None:
        self.of = situation
        self.notices = Notices()
        self.problems: Problems = []
        self.read_jobs: list[SlurmJob] = []
        self.read_attempts: list[SlurmAttempt] = []
        self.read_nodes: list[SlurmNode] = []

    def expect(self, what: str, read: object, true: object) -> None:
        if read != true:
            self.problems.append(f"{what}: read {read!r}, it was {true!r}")

    # --- Jobs ---

    def jobs(self) -> bool:
        answers = [a for a in self.of.queues if not says_errors(a)]
        for fact in self.of.facts:
            for job in self._found(answers, fact):
                self._job(job, fact)
        if not self.of.facts:
            self._whole_queue(answers)
        return bool(self.read_jobs) or (bool(answers) and not self.of.facts)

    def _found(self, answers: list[bytes], fact: dict[str, Any]) -> list[SlurmJob]:
        """In each answer of the situation. One that was told of once is the same as long as its facts are."""
        number, submitted = int(fact["JobId"]), instant(fact["SubmitTime"])
        found = [job for answer in answers for job in read_jobs(answer, self.notices) if job.id == number]
        own = self.of.said("squeue", json=True)
        same = [
            job
            for job in found
            if own or (job.submitted_at, states.word(job.states)) == (submitted, fact["JobState"])
        ]
        self.read_jobs += same
        return same

    def _job(self, job: SlurmJob, fact: dict[str, Any]) -> None:
        for field, value in fact.items():
            check = FACTS.get(field)
            if check is None:
                self.problems.append(f"no check for the fact {field}")
            elif (wrong := check(job, value, self.of)) is not None:
                self.problems.append(f"job {job.id}, {field}: {wrong}")
        self._meaning(job, fact)

    def _meaning(self, job: SlurmJob, fact: dict[str, Any]) -> None:
        standing = states.job_standing(job, self.notices)
        if standing.state is None:
            self.problems.append(f"job {job.id}: {job.states} means nothing")
        if standing.state not in MEANINGS[fact["JobState"]]:
            self.problems.append(f"job {job.id}: {fact['JobState']} is read as {standing.state}")
        if fact["JobState"] in ("PENDING", "SPECIAL_EXIT"):
            self.expect(f"job {job.id} held", standing.state is State.HELD, bool(HELD.search(self.of.prose)))
        if not reasons.why(job, self.notices).known:
            self.problems.append(f"job {job.id}: no sentence for {job.reason}")
        self.expect(
            f"job {job.id} ended", job.ended_at is not None, standing.state is State.ENDED or ending(job)
        )

    def _whole_queue(self, answers: list[bytes]) -> None:
        for answer in answers:
            read = read_jobs(answer, self.notices)
            self.read_jobs += read
            self.expect(
                "jobs", [job.id for job in read], [job["job_id"] for job in json.loads(answer)["jobs"]]
            )
            for job in read:
                if states.job_standing(job, self.notices).state is None:
                    self.problems.append(f"job {job.id}: {job.states} means nothing")

    # --- Attempts ---

    def attempts(self) -> bool:
        texts_of = [f for f in self.of.said("sacct", json=False) if f["rc"] == 0]
        for file in texts_of:
            self._attempts_text(self.of.bytes_of(file).decode(), duplicates="-D" in file["cmd"].split())
        for file in self.of.said("sacct", json=True) if self.of.version >= "23" else []:
            beside = file["file"].replace(".json", ".txt")
            read = list(read_attempts(self.of.bytes_of(file), self.notices))
            self.read_attempts += read
            if beside in [f["file"] for f in texts_of]:
                self._beside(read, (self.of.folder / beside).read_text())
        self._facts_of_attempts()
        return bool(texts_of)

    def _attempts_text(self, text: str, *, duplicates: bool) -> None:
        try:
            read = list(read_attempts_text(text))
        except errors.BadAnswer:
            widths = {line.count("|") for line in text.splitlines()}
            self.expect("a table that can't be read is broken", len(widths) > 1, True)
            return
        self.read_attempts += read
        for attempt in read:
            if states.attempt_standing(attempt, self.notices).state is None:
                self.problems.append(f"attempt of {attempt.job}: {attempt.states} means nothing")
        if duplicates:
            self._tries(read)

    def _facts_of_attempts(self) -> None:
        """Of a job that no answer of squeue has, accounting tells."""
        for fact in self.of.facts:
            number = int(fact["JobId"])
            tries = [one for one in self.read_attempts if one.job == number]
            if tries and number not in {job.id for job in self.read_jobs}:
                last = tries[-1]
                for field, shown in FACTS_OF_ATTEMPTS.items():
                    self.expect(f"{field} of {number}", shown(last), fact.get(field, ""))
            if tries and fact["JobState"] == "FAILED":  # of others, accounting has no code; text has no 128
                told, true = code_of(tries[-1].exit), [int(part) for part in fact["ExitCode"].split(":")]
                self.expect(
                    f"code of {number}", told in (f"{true[0]}:{true[1]}", f"{true[0] % 128}:{true[1]}"), True
                )

    def _tries(self, read: list[SlurmAttempt]) -> None:
        """As many tries are over as a job was restarted; one more if it has ended."""
        for job in self.read_jobs:
            tries = by_job(read).get(job.id, ())
            ended = states.job_standing(job, self.notices).state is State.ENDED
            self.expect(
                f"tries of {job.id} that are over", sum(t.over for t in tries), (job.restarts or 0) + ended
            )
            vacated = [states.attempt_standing(one, self.notices).vacated for one in tries if one.over]
            if not ended and job.restarts and "NODE_FAIL" not in {w for t in tries for w in t.states}:
                self.expect(f"tries of {job.id} that were vacated", vacated, [True] * len(vacated))

    def _beside(self, read: list[SlurmAttempt], text: str) -> None:
        """JSON and text of the same moment tell the same."""
        lines = text.splitlines()
        columns = lines[0].split("|")
        rows = [dict(zip(columns, line.split("|"), strict=False)) for line in lines[1:]]
        whole = [row for row in rows if "." not in row["JobID"] and len(row) == len(columns)]
        if any(line.count("|") != lines[0].count("|") for line in lines):
            return  # a name broke the table
        self.expect("attempts", len(read), len(whole))
        for attempt, row in zip(
            by_time(read), sorted(whole, key=lambda row: (row["JobIDRaw"], row["Submit"])), strict=False
        ):
            codes = {fact["ExitCode"] for fact in self.of.facts} | {
                row["ExitCode"]
            }  # 24.11's text has 9:0 for 137:0
            self.expect(f"exit code of {attempt.job}", code_of(attempt.exit) in codes, True)
            for column, shown in ATTEMPTS.items():
                if (told := shown(attempt)) != (true := column_of(row, column)):
                    self.problems.append(
                        f"attempt of {attempt.job}, {column}: read {told!r}, it was {true!r}"
                    )

    # --- Nodes ---

    def nodes(self) -> bool:
        lists = self.of.said("scontrol show node", json=True) + self.of.said("sinfo", json=True)
        truth = [
            f
            for c in ("scontrol -d -o show node", "scontrol -o show node")
            for f in self.of.said(c, json=False)
        ]
        for file in lists:
            read = read_nodes(self.of.bytes_of(file), self.notices)
            if "-n" in file["cmd"].split() and self.of.version >= "23":
                continue  # the answer about one node may be of another time, and Muster does not ask so
            self.read_nodes += read
            for line in (
                line for one in truth for line in self.of.bytes_of(one).decode().splitlines() if line
            ):
                self._node(read, line)
        return bool(lists)

    def _node(self, read: tuple[SlurmNode, ...], line: str) -> None:
        fact = dict(re.findall(r"(\w+)=((?:(?! \w+=).)*)", line))
        found = [node for node in read if node.name == fact["NodeName"]]
        self.expect(f"records of {fact['NodeName']}", len(found), 1)
        for node in found:
            for field, (shown, true) in NODES.items():
                told = shown(node)
                if told is not None and told != true(fact.get(field, "")):
                    self.problems.append(f"{node.name}, {field}: read {told!r}, it was {fact.get(field)!r}")
            if states.node_health(node, self.notices) is None:
                self.problems.append(f"{node.name}: {node.states} means nothing")

    # --- Partitions, reservations, use ---

    def others(self) -> bool:
        partitions = self.of.said("scontrol -o show partition", json=False)
        for file in partitions:
            read = texts.read_partitions(self.of.bytes_of(file).decode())
            told = ", ".join(part.name + remark(part.default, part.most_seconds) for part in read)
            self.expect("partitions", told in self.of.prose, True)
        reservations = self.of.said("scontrol -o show reservation", json=False)
        for file in reservations:
            for one in texts.read_reservations(self.of.bytes_of(file).decode()):
                self.expect(f"node of {one.name}", f"{one.nodes}" in self.of.prose, True)
                if one.users and "MAINT" not in one.flags:
                    self.expect(f"user of {one.name}", all(user in self.of.prose for user in one.users), True)
                if match := re.search(r"(\d+) min", self.of.prose):
                    self.expect("minutes", (one.end_at or 0) - (one.start_at or 0), 60.0 * int(match[1]))
        uses = [f for f in self.of.said("sstat -a -P", json=False) if "JobID" in self.of.bytes_of(f).decode()]
        for file in uses:
            for use in texts.read_use(self.of.bytes_of(file).decode()):
                self.expect(
                    f"use of {use.job}.{use.step}",
                    None in (use.cpu_seconds, use.memory_bytes, use.tasks),
                    False,
                )
        return bool(partitions or reservations or uses)

    # --- What was refused ---

    def faults(self) -> bool:
        asked = [f for f in self.of.files if f["cmd"].split()[0] in COMMANDS and "--json" not in unasked(f)]
        for file in asked:
            self._fault(file)
        for verb, code in re.findall(r"(suspend|resume) exit (\d)", self.of.prose):
            found = [file["rc"] for file in asked if f"scontrol {verb} " in file["cmd"]]
            self.expect(f"the exit of {verb}", found, [int(code)])
        ordered = [
            f
            for f in asked
            if f["cmd"].startswith(("sbatch", "scancel", "scontrol suspend", "scontrol hold"))
        ]
        return any(file["rc"] for file in asked) or bool(ordered)

    def _fault(self, file: dict[str, Any]) -> None:
        words, stderr = file["cmd"].split(), file.get("stderr") or ""
        if file["rc"]:
            error = errors.fault(words[0], file["rc"], "", stderr or self.of.bytes_of(file).decode())
            self._sentence(error, file["cmd"])
            self.expect(f"the error of {file['cmd']}", type(error).__name__, kind_of(stderr, self.of.prose))
        elif "--json" in words and file["file"] and says_errors(self.of.bytes_of(file)):
            try:
                read_jobs(self.of.bytes_of(file), self.notices, stderr=stderr)
                self.problems.append(f"{file['cmd']} failed, and is read as an empty list")
            except errors.SlurmError as error:
                self._sentence(error, file["cmd"])
                self.expect(
                    f"the error of {file['cmd']}", type(error).__name__, kind_of(stderr, self.of.prose)
                )
        elif words[0] == "sbatch" and "--test-only" in words:
            stamp = re.search(r"start at (\S+)", stderr)
            self.expect("the start", texts.read_would_start(stderr), stamp and instant(stamp[1]))
        elif words[0] == "sbatch":
            out = self.of.bytes_of(file).decode()
            self.expect("the job's id", str(texts.read_submitted(out)), out.split()[-1])

    def _sentence(self, error: errors.SlurmError, command: str) -> None:
        said = str(error)
        if "\n" in said or not (":" in said or ";" in said) or len(said) > 320:
            self.problems.append(f"{command}: not one sentence that says what to do: {said!r}")

    # --- What the prose claims ---

    def prose(self) -> None:
        prose = re.sub(r"output:.*|`[^`]*`|not JobHeldAdmin", "", self.of.prose, flags=re.S)
        self._named("state", JOB_WORDS, prose, {word for job in self.read_jobs for word in job.states})
        self._named("reason", REASON_WORDS, prose, {job.reason for job in self.read_jobs})
        nodes = {node.name: set(node_words(node)) for node in self.read_nodes}
        for name, word in NODE_CLAIMS.findall(prose):
            if name in nodes and word not in nodes[name]:
                self.problems.append(f"{name} was {word}, read as {sorted(nodes[name])}")
        self._claims()

    def _named(self, what: str, words: re.Pattern[str], prose: str, read: set[str]) -> None:
        """Of what the prose names, at least one must have been read: it may also tell what was before."""
        claimed = set(words.findall(prose))
        if claimed and read and claimed.isdisjoint(read):
            self.problems.append(f"{what}: read {sorted(read)}, it was {sorted(claimed)}")

    def _claims(self) -> None:
        for match in re.finditer(r"Restarts=(\d)", self.of.prose):
            self.expect("restarts", int(match[1]) in {job.restarts for job in self.read_jobs}, True)
        if re.search(r"priority (?:set to )?0", self.of.prose):
            self.expect("priorities", {job.priority for job in self.read_jobs}, {0})
        if "never started" in self.of.prose:
            self.expect("starts", {job.started_at for job in self.read_jobs}, {None})
        if match := re.search(r"sees no job of (\w+)", self.of.prose):
            self.expect("jobs seen", [j.id for j in self.read_jobs if j.user == match[1]], [])
        if match := re.search(r"lists (\w+)'s jobs: he sees them all", self.of.prose):
            self.expect("jobs seen", match[1] in {attempt.user for attempt in self.read_attempts}, True)
        if match := re.search(r"CANCELLED by (?:its owner )?(\w+) ?(?:\(uid (\d+)\))?", self.of.prose):
            uids = {str(job.uid) for job in self.read_jobs if job.user == match[1]} | (
                {"0"} if match[1] == "root" else set()
            )
            killers = {attempt.killed_by for attempt in self.read_attempts} - {""}
            self.expect("who cancelled it", killers <= {*match.groups(), *uids}, True)
        if match := re.search(r"JobName is: (.*?)   ", self.of.prose):
            self.expect("its name", {job.name for job in self.read_jobs}, {match[1]})
        if match := re.search(r"(\d) nodes, all IDLE, no jobs", self.of.prose):
            self.expect(
                "nodes",
                {node.name for node in self.read_nodes},
                {f"node{n + 1}" for n in range(int(match[1]))},
            )
            self.expect("states", {word for node in self.read_nodes for word in node.states}, {"IDLE"})
            self.expect("jobs", self.read_jobs, [])
