"""Resources, prompts, completions, and the blocks that results are made of."""

import json

import asking
from catalog import CACHING
from wire import Failure, INVALID_PARAMS

# One red pixel, and a moment of silence.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="

IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": WAV, "mimeType": "audio/wav"}


def text(value):
    return {"type": "text", "text": value}


def embedded(uri, value, mime_type="text/plain"):
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": value}}


def read_resource(request):
    uri = request.params["uri"]
    match uri.removeprefix("test://").split("/"):
        case ["static-text"] | ["watched-resource"]:
            found = {"mimeType": "text/plain", "text": "This is the content of the static text resource."}
        case ["static-binary"]:
            found = {"mimeType": "image/png", "blob": PNG}
        case ["template", id, "data"]:
            data = {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}
            found = {"mimeType": "application/json", "text": json.dumps(data)}
        case _:
            raise Failure(INVALID_PARAMS, "resource not found", {"uri": uri})
    return {**CACHING, "contents": [{"uri": uri, **found}]}


def get_prompt(request):
    arguments = request.params.get("arguments") or {}
    match request.params["name"]:
        case "test_simple_prompt":
            blocks = [text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            blocks = [text(f"Prompt with arguments: arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'")]
        case "test_prompt_with_embedded_resource":
            resource = embedded(arguments["resourceUri"], "Embedded resource content for testing.")
            blocks = [resource, text("Please process the embedded resource above.")]
        case "test_prompt_with_image":
            blocks = [IMAGE, text("Please analyze the image above.")]
        case "test_input_required_result_prompt":
            question = {"user_context": asking.form("What context should the prompt use?", context="string")}
            if (answers := asking.answers(request, question)) is None:
                return asking.input_required(question)
            blocks = [text(f"Use this context: {asking.accepted(answers['user_context'], 'context')}")]
        case unknown:
            raise Failure(INVALID_PARAMS, f"no such prompt: {unknown}")
    return {"messages": [{"role": "user", "content": block} for block in blocks]}


def complete():
    return {"completion": {"values": ["paris", "park", "party"], "total": 3, "hasMore": False}}
