"""The tools. One function for each, named like the tool; those of the tasks extension are in `tasks`."""

import json
import time

import asking
import tasks
from content import AUDIO, IMAGE, embedded, text
from wire import Failure, INVALID_PARAMS, MISSING_CAPABILITY

# Long enough that a reader of the stream sees steps, short enough for a test.
STEP_SECONDS = 0.05


def call(request):
    if (tool := TOOLS.get(request.params.get("name"))) is None:
        raise Failure(INVALID_PARAMS, f"no such tool: {request.params.get('name')}")
    result = tool(request)
    # A text or block is a result in short.
    if isinstance(result, str):
        result = text(result)
    return result if "content" in result or "resultType" in result else {"content": [result]}


def test_multiple_content_types(request):
    resource = embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")
    return {"content": [text("Multiple content types test:"), IMAGE, resource]}


def test_tool_with_logging(request):
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        request.log(line)
        time.sleep(STEP_SECONDS)
    return "done"


def test_tool_with_progress(request):
    for value in (0, 50, 100):
        request.progress(value, 100, f"step {value}")
        time.sleep(STEP_SECONDS)
    return "done"


def test_error_handling(request):
    return {"content": [text("This tool intentionally returns an error for testing")], "isError": True}


def test_sampling(request):
    question = asking.sampling((request.params.get("arguments") or {}).get("prompt", ""), 100)
    answer = request.client.ask(question["method"], question["params"])
    return f"LLM response: {json.dumps(answer)}"


def elicited(request, message, properties, required=()):
    schema = {"type": "object", "properties": properties, "required": list(required)}
    answer = request.client.ask("elicitation/create", {"message": message, "requestedSchema": schema})
    return f"User response: action={answer.get('action')}, content={json.dumps(answer.get('content'))}"


def test_elicitation(request):
    message = (request.params.get("arguments") or {}).get("message", "Who are you?")
    field = lambda about: {"type": "string", "description": about}
    properties = {"username": field("User's response"), "email": field("User's email address")}
    return elicited(request, message, properties, properties)


def test_elicitation_sep1034_defaults(request):
    return elicited(
        request,
        "Defaults of every type",
        {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": True},
        },
    )


def test_elicitation_sep1330_enums(request):
    plain = ["option1", "option2", "option3"]
    titled = [{"const": f"value{n}", "title": f"{title} Option"} for n, title in enumerate(("First", "Second", "Third"), 1)]
    return elicited(
        request,
        "Enums of every form",
        {
            "untitledSingle": {"type": "string", "enum": plain},
            "titledSingle": {"type": "string", "oneOf": titled},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled}},
        },
    )


def test_missing_capability(request):
    if "sampling" not in request.capabilities:
        raise Failure(MISSING_CAPABILITY, "this needs sampling", {"requiredCapabilities": {"sampling": {}}})
    return "sampling is there"


def test_logging_tool(request):
    request.log("only for those who asked for it")
    return "done"


def test_trigger_tool_change(request):
    request.client.changed("tools")
    return "told"


def test_trigger_prompt_change(request):
    request.client.changed("prompts")
    return "told"


def answered(questions, finish, state=None):
    """A tool that asks some questions once and finishes with their answers."""

    def tool(request):
        carried = asking.state_of(request)
        answers = asking.answers(request, questions)
        if answers is None or carried != state:
            return asking.input_required(questions, state)
        return finish(answers)

    return tool


def test_input_required_result_multi_round(request):
    rounds = [
        {"step1": asking.form("Step 1: What is your name?", name="string")},
        {"step2": asking.form("Step 2: What is your favorite color?", color="string")},
    ]
    done = int(asking.state_of(request) or 0)
    if done and asking.answers(request, rounds[done - 1]) is None:
        done -= 1
    return "All steps are done." if done == len(rounds) else asking.input_required(rounds[done], str(done + 1))


def test_input_required_result_capabilities(request):
    questions = {"name": NAME, "greeting": asking.sampling("Generate a greeting", 50), "roots": asking.ROOTS}
    return asking.input_required(asking.allowed(request, questions))


NAME = asking.form("What is your name?", name="string")
CONFIRM = {"confirm": asking.form("Please confirm", ok="boolean")}

TOOLS = {
    "test_simple_text": lambda request: "This is a simple text response for testing.",
    "test_image_content": lambda request: IMAGE,
    "test_audio_content": lambda request: AUDIO,
    "test_embedded_resource": lambda request: embedded(
        "test://embedded-resource", "This is an embedded resource content."
    ),
    "test_multiple_content_types": test_multiple_content_types,
    "test_tool_with_logging": test_tool_with_logging,
    "test_tool_with_progress": test_tool_with_progress,
    "test_error_handling": test_error_handling,
    "test_reconnection": test_tool_with_progress,
    "test_sampling": test_sampling,
    "test_elicitation": test_elicitation,
    "test_elicitation_sep1034_defaults": test_elicitation_sep1034_defaults,
    "test_elicitation_sep1330_enums": test_elicitation_sep1330_enums,
    "test_missing_capability": test_missing_capability,
    "test_streaming_elicitation": lambda request: asking.input_required({"user_name": NAME}),
    "test_logging_tool": test_logging_tool,
    "test_trigger_tool_change": test_trigger_tool_change,
    "test_trigger_prompt_change": test_trigger_prompt_change,
    "test_input_required_result_elicitation": answered(
        {"user_name": NAME}, lambda answers: f"Hello, {asking.accepted(answers['user_name'], 'name')}!"
    ),
    "test_input_required_result_sampling": answered(
        {"capital_question": asking.sampling("What is the capital of France?", 100)},
        lambda answers: f"It is said: {json.dumps(answers['capital_question'])}",
    ),
    "test_input_required_result_list_roots": answered(
        {"client_roots": asking.ROOTS}, lambda answers: f"Roots: {json.dumps(answers['client_roots'])}"
    ),
    "test_input_required_result_request_state": answered(CONFIRM, lambda answers: "state-ok", state="asked"),
    "test_input_required_result_multiple_inputs": answered(
        {"user_name": NAME, "greeting": asking.sampling("Generate a greeting", 50), "client_roots": asking.ROOTS},
        lambda answers: f"All answered: {', '.join(sorted(answers))}",
        state="asked",
    ),
    "test_input_required_result_multi_round": test_input_required_result_multi_round,
    "test_input_required_result_tampered_state": answered(CONFIRM, lambda answers: "untouched", state="asked"),
    "test_input_required_result_capabilities": test_input_required_result_capabilities,
    "json_schema_2020_12_tool": lambda request: "valid",
    "greet": lambda request: f"Hello, {(request.params.get('arguments') or {}).get('name', 'nobody')}!",
    "slow_compute": tasks.slow_compute,
    "failing_job": tasks.failing_job,
    "protocol_error_job": tasks.protocol_error_job,
    "confirm_delete": tasks.confirm_delete,
    "multi_input": tasks.multi_input,
    "test_tool_with_task": tasks.test_tool_with_task,
}
