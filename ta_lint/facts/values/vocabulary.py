"""The kinds that functions and classes of torch and its frameworks create, return and pass on."""

from enum import StrEnum

from ta_lint.core.lazy import regex


class Kind(StrEnum):
    OPTIMIZER = "optimizer"
    SCHEDULER = "scheduler"
    SCALER = "scaler"
    CRITERION = "criterion"
    MODULE = "module"
    PARAMETER = "parameter"
    TENSOR = "tensor"
    DATASET = "dataset"
    DATALOADER = "dataloader"
    SAMPLER = "sampler"
    TRAINER = "trainer"


# Constructors and annotations by qualified name; the first match decides.
CONSTRUCTED = (
    (regex(r"torch\.optim\.lr_scheduler\.\w+|torch\.optim\.swa_utils\.SWALR"), Kind.SCHEDULER),
    (regex(r"(transformers|diffusers)\.(\w+\.)*get_\w*schedule\w*"), Kind.SCHEDULER),
    (regex(r"torch\.optim\.[A-Z]\w*|torch\.distributed\.optim\.ZeroRedundancyOptimizer"), Kind.OPTIMIZER),
    (regex(r"(bitsandbytes\.optim|apex\.optimizers|torch_optimizer|lion_pytorch|prodigyopt)(\.\w+)*\.[A-Z]\w*"),
     Kind.OPTIMIZER),
    (regex(r"transformers\.(\w+\.)*(AdamW|Adafactor)|timm\.optim\.(\w+\.)*create_optimizer\w*"), Kind.OPTIMIZER),
    (regex(r"torch\.amp\.GradScaler|torch\.distributed\.fsdp\.(\w+\.)*ShardedGradScaler"), Kind.SCALER),
    (regex(r"torch\.nn\.\w+Loss"), Kind.CRITERION),
    (regex(r"torch\.nn\.(Parameter|Buffer|UninitializedParameter)"), Kind.PARAMETER),
    (regex(r"torch\.nn\.(parallel\.)?[A-Z]\w*|torch\.optim\.swa_utils\.AveragedModel"), Kind.MODULE),
    (regex(r"torchvision\.models(\.\w+)*\.(?!list_|get_(?!model$)|register_|create_)[a-z]\w*"), Kind.MODULE),
    (regex(r"timm\.(models\.(\w+\.)*)?create_model|pytorch_fid\.(inception\.)?InceptionV3"), Kind.MODULE),
    (regex(r"transformers\.(\w+\.)*(?!TF|Flax)\w+(Model|For[A-Z]\w+)\.from_(pretrained|config)"), Kind.MODULE),
    (regex(r"peft\.(\w+\.)*(get_peft_model|(Auto)?Peft\w*Model\w*(\.from_pretrained)?)"), Kind.MODULE),
    (regex(r"(transformers|trl)\.(\w+\.)*\w*Trainer"), Kind.TRAINER),
    (regex(r"torch\.utils\.data\.DataLoader|torch_geometric\.(data|loader)\.DataLoader"), Kind.DATALOADER),
    (regex(r"torch\.utils\.data\.\w*Sampler"), Kind.SAMPLER),
    (regex(r"torch\.utils\.data\.(\w*Dataset|Subset)|torchvision\.datasets\.(\w+\.)*[A-Z]\w*"), Kind.DATASET),
    (regex(r"torch\.(Tensor|FloatTensor|LongTensor|BoolTensor)"), Kind.TENSOR),
)  # fmt: skip

# Functions that always return a single tensor.
RETURNS_TENSOR = regex(
    r"torch\.(abs|add|addmm|arange|argmax|argmin|as_tensor|autograd\.Variable|baddbmm|bernoulli|bmm|cat|clamp|concat|conj|cos|cross|"
    r"cumprod|cumsum|diag|diagonal|div|dot|einsum|empty|empty_like|eq|erf|exp|expm1|eye|flatten|flip|from_numpy|full|"
    r"full_like|gather|ge|gt|hstack|index_select|isinf|isnan|le|linspace|log|log10|log1p|log2|log_softmax|logical_and|"
    r"logical_not|logical_or|logspace|logsumexp|lt|masked_select|matmul|maximum|mean|minimum|mm|mul|multinomial|ne|neg|"
    r"normal|ones|ones_like|outer|permute|pow|prod|rand|rand_like|randint|randint_like|randn|randn_like|randperm|"
    r"reciprocal|relu|repeat_interleave|reshape|roll|round|rsqrt|scatter|sigmoid|sign|sin|softmax|sqrt|square|squeeze|"
    r"stack|sub|sum|swapaxes|tanh|tensor|tile|transpose|tril|triu|unsqueeze|vstack|where|zeros|zeros_like|"
    r"nn\.functional\.(avg_pool\dd|batch_norm|binary_cross_entropy(_with_logits)?|conv\dd|conv_transpose\dd|"
    r"cosine_similarity|cross_entropy|dropout\d?d?|elu|embedding|gelu|glu|grid_sample|group_norm|gumbel_softmax|"
    r"hinge_embedding_loss|huber_loss|instance_norm|interpolate|kl_div|l1_loss|layer_norm|leaky_relu|linear|"
    r"log_softmax|logsigmoid|mish|mse_loss|nll_loss|normalize|one_hot|pad|relu6?|rms_norm|"
    r"scaled_dot_product_attention|selu|sigmoid|silu|smooth_l1_loss|softmax|softplus|tanh|triplet_margin_loss))"
)

# Layers whose call returns a single tensor.
LAYER_RETURNS_TENSOR = regex(
    r"torch\.nn\.(\w*(Linear|Conv|ConvTranspose|BatchNorm|InstanceNorm|Dropout|AvgPool|Pad)(\dd)?|Embedding|GroupNorm|"
    r"LayerNorm|RMSNorm|Flatten|Unflatten|Identity|\w*(ReLU|LU|Sigmoid|Softmax|Tanh|swish)6?|Softplus|Upsample|"
    r"PixelShuffle|TransformerEncoder(Layer)?|TransformerDecoder(Layer)?)"
)

# Layers with a parameter `weight`, and one `bias` if no argument says otherwise.
LAYER_HAS_WEIGHT = regex(
    r"torch\.nn\.(Linear|Bilinear|Conv(Transpose)?[123]d|Embedding|BatchNorm[123]d|GroupNorm|LayerNorm)"
)

# Tensor methods that return a single tensor.
TENSOR_METHODS = frozenset(
    "abs add argmax bfloat16 bmm bool byte clamp clip clone contiguous cos cpu cuda cumsum detach div double eq "
    "exp expand expand_as fill_ flatten flip float gather ge gt half index_select int le log log_softmax long lt "
    "masked_fill masked_fill_ masked_select matmul mean mm mul ne neg norm permute pow prod relu repeat "
    "repeat_interleave requires_grad_ reshape roll round rsqrt scatter sigmoid sign sin softmax sqrt square squeeze sub "
    "sum t tanh to transpose tril triu type type_as unflatten unsqueeze view view_as zero_".split()
)

# Methods that tensors have, and nothing else that code gives to a module: no array, list, batch or configuration.
METHODS_OF_TENSORS_ALONE = frozenset(
    "expand_as index_select log_softmax masked_fill masked_fill_ masked_select permute repeat_interleave type_as "
    "unsqueeze unsqueeze_ view_as".split()
)

# Frameworks that return their arguments in order, wrapped and on the right device, of the same kind.
PREPARES = frozenset({"prepare", "setup", "setup_dataloaders", "setup_module", "setup_optimizers"})
PREPARERS = regex(
    r"accelerate\.(\w+\.)*Accelerator|lightning(\.\w+)*\.Fabric|lightning_fabric(\.\w+)*\.Fabric"
)
INITIALIZES = regex(r"apex\.amp\.initialize|accelerate\.prepare")
PREPARER_NAMES = frozenset({"accelerator", "fabric"})

# The kind of an instance of a class of this file, by the class it derives from.
DERIVED = {
    "torch.nn.Module": Kind.MODULE,
    "torch.optim.Optimizer": Kind.OPTIMIZER,
    "torch.optim.lr_scheduler.LRScheduler": Kind.SCHEDULER,
    "torch.utils.data.DataLoader": Kind.DATALOADER,
    "torch_geometric.data.DataLoader": Kind.DATALOADER,
    "torch_geometric.loader.DataLoader": Kind.DATALOADER,
    "torch.utils.data.Sampler": Kind.SAMPLER,
    "torch.utils.data.Dataset": Kind.DATASET,
    "transformers.Trainer": Kind.TRAINER,
}

# Methods of a module that return the module itself.
FLUENT = frozenset(
    "apply bfloat16 cpu cuda double eval float half requires_grad_ share_memory to to_empty train type".split()
)

# Functions that return their first argument, copied, wrapped or changed, as the same kind.
HANDS_ON = regex(
    r"copy\.(deep)?copy|torch\.compile|torch\.jit\.script|"
    r"torch\.nn\.(DataParallel|parallel\.(\w+\.)?(DataParallel|DistributedDataParallel))|"
    r"torch\.nn\.SyncBatchNorm\.convert_sync_batchnorm|"
    r"torch\.nn\.utils\.(parametrizations\.)?(weight_norm|spectral_norm|orthogonal|remove_weight_norm)"
)

# Annotations that only wrap the type in their brackets.
TRANSPARENT = regex(r"typing\.(Optional|Union|Annotated|Final|ClassVar)|typing_extensions\.(Annotated|Final)")


def constructed(qualified: str) -> Kind | None:
    """The kind that a class or factory creates, by its full name."""
    return next((kind for pattern, kind in CONSTRUCTED if pattern.fullmatch(qualified)), None)
