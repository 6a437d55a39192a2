"""Questions to the user of a client, and how the newer revision asks them: as a result that wants another call."""

import hashlib
import hmac
import secrets

from wire import Failure, INVALID_PARAMS

SECRET = secrets.token_bytes(16)
# Which declared capability each question needs.
NEEDS = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}


def form(message, **fields):
    properties = {name: {"type": kind} for name, kind in fields.items()}
    schema = {"type": "object", "properties": properties, "required": list(fields)}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def sampling(prompt, max_tokens):
    messages = [{"role": "user", "content": {"type": "text", "text": prompt}}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": max_tokens}}


ROOTS = {"method": "roots/list", "params": {}}


def input_required(questions, state=None):
    result = {"resultType": "input_required", "inputRequests": questions}
    return result if state is None else {**result, "requestState": sealed(state)}


def answers(request, questions):
    """The answers, if there is a proper one to every question; unknown ones are ignored."""
    given = request.params.get("inputResponses")
    if not isinstance(given, dict) or not all(isinstance(given.get(key), dict) for key in questions):
        return None
    return given


def accepted(answer, field):
    return (answer.get("content") or {}).get(field)


def sealed(state):
    """The state with a signature: the client carries it, and must not change it."""
    return f"{state}.{hmac.new(SECRET, state.encode(), hashlib.sha256).hexdigest()}"


def state_of(request):
    """The state the client brought back, or nothing."""
    carried = request.params.get("requestState")
    if carried is None:
        return None
    state = carried.rpartition(".")[0]
    if not hmac.compare_digest(sealed(state), carried):
        raise Failure(INVALID_PARAMS, "requestState was tampered with")
    return state


def allowed(request, questions):
    """Those questions the client said it can answer."""
    return {key: question for key, question in questions.items() if NEEDS[question["method"]] in request.capabilities}
