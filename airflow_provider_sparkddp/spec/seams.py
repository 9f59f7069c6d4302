"""Hardware, strategy and precision: three independent settings, and one table that says which combinations are refused.

From it come the check while a DAG is parsed, docs/reference/combinations.md, and the tests that walk every combination. Each of
the three may also be a user's own, written {"$import": "pkg.mod:Class", "kwargs": {…}}: no rule names it, so none refuses it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from airflow_provider_sparkddp.spec.arguments import UNKNOWN
from airflow_provider_sparkddp.spec.errors import SparkDDPError, nearest

# value -> what it means, for the docs
ACCELERATORS: dict[str, str] = {
    "auto": "cuda where Spark assigned GPUs to the tasks and torch finds them, otherwise cpu",
    "cpu": "the executors' cores",
    "cuda": "the GPUs that Spark assigned (`spark.task.resource.gpu.amount`)",
    "mps": "Apple's GPU",
    "tpu": "Google's TPU",
}
STRATEGIES: dict[str, str] = {
    "auto": "ddp; with one rank, single_device",
    "single_device": "one rank, which talks to nobody",
    "ddp": "each rank holds the model; gradients are averaged at each step",
    "ddp_find_unused_parameters_true": "ddp for models that leave parameters unused in some steps",
    "ddp_fp16_compress": "ddp whose gradients travel as float16",
    "ddp_bf16_compress": "ddp whose gradients travel as bfloat16",
    "ddp_powersgd": "ddp whose gradients travel as matrices of low rank (Vogels, Karimireddy and Jaggi, 2019)",
    "ddp_post_localsgd": "ddp whose ranks average their weights now and then, not their gradients (Lin et al., 2018)",
    "model_parallel": "FSDP2: parameters are sharded over the ranks by the module's own `configure_model`",
    "fsdp": "FSDP1: parameters are sharded over the ranks by Lightning",
    "deepspeed_stage_1": "DeepSpeed: optimizer states are sharded",
    "deepspeed_stage_2": "DeepSpeed: gradients too",
    "deepspeed_stage_3": "DeepSpeed: parameters too",
}
PRECISIONS: dict[str, str] = {
    "64-true": "all in float64",
    "32-true": "all in float32; the default",
    "16-mixed": "weights in float32, most operations in float16, the loss is scaled",
    "bf16-mixed": "weights in float32, most operations in bfloat16",
    "16-true": "all in float16",
    "bf16-true": "all in bfloat16",
    "transformer-engine": "float8 by NVIDIA's Transformer Engine, weights in bfloat16",
    "transformer-engine-float16": "float8 by NVIDIA's Transformer Engine, weights in float16",
    "bitsandbytes-nf4": "linear layers in 4 bits (normal float), frozen: for adapters trained beside them",
    "bitsandbytes-fp4": "linear layers in 4 bits (float), frozen",
    "bitsandbytes-int8": "linear layers in 8 bits, frozen",
    "bitsandbytes-int8-training": "linear layers in 8 bits that train",
}
VALUES: dict[str, dict[str, str]] = {"accelerator": ACCELERATORS, "strategy": STRATEGIES, "precision": PRECISIONS}
# Another name of the same value, as Lightning has it.
SYNONYMS: dict[str, dict[str, str]] = {
    "accelerator": {"gpu": "cuda", "None": "auto"},
    "strategy": {"None": "auto", "ddp_find_unused_parameters_false": "ddp"},
    "precision": {"None": "32-true", "32": "32-true", "64": "64-true", "16": "16-mixed", "bf16": "bf16-mixed"},
}
# Names of earlier days -> the successor.
FORMER: dict[str, dict[str, str]] = {
    "strategy": {
        "dp": "ddp",
        "ddp2": "ddp",
        "ddp_cpu": "ddp with accelerator='cpu'",
        "ddp_spawn": "ddp (each rank is a Spark task; nothing has to be spawned)",
        "ddp_fork": "ddp (each rank is a Spark task; nothing has to be forked)",
        "ddp_notebook": "ddp (each rank is a Spark task)",
        "ddp_sharded": "fsdp or model_parallel",
        "ddp_fully_sharded": "fsdp or model_parallel",
        "rpc": "model_parallel",
        "rpc_sequential": "model_parallel",
        "horovod": "ddp",
        "deepspeed": "deepspeed_stage_2",
    },
    "precision": {
        "apex": "16-mixed",
        "native": "16-mixed",
        "amp": "16-mixed or bf16-mixed",
        "mixed": "16-mixed or bf16-mixed",
        "half": "16-true",
        "full": "32-true",
        "double": "64-true",
    },
    "accelerator": {"ddp": "strategy='ddp'", "dp": "strategy='ddp'", "horovod": "strategy='ddp'", "ddp_cpu": "'cpu'"},
}
SHARDED = ("model_parallel", "fsdp", "deepspeed_stage_1", "deepspeed_stage_2", "deepspeed_stage_3")
_DEEPSPEED = ("deepspeed_stage_1", "deepspeed_stage_2", "deepspeed_stage_3")
_HOOKED = ("ddp_fp16_compress", "ddp_bf16_compress", "ddp_powersgd", "ddp_post_localsgd")
_ENGINES = ("transformer-engine", "transformer-engine-float16")
_QUANTISED = tuple(name for name in PRECISIONS if name.startswith("bitsandbytes"))
# One rank is all that they can train.
_ALONE = ("auto", "single_device")


@dataclass(frozen=True)
class Rule:
    """Combinations that are refused: those whose three values are all named; an empty tuple names every value."""

    reason: str
    remedy: str
    accelerators: tuple[str, ...] = ()
    strategies: tuple[str, ...] = ()
    precisions: tuple[str, ...] = ()

    def holds(self, accelerator: str, strategy: str, precision: str) -> bool:
        named = ((self.accelerators, accelerator), (self.strategies, strategy), (self.precisions, precision))
        return all(not values or value in values for values, value in named)


# The first that holds is told.
RULES: tuple[Rule, ...] = (
    Rule("Spark assigns no TPUs to tasks", "Use cuda or cpu.", accelerators=("tpu",)),
    Rule(
        "torch has no collectives on Apple's GPU",
        "Use strategy='single_device', or accelerator='cpu'.",
        accelerators=("mps",),
        strategies=tuple(name for name in STRATEGIES if name not in _ALONE),
    ),
    Rule("Apple's GPU has no float64", "Use 32-true.", accelerators=("mps",), precisions=("64-true",)),
    Rule(
        "it runs on CUDA alone",
        "Set accelerator='cuda', or use model_parallel, which also runs on CPUs.",
        accelerators=("cpu", "mps"),
        strategies=("fsdp", *_DEEPSPEED),
    ),
    Rule(
        "Lightning registers gradient hooks on CUDA alone and says nothing on a CPU",
        "Set accelerator='cuda', or use ddp.",
        accelerators=("cpu",),
        strategies=_HOOKED,
    ),
    Rule(
        "on a CPU Lightning quietly runs it as bf16-mixed",
        "Use bf16-mixed, or accelerator='cuda'.",
        accelerators=("cpu",),
        precisions=("16-mixed",),
    ),
    Rule(
        "on a CPU Adam's epsilon underflows in float16 and the weights become NaN",
        "Use bf16-true, or accelerator='cuda'.",
        accelerators=("cpu",),
        precisions=("16-true",),
    ),
    Rule(
        "Transformer Engine runs on NVIDIA's GPUs alone",
        "Set accelerator='cuda', or use bf16-mixed.",
        accelerators=("cpu", "mps"),
        precisions=_ENGINES,
    ),
    Rule(
        "bitsandbytes is taken by Lightning on NVIDIA's GPUs alone",
        "Set accelerator='cuda', or use bf16-true.",
        accelerators=("cpu", "mps"),
        precisions=_QUANTISED,
    ),
    Rule(
        "sharded parameters are not kept in float64 by Lightning",
        "Use 32-true, or strategy='ddp'.",
        strategies=SHARDED,
        precisions=("64-true",),
    ),
    Rule(
        "Lightning scales no loss over FSDP2's shards",
        "Use bf16-mixed.",
        strategies=("model_parallel",),
        precisions=("16-mixed",),
    ),
    Rule(
        "Transformer Engine's layers are not sharded by Lightning",
        "Use bf16-mixed, or strategy='ddp'.",
        strategies=SHARDED,
        precisions=_ENGINES,
    ),
    Rule(
        "bitsandbytes' packed layers are not sharded by Lightning",
        "Use bf16-mixed, or strategy='ddp'.",
        strategies=SHARDED,
        precisions=_QUANTISED,
    ),
)


def combinations() -> Iterator[tuple[str, str, str]]:
    """Every accelerator, strategy and precision of the tables."""
    yield from product(*VALUES.values())


def refusal(accelerator: str, strategy: str, precision: str, rules: Sequence[Rule] = RULES) -> Rule | None:
    """Why the combination is refused; None where it is allowed.

    `auto` becomes cuda or cpu when the ranks run: what one of the two refuses is refused then, so it is now.
    """
    hardware = ("cpu", "cuda") if accelerator == "auto" else (accelerator,)
    return next((rule for rule in rules for each in hardware if rule.holds(each, strategy, precision)), None)


def normal(name: str, value: Any) -> Any:
    """The value by its full name; what isn't known, and an object of the user's, as it is.

    Args:
        name: accelerator, strategy or precision.
    """
    if value is UNKNOWN or isinstance(value, (Mapping, list)):
        return value
    return SYNONYMS[name].get(str(value), value)


def is_own(value: Any) -> bool:
    """Whether it is the user's own, written {"$import": path, "kwargs": {…}}."""
    return isinstance(value, Mapping) and "$import" in value


def check(trainer: Mapping[str, Any], rules: Sequence[Rule] = RULES, also: str = "") -> None:
    """Raises SparkDDPError SDDP-104 for values or combinations that are refused.

    Args:
        also: what else was set, where the rules are of that.
    """
    chosen = {name: normal(name, trainer.get(name)) for name in VALUES}
    for name, known in VALUES.items():
        _require_known(name, chosen[name], known)
    if UNKNOWN in chosen.values():
        return
    told = {name: value["$import"] if is_own(value) else value for name, value in chosen.items()}
    if rule := refusal(**told, rules=rules):
        raise _refused(told, rule.reason, rule.remedy, also)


def require_ranks(trainer: Mapping[str, Any], world_size: int) -> None:
    """Raises SparkDDPError SDDP-104 where more ranks are asked for than the strategy or the hardware can train together."""
    chosen = {name: normal(name, trainer.get(name)) for name in VALUES}
    alone = chosen["strategy"] == "single_device" or chosen["accelerator"] == "mps"
    if alone and world_size > 1:
        raise _refused(
            {name: chosen[name] for name in ("accelerator", "strategy")},
            f"it trains one rank, and num_nodes x devices is {world_size}",
            "Set num_nodes=1 and devices=1, or use ddp on cpu or cuda.",
        )


def _refused(chosen: Mapping[str, Any], reason: str, remedy: str, also: str = "") -> SparkDDPError:
    named = ", ".join([f"{name}={value!r}" for name, value in chosen.items()] + [also] * bool(also))
    return SparkDDPError("SDDP-104", f"trainer has {named}, which is refused: {reason}.", remedy)


def _require_known(name: str, value: Any, known: Mapping[str, str]) -> None:
    if value is UNKNOWN or is_own(value) or (isinstance(value, str) and value in known):
        return
    successor = FORMER[name].get(str(value))
    remedy = f"Use {successor}. " if successor else nearest(str(value), known)
    why = "it is of Lightning's earlier days" if successor else "it is not known"
    raise SparkDDPError(
        "SDDP-104",
        f"trainer[{name!r}]={value!r} is refused: {why}.",
        f"{remedy}Allowed: {', '.join(known)}, and your own as {{'$import': 'pkg.mod:Class', 'kwargs': {{…}}}}.",
    )
