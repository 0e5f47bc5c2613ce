"""The audit of profiles, a public name of this room that a higher room defines."""

from iomodel.integrations.nsight.audit import audit as audit  # noqa: PLC0414
