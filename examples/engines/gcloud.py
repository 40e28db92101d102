#!/usr/bin/env python3
"""Machines from Google Compute Engine, for `mayfly run --engine exec:gcloud.py`: one instance for each.

NOT RUN against the cloud. The words of every call were taken by a real gcloud (528) without account and network. Fields and states of
instances, and that a preempted machine has an operation compute.instances.preempted, were read in Google's reference. Not confirmed: that
the serial port of an instance that has stopped can still be read. Where it cannot, a command that ended counts as failed.

The folder of the run and mayfly itself must be seen under the same paths on the machines: a shared file system. Files that travel by
themselves are being built.

MAYFLY_GCLOUD_IMAGE      needed: PROJECT/FAMILY, debian-cloud/debian-12 for example; for GPUs one with their drivers
MAYFLY_GCLOUD_ZONE       for orders that name none
MAYFLY_GCLOUD_PROJECT    else gcloud's own
MAYFLY_GCLOUD_DISK       size of the boot disk in GB; else the image's
MAYFLY_GCLOUD_BEFORE     a file with shell text that runs before the machine's command, to mount the shared file system for example
MAYFLY_GCLOUD_ARGUMENTS  further words for `gcloud compute instances create`: --subnet=..., --accelerator=..., --service-account=...

A machine runs its command as root, from its startup script, and powers off when the command is over. It is deleted when that is seen, as
mayfly does not end what is gone; until then it costs its disk. Spot machines are deleted by Google when they are preempted, and then vanish
from the list. No notice can be given from here (there is no verb tell): the instance has Google's own."""
import datetime
import json
import shlex
import sys
import tempfile

from clouds import (at_once, boot_script, called, cloud_name, cloud_run, code_in, content, ending_of, gigabytes, keep, kept, last_lines,
                    launch_of, placed, setting)
from lines import Trouble, serve

LABEL = "mayfly-run"
STAGES = {"PENDING": "ordered", "PROVISIONING": "starting", "STAGING": "starting"}
OFF = ("TERMINATED", "STOPPED", "SUSPENDED")  # all others run, some of them on their way out


def gcloud(*words):
    project = setting("MAYFLY_GCLOUD_PROJECT")
    return called("gcloud", "compute", *words, "--quiet", *([f"--project={project}"] if project else []))


def instances(run):
    """By launch."""
    output = gcloud("instances", "list", f"--filter=labels.{LABEL}={cloud_run(run, 55)}", "--format=json")
    found = ((launch_of(instance["name"], run), instance) for instance in json.loads(output))
    return {launch: instance for launch, instance in found if launch is not None}


def zone_of(instance):
    return instance["zone"].rpartition("/")[2]


def id_of(instance):
    return f"{zone_of(instance)}/{instance['name']}"


def order(run, machines):
    image = setting("MAYFLY_GCLOUD_IMAGE", "PROJECT/FAMILY").rpartition("/")
    known = {launch: id_of(instance) for launch, instance in instances(run).items()}
    return placed(machines, known, lambda machine: created(run, machine, image))


def created(run, machine, image):
    name = cloud_name(run, machine["launch"])
    zone = machine.get("zone") or setting("MAYFLY_GCLOUD_ZONE", "a zone, as the order names none")
    words = [f"--zone={zone}", f"--machine-type={machine['type']}", f"--labels={LABEL}={cloud_run(run, 55)}",
             f"--image-project={image[0]}", f"--image-family={image[2]}", "--maintenance-policy=TERMINATE", "--no-restart-on-failure"]
    if machine["market"] == "spot":
        words += ["--provisioning-model=SPOT", "--instance-termination-action=DELETE"]
    if disk := gigabytes("MAYFLY_GCLOUD_DISK"):
        words.append(f"--boot-disk-size={disk}GB")
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".sh") as file:
        file.write(boot_script(machine["command"], content(setting("MAYFLY_GCLOUD_BEFORE"))))
        file.flush()
        gcloud("instances", "create", name, *words, f"--metadata-from-file=startup-script={file.name}",
               *shlex.split(setting("MAYFLY_GCLOUD_ARGUMENTS")))
    return f"{zone}/{name}"


def list_machines(run, _):
    found = instances(run)
    yield from at_once(lambda item: sight(*item), sorted(found.items()))
    give_back([instance for instance in found.values() if instance["status"] in OFF])


def sight(launch, instance):
    created_at = datetime.datetime.fromisoformat(instance["creationTimestamp"].replace("Z", "+00:00"))
    age = datetime.datetime.now(datetime.timezone.utc) - created_at
    line = {"launch": launch, "id": id_of(instance), "where": id_of(instance), "age_s": max(0.0, round(age.total_seconds(), 3))}
    if instance["status"] in OFF:
        return line | ending(instance)
    return line | {"stage": STAGES.get(instance["status"], "running")}


def ending(instance):
    """Only what Google preempts goes otherwise than by its command."""
    words = serial_output(instance)
    keep(instance["name"], last_lines(words))
    if (code := code_in(words)) is not None:
        return ending_of(code)
    if preempted(instance):
        return {"stage": "gone", "ending": "preempted", "why": "Google Cloud has preempted it"}
    return {"stage": "gone", "ending": "failed", "why": "it stopped by itself, and does not say how its command ended"}


def serial_output(instance):
    try:
        return gcloud("instances", "get-serial-port-output", instance["name"], f"--zone={zone_of(instance)}")
    except Trouble:
        return ""


def preempted(instance):
    try:
        output = gcloud("operations", "list", f"--zones={zone_of(instance)}", "--format=json",
                        f"--filter=operationType=compute.instances.preempted AND targetLink~/{instance['name']}$")
    except Trouble:
        return False
    return bool(json.loads(output))


def delete(those):
    for zone in sorted({zone_of(instance) for instance in those}):
        gcloud("instances", "delete", *sorted(one["name"] for one in those if zone_of(one) == zone), f"--zone={zone}", "--delete-disks=all")


def give_back(those):
    """What is not given back now is listed again."""
    try:
        delete(those)
    except Trouble as trouble:
        print(trouble, file=sys.stderr)


def end(run, machines):
    found = instances(run)
    delete([found[one["launch"]] for one in machines if one["launch"] in found])


def tail(run, machines):
    found = instances(run)
    for one in machines:
        words = kept(cloud_name(run, one["launch"]))
        if words is None and one["launch"] in found:
            words = last_lines(serial_output(found[one["launch"]]))
        yield words or ""


if __name__ == "__main__":
    serve({"order": order, "list": list_machines, "end": end, "tail": tail})
