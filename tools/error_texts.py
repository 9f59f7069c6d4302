"""What each error code means, its usual cause, and what to do. `python -m tools.docs` makes docs/reference/errors.md of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Explanation:
    """For one code: what it means, its usual cause, what to do. Markdown."""

    meaning: str
    cause: str
    remedy: str


TEXTS: dict[str, Explanation] = {
    "SDDP-101": Explanation(
        "An operator's argument is missing, has a type that cannot be converted, or has a value that makes no sense. "
        "It is found while the DAG is parsed when the value is written out, otherwise when the task runs, after its "
        "templates are rendered and before Spark is asked.",
        "A template that renders to nothing or to a word where a number is needed; `source` with two kinds at once, or "
        "with a path and no `format`; an import path without its colon; a gate without a bound; `application` or "
        "`java_class`, which the operator decides; an interpreter in `python` that cannot be started.",
        "The message names the argument, the value and what is expected. For a templated value, look at the task's "
        "*Rendered Templates* in Airflow.",
    ),
    "SDDP-102": Explanation(
        "The argument is part of the interface, but this version cannot do it yet. It is refused rather than ignored.",
        "One of the arguments listed in [What is not built yet](operators.md#what-is-not-built-yet), deploy mode "
        "`cluster`.",
        "Leave the argument out; the message names what to use instead, where there is something.",
    ),
    "SDDP-103": Explanation(
        "A key of `trainer` is not an argument of Lightning's `Trainer`, or it is one that follows from the operator's "
        "own arguments.",
        "A misspelt name (`max_epoch` for `max_epochs`); `devices` or `num_nodes` inside of `trainer`; a `save_dir` for a logger, "
        "whose files lie on the run's storage; a number format that is set twice, as `precision` and as a plugin.",
        "Take the nearest name from the message. Set ranks by the operator's `num_nodes` and `devices`.",
    ),
    "SDDP-104": Explanation(
        "The accelerator, strategy or precision is not one that works here, or the combination would not do what it says.",
        "`precision='16-mixed'` without `accelerator='cuda'` (on a CPU Lightning quietly runs it as bf16-mixed); a "
        "strategy that starts processes by itself (`ddp_spawn`), while here each rank is a Spark task already.",
        "Use one of the values that the message lists.",
    ),
    "SDDP-105": Explanation(
        "`conf` switches dynamic allocation on. All ranks of a training must run at the same time, and Spark refuses "
        "dynamic allocation together with such a stage.",
        "`conf={'spark.dynamicAllocation.enabled': 'true'}`, often copied from another job.",
        "Leave it out: the provider switches it off for its own application. Ask for executors by `num_executors` "
        "(YARN, Kubernetes) or `total_executor_cores` (standalone).",
    ),
    "SDDP-106": Explanation(
        "Airflow has no connection of the name in `conn_id`, or it is none to Spark. The Spark provider itself would go to "
        "YARN, or to whatever the connection names, without a word.",
        "The connection was never added, or it exists in another Airflow or secrets backend; its type is not `spark`.",
        "Add a connection of type `spark`: see [Install](../../README.md#install-into-your-own-airflow).",
    ),
    "SDDP-107": Explanation(
        "A path is not an absolute URI, or its scheme is not known. A bare path means one place to Spark "
        "(`fs.defaultFS`) and another to Python.",
        "`/data/models` for `file:///data/models`; a path with `..`; `file://data/models`, which has two slashes; a local "
        "path with `%`, `?` or `#`, which Spark and Python read differently.",
        "Write the whole URI. Known schemes: `file`, `s3`, `s3a`, `gs`, `abfss`, `hdfs`, `dbfs`.",
    ),
    "SDDP-108": Explanation(
        "An entry of `py_files` does not exist, is not Python, holds compiled code or this provider; or a zip of code that an "
        "earlier task stored in the run directory is gone or was changed.",
        "A path that is relative to something else than the DAG file's folder; a wheel that must be installed, a source "
        "distribution or an egg; a cleaned-up run directory.",
        "Relative entries lie beside the DAG file. Compiled packages travel in a packed environment: see "
        "[environments](../how-to/environments.md). When the stored zip is the problem, clear the task that stored it.",
    ),
    "SDDP-109": Explanation(
        "The Airflow worker cannot start Spark: there is no Java, or no `spark-submit`.",
        "A worker image without Java (the official Airflow image has none); a venv without `pyspark`.",
        "Install Java 17 or newer, for example `apt-get install openjdk-17-jre-headless`, and this package with "
        "`[airflow]`, which brings `pyspark` and its launcher.",
    ),
    "SDDP-110": Explanation(
        "`pyspark` and `pyspark-client` are installed in different versions. Both write the same folder `pyspark/`, so "
        "each has overwritten files of the other.",
        "An upgrade of one of the two; the Spark provider brings `pyspark-client` by itself.",
        "Pin both to the same version and reinstall both; the message holds the command.",
    ),
    "SDDP-111": Explanation(
        "A key of `conf`, or of a source's `options` or `kwargs`, is named like a secret. Its value would stand in the "
        "command line of `spark-submit`, in `job.json`, in the task's log and in Airflow's *Rendered Templates*.",
        "`spark.hadoop.fs.s3a.secret.key`, `password`, `token` and the like, written into the DAG or templated from a "
        "connection.",
        "Put it into a file that only Airflow's user may read and give `properties_file`, or into the cluster's "
        "`spark-defaults.conf`; better, let the hosts' own identity reach the storage. A database is read by "
        "`jdbc_conn_id`; another source that needs a password in a function (`callable`) that fetches it where the driver runs.",
    ),
    "SDDP-112": Explanation(
        "The Airflow connection of a source's `jdbc_conn_id` does not exist, says no JDBC URL or driver class, or holds a "
        "password elsewhere than in its password, where it would be shown. A replay has no connection at all.",
        "A misspelt id; a connection without a host; a kind of database that this provider knows no URL for; a URL with "
        "`?password=`; settings of encryption that cannot be put into a URL.",
        "`airflow connections get ID` shows it. Set `jdbc_url` in its extra where the URL cannot be made of host, port and "
        "schema, and `driver_class` where the URL does not tell it: see [Read a database](../how-to/read-a-database.md). For a "
        "replay set the environment variables that the message names.",
    ),
    "SDDP-113": Explanation(
        "An entry of `archives` is missing, not whole, or of a kind that Spark does not unpack; or the environment in it cannot "
        "be run by the executors.",
        "A folder was packed instead of its contents; another Python than the driver's; a local master, where ranks run in the "
        "Airflow worker's own interpreter.",
        "Pack it as [environments](../how-to/environments.md) says; relative entries lie beside the DAG file.",
    ),
    "SDDP-201": Explanation(
        "The source has no rows, or the split leaves none for training or none for validation.",
        "A filter or date that matches nothing; `validation={'after': …}` with a value beyond the last row (the value "
        "itself belongs to training), or before the first.",
        "Check the source; change `validation`, or set `validation=None` to train without validation rows.",
    ),
    "SDDP-202": Explanation(
        "A split has fewer rows, or `group_by` fewer groups, than there are ranks: some rank would have nothing to read. "
        "The validation task also raises it for a manifest without test and validation rows.",
        "A tiny validation share with many ranks; `validation=None` and a validation task in the same DAG.",
        "Lower `num_nodes` or `devices`, or hold out more rows.",
    ),
    "SDDP-203": Explanation(
        "Spark, or your own `callable`, could not give the rows.",
        "A table or path that does not exist; a missing jar for the format; an exception in your function, or a "
        "function that returns something else than a Spark DataFrame. Spark reads lazily, so an error in the rows "
        "themselves shows while the partitions are written.",
        "Try the same in a notebook or `spark-shell`: the error is the same there. Of a database the message holds its own "
        "words; where it could not be reached, Airflow's retries apply.",
    ),
    "SDDP-204": Explanation(
        "A column is missing, is there twice, or has a name that cannot be used.",
        "A misspelt feature; a target that is also a feature; a join that leaves two columns of one name; a name with a "
        "dot or a backtick, or one that begins with `sparkddp_`.",
        "The message lists the columns that there are, and the nearest name. Rename in the source, or partition again "
        "with the column.",
    ),
    "SDDP-205": Explanation(
        "A column's type cannot be used: at partitioning one that is neither a number, text, a date, nor an array of numbers "
        "of one length (struct, map, binary), "
        "at training a feature or target that is not a number.",
        "Text columns among the features; arrays of differing lengths; a column for `validation={'column': …}` that is not boolean.",
        "Encode text by `encode`, turn others into numbers by `columns={…: 'SQL expression'}`, or leave them out by `columns`.",
    ),
    "SDDP-206": Explanation(
        "A feature or the target holds nulls, NaN or infinities; or the column that decides on validation is null somewhere.",
        "Outer joins, divisions by zero, rows that have not been measured yet.",
        "Fill or drop those rows in the source, then run the partition task again. Its log lists each column with gaps.",
    ),
    "SDDP-207": Explanation(
        "A feature or the target is an integer beyond 16,777,216 (2^24). Training computes in float32, which skips "
        "integers above that.",
        "An id, a Unix time or a number of bytes among the features.",
        "Leave ids out. Subtract an offset or scale in the source; cast to double if rounding is meant.",
    ),
    "SDDP-208": Explanation(
        "There is no manifest at the path, the file is not a whole, unchanged manifest, or retention is removing it.",
        "The run directory was cleaned up; the path names another file; somebody edited the manifest; it is older than a later "
        "run's `retention`.",
        "Give the path that the partition task returned as `manifest`, or run the partition task again.",
    ),
    "SDDP-209": Explanation(
        "A Parquet file that the manifest lists is missing, or has other bytes than when the manifest was written.",
        "A clean-up job or another writer in the same folder; files copied without their manifest, or in part.",
        "Run the partition task again. Additional files in the folder do no harm: they are never read.",
    ),
    "SDDP-210": Explanation(
        "A date or timestamp lies outside of the years 1 to 9999: Python and pandas cannot hold it.",
        "A sentinel such as `9999-12-31 23:59:60` gone wrong, a number of milliseconds read as seconds, a year with a digit "
        "too many.",
        "Filter such rows by `where`, or mend the column by `columns={…: 'SQL expression'}`.",
    ),
    "SDDP-211": Explanation(
        "The data differ from those of the manifest in `compare_with` by more than `drift` allows. Nothing was published.",
        "A column that changed its type or vanished; a category that was never seen; another unit.",
        "The log shows each difference. Mend the source, loosen the gate, or compare with a newer manifest.",
    ),
    "SDDP-212": Explanation(
        "The files of the source do not agree with one another: their schemas differ, lines are malformed, or values of a "
        "partition column lose something by the type that Spark gives them.",
        "A column that was added or changed its type later; a line with a separator too many; a folder `code=007`.",
        "The message names file and column. Mend the files, or accept it by `tolerate` in the source: then it is only counted "
        "and shown. See [mend a source](../how-to/mend-a-source.md).",
    ),
    "SDDP-213": Explanation(
        "A column in `encode` cannot be encoded as asked, or an encoded column is used where it cannot be.",
        "`index` for a number, `standardize` for text; a vocabulary too large; an encoded target.",
        "Correct `encode`; the message names the column.",
    ),
    "SDDP-301": Explanation(
        "A file on storage could not be read or written, for another reason than that it is not there.",
        "Missing rights or space; an unreachable store; a Python package for the scheme that is not installed "
        "(`s3fs` by the extra `[s3]`, `gcsfs`, `adlfs`); no credentials in the environment of the host.",
        "The message holds the store's own words and the URI. Install the package where the message was raised: on the "
        "Airflow worker, the driver or the executors.",
    ),
    "SDDP-302": Explanation(
        "The driver and the executors do not see the same run directory. It is tried in the first seconds on masters "
        "that are not local: the driver writes, executors read and write, the driver reads.",
        "`[sparkddp] storage_root` is a local folder (the default is one), while Spark runs on other machines.",
        "Set `storage_root`, or the operator's `run_dir`, to storage that all of them share.",
    ),
    "SDDP-303": Explanation(
        "Spark cannot run all ranks at the same time. Spark itself would wait about ten minutes before it says so.",
        "More ranks than cores (or than GPUs, when each rank asks for one); another application holds the executors; "
        "executors that are slow to start.",
        "The message gives both numbers. Lower `num_nodes` or `devices`, ask for more executors, or wait longer by "
        "`executors_timeout`.",
    ),
    "SDDP-304": Explanation(
        "The job's process ended, and there is no result.json of it.",
        "The driver was killed (memory, a restarted worker) or never started; or driver and Airflow worker do not share "
        "the run directory.",
        "Read the task's log above the message: the last lines of `spark-submit` are there. More `driver_memory` helps "
        "a driver that was killed for memory.",
    ),
    "SDDP-305": Explanation(
        "The result.json in this try's folder carries the nonce of another try, so it is not believed.",
        "Files that were copied from one try's folder to another's.",
        "Clear the task: each try has a folder of its own.",
    ),
    "SDDP-306": Explanation(
        "A file was written by a version with another protocol number, or it is cut, changed, or of another kind.",
        "Different versions of this package on the Airflow worker and in stored files; a hand-edited job.json or "
        "result.json.",
        "Use one version on both sides, or run the task that wrote the file again.",
    ),
    "SDDP-307": Explanation(
        "CUDA was asked for, and the rank has no GPU; or `CUDA_VISIBLE_DEVICES` on the executor contradicts what Spark gave.",
        "Spark's workers do not offer GPUs; a CPU build of torch on the executors; a `CUDA_VISIBLE_DEVICES` in the "
        "executors' environment.",
        "See [GPUs](../how-to/gpus.md). With `accelerator='auto'` a rank without a GPU runs on the CPU.",
    ),
    "SDDP-308": Explanation(
        "Something that no other code covers went wrong in the job. Its traceback stands in the task's log.",
        "Spark could not be reached or stopped in the middle; a fault of this provider.",
        "Read the traceback. If Spark is well, please report it with job.json and the log.",
    ),
    "SDDP-309": Explanation(
        "The task was stopped while its job ran, so the job ended and published nothing.",
        "Somebody marked the task failed or cleared it; `execution_timeout`; the Airflow worker went away.",
        "Airflow's retries apply; or clear the task to run it again.",
    ),
    "SDDP-310": Explanation(
        "Spark has no jar for the source's format, the database or the storage's scheme.",
        "Avro, Delta Lake, Iceberg, JDBC drivers and Hadoop's connectors for object stores do not come with Spark.",
        "Give `packages` (Maven coordinates) or `jars` to the operator, or install the jar on the cluster; the message names it. "
        "Partitions can be written without one: `writer='arrow'`, see [object stores](../how-to/object-stores.md).",
    ),
    "SDDP-311": Explanation(
        "A rank needs a package that its executor lacks, or that is of another version than on the other ranks.",
        "`strategy='deepspeed_stage_2'` without DeepSpeed, a precision without its package; executors that were set up at "
        "different times.",
        "Install the package on the executors, or send a packed environment with `archives`.",
    ),
    "SDDP-312": Explanation(
        "Rank 0 found no free port for the store at which the ranks meet.",
        "A narrow `port_range` on a host that runs other trainings, whose Spark driver and executors take ports of it too.",
        "Open a larger range in the firewall and give it, or end what holds the ports.",
    ),
    "SDDP-401": Explanation(
        "An import path (`model`, a source's `callable`, or a `$import`) cannot be imported where the job runs.",
        "Its file is not in `py_files` and its package is not installed there; the module itself raises while it is "
        "imported, for example because a package that it needs is missing on the executors.",
        "The message holds Python's own words. Add the file or folder to `py_files`, or install the package.",
    ),
    "SDDP-402": Explanation(
        "What `model` names is not a LightningModule, and not a function that returns one.",
        "A plain `torch.nn.Module`; the name of a module's variable.",
        "Extend `LightningModule` of `pytorch_lightning` or `lightning.pytorch`; both are taken.",
    ),
    "SDDP-403": Explanation(
        "The model's constructor does not take `model_kwargs`, or raises with them.",
        "A misspelt or missing argument; a value out of the constructor's range.",
        "The message lists the constructor's arguments, or holds what it raised.",
    ),
    "SDDP-404": Explanation(
        "Your code raised in a rank. The log holds that rank's own traceback; the other ranks were stopped.",
        "An error in the model or in how it meets the data: shapes, an index beyond an embedding, memory of the GPU.",
        "Mend the model or the data, then clear the task. To try it without Airflow, see "
        "[Debug a job](../how-to/debug-a-job.md). It is not tried again by itself: the same code would raise again.",
    ),
    "SDDP-405": Explanation(
        "A rank ended without leaving an error, as a killed process does. The message names the ranks that noticed.",
        "The executor was killed for memory, its machine went away, or a native library crashed.",
        "Look at lost executors in Spark's UI. Raise `executor_memory`, or lower `batch_size`. Airflow's retries apply.",
    ),
    "SDDP-406": Explanation(
        "The training loss became NaN or infinite, so training stopped. On a CPU it is seen at the step itself, on CUDA "
        "at the end of the epoch.",
        "A learning rate that is too high; features on very different scales; a logarithm or division in the loss.",
        "Lower the learning rate, set `trainer={'gradient_clip_val': 1.0}`, or scale the features.",
    ),
    "SDDP-407": Explanation(
        "The loss was given shapes that broadcast into each other, such as (rows, 1) against (rows,). It would train on "
        "every pair of rows, with only a warning from torch.",
        "A last layer with one output whose dimension is kept.",
        "Return the shape (rows,) from `forward`, for example by `.squeeze(-1)`: `y` has the shape (rows,).",
    ),
    "SDDP-408": Explanation(
        "The strategy asks something of the module that it doesn't have.",
        "`strategy='model_parallel'` shards the layers that the module's `configure_model` names, and it has no such method.",
        "Write `configure_model`, which calls `fully_shard` for the layers, or use `ddp`, which needs nothing.",
    ),
    "SDDP-409": Explanation(
        "An object written as `{'$import': …}` in `trainer` is of another kind than its place asks for.",
        "A class of `lightning.pytorch` beside a model of `pytorch_lightning`, which don't take each other's objects; a class that "
        "extends nothing of Lightning's; an accelerator that says that it isn't available on the executor.",
        "Extend the class that the message names.",
    ),
    "SDDP-410": Explanation(
        "Early stopping, `best_weights`, a callback or a learning-rate scheduler decides by a metric that is not there, or that is "
        "one rank's own. The ranks would decide differently.",
        "A misspelt name; a metric that is logged in `training_step` alone while the validation is watched; "
        "`if self.global_rank == 0: self.log(…)`; `self.log` in `on_train_epoch_end` without `sync_dist=True`.",
        "Take one of the names that the message lists, or log the metric on every rank.",
    ),
    "SDDP-411": Explanation(
        "A parameter got no gradient on a rank. Plain ddp waits for the gradients of all parameters, and would fail or hang in the "
        "next step.",
        "A layer that `forward` doesn't use, or only for some batches; a loss that doesn't depend on one of the model's heads.",
        "Let the loss use the parameter, freeze it by `requires_grad_(False)`, or set "
        "`trainer={'strategy': 'ddp_find_unused_parameters_true'}`.",
    ),
    "SDDP-412": Explanation(
        "`training_step` returned None on a rank: with several ranks a step can't be left out by one of them.",
        "A `return` without a value for batches that don't suit.",
        "Return a loss for every batch; one of zero is `0 * self(x).sum()`. For a loss that may be NaN there is `on_nan='skip'`.",
    ),
    "SDDP-413": Explanation(
        "`configure_optimizers` returned None. Lightning would run all epochs and train nothing.",
        "A missing `return`.",
        "Return an optimizer. A module that steps its optimizers itself sets `self.automatic_optimization = False`.",
    ),
    "SDDP-414": Explanation(
        "In barrier code of your own the Trainer counts other ranks than Spark started tasks, or none used the environment; or "
        "`spark_environment` is used outside of a barrier task.",
        "`Trainer` without `num_nodes=environment.world_size()`, with `devices` above 1, or with `strategy='auto'` on one node.",
        "See [barrier code of your own](../how-to/own-barrier-code.md).",
    ),
    "SDDP-415": Explanation(
        "`tune` asks for a learning rate or a batch size, and Lightning's Tuner can't find one for this model. Nothing was trained.",
        "The module keeps its learning rate under another name than `lr` or `learning_rate`; `configure_optimizers` gives two "
        "optimizers; the loss diverged within the first steps of the search.",
        "The message says which. Name the attribute by `tune={'lr': {'attr_name': …}}`, change the bounds of the search, or leave "
        "`tune` out. See [find a learning rate](../how-to/tune.md).",
    ),
    "SDDP-501": Explanation(
        "There is no whole model in the folder: model.json is missing or changed, or a file that it lists is missing, "
        "cut, or not the one that was written.",
        "A wrong path; a copy that was interrupted; a file that somebody replaced.",
        "Check the path, or run the export task again.",
    ),
    "SDDP-502": Explanation(
        "model.json names a class or function of a module that nobody said to trust, or something in a trusted module "
        "that belongs to another one. Of Lightning and this package only modules (classes) are ever loaded.",
        "`load_model` without `trusted_modules`; a validation task that was given a path instead of `export.output`.",
        "If you trust the code, name its module: `trusted_modules=['my_models']`. Between the operators of one DAG this "
        "goes by itself.",
    ),
    "SDDP-503": Explanation(
        "The weights do not fit the class that was built, or the model's state holds something that is not a tensor. Of "
        "`init_from` the names that are missing, unexpected, or of another shape are told.",
        "The model's code or its `model_kwargs` changed since it was trained.",
        "Load with the code that it was trained with, or train and export again. With `init_from`, give "
        '`{"path": …, "strict": False}` to start from the weights that fit.',
    ),
    "SDDP-504": Explanation(
        "The rows given to `predict` lack a feature or hold something that the model cannot take; or the model's "
        "`forward` returns something else than one tensor with a row for each row.",
        "A missing column, a text where a number is needed or the reverse, nulls, a list of another length, or a number that "
        "float32 cannot hold among the features; a `forward` that returns a tuple.",
        "Give every feature once, raw, as the training's source held it. Let `forward(x)` return (rows,), (rows, 1) or "
        "(rows, outputs).",
    ),
    "SDDP-505": Explanation(
        "The exported model failed a check: its alias, the shape or finiteness of its predictions, parity with the "
        "trained model, or a metric's gate. The message names each failed check with its figures.",
        "A model that is not good enough; held-out rows that differ from the training rows; a gate that is too strict.",
        "Train longer, mend the data, or correct the gate. The exported files stay where they are: let nothing use "
        "them before the task has passed.",
    ),
    "SDDP-506": Explanation(
        "`init_from` names a checkpoint that torch does not read as weights alone, or that holds no `state_dict`. Nothing "
        "else is unpickled.",
        "Hyper-parameters or a callback's state hold objects (a class of your own, a numpy scalar); a file that was cut, or "
        "is no Lightning checkpoint.",
        "Start from an exported model. Or, where you trust the file, save its weights alone: "
        "`torch.save({'state_dict': torch.load(path, weights_only=False)['state_dict']}, other_path)`.",
    ),
}
