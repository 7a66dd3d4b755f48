"""Dashboards, alerts and runbooks for the telemetry of this package, built from its own names.

Nothing here is imported by the instrumentation. Output is committed beside the code that builds it.
"""
