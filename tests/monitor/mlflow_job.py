"""A job that logs to MLflow: what is written to it line by line is done, and answered with the run's id."""

import os
import sys

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # MLflow itself says things, too

import mlflow  # noqa: E402

for line in sys.stdin:
    what, *words = line.split()
    if what == "experiment":
        mlflow.set_experiment(words[0])
    elif what == "begin":
        mlflow.start_run(run_id=words[0] if words else None)
    elif what == "end":
        mlflow.end_run()
    elif what == "many":
        client, run = mlflow.MlflowClient(), mlflow.active_run().info
        metrics = [
            mlflow.entities.Metric(words[0], i / 1000, run.start_time + i, i) for i in range(int(words[1]))
        ]
        for i in range(0, len(metrics), 1000):
            client.log_batch(run.run_id, metrics[i : i + 1000])
    else:
        step, *named = words
        values = dict(word.split("=") for word in named)
        mlflow.log_metrics({name: float(value) for name, value in values.items()}, step=int(step))
    run = mlflow.active_run()
    answers.write(f"{run.info.run_id if run else '-'}\n")
    answers.flush()
