#!/usr/bin/env python3
"""Machines from Azure, for `mayfly run --engine exec:az.py`: one virtual machine for each.

NOT RUN against the cloud, and no az was at hand. What is relied on was read in the source of Azure's command line (2017 to 2025), its
reference and its issues: the options of az vm create, list, delete and boot-diagnostics, the fields name, tags, provisioningState and
powerState of `az vm list --show-details`, and that a network interface is called NAMEVMNic. Not confirmed: that the boot log of a machine
that has stopped holds its last words. Where it does not, a command that ended counts as failed.

The folder of the run and mayfly itself must be seen under the same paths on the machines: a shared file system. Files that travel by
themselves are being built.

MAYFLY_AZ_GROUP      needed: the resource group, best one of its own, as each list looks at all of its machines
MAYFLY_AZ_IMAGE      needed: as `az vm create --image` has it, with cloud-init; for GPUs one with their drivers
MAYFLY_AZ_SUBNET     needed: the ID of a subnet. Machines get no public address and no security group of their own
MAYFLY_AZ_DISK       size of the disk in GB; else the image's
MAYFLY_AZ_BEFORE     a file with shell text that runs before the machine's command, to mount the shared file system for example
MAYFLY_AZ_ARGUMENTS  further words for `az vm create`: --location ..., --ssh-key-values ..., --assign-identity ...

An order's zone is Azure's 1, 2 or 3. az vm create takes a minute or more, for eight machines at once. In the job file:
`engine: {exec: {patience: 20m, every: 30s, start: 10m}}`.

A machine runs its command as root, by cloud-init, and powers off when the command is over. AZURE CHARGES FOR IT UNTIL IT IS DELETED, which
happens when a list sees that: a run whose controller has died must be resumed or swept. Its disk and network interface go with it. Spot
machines are deleted by Azure when they are preempted, and then vanish from the list. No notice can be given from here (there is no verb
tell): the machine has Azure's own."""
import json
import shlex
import sys
import tempfile
import time

from clouds import (at_once, boot_script, called, cloud_name, cloud_run, code_in, content, ended, ending_of, gigabytes, keep, kept,
                    last_lines, launch_of, placed, setting)
from lines import Trouble, serve

TAG = "mayfly-run"
SINCE = "mayfly-ordered"  # a tag: when, in seconds since 1970


def group():
    return ["--resource-group", setting("MAYFLY_AZ_GROUP", "a resource group")]


def virtual_machines(run):
    """By launch."""
    output = called("az", "vm", "list", *group(), "--show-details", "--output", "json", "--only-show-errors")
    found = ((launch_of(vm["name"], run), vm) for vm in json.loads(output) if (vm.get("tags") or {}).get(TAG) == cloud_run(run, 55))
    return {launch: vm for launch, vm in found if launch is not None}


def order(run, machines):
    wanted = ["--image", setting("MAYFLY_AZ_IMAGE", "an image"), "--subnet", setting("MAYFLY_AZ_SUBNET", "the ID of a subnet")]
    known = {launch: vm["name"] for launch, vm in virtual_machines(run).items()}
    return placed(machines, known, lambda machine: created(run, machine, wanted))


def created(run, machine, wanted):
    name = cloud_name(run, machine["launch"])
    words = [*group(), "--name", name, "--size", machine["type"], *wanted, "--public-ip-address", "", "--nsg", "",
             "--admin-username", "mayfly", "--generate-ssh-keys", "--os-disk-delete-option", "Delete", "--nic-delete-option", "Delete",
             "--tags", f"{TAG}={cloud_run(run, 55)}", f"{SINCE}={int(time.time())}", "--output", "json", "--only-show-errors"]
    if machine["market"] == "spot":
        words += ["--priority", "Spot", "--eviction-policy", "Delete"]
    if machine.get("zone"):
        words += ["--zone", machine["zone"]]
    if disk := gigabytes("MAYFLY_AZ_DISK"):
        words += ["--os-disk-size-gb", str(disk)]
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".sh") as file:
        file.write(boot_script(machine["command"], content(setting("MAYFLY_AZ_BEFORE"))))
        file.flush()
        try:
            called("az", "vm", "create", *words, "--custom-data", file.name, *shlex.split(setting("MAYFLY_AZ_ARGUMENTS")))
        except Trouble:
            # A machine that came in part is listed, and mayfly ends it; this is left where none came at all.
            ended(("az", "network", "nic", "delete", *group(), "--name", f"{name}VMNic"))
            raise
    # Without it there are no last words, and that is all.
    ended(("az", "vm", "boot-diagnostics", "enable", *group(), "--name", name))
    return name


def list_machines(run, _):
    found = virtual_machines(run)
    lines = list(at_once(lambda item: sight(*item), sorted(found.items())))
    yield from lines
    give_back([line["id"] for line in lines if line["stage"] == "gone" and found[line["launch"]].get("provisioningState") != "Deleting"])


def sight(launch, vm):
    since = (vm.get("tags") or {}).get(SINCE, "")
    age = int(time.time()) - int(since) if since.isdigit() else 0
    line = {"launch": launch, "id": vm["name"], "where": f"{vm.get('location', '')} {vm['name']}".strip(), "age_s": max(0, age)}
    power, state = vm.get("powerState") or "", vm.get("provisioningState")
    if state == "Deleting" or power in ("VM deallocating", "VM deallocated"):
        return line | {"stage": "gone", "ending": "preempted", "why": f"Azure says {power or state}"}
    if power == "VM stopped":
        return line | ending(vm["name"])
    if state == "Failed" and power != "VM running":
        return line | {"stage": "gone", "ending": "refused", "why": "Azure could not create it"}
    return line | {"stage": "running" if power in ("VM running", "VM stopping") else "starting"}


def ending(name):
    """Only its command's end stops a machine without taking it away."""
    words = boot_log(name)
    keep(name, last_lines(words))
    if (code := code_in(words)) is not None:
        return ending_of(code)
    return {"stage": "gone", "ending": "failed", "why": "it stopped by itself, and does not say how its command ended"}


def boot_log(name):
    try:
        return called("az", "vm", "boot-diagnostics", "get-boot-log", *group(), "--name", name, "--only-show-errors")
    except Trouble:
        return ""


def delete(names):
    """It has begun when this returns: from then on they are listed as gone."""
    list(at_once(lambda name: called("az", "vm", "delete", *group(), "--name", name, "--yes", "--no-wait"), names))


def give_back(names):
    """What is not given back now is listed again."""
    try:
        delete(names)
    except Trouble as trouble:
        print(trouble, file=sys.stderr)


def end(run, machines):
    found = virtual_machines(run)
    delete([found[one["launch"]]["name"] for one in machines if one["launch"] in found])


def tail(run, machines):
    for name in (cloud_name(run, one["launch"]) for one in machines):
        words = kept(name)
        yield last_lines(boot_log(name)) if words is None else words


if __name__ == "__main__":
    serve({"order": order, "list": list_machines, "end": end, "tail": tail})
