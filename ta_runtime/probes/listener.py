"""What a listener can be told of: the actions of a training loop, named as in `ta_lint.core.protocol`."""

from ta_runtime.probes.patching import Call, End


class Listener:
    """Override the methods whose calls you want to know of, and `hub.subscribe`.

    Each method is called before a function of torch runs. What it returns is called after it, also if the function raised.
    """

    # -- loaders ----------------------------------------------------------------------------------------------

    def split(self, call: Call) -> End | None:
        """`random_split` of a data set."""

    def build_loader(self, call: Call) -> End | None:
        """A `DataLoader` is built."""

    def epoch(self, call: Call) -> End | None:
        """An iterator over a `DataLoader` is asked for."""

    def batch(self, call: Call) -> End | None:
        """An iterator over a `DataLoader` is asked for a batch; it raises `StopIteration` where there is none."""

    def fetch(self, call: Call) -> End | None:
        """The items of a batch are read from a data set: in a worker, which sees it if it is forked off now."""

    # -- functions --------------------------------------------------------------------------------------------

    def loss(self, call: Call) -> End | None:
        """A loss function of `torch.nn.functional`."""

    def drop(self, call: Call) -> End | None:
        """`torch.nn.functional.dropout` or one of its kin, which the layers call too."""

    def attend(self, call: Call) -> End | None:
        """`torch.nn.functional.scaled_dot_product_attention`, called by that name."""

    def copy(self, call: Call) -> End | None:
        """`Tensor.to` or `Tensor.cuda`."""

    def read(self, call: Call) -> End | None:
        """What reads the values of a tensor: `item`, `tolist`, `cpu`, `numpy`, `bool`, `float` or `int`."""

    def read_distributed(self, call: Call) -> End | None:
        """`item`, `float` or `int` of a DTensor."""

    def elementary(self, call: Call) -> End | None:
        """`log`, `exp`, `sqrt`, `acos`, `asin` or `pow`, as a method or a function of torch, or `**`."""

    def multiply(self, call: Call) -> End | None:
        """`*` of a tensor, or `mul` of torch."""

    def log_prob(self, call: Call) -> End | None:
        """`log_prob` of a distribution."""

    def draw_integers(self, call: Call) -> End | None:
        """`torch.randint`."""

    def look_up(self, call: Call) -> End | None:
        """What reads entries of a tensor by an index: `x[i]`, `gather` or `index_select`."""

    def normalise(self, call: Call) -> End | None:
        """`softmax` or `log_softmax`, as a method or a function of torch, in which those of other names end."""

    def average(self, call: Call) -> End | None:
        """What moves an average in place: `lerp_`, `mul_`, `add_`, `*=`, `+=`, and `torch._foreach_lerp_`."""

    def draw(self, call: Call) -> End | None:
        """`Tensor.normal_` or `Tensor.uniform_`, in which every initialisation at random ends."""

    def seed_torch(self, call: Call) -> End | None:
        """`torch.manual_seed`."""

    def seed_python(self, call: Call) -> End | None:
        """`random.seed`."""

    def seed_numpy(self, call: Call) -> End | None:
        """`numpy.random.seed`, if it is loaded when this begins to be watched."""

    # -- backward passes and gradients ------------------------------------------------------------------------

    def backward(self, call: Call) -> End | None:
        """`torch.autograd.backward`, which `Tensor.backward` calls."""

    def differentiate(self, call: Call) -> End | None:
        """`torch.autograd.grad`."""

    def scale(self, call: Call) -> End | None:
        """`GradScaler.scale`."""

    def unscale(self, call: Call) -> End | None:
        """`GradScaler.unscale_`."""

    def clip(self, call: Call) -> End | None:
        """`clip_grad_norm_`, `clip_grads_with_norm_` or `clip_grad_value_`, however the run came by them."""

    def clear(self, call: Call) -> End | None:
        """`Optimizer.zero_grad`."""

    def clear_module(self, call: Call) -> End | None:
        """`Module.zero_grad`."""

    # -- steps ------------------------------------------------------------------------------------------------

    def step(self, call: Call) -> End | None:
        """`Optimizer.step`, of whatever class; one that is called by another of the same optimizer is not told."""

    def scaler_step(self, call: Call) -> End | None:
        """`GradScaler.step`."""

    def skip(self, call: Call) -> None:
        """`GradScaler.step` left out the step of the optimizer, and is over."""

    def update(self, call: Call) -> End | None:
        """`GradScaler.update`."""

    def schedule(self, call: Call) -> End | None:
        """The `step` of a learning rate scheduler."""

    # -- modules ----------------------------------------------------------------------------------------------

    def call_module(self, call: Call) -> End | None:
        """A module is called, whichever it is a part of."""

    def call_compiled(self, call: Call) -> End | None:
        """What `torch.compile` has made of a module is called."""

    def named_parameters(self, call: Call) -> End | None:
        """`Module.named_parameters`, which `Module.parameters` calls."""

    def register_parameter(self, call: Call) -> End | None:
        """`Module.register_parameter`, which an assignment to an attribute calls too."""

    def build_spectral_norm(self, call: Call) -> End | None:
        """A `SpectralNorm` is built, the hook of `torch.nn.utils.spectral_norm`."""

    def apply_spectral_norm(self, call: Call) -> End | None:
        """It is called before a forward pass of its layer."""

    def load_spectral_norm(self, call: Call) -> End | None:
        """The state of its layer is loaded."""

    # -- language models --------------------------------------------------------------------------------------

    def generate(self, call: Call) -> End | None:
        """`generate` of a model of transformers, if that is loaded when this begins to be watched."""

    def log(self, call: Call) -> End | None:
        """`log` of a Trainer of transformers, if that is loaded when this begins to be watched."""

    # -- values that the run logs, of the trackers that are loaded when this begins to be watched -----------------

    def add_scalar(self, call: Call) -> End | None:
        """`SummaryWriter.add_scalar` of TensorBoard."""

    def add_scalars(self, call: Call) -> End | None:
        """`SummaryWriter.add_scalars` of TensorBoard."""

    def log_row(self, call: Call) -> End | None:
        """`log` of Weights & Biases."""

    def log_metric(self, call: Call) -> End | None:
        """`MlflowClient.log_metric`, which `mlflow.log_metric` calls."""

    def log_batch(self, call: Call) -> End | None:
        """`MlflowClient.log_batch`, which `mlflow.log_metrics` calls."""

    # -- modes ------------------------------------------------------------------------------------------------

    def train(self, call: Call) -> End | None:
        """`Module.train`, which `Module.eval` calls."""

    def eval(self, call: Call) -> End | None:
        """`Module.eval`."""

    # -- what is saved and loaded -----------------------------------------------------------------------------

    def save(self, call: Call) -> End | None:
        """`torch.save`."""

    def save_elsewhere(self, call: Call) -> End | None:
        """What keeps weights without it, such as `safetensors`, if that is loaded when this begins to be watched."""

    def load(self, call: Call) -> End | None:
        """`torch.load`."""

    def module_state(self, call: Call) -> End | None:
        """`Module.state_dict`."""

    def load_module_state(self, call: Call) -> End | None:
        """`Module.load_state_dict`."""

    def optimizer_state(self, call: Call) -> End | None:
        """`Optimizer.state_dict`."""

    def load_optimizer_state(self, call: Call) -> End | None:
        """`Optimizer.load_state_dict`."""

    # -- ranks and compilers ----------------------------------------------------------------------------------

    def collective(self, call: Call) -> End | None:
        """A function of `torch.distributed` that several ranks call."""

    def message(self, call: Call) -> End | None:
        """`isend` or `irecv`."""

    def replicate(self, call: Call) -> End | None:
        """A `DistributedDataParallel` is built."""

    def join_group(self, call: Call) -> End | None:
        """`torch.distributed.init_process_group`."""

    def leave_group(self, call: Call) -> End | None:
        """`torch.distributed.destroy_process_group`."""

    def compile(self, call: Call) -> End | None:
        """`torch.compile`, which `Module.compile` calls."""

    # -- processes --------------------------------------------------------------------------------------------

    def start_process(self, call: Call) -> End | None:
        """`start` of a process of `multiprocessing`."""

    def start_program(self, call: Call) -> End | None:
        """`subprocess.Popen`, which all of `subprocess` calls."""
