"""Hardware records: loading, look-up by what people type, and checks."""

from trainwright.catalog.records import Fact, GpuRecord

__all__ = ["Fact", "GpuRecord"]
