"""sky, gcloud and az as far as the recipes use them, for test_recipes.py. They keep their machines in a file, answer in the formats that
are documented, know no option that was not looked up, refuse types that they were told to refuse, and write down how they were called."""
import contextlib
import fcntl
import json
import os
import sys
import time


class Refusal(Exception):
    """Words for standard error, and an exit code."""

    def __init__(self, words, code=1):
        super().__init__(words)
        self.code = code


@contextlib.contextmanager
def world(folder):
    """What there is: `machines` by name, `calls`, `refuse` by type, `fail` (what every call fails with), `preempted` names."""
    path = f"{folder}/world.json"
    with open(f"{folder}/lock", "a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        there = {"machines": {}, "calls": [], "refuse": {}, "fail": "", "preempted": []}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                there = json.load(file)
        try:
            yield there
        finally:
            with open(path, "w", encoding="utf-8") as file:
                json.dump(there, file)


def split(words, **known):
    """(positional words, options). An option is known by its name, with True where it has a value; `repeated` ones have several."""
    rest, options, words = [], {}, list(words)
    while words:
        word = words.pop(0)
        if not word.startswith("--"):
            rest.append(word)
            continue
        name, equals, value = word[2:].partition("=")
        key = name.replace("-", "_")
        if key not in known or equals and not known[key]:
            raise Refusal(f"ERROR: unrecognized arguments: {word}", 2)
        if known[key] and not equals:
            value = words.pop(0)
        options[key] = value if known[key] else True
        while known[key] == "many" and words and not words[0].startswith("--"):
            options[key] += f" {words.pop(0)}"
    return rest, options


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def refuse(there, kind):
    if kind in there["refuse"]:
        raise Refusal(there["refuse"][kind])


# SkyPilot


def sky_launch(there, words):
    rest, options = split(words, yes=False, detach_run=False, down=False, cluster=True)
    assert options["yes"] and options["detach_run"] and options["down"], options
    task = json.loads(read(rest[0]))
    refuse(there, task["resources"]["instance_type"])
    there["machines"].setdefault(options["cluster"], {"task": task, "status": "UP", "job": "RUNNING", "since": int(time.time()) - 5})
    return "\x1b[32mJob submitted, ID: 1\x1b[0m\n"


def sky_status(there, words):
    _, options = split(words, output=True, refresh=False)
    assert options["output"] == "json", options
    return "Cluster(s) not found: \x1b[1mother\x1b[0m.\n" + json.dumps([
        {"name": name, "status": one["status"], "launched_at": one["since"], "cloud": "AWS", "region": "us-east-1", "nodes": 1}
        for name, one in there["machines"].items()], indent=2)


def sky_queue(there, words):
    names, options = split(words, output=True)
    assert options["output"] == "json" and names, (options, names)
    return json.dumps({name: [{"job_id": 1, "status": there["machines"][name]["job"]}] for name in names if there["machines"][name]["job"]})


def sky_logs(there, words):
    rest, _ = split(words, no_follow=False, tail=True)
    if rest[0] not in there["machines"]:
        raise Refusal(f"ValueError: Cluster {rest[0]} does not exist.")
    return there["machines"][rest[0]].get("says", "")


def sky_down(there, words):
    names, options = split(words, yes=False, **{"async": False})
    assert options["yes"], options
    for name in names:
        del there["machines"][name]
    return ""


# Google Cloud


def gcloud_create(there, words):
    rest, options = split(words, quiet=False, project=True, zone=True, machine_type=True, labels=True, image_project=True,
                          image_family=True, maintenance_policy=True, no_restart_on_failure=False, provisioning_model=True,
                          instance_termination_action=True, boot_disk_size=True, metadata_from_file=True, subnet=True)
    key, _, path = options["metadata_from_file"].partition("=")
    assert key == "startup-script", options
    refuse(there, options["machine_type"])
    if rest[0] in there["machines"]:
        raise Refusal(f"ERROR: (gcloud.compute.instances.create) Could not fetch resource:\n - The resource '{rest[0]}' already exists")
    label, _, value = options["labels"].partition("=")
    there["machines"][rest[0]] = {
        "name": rest[0], "status": "RUNNING", "labels": {label: value}, "creationTimestamp": "2025-01-01T00:00:00.000-08:00",
        "zone": f"https://www.googleapis.com/compute/v1/projects/p/zones/{options['zone']}", "script": read(path), "options": options}
    return ""


def gcloud_list(there, words):
    _, options = split(words, quiet=False, project=True, filter=True, format=True)
    assert options["format"] == "json", options
    key, _, value = options["filter"].partition("=")
    label = key.removeprefix("labels.")
    return json.dumps([{name: one[name] for name in ("name", "status", "labels", "creationTimestamp", "zone")}
                       for one in there["machines"].values() if one["labels"].get(label) == value])


def gcloud_delete(there, words):
    names, options = split(words, quiet=False, project=True, zone=True, delete_disks=True)
    assert options["quiet"] and options["delete_disks"] == "all", options
    for name in names:
        if name not in there["machines"] or not there["machines"][name]["zone"].endswith(f"/{options['zone']}"):
            raise Refusal(f"ERROR: (gcloud.compute.instances.delete) Could not fetch resource:\n - The resource '{name}' was not found")
        del there["machines"][name]
    return ""


def gcloud_serial(there, words):
    rest, _ = split(words, quiet=False, project=True, zone=True)
    if "says" not in there["machines"].get(rest[0], {}):
        raise Refusal(f"ERROR: (gcloud.compute.instances.get-serial-port-output) The resource '{rest[0]}' is not ready")
    return there["machines"][rest[0]]["says"]


def gcloud_operations(there, words):
    _, options = split(words, quiet=False, project=True, zones=True, filter=True, format=True)
    wanted = [f"operationType=compute.instances.preempted AND targetLink~/{name}$" for name in there["preempted"]]
    return json.dumps([{"operationType": "compute.instances.preempted"}] if options["filter"] in wanted else [])


# Azure


def az_create(there, words):
    _, options = split(words, resource_group=True, name=True, size=True, image=True, subnet=True, public_ip_address=True, nsg=True,
                       admin_username=True, generate_ssh_keys=False, os_disk_delete_option=True, nic_delete_option=True, tags="many",
                       priority=True, eviction_policy=True, zone=True, os_disk_size_gb=True, custom_data=True, location=True, output=True,
                       only_show_errors=False)
    assert (options["os_disk_delete_option"], options["nic_delete_option"], options["nsg"]) == ("Delete", "Delete", ""), options
    refuse(there, options["size"])
    if options["name"] in there["machines"]:
        raise Refusal(f"ERROR: Resource {options['name']} of type Microsoft.Compute/virtualMachines in group g already exists.")
    there["machines"][options["name"]] = {
        "name": options["name"], "provisioningState": "Succeeded", "powerState": "VM running", "location": "westeurope",
        "tags": dict(tag.split("=") for tag in options["tags"].split()), "script": read(options["custom_data"]), "options": options}
    return "{}"


def az_list(there, words):
    _, options = split(words, resource_group=True, show_details=False, output=True, only_show_errors=False)
    assert options["show_details"] and options["output"] == "json", options
    shown = json.dumps([{key: one[key] for key in ("name", "provisioningState", "powerState", "location", "tags")}
                        for one in there["machines"].values()] + [{"name": "another's", "tags": None, "powerState": "VM running"}])
    there["machines"] = {name: one for name, one in there["machines"].items() if one["provisioningState"] != "Deleting"}
    return shown


def az_delete(there, words):
    _, options = split(words, resource_group=True, name=True, yes=False, no_wait=False)
    assert options["yes"], options
    there["machines"][options["name"]]["provisioningState"] = "Deleting"
    return ""


def az_boot_log(there, words):
    _, options = split(words, resource_group=True, name=True, only_show_errors=False)
    if "says" not in there["machines"].get(options["name"], {}):
        raise Refusal("ERROR: Please enable boot diagnostics.")
    return there["machines"][options["name"]]["says"]


def az_named(_, words):
    split(words, resource_group=True, name=True)
    return ""


COMMANDS = {
    "sky launch": sky_launch, "sky status": sky_status, "sky queue": sky_queue, "sky logs": sky_logs, "sky down": sky_down,
    "gcloud compute instances create": gcloud_create, "gcloud compute instances list": gcloud_list,
    "gcloud compute instances delete": gcloud_delete, "gcloud compute instances get-serial-port-output": gcloud_serial,
    "gcloud compute operations list": gcloud_operations,
    "az vm create": az_create, "az vm list": az_list, "az vm delete": az_delete, "az vm boot-diagnostics get-boot-log": az_boot_log,
    "az vm boot-diagnostics enable": az_named, "az network nic delete": az_named}


def main(folder, *call):
    with world(folder) as there:
        there["calls"].append(call)
        try:
            if there["fail"]:
                raise Refusal(there["fail"])
            name = next((name for name in COMMANDS if list(call[: len(name.split())]) == name.split()), None)
            if name is None:
                raise Refusal(f"ERROR: unrecognized command: {' '.join(call)}", 2)
            sys.stdout.write(COMMANDS[name](there, call[len(name.split()) :]))
            return 0
        except Refusal as words:
            print(words, file=sys.stderr)
            return words.code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
