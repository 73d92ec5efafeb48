"""What enters the model before the first optimizer step: shown, judged and tried, after which everything is as it was.

`watching` notes the first step as the script makes it, and draws nothing from its loaders. `peeking` looks further into the
loaders, in a forked copy of the process. `probing` tries the model out on copies of its weights. `flight` is the order of it all.
"""
