#!/usr/bin/env python3
"""Machines from SkyPilot, for `mayfly run --engine exec:skypilot.py`: one cluster of one node for each, in whatever cloud SkyPilot has.

NOT RUN against any cloud. What is relied on was read in SkyPilot's command reference, source and tests (2026): the options of sky launch,
status, queue, logs and down; the fields name, status, launched_at, cloud and region of `sky status --output json`, and job_id and status of
`sky queue --output json`. --output came in February 2026. Not confirmed: how SkyPilot words a refusal; how soon a cluster goes by --down.

The folder of the run and mayfly itself must be seen under the same paths on the machines: a shared file system. Files that travel by
themselves are being built.

MAYFLY_SKY_INFRA   where, as `sky launch --infra` has it: aws, aws/us-east-1. Left out, SkyPilot chooses; needed where orders name zones
MAYFLY_SKY_IMAGE   as resources.image_id has it
MAYFLY_SKY_DISK    size of the disk in GB
MAYFLY_SKY_BEFORE  a file with shell text that runs before the machine's command, to mount the shared file system for example

sky launch takes minutes, and sky status --refresh asks the clouds. In the job file:
`engine: {exec: {patience: 20m, every: 30s, start: 15m}}`.

A machine's command is its cluster's job. The job's end is the machine's, and the cluster goes by itself (--down). A preempted one vanishes
from SkyPilot's list. No notice can be given from here: there is no verb tell."""
import json
import os
import re
import tempfile
import time

from clouds import called, cloud_name, content, ended, gigabytes, keep, kept, last_lines, launch_of, placed, setting
from lines import Trouble, serve

AT_WORK = ("INIT", "SETTING_UP", "PENDING", "RUNNING")  # of a job; all others are ends


def parsed(output):
    """Lines may stand before the JSON, which begins one."""
    found = re.search(r"^[\[{]", output, re.MULTILINE)
    try:
        return json.JSONDecoder().raw_decode(output, found.start())[0]
    except (AttributeError, ValueError):
        raise Trouble(f"sky said '{output.strip()[:200]}', want JSON") from None


def clusters(run, *how):
    """Of the run, by launch."""
    all_of_them = parsed(called("sky", "status", "--output", "json", *how))
    found = ((launch_of(cluster["name"], run), cluster) for cluster in all_of_them)
    return {launch: cluster for launch, cluster in found if launch is not None}


def infra(zone):
    where = setting("MAYFLY_SKY_INFRA")
    if zone and not where:
        raise Trouble(f"MAYFLY_SKY_INFRA is not set: want the cloud of zone {zone}")
    return f"{where.split('/')[0]}/*/{zone}" if zone else where


def task(machine):
    """As a SkyPilot file has it; what JSON is, is YAML as well."""
    resources = {"instance_type": machine["type"], "use_spot": machine["market"] == "spot", "infra": infra(machine.get("zone")),
                 "image_id": setting("MAYFLY_SKY_IMAGE"), "disk_size": gigabytes("MAYFLY_SKY_DISK")}
    return {"num_nodes": 1, "resources": {name: value for name, value in resources.items() if value or value is False},
            "run": content(setting("MAYFLY_SKY_BEFORE")) + "\n" + machine["command"]}


def launched(run, machine):
    name = cloud_name(run, machine["launch"])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "task.yaml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(task(machine), file, ensure_ascii=False)
        called("sky", "launch", "--yes", "--detach-run", "--down", "--cluster", name, path)
    return name


def order(run, machines):
    known = {launch: cluster["name"] for launch, cluster in clusters(run).items()}
    return placed(machines, known, lambda machine: launched(run, machine))


def list_machines(run, _):
    found = clusters(run, "--refresh")
    names = [cluster["name"] for cluster in found.values() if cluster["status"] not in ("INIT", "STOPPED")]
    jobs = parsed(called("sky", "queue", "--output", "json", *names)) if names else {}
    for launch, cluster in sorted(found.items()):
        name = cluster["name"]
        where = " ".join(cluster[key] for key in ("cloud", "region") if cluster.get(key))
        line = {"launch": launch, "id": name, "where": where, "age_s": max(0, int(time.time()) - cluster["launched_at"])}
        yield line | stage_of(cluster, max(jobs.get(name, []), key=lambda job: job["job_id"], default=None))
    give_back([cluster["name"] for cluster in found.values() if cluster["status"] == "STOPPED"])


def stage_of(cluster, job):
    if cluster["status"] == "STOPPED":
        return {"stage": "gone", "ending": "preempted", "why": "it was stopped"}
    if cluster["status"] == "INIT" or job is None:
        return {"stage": "starting"}
    if job["status"] in AT_WORK:
        return {"stage": "running"}
    if job["status"] == "SUCCEEDED":
        return {"stage": "gone", "ending": "finished", "why": "its job succeeded"}
    if kept(cluster["name"]) is None:
        keep(cluster["name"], log_of(cluster["name"]))  # while there is one
    return {"stage": "gone", "ending": "failed", "why": f"its job: {job['status']}"}


def give_back(names):
    """Stopped ones cost their disks, and mayfly does not end what is gone. What is not given back now is listed again."""
    if names:
        ended(("sky", "down", "--yes", "--async", *names))


def end(run, machines):
    found = clusters(run)
    if names := [found[one["launch"]]["name"] for one in machines if one["launch"] in found]:
        called("sky", "down", "--yes", *names)


def log_of(name):
    """Of its last job; sky's exit code is the job's."""
    return last_lines(ended(("sky", "logs", name, "--no-follow", "--tail", "50")).stdout)


def tail(run, machines):
    for name in (cloud_name(run, one["launch"]) for one in machines):
        words = kept(name)
        yield log_of(name) if words is None else words


if __name__ == "__main__":
    serve({"order": order, "list": list_machines, "end": end, "tail": tail})
