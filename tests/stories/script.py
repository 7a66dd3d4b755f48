"""Stories: what passes between a client and a server, written down, and what it must leave behind.

A file holds stories; the name of each is the fact that it tells. `play` has one line for one exchange:

    [+SECONDS] [NAME:] METHOD [from CURSOR] [MESSAGE & MESSAGE] [<key=value ...>] => HEAD; PART; PART

`+SECONDS` pass first. A line that begins with a NAME and has no request goes on with the exchange of that name.

- keys: `session`, `version`, `auth`, `to` (path), `at` (host), `pool` (another client), `accept` (`no`: not SSE)
- MESSAGE: `call 1`, `tools/list 2`, `elicitation/create q1`, `result 1`, `error 1 -32601 text`, `note [METHOD]`,
  `cancelled 1`, `required 1 k url:u state=A`; a request takes `name=`, `ask=`, `filter=`, `token=`, `meta=`,
  `version=`, `state=A` and `+k`, an answer to the question k; an id may be `null` or `none`
- HEAD: `sse [gzip|deflate|raw-deflate|br]`, `json MESSAGE`,
  `STATUS [[gzip] json MESSAGE | sse | text WORDS | /location]`, each with `<key=value>` headers; or no head: `refuse`,
  `stall` (the client's time limit), `cancel`. After `/location` another `=> HEAD` follows, which answers the
  redirected request
- PART: `[ID:] MESSAGE`, `[ID:] text WORDS`, `ID: prime`, `clear` (an empty id), `retry MS`, `comment`,
  `event TYPE DATA`, `raw "JSON string"`, several in one chunk by ` + `; `wait SECONDS`; and the end: `end` (clean),
  `cut`, `stall`, `cancel`, `close` (by the client), `drop` (forgotten by the client), or none: it stays open
- `see POINT` collects metrics and looks at one; `collect` only collects; `gone POOL` throws a client away

`expect` and `spans` have one line for one point or kind of span (see `findings`).
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

tomllib: Any = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

HERE = Path(__file__).parent
ENDS = ("end", "cut", "stall", "cancel", "close", "drop")
NO_HEAD = ("refuse", "stall", "cancel")

_LINE = re.compile(r"(?:\+(?P<after>[\d.]+) ?)?(?:(?P<name>[a-z]\w*): )?(?P<rest>.*)")
_KEYS = re.compile(r" ?<(.*)>$")
_KEY = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_EVENT_ID = re.compile(r"(?:(\S+): )?(.*)", re.DOTALL)


@dataclass(frozen=True)
class Request:
    """What the client sends; unset keys take the story's values."""

    method: str
    cursor: str | None
    messages: tuple[dict[str, Any], ...]
    keys: Mapping[str, str]

    @property
    def content(self) -> bytes:
        if not self.messages:
            return b""
        single = len(self.messages) == 1 and "batch" not in self.keys
        return json.dumps(self.messages[0] if single else self.messages).encode()


@dataclass(frozen=True)
class Head:
    """The head of a response, or what there was instead."""

    status: int = 200
    media: str = ""
    coding: str = ""
    location: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    instead: str = ""


@dataclass(frozen=True)
class Part:
    """A piece of a body, a wait in between, or the end."""

    kind: str
    """`chunk`, `wait`, or one of `ENDS`."""
    blocks: tuple[str, ...] = ()
    seconds: float = 0.0

    def chunk(self, scale: float) -> bytes:
        """The bytes, with every `retry` in the story's own time."""
        return b"".join(_block(block, scale) for block in self.blocks)


@dataclass(frozen=True)
class Step:
    """One line of a play."""

    after: float
    name: str
    request: Request | None = None
    heads: tuple[Head, ...] = ()
    parts: tuple[Part, ...] = ()
    order: str = ""
    """`see …`, `collect` or `gone …`."""

    @property
    def seconds(self) -> float:
        return self.after + sum(part.seconds for part in self.parts)


@dataclass(frozen=True)
class Story:
    """One fact, how it comes about, and how it shows."""

    says: str
    steps: tuple[Step, ...]
    expect: tuple[str, ...]
    spans: tuple[str, ...]
    session: str
    version: str
    options: Mapping[str, Any]
    pure: str
    """Why it cannot be told over a real connection."""
    rank: int
    """0 for the first row of each list, 2 for a combination that is first in neither."""
    xfail: str

    def __str__(self) -> str:
        return self.says

    def uses(self, *words: str) -> bool:
        """Whether one of these is how a head or a body goes."""
        kinds = {part.kind for step in self.steps for part in step.parts}
        return bool((kinds | {head.instead for step in self.steps for head in step.heads}) & set(words))


def stories() -> Iterator[Story]:
    """All stories of this folder."""
    for path in sorted(HERE.glob("*.toml")):
        for says, told in tomllib.loads(path.read_text(encoding="utf-8")).items():
            yield from _expanded(says, told)


def _expanded(says: str, told: dict[str, Any]) -> Iterator[Story]:
    """A story may be told of several values: `$key` stands for each row of `each`, combined with each of `by`."""
    known = {"play", "expect", "spans", "session", "version", "options", "pure", "xfail", "each", "by"}
    if unknown := set(told) - known:
        raise ValueError(f"{says}: {unknown}")
    rows = product(enumerate(told.get("each", [{}])), enumerate(told.get("by", [{}])))
    for (nth, each), (mth, by) in rows:
        row = {**each, **by}

        def fill(text: str, row: Mapping[str, str] = row) -> str:
            filled = _KEY.sub(lambda match: row[match[1] or match[2]], text)
            return filled if filled == text else fill(filled, row)

        yield Story(
            says=" ".join([says, *(f"[{value}]" for key, value in row.items() if key != "xfail")])
            if row
            else says,
            steps=tuple(_step(fill(line), number) for number, line in enumerate(told["play"])),
            expect=tuple(map(fill, told.get("expect", ()))),
            spans=tuple(map(fill, told.get("spans", ()))),
            session=told.get("session", "S1"),
            version=fill(told.get("version", "2025-11-25")),
            options=told.get("options", {}),
            pure=told.get("pure", ""),
            rank=(nth > 0) + (mth > 0),
            xfail=row.get("xfail", told.get("xfail", "")),
        )


# ------------------------------------------------------------------ lines


def _step(line: str, number: int) -> Step:
    match = _LINE.fullmatch(line)
    if match is None:
        raise ValueError(line)
    after, name, rest = float(match["after"] or 0), match["name"], match["rest"]
    if not rest or rest.split(" ")[0] in ("see", "collect", "gone"):
        return Step(after, "", order=rest)
    if " => " not in rest:
        if not name:
            raise ValueError(f"no exchange is named: {line}")
        return Step(after, name, parts=tuple(map(_part, rest.split("; "))))
    request, *answers = rest.split(" => ")
    last, *parts = answers[-1].split("; ")
    heads = [_head(answer) for answer in (*answers[:-1], last)]
    body = tuple(map(_part, parts)) or heads[-1][1]
    return Step(after, name or f"step{number}", _request(request), tuple(head for head, _ in heads), body)


def _request(text: str) -> Request:
    text, keys = _split_keys(text)
    method, _, rest = text.partition(" ")
    cursor = None
    if rest.startswith("from "):
        cursor, _, rest = rest.removeprefix("from ").partition(" ")
    messages = tuple(map(message, rest.split(" & "))) if rest else ()
    return Request(method, cursor, messages, keys)


def _head(text: str) -> tuple[Head, tuple[Part, ...]]:
    """The head, and its body if that is told with it."""
    text, headers = _split_keys(text)
    if text in NO_HEAD:
        return Head(instead=text), ()
    status = 200
    word, _, rest = text.partition(" ")
    if word.isdigit():
        status, text = int(word), rest
        word, _, rest = text.partition(" ")
    end, coding = Part("end"), ""
    if word == "gzip":
        coding, (word, _, rest) = word, rest.partition(" ")
    if word == "sse":
        return Head(status, "text/event-stream", rest, headers=headers), ()
    if word == "json":
        return (
            Head(status, "application/json", coding, headers=headers),
            (Part("chunk", ("raw " + json.dumps(json.dumps(message(rest))),)), end),
        )
    if word == "text":
        return Head(status, "text/plain", headers=headers), (Part("chunk", ("raw " + json.dumps(rest),)), end)
    return Head(status, location=word, headers=headers), (end,)


def _part(text: str) -> Part:
    word, _, rest = text.partition(" ")
    if text in ENDS:
        return Part(text)
    if word == "wait":
        return Part("wait", seconds=float(rest))
    return Part("chunk", tuple(text.split(" + ")))


def _split_keys(text: str) -> tuple[str, dict[str, str]]:
    match = _KEYS.search(text)
    if match is None:
        return text, {}
    pairs = [pair.partition("=") for pair in match[1].split()]
    return text[: match.start()], {key: value for key, _, value in pairs}


# ------------------------------------------------------------------ events and messages


def _block(text: str, scale: float) -> bytes:
    if text.startswith("raw "):
        return str(json.loads(text.removeprefix("raw "))).encode("utf-8")
    if text == "comment":
        return b": keep-alive\n\n"
    if text == "clear":
        return b"id\n\n"
    match = _EVENT_ID.fullmatch(text)
    event_id, rest = (match[1], match[2]) if match else (None, text)
    word, _, tail = rest.partition(" ")
    prefix = f"id: {event_id}\n" if event_id else ""
    if word == "prime":
        data = ""
    elif word == "retry":
        return f"{prefix}retry: {round(float(tail) * scale)}\n\n".encode()
    elif word == "event":
        kind, _, data = tail.partition(" ")
        prefix += f"event: {kind}\n"
    elif word == "text":
        data = tail
    else:
        batch = [message(one) for one in rest.split(" & ")]
        data = json.dumps(batch[0] if len(batch) == 1 else batch)
    return f"{prefix}data: {data}\n\n".encode()


def message(text: str) -> dict[str, Any]:
    """A JSON-RPC message."""
    word, *rest = text.split(" ")
    base: dict[str, Any] = {"jsonrpc": "2.0"}
    if word == "note":
        return base | {"method": rest[0] if rest else "notifications/message", "params": {"data": "d"}}
    if word == "cancelled":
        return base | {"method": "notifications/cancelled", "params": {"requestId": _id(rest[0])}}
    identity = {} if rest[0] == "none" else {"id": _id(rest[0])}
    if word == "result":
        return base | identity | {"result": _result(rest[1:])}
    if word == "error":
        return base | identity | {"error": _error(int(rest[1]), " ".join(rest[2:]))}
    if word == "required":
        return base | identity | {"result": _required(rest[1:])}
    method = "tools/call" if word == "call" else word
    return base | identity | {"method": method, "params": _params(method, rest[1:])}


def _id(text: str) -> int | str | None:
    return None if text == "null" else int(text) if text.lstrip("-").isdigit() else text


_DEFAULTS: dict[str, dict[str, Any]] = {
    "tools/call": {"name": "wipe", "arguments": {}},
    "elicitation/create": {"message": "Sure?"},
}
_PLACES = {
    "name": ("name",),
    "ask": ("message",),
    "filter": ("filter",),
    "state": ("requestState",),
    "version": ("protocolVersion",),
    "token": ("_meta", "progressToken"),
    "meta": ("_meta", "asserted"),
}


def _params(method: str, words: list[str]) -> dict[str, Any]:
    params: dict[str, Any] = dict(_DEFAULTS.get(method, {}))
    for word in words:
        if word.startswith("+"):
            params.setdefault("inputResponses", {})[word[1:]] = {"action": "accept"}
            continue
        key, _, value = word.partition("=")
        if key == "meta":
            params.setdefault("_meta", {})[value] = True
            continue
        *above, last = _PLACES[key]
        target = params.setdefault(above[0], {}) if above else params
        target[last] = value
    return params


def _result(words: list[str]) -> dict[str, Any]:
    return {_PLACES[key][-1]: value for key, _, value in (word.partition("=") for word in words)}


def _error(code: int, text: str) -> dict[str, Any]:
    error: dict[str, Any] = {"code": code, "message": text or "failed"}
    if code == -32042:
        error["data"] = {"elicitations": [{"mode": "url", "url": "https://example.org/consent"}]}
    return error


def _required(words: list[str]) -> dict[str, Any]:
    """`k` asks by a form, `url:u` by a page, `k=roots/list` by that method; `state=A` is the state."""
    result: dict[str, Any] = {"resultType": "input_required"}
    asked: dict[str, Any] = {}
    for word in words:
        key, _, value = word.partition("=")
        if key == "state":
            result["requestState"] = value
        elif key.startswith("url:"):
            asked[key] = {"method": "elicitation/create", "params": {"mode": "url", "url": key}}
        else:
            asked[key] = {"method": value or "elicitation/create", "params": {"mode": "form", "message": key}}
    if asked:
        result["inputRequests"] = asked
    return result
