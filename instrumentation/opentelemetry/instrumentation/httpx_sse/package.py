"""What this package instruments, in the form that OpenTelemetry's tools read."""

_instruments: tuple[str, ...] = ()
_instruments_any = ("httpx >= 0.27, < 1", "httpx2 >= 2, < 3")
_supports_metrics = True
_semconv_status = "development"
