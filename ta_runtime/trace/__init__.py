"""A trace: what a run did, as one stream of events of fixed columns, which `ta-runtime infer` learns from."""
