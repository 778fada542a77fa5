"""A home's jobs stay with the engine that runs them."""

import subprocess

from servers import Server, until


def _up_on_slurm(server: Server) -> str:
    """What is said to who starts it so. Slurm need not be here: jobs are looked at first."""
    words = [*server.command(), "--engine", "slurm"]
    done = subprocess.run(words, env={"PATH": ""}, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode != 0
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_a_home_whose_jobs_run_here_is_not_taken_to_slurm() -> None:
    with Server() as server:
        job = server.sh("sleep 600")["id"]
        with server.client() as client:
            until(lambda: client.job(job)["state"] == "RUNNING", "the job to run")
        server.kill()
        assert _up_on_slurm(server).startswith(
            "muster: the engine local has 1 job of this home, of which slurm would know nothing: "
            "start Muster with --engine local, or give this one a home of its own with MUSTER_HOME"
        )
        server.start()
        with server.client() as client:
            assert client.job(job)["state"] == "RUNNING"
            assert client.job(job)["attempt"] == 1


def test_a_home_whose_jobs_are_over_can_be_taken_elsewhere() -> None:
    with Server() as server:
        job = server.sh("true")["id"]
        with server.client() as client:
            assert client.wait(job, 60)["state"] == "ENDED"
        server.terminate()
        assert _up_on_slurm(server).startswith("muster: there is no command sinfo here")
