"""What the lists list. Names and texts are prescribed by the conformance suite."""

CACHING = {"ttlMs": 1000, "cacheScope": "private"}

ANYTHING = {"type": "object", "properties": {}}
# Every keyword has to survive the way to the client.
JSON_SCHEMA_2020_12 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

PLAIN_TOOLS = """
    test_simple_text test_image_content test_audio_content test_embedded_resource test_multiple_content_types
    test_tool_with_logging test_tool_with_progress test_error_handling test_reconnection
    test_sampling test_elicitation test_elicitation_sep1034_defaults test_elicitation_sep1330_enums
    test_missing_capability test_streaming_elicitation test_logging_tool test_trigger_tool_change
    test_trigger_prompt_change
    test_input_required_result_elicitation test_input_required_result_sampling
    test_input_required_result_list_roots test_input_required_result_request_state
    test_input_required_result_multiple_inputs test_input_required_result_multi_round
    test_input_required_result_tampered_state test_input_required_result_capabilities
    greet slow_compute failing_job protocol_error_job confirm_delete multi_input test_tool_with_task
""".split()
TOOLS = [
    *({"name": name, "description": name.replace("_", " "), "inputSchema": ANYTHING} for name in PLAIN_TOOLS),
    {"name": "json_schema_2020_12_tool", "description": "every keyword", "inputSchema": JSON_SCHEMA_2020_12},
]

RESOURCES = [
    {"uri": "test://static-text", "name": "static text", "mimeType": "text/plain"},
    {"uri": "test://static-binary", "name": "static binary", "mimeType": "image/png"},
    {"uri": "test://watched-resource", "name": "watched resource", "mimeType": "text/plain"},
]
TEMPLATES = [{"uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json"}]


def _prompt(name, *arguments):
    described = [{"name": argument, "description": argument, "required": True} for argument in arguments]
    return {"name": name, "description": name.replace("_", " "), "arguments": described}


PROMPTS = [
    _prompt("test_simple_prompt"),
    _prompt("test_prompt_with_arguments", "arg1", "arg2"),
    _prompt("test_prompt_with_embedded_resource", "resourceUri"),
    _prompt("test_prompt_with_image"),
    _prompt("test_input_required_result_prompt"),
]


def listed(**items):
    return {**CACHING, **items}
