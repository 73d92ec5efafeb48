"""Training scripts that nobody wrote: small, valid, and run for real within milliseconds."""
