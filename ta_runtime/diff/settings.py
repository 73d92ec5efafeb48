"""Settings of a run: which of them differ between any two runs and mean nothing, and what others change."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

SETTINGS = ("environment", "package", "configuration")
"""The kinds whose records are words, taken before the first step for the most part."""

VARYING = (
    # of a shell, a terminal, a login
    "PWD", "OLDPWD", "SHLVL", "_", "LINES", "COLUMNS", "TERM*", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "LS_COLORS",
    "PS1", "PROMPT_COMMAND", "HISTFILE", "HISTSIZE", "LESS*", "PAGER", "EDITOR", "VISUAL", "DISPLAY", "WINDOWID",
    "TMUX*", "STY", "SSH_*", "DBUS_*", "XDG_*", "VSCODE_*", "GPG_AGENT_INFO", "INVOCATION_ID", "JOURNAL_STREAM",
    # of a machine and of a job
    "HOSTNAME", "HOST", "TMPDIR", "MASTER_ADDR", "MASTER_PORT", "*_PID", "*_PPID", "*_TIME", "*_TIMESTAMP",
    "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR",
    "SLURM*_JOB*ID", "SLURM*_STEP*ID", "SLURM_JOB_START_TIME", "SLURM_JOB_END_TIME", "SLURM*NODELIST", "SLURMD_NODENAME",
    "SLURM_TOPOLOGY_ADDR", "SLURM_LAUNCH_NODE_IPADDR", "SLURM_SRUN_COMM_*", "SLURM_STEP_LAUNCHER_PORT",
    "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_GTIDS", "SLURM_TASK_PID",
    # of a rank
    "RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "TORCHELASTIC_*", "TORCH_NCCL_ASYNC_ERROR_HANDLING",
    # of a record of it
    "WANDB_RUN_ID", "WANDB_RUN_NAME", "WANDB_RUN_GROUP", "MLFLOW_RUN_ID", "COMET_EXPERIMENT_KEY", "PYTEST_CURRENT_TEST",
    "GITHUB_*", "RUNNER_*", "CI_JOB_*", "CI_PIPELINE_*", "BUILD_*",
)  # fmt: skip
"""Names of the environment that differ between any two runs, and are counted with `--strict` alone."""

_TOLD = ("command", "snapshot.reason", "*.defaults.*")
"""Where a run was recorded to, and why, and what groups of parameters begin with: what it does stands in other records."""

_COUNTED = ("loaded.(index)",)
"""The number of a batch in its pass over the data: a run that goes on from a checkpoint counts anew."""

_EFFECTS = {
    "environment": {
        "CUBLAS_WORKSPACE_CONFIG": "it decides whether cuBLAS gives the same result twice",
        "PYTHONHASHSEED": "it decides the order of sets, and so of what is built from them",
        "OMP_NUM_THREADS": "another number of threads adds up in another order",
        "MKL_*": "it decides which kernels of MKL run, and in which order they add up",
        "NVIDIA_TF32_OVERRIDE": "it decides whether matrix products are of TF32",
        "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "it decides whether matrix products are of TF32",
        "NCCL_*": "it decides in which order gradients of ranks are added up",
        "CUDA_VISIBLE_DEVICES": "another device may have other kernels",
        "CUDNN_*": "it decides which kernels of cuDNN run",
        "PYTORCH_*": "torch reads it",
        "TORCH_*": "torch reads it",
        "WORLD_SIZE": "another number of ranks has another global batch",
    },
    "package": {
        "torch": "another version has other kernels and other defaults",
        "torchvision": "another version may transform images otherwise",
        "numpy": "another version may draw other random numbers",
        "nvidia-*": "another version has other kernels",
        "triton*": "another version compiles other kernels",
        "transformers": "another version may build and initialise models otherwise",
    },
    "configuration": {
        "snapshot.activations": "one run compiles its model, and so runs other kernels",
        "*seed*": "another seed gives other random numbers",
        "*generator": "another seed gives other random numbers",
        "*world_size": "another number of ranks has another global batch, and another order of samples",
        "threads": "another number of threads adds up in another order",
        "*num_threads": "another number of threads adds up in another order",
        "*num_workers": "each worker has random numbers of its own, so that what is random in a sample depends on how many there are",
        "*batch_size": "other batches give other gradients",
        "*drop_last": "a short last batch is trained on in one alone",
        "*sampler": "samples come in another order",
        "*shuffle": "samples come in another order",
        "*collate_fn": "batches are put together otherwise",
        "*length": "the data set is another",
        "*dataset": "the data set is another",
        "*deterministic*": "without deterministic algorithms a kernel may give another result each time",
        "*benchmark": "cuDNN then chooses kernels by how fast they are, which may differ each time",
        "*tf32": "matrix products are then of another precision",
        "*reduced_precision_reduction": "matrix products are then of another precision",
        "*matmul_precision": "matrix products are then of another precision",
        "*default_dtype": "tensors are then of another precision",
        "*autocast*": "operations then run in another precision",
        "flush_denormal": "tiny numbers become zero in one alone",
        "attention.*": "attention then runs in another kernel",
        "mkldnn.enabled": "layers then run in other kernels",
        "cpu_capability": "another processor has other kernels",
        "cuda:*": "another device has other kernels",
        "cudnn": "another version has other kernels",
        "torch*": "another build has other kernels and other defaults",
        "python": "another version may draw and order otherwise",
        "*training": "dropout and batch normalisation compute otherwise in training and in evaluation",
        "*lr": "updates are then of another size",
        "*learning_rate": "updates are then of another size",
        "*dropout*": "another share of the activations is then zeroed",
        "module.*": "the model computes otherwise",
        "optimizer": "updates are then computed otherwise",
        "*.group*": "updates are then computed otherwise",
    },
}  # fmt: skip


def varies(kind: str, name: str) -> bool:
    """Whether a setting differs between any two runs."""
    known = {"environment": VARYING, "configuration": _TOLD, "batch": _COUNTED}.get(kind, ())
    return any(fnmatchcase(name, pattern) for pattern in known)


def effect(kind: str, name: str) -> str | None:
    """What a setting is known to change; None where nothing is known."""
    word = name.lower() if kind == "configuration" else name
    known = _EFFECTS.get(kind, {})
    return next((what for pattern, what in known.items() if fnmatchcase(word, pattern)), None)


def matches(kind: str, name: str, patterns: Sequence[str]) -> bool:
    """Whether one of the patterns is of this name, or of the kind and name, such as `optimizer/*`."""
    return any(fnmatchcase(name, pattern) or fnmatchcase(f"{kind}/{name}", pattern) for pattern in patterns)
