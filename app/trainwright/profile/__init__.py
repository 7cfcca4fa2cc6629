"""What one training step does: events and ops as functions of batch and sequence."""
