"""What both observers share before a finding: the actions of a training."""
