"""The tasks extension: tools whose work goes on after the call was answered."""

import threading
import time
import uuid
from datetime import datetime, timezone

import asking
from wire import Failure, INVALID_PARAMS, MISSING_CAPABILITY

EXTENSION = "io.modelcontextprotocol/tasks"
_tasks = {}


class Task:
    """Works in a thread of its own. Every field is read and written under the lock."""

    def __init__(self, work):
        self._changed = threading.Condition()
        self._answers = {}
        now = _now()
        self._fields = {
            "taskId": str(uuid.uuid4()),
            "status": "working",
            "createdAt": now,
            "lastUpdatedAt": now,
            "ttlMs": 60_000,
            "pollIntervalMs": 100,
        }
        _tasks[self._fields["taskId"]] = self
        threading.Thread(target=self._run, args=(work,), daemon=True).start()

    def _run(self, work):
        try:
            result = work(self)
        except Failure as failure:
            self._become("failed", error=failure.error)
        else:
            self._become("completed", result=result)

    def _become(self, status, **more):
        with self._changed:
            # The first end is the end: a task that was cancelled does not complete afterwards.
            if self._fields["status"] in ("working", "input_required"):
                self._fields.pop("inputRequests", None)
                self._fields.update(status=status, lastUpdatedAt=_now(), **more)

    def created(self):
        with self._changed:
            return {"resultType": "task", **self._fields, "status": "working"}

    def seen(self):
        with self._changed:
            return dict(self._fields)

    def cancel(self):
        self._become("cancelled")

    def ask(self, questions):
        """Waits until all of them are answered."""
        self._become("input_required", inputRequests=dict(questions))
        with self._changed:
            self._changed.wait_for(lambda: len(self._answers) == len(questions))
        self._become("working")
        return self._answers

    def answer(self, answers):
        with self._changed:
            waiting = self._fields.get("inputRequests", {})
            for key in answers.keys() & waiting.keys():
                self._answers[key] = answers[key]
                self._fields["inputRequests"] = waiting = {k: v for k, v in waiting.items() if k != key}
            self._changed.notify_all()


def _now():
    return datetime.now(timezone.utc).isoformat()


def offered(request):
    return EXTENSION in (request.capabilities.get("extensions") or {})


def require(request):
    if not offered(request):
        data = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        raise Failure(MISSING_CAPABILITY, "this needs the tasks extension", data)


def _named(request):
    require(request)
    if (task := _tasks.get(request.params.get("taskId"))) is None:
        raise Failure(INVALID_PARAMS, "no such task")
    return task


def get(request):
    return _named(request).seen()


def update(request):
    _named(request).answer(request.params.get("inputResponses") or {})
    return {}


def cancel(request):
    _named(request).cancel()
    return {}


def _said(text, **more):
    return {"resultType": "complete", "content": [{"type": "text", "text": text}], **more}


def slow_compute(request):
    seconds = float((request.params.get("arguments") or {}).get("seconds", 1))

    def work(_task=None):
        time.sleep(seconds)
        return _said(f"computed for {seconds} s")

    return Task(work).created() if offered(request) else work()


def failing_job(request):
    require(request)
    return Task(lambda task: _said("the job failed", isError=True)).created()


def protocol_error_job(request):
    def work(_task):
        raise Failure(-32603, "the server broke down")

    require(request)
    return Task(work).created()


def confirm_delete(request):
    require(request)
    question = {"confirm": asking.form("Really delete it?", confirm="boolean")}
    return Task(lambda task: _said(f"answered: {task.ask(question)}")).created()


def multi_input(request):
    require(request)
    questions = {key: asking.form(f"The {key} one?", name="string") for key in ("first", "second")}
    return Task(lambda task: _said(f"answered: {task.ask(questions)}")).created()


def test_tool_with_task(request):
    """Asks first, the way of a plain call, and then works as a task."""
    require(request)
    question = {"user_name": asking.form("What is your name?", name="string")}
    if (answers := asking.answers(request, question)) is None:
        return asking.input_required(question)
    name = asking.accepted(answers["user_name"], "name")
    return Task(lambda task: _said(f"Hello, {name}!")).created()
