"""The person, or the model, in front of a client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
from tests.e2e.peers.plan import Report

EXAMPLES: Mapping[str, Any] = {"string": "Ada", "boolean": True, "integer": 1, "number": 1.5}


class Person:
    """Who is asked: fills in a form's defaults and what is required, after having thought for a while."""

    def __init__(self, thinks: float, report: Report) -> None:
        self._thinks = thinks
        self._report = report

    async def fill_in(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        await self._think()
        properties = schema.get("properties", {})
        required = schema.get("required", ())
        return {
            name: field["default"] if "default" in field else EXAMPLES[field["type"]]
            for name, field in properties.items()
            if "default" in field or name in required
        }

    async def say(self) -> str:
        await self._think()
        return "a sample"

    async def hear(self, done: float, total: float | None, message: str | None) -> None:
        self._report.progress += 1

    async def _think(self) -> None:
        self._report.asked += 1
        await anyio.sleep(self._thinks)
