#!/usr/bin/env python3
"""Drive `spar serve policy` with OpenAI's own Python client, feature by feature.

    python3 -m venv venv && venv/bin/pip install openai
    spar serve policy CHECKPOINT --port 8000 --api-key secret &
    venv/bin/python scripts/check_openai_client.py --url http://127.0.0.1:8000/v1 --api-key secret

Any checkpoint will do, since what a model says is not judged. Prints a line per check, and exits with 1 when
one fails.
"""

import argparse
import asyncio
import json
import sys
import traceback

import openai

CHAT = [{"role": "user", "content": "You see a door."}]
TOOL = {
    "type": "function",
    "function": {
        "name": "open",
        "description": "Opens something.",
        "parameters": {
            "type": "object",
            "properties": {"what": {"type": "string", "enum": ["door", "box"]}},
            "required": ["what"],
            "additionalProperties": False,
        },
    },
}
SCHEMA = {
    "type": "object",
    "properties": {"room": {"enum": ["attic", "hall"]}, "count": {"type": "integer", "maximum": 9, "minimum": 0}},
    "required": ["room", "count"],
    "additionalProperties": False,
}
CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def refused(kind, call) -> openai.APIStatusError:
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


@check
def models_are_listed(client, model):
    assert [card.id for card in client.models.list()] == [model]
    assert client.models.retrieve(model).id == model
    refused(openai.NotFoundError, lambda: client.models.retrieve("nothing"))


@check
def a_chat_is_answered(client, model):
    answer = client.chat.completions.create(model=model, messages=CHAT, max_tokens=8, seed=1)
    assert answer.object == "chat.completion" and answer.model == model
    choice = answer.choices[0]
    assert choice.message.role == "assistant" and isinstance(choice.message.content, str)
    assert choice.finish_reason in ("stop", "length")
    usage = answer.usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens and usage.completion_tokens <= 8


@check
def a_streamed_chat_is_the_same(client, model):
    fields = dict(model=model, messages=CHAT, max_tokens=24, seed=2, temperature=0.8, top_p=0.9)
    whole = client.chat.completions.create(**fields)
    parts, usage = [], None
    stream = client.chat.completions.create(**fields, stream=True, stream_options={"include_usage": True})
    for chunk in stream:
        usage = chunk.usage or usage
        parts += [choice.delta.content or "" for choice in chunk.choices]
    assert "".join(parts) == whole.choices[0].message.content
    assert usage.completion_tokens == whole.usage.completion_tokens


@check
def several_choices_are_drawn(client, model):
    answer = client.chat.completions.create(model=model, messages=CHAT, max_tokens=12, n=4, seed=3)
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    assert len({choice.message.content for choice in answer.choices}) > 1
    again = client.chat.completions.create(model=model, messages=CHAT, max_tokens=12, n=4, seed=3)
    assert [c.message.content for c in again.choices] == [c.message.content for c in answer.choices]


@check
def logprobs_are_told(client, model):
    answer = client.chat.completions.create(
        model=model, messages=CHAT, max_tokens=6, logprobs=True, top_logprobs=3, seed=4
    )
    content = answer.choices[0].logprobs.content
    assert len(content) == answer.usage.completion_tokens
    for token in content:
        assert token.logprob <= 0 and len(token.top_logprobs) == 3
        assert [top.logprob for top in token.top_logprobs] == sorted(
            (top.logprob for top in token.top_logprobs), reverse=True
        )


@check
def stop_strings_end_an_answer(client, model):
    for seed in range(30):
        answer = client.chat.completions.create(
            model=model, messages=CHAT, max_tokens=40, stop=["e", "a"], seed=seed, temperature=1.2
        )
        assert not {"e", "a"} & set(answer.choices[0].message.content)
        if answer.choices[0].finish_reason == "stop":
            return
    raise AssertionError("no answer was stopped")


@check
def penalties_and_bias_are_taken(client, model):
    answer = client.completions.create(
        model=model, prompt="You", max_tokens=4, logit_bias={"65": 100}, temperature=0,
        presence_penalty=0.5, frequency_penalty=0.5, extra_body={"return_token_ids": True},
    )
    assert answer.choices[0].token_ids == [65] * 4, answer.choices[0].token_ids


@check
def json_keeps_to_its_schema(client, model):
    answer = client.chat.completions.create(
        model=model, messages=CHAT, max_tokens=400, seed=5,
        response_format={"type": "json_schema", "json_schema": {"name": "room", "schema": SCHEMA, "strict": True}},
    )
    value = json.loads(answer.choices[0].message.content)
    assert value["room"] in ("attic", "hall") and 0 <= value["count"] <= 9 and len(value) == 2
    answer = client.chat.completions.create(
        model=model, messages=CHAT, max_tokens=12, response_format={"type": "json_object"}
    )
    assert answer.choices[0].message.content.lstrip().startswith("{")


@check
def extra_fields_are_taken(client, model):
    extra = {"guided_choice": ["open box", "open door"]}
    answer = client.chat.completions.create(model=model, messages=CHAT, max_tokens=20, extra_body=extra)
    assert answer.choices[0].message.content in extra["guided_choice"]
    extra = {"guided_regex": "[0-9]{3}-[a-z]{2}"}
    answer = client.chat.completions.create(model=model, messages=CHAT, max_tokens=20, extra_body=extra)
    left, right = answer.choices[0].message.content.split("-")
    assert left.isdigit() and right.isalpha()
    extra = {"top_k": 5, "min_p": 0.01, "repetition_penalty": 1.1, "min_tokens": 3, "ignore_eos": True}
    answer = client.completions.create(model=model, prompt="You see", max_tokens=7, extra_body=extra)
    assert answer.usage.completion_tokens == 7
    extra = {"return_token_ids": True, "ignore_eos": True}
    answer = client.completions.create(model=model, prompt="You see", max_tokens=5, extra_body=extra)
    choice = answer.choices[0]
    assert len(choice.token_ids) == 5 and len(choice.prompt_token_ids) == answer.usage.prompt_tokens
    assert len(choice.policy_versions) == len(choice.sampling_logprobs) == len(choice.entropies) == 5


@check
def completions_take_texts_and_tokens(client, model):
    fields = dict(model=model, max_tokens=6, seed=6)
    of_text = client.completions.create(prompt="You see", extra_body={"return_token_ids": True}, **fields)
    ids = of_text.choices[0].prompt_token_ids
    of_tokens = client.completions.create(prompt=ids, **fields)
    assert of_text.choices[0].text == of_tokens.choices[0].text
    answer = client.completions.create(prompt=["a", "b"], n=2, logprobs=2, **fields)
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    for choice in answer.choices:
        logprobs = choice.logprobs
        assert len(logprobs.tokens) == len(logprobs.token_logprobs) == len(logprobs.text_offset)


@check
def tools_are_called(client, model):
    fields = dict(model=model, messages=CHAT, tools=[TOOL], tool_choice="required", max_tokens=500, seed=7)
    answer = client.chat.completions.create(**fields)
    choice = answer.choices[0]
    assert choice.finish_reason == "tool_calls"
    call = choice.message.tool_calls[0]
    assert call.function.name == "open" and json.loads(call.function.arguments)["what"] in ("door", "box")
    # The same piece by piece.
    name, arguments = "", ""
    for chunk in client.chat.completions.create(**fields, stream=True):
        for part in chunk.choices[0].delta.tool_calls or []:
            name += part.function.name or ""
            arguments += part.function.arguments or ""
    assert (name, arguments) == ("open", call.function.arguments)
    # And on with what the tool answered.
    messages = CHAT + [
        choice.message,
        {"role": "tool", "tool_call_id": call.id, "content": "It is open."},
    ]
    client.chat.completions.create(model=model, messages=messages, tools=[TOOL], max_tokens=5)
    chosen = {"type": "function", "function": {"name": "open"}}
    answer = client.chat.completions.create(**{**fields, "tool_choice": chosen})
    assert answer.choices[0].message.tool_calls[0].function.name == "open"


@check
def the_stream_helper_works(client, model):
    # It takes an answer that was cut off for an error.
    short = {"guided_regex": "[a-z ]{12}"}
    with client.chat.completions.stream(model=model, messages=CHAT, seed=8, extra_body=short) as stream:
        text = "".join(event.delta for event in stream if event.type == "content.delta")
        whole = stream.get_final_completion()
    assert (whole.choices[0].message.content or "") == text


@check
def mistakes_are_told(client, model):
    chat = client.chat.completions.create
    error = refused(openai.NotFoundError, lambda: chat(model="nothing", messages=CHAT))
    assert error.code == "model_not_found" and "nothing" in str(error)
    error = refused(openai.BadRequestError, lambda: chat(model=model, messages=CHAT, max_tokens=10**8))
    assert error.code == "context_length_exceeded" and error.param == "max_tokens"
    error = refused(openai.BadRequestError, lambda: chat(model=model, messages=CHAT, temperature="hot"))
    assert error.param == "temperature"
    schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "thing"}}}
    error = refused(openai.BadRequestError, lambda: chat(model=model, messages=CHAT, response_format=schema))
    assert error.param == "response_format"
    error = refused(openai.BadRequestError, lambda: chat(model=model, messages=CHAT, extra_body={"tempo": 1}))
    assert "tempo" in str(error)


@check
def a_wrong_key_is_refused(client, model):
    if client.api_key != "none":
        stranger = client.with_options(api_key="wrong")
        refused(openai.AuthenticationError, stranger.models.list)


@check
def leaving_a_stream_is_no_harm(client, model):
    for _ in range(5):
        fields = dict(model=model, messages=CHAT, max_tokens=200, extra_body={"ignore_eos": True})
        stream = client.chat.completions.create(**fields, stream=True)
        next(iter(stream))
        stream.close()
    client.chat.completions.create(model=model, messages=CHAT, max_tokens=2)


@check
def many_ask_at_once(client, model):
    async def ask(asynchronous, seed):
        answer = await asynchronous.completions.create(model=model, prompt="You see", max_tokens=12, seed=seed)
        return answer.choices[0].text

    async def all_of_them():
        options = dict(base_url=str(client.base_url), api_key=client.api_key)
        async with openai.AsyncOpenAI(**options) as asynchronous:
            return await asyncio.gather(*(ask(asynchronous, seed % 4) for seed in range(32)))

    texts = asyncio.run(all_of_them())
    # Equal requests have equal answers, whatever else runs.
    assert all(texts[place] == texts[place % 4] for place in range(32))


def main() -> int:
    parser = argparse.ArgumentParser(description="Drive a server with OpenAI's client.")
    parser.add_argument("--url", default="http://127.0.0.1:8000/v1")
    parser.add_argument("--api-key", default="none")
    arguments = parser.parse_args()
    client = openai.OpenAI(base_url=arguments.url, api_key=arguments.api_key, max_retries=0, timeout=120)
    model = next(iter(client.models.list())).id
    failed = 0
    for function in CHECKS:
        try:
            function(client, model)
            print(f"ok      {function.__name__}")
        except Exception:
            failed += 1
            print(f"FAILED  {function.__name__}")
            traceback.print_exc()
    print(f"openai {openai.__version__}: {len(CHECKS) - failed} of {len(CHECKS)} checks passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
