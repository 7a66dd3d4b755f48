"""Every name that leaves this package: metrics, attributes, units, buckets and closed sets of values.

Pure data. Telemetry, dashboards and alert rules are built from these pages, so a name changes here or nowhere.

Sources: OpenTelemetry semantic conventions (general attribute and metric naming), the GenAI conventions
for MCP (`mcp.*`, Development), the WHATWG standard (Server-sent events) and MCP for the terms.
"""

from .attributes import *
from .metrics import *
from .values import *
