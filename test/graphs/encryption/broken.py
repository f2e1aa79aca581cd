"""Cannot be loaded."""

raise RuntimeError("The keys are not available.")
