"""What services and products say when something goes wrong, and which class of error it is."""

from __future__ import annotations

import pytest

from eop.agents.contract import Status
from eop.agents.failures import classify

CONTEXT, QUOTA, REFUSED = Status.CONTEXT_OVERFLOW, Status.QUOTA_EXHAUSTED, Status.REFUSED
TRANSIENT, AUTH, CONFIG = Status.TRANSIENT_ERROR, Status.AUTH_ERROR, Status.CONFIG_ERROR
SAID = [
    (CONTEXT, 400, "prompt is too long: 208310 tokens > 200000 maximum"),
    (CONTEXT, 400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
    (CONTEXT, None, "litellm.ContextWindowExceededError: too much"),
    (CONTEXT, None, "Your input exceeds the context window of this model."),
    (CONTEXT, 413, "Request exceeds the maximum size"),
    (QUOTA, 400, "Your credit balance is too low to access the Anthropic API."),
    (QUOTA, 400, "You have reached your specified API usage limits."),
    (QUOTA, None, "5-hour limit reached, resets 3pm"),
    (QUOTA, None, "You've hit your usage limit. Try again at 5 PM."),
    (QUOTA, None, "You've hit your limit"),
    (QUOTA, None, "To use Codex with your ChatGPT plan, upgrade to Plus"),
    (QUOTA, 429, "You exceeded your current quota, please check your plan and billing details."),
    (QUOTA, 402, "no"),
    (QUOTA, None, "litellm.APIError: APIError: OpenAIException - Insufficient Balance"),
    (REFUSED, 400, "Output blocked by content filtering policy"),
    (REFUSED, None, "unable to respond to this request, which appears to violate our Usage Policy"),
    (REFUSED, None, "Your prompt was flagged as potentially violating our usage policies"),
    (REFUSED, None, "This content was flagged for possible cybersecurity risk"),
    (TRANSIENT, 429, "This request would exceed your organization's rate limit of 50,000 tokens"),
    (TRANSIENT, None, "Rate limit reached for gpt-5 on tokens per min (TPM): Limit 30000"),
    (TRANSIENT, None, "The server had an error while processing your request. Sorry about that!"),
    (TRANSIENT, None, "exceeded retry limit, last status: 429 Too Many Requests"),
    (TRANSIENT, None, "Unable to connect to API (ENOTFOUND)"),
    (TRANSIENT, None, "getaddrinfo EAI_AGAIN api.example.com"),
    (TRANSIENT, None, "API Error: Request was aborted."),
    (TRANSIENT, None, "API Error (Request timed out.)"),
    (TRANSIENT, None, "API Error: 529 Overloaded"),
    (TRANSIENT, None, "[API Error: terminated (cause: other side closed)]"),
    (TRANSIENT, None, "write EPIPE"),
    (AUTH, None, "Invalid API key, please run /login"),
    (AUTH, None, "Your access token could not be refreshed. Please log out and sign in again."),
    (AUTH, 403, "Your account does not have access to this"),
    (AUTH, None, "unexpected status 401 Unauthorized: no"),
    (CONFIG, None, "The model `x` does not exist or you do not have access to it."),
    (CONFIG, 404, "model: claude-9"),
    (CONFIG, None, "unexpected status 400 Bad Request: Invalid schema for response_format"),
    (None, None, "I could not do it."),
    (None, None, ""),
]


@pytest.mark.parametrize(("status", "http", "said"), SAID)
def test_a_complaint_has_its_class(status: Status | None, http: int | None, said: str) -> None:
    assert classify(said, http).status is status


def test_the_gateway_s_refusal_is_ours_whoever_repeats_it() -> None:
    for said in ("403 run budget exhausted: usd", "API Error: 400 run budget exhausted"):
        found = classify(said)
        assert (found.status, found.source) == (Status.BUDGET_EXHAUSTED, "gateway")
