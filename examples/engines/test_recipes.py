#!/usr/bin/env python3
"""The recipes against stand-ins for sky, gcloud and az (stand_ins.py), which are first in PATH. Nothing is asked of a network."""
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
import unittest

import stand_ins
from clouds import boot_script, cloud_name, code_in, launch_of, reason

HERE = os.path.dirname(os.path.abspath(__file__))
COMMAND = """launch=0
[ -r '/a run/token' ] || { echo "no 'token' \\"here\\" $HOME" >&2; exit 3; }
exec true"""


class Recipe:
    """What holds for each of them. A subclass says which it is, and plays its cloud."""

    program, tool, settings, type, needed = "", "", {}, "", None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.environment = {"PATH": f"{self.folder}/bin:/usr/bin:/bin", "HOME": f"{self.folder}/home", "LC_ALL": "C.UTF-8",
                            "PYTHONDONTWRITEBYTECODE": "1"} | self.settings
        os.mkdir(f"{self.folder}/bin")
        words = [sys.executable, "-S", f"{HERE}/stand_ins.py", self.folder]  # -S: it starts sooner
        for tool in ("sky", "gcloud", "az"):
            self.write(f"bin/{tool}", f'#!/bin/sh\nexec {shlex.join(words)} {tool} "$@"\n')
            os.chmod(f"{self.folder}/bin/{tool}", 0o755)

    def write(self, name, text):
        with open(f"{self.folder}/{name}", "w", encoding="utf-8") as file:
            file.write(text)
        return f"{self.folder}/{name}"

    def world(self):
        return stand_ins.world(self.folder)

    def machines(self):
        with self.world() as there:
            return there["machines"]

    def calls(self):
        with self.world() as there:
            return there["calls"]

    def call(self, verb, *lines, run="count-1a2b3c4d"):
        """(code, lines, last words)"""
        text = "".join(json.dumps(line) + "\n" for line in ({"format": "mayfly-exec/1", "run": run}, *lines))
        done = subprocess.run([sys.executable, f"{HERE}/{self.program}", verb], input=text, capture_output=True, text=True, timeout=60,
                              env=self.environment, check=False)
        self.assertNotIn("Traceback", done.stderr)
        return done.returncode, done.stdout, done.stderr.strip()

    def answers(self, verb, *lines, run="count-1a2b3c4d"):
        """By launch, of a call that goes well."""
        code, output, said = self.call(verb, *lines, run=run)
        self.assertEqual((code, said), (0, ""))
        found = [json.loads(line) for line in output.splitlines()]
        self.assertEqual(len({line["launch"] for line in found}), len(found), found)
        return {line.pop("launch"): line for line in found}

    def order(self, *launches, run="count-1a2b3c4d", **other):
        machine = {"name": "x", "role": "worker", "type": self.type, "zone": "", "market": "spot", "command": COMMAND}
        return self.answers("order", *({"launch": launch} | machine | other for launch in launches), run=run)

    def listed(self, run="count-1a2b3c4d"):
        return self.answers("list", run=run)

    def name(self, launch, run="count-1a2b3c4d"):
        return cloud_name(run, launch)

    def test_what_is_ordered_runs(self):
        placed = self.order(0, 1)
        found = self.listed()
        self.assertEqual({launch: line["id"] for launch, line in placed.items()}, {launch: line["id"] for launch, line in found.items()})
        for line in found.values():
            self.assertEqual(line["stage"], "running")
            self.assertGreaterEqual(line["age_s"], 0)
            self.assertTrue(line["where"])

    def test_ordered_again_it_is_the_same_machine(self):
        first = self.order(0)
        self.assertEqual(self.order(0, 1)[0], first[0])
        self.assertEqual(set(self.machines()), {self.name(0), self.name(1)})

    def test_spot_is_asked_for_where_it_is_wanted(self):
        self.order(0, market="spot")
        self.order(1, market="on-demand")
        self.assertEqual([self.is_spot(self.machines()[self.name(launch)]) for launch in (0, 1)], [True, False])

    def test_the_command_runs_as_it_is_and_its_code_is_told(self):
        self.environment[self.setting("BEFORE")] = self.write("before.sh", "echo 'first this'\n")
        self.order(0)
        done = subprocess.run(["/bin/sh", "-c", self.script(self.machines()[self.name(0)])], capture_output=True, text=True, check=False,
                              env={"PATH": "/usr/bin:/bin", "HOME": "/h"})
        self.assertIn("no 'token' \"here\" /h\n", done.stderr)
        self.assertTrue(done.stdout.startswith("first this\n"))
        self.assertEqual(self.code(done), 3)

    def test_a_refusal_is_in_the_clouds_words_and_the_others_come(self):
        with self.world() as there:
            there["refuse"]["gold"] = self.refusal
        machine = {"type": self.type, "market": "spot", "command": COMMAND}
        found = self.answers("order", machine | {"launch": 0, "type": "gold"}, machine | {"launch": 1}, machine | {"launch": 2, "type": ""})
        self.assertIn(self.reason, found[0]["refused"])
        self.assertNotIn("\n", found[0]["refused"])
        self.assertIn("id", found[1])
        self.assertIn("names no type", found[2]["refused"])
        self.assertEqual(set(self.listed()), {1})

    def test_a_machine_that_was_preempted_is_gone(self):
        self.order(0, 1)
        with self.world() as there:
            del there["machines"][self.name(0)]  # as all three do
        self.assertEqual(set(self.listed()), {1})
        self.preempt(self.name(1))
        line = self.listed()[1]
        self.assertEqual((line["stage"], line["ending"]), ("gone", "preempted"))

    def test_a_command_that_ends_takes_its_machine_along_and_its_last_words_are_told(self):
        self.order(0, 1, 2)
        self.finish(self.name(0), "mayfly: its command ended with code 0\n", 0)
        self.finish(self.name(1), "".join(f"line {i}\n" for i in range(90)) + "no token\nmayfly: its command ended with code 3\n", 3)
        found = self.listed()
        self.assertEqual([found[launch].get("ending") for launch in (0, 1, 2)], ["finished", "failed", None])
        self.assertEqual({launch for launch, line in self.listed().items() if line["stage"] == "running"}, {2})
        self.assertTrue(self.given_back(self.name(1)))
        with self.world() as there:
            there["machines"].pop(self.name(1), None)
        code, output, _ = self.call("tail", {"launch": 1, "id": found[1]["id"]})
        self.assertEqual(code, 0)
        self.assertIn("no token\n", output)
        self.assertNotIn("line 10\n", output)

    def test_the_last_words_of_one_that_runs_are_told(self):
        self.order(0)
        with self.world() as there:
            there["machines"][self.name(0)]["says"] = "step 17\n"
        self.assertEqual(self.call("tail", {"launch": 0, "id": ""})[:2], (0, "step 17\n"))

    def test_what_is_ended_goes_alone_and_may_be_ended_twice(self):
        ids = self.order(0, 1)
        for _ in range(2):
            self.answers("end", {"launch": 0, "id": ids[0]["id"]})
            self.assertEqual({launch for launch, line in self.listed().items() if line["stage"] != "gone"}, {1})
        self.answers("end", {"launch": 1, "id": ids[1]["id"]}, {"launch": 7, "id": "never"})
        self.assertFalse([line for line in self.listed().values() if line["stage"] != "gone"])

    def test_runs_do_not_meet(self):
        runs = ["alpha", "Alpha", "alpha-1", "alpha.1", "x" * 200 + "-1a2b3c4d", "y" + "x" * 199 + "-1a2b3c4d", "ü"]
        for run in runs:
            self.order(1, run=run)
        self.assertEqual(len(self.machines()), len(runs))
        for name in self.machines():
            self.assertRegex(name, r"^[a-z]([a-z0-9-]{0,61}[a-z0-9])$")
        self.answers("end", {"launch": 1, "id": ""}, run=runs[0])
        self.assertFalse([line for line in self.listed(run=runs[0]).values() if line["stage"] != "gone"])
        for run in runs[1:]:
            self.assertEqual(set(self.listed(run=run)), {1}, run)

    def test_a_list_that_fails_is_not_an_empty_one(self):
        self.order(0)
        with self.world() as there:
            there["fail"] = "ERROR: (gcloud.x) the network\n  is down"
        for verb in ("list", "order", "end"):
            code, output, said = self.call(verb)
            self.assertEqual((code, output, said.count("\n")), (1, "", 0))
            self.assertIn("the network is down", said)

    def test_what_is_missing_is_said_in_one_line(self):
        for name in self.needed:
            kept = self.environment.pop(name)
            code, output, said = self.call("order", {"launch": 0})
            self.assertEqual((code, output, said.count("\n")), (1, "", 0))
            self.assertIn(f"{name} is not set: want ", said)
            self.environment[name] = kept
        os.unlink(f"{self.folder}/bin/{self.tool}")
        self.environment["PATH"] = f"{self.folder}/bin"
        self.assertEqual(self.call("list"), (1, "", f"no {self.tool} on this computer"))

    def test_a_disk_has_a_size(self):
        self.environment[self.setting("DISK")] = "200"
        self.assertIn("id", self.order(0)[0])
        self.environment[self.setting("DISK")] = "much"
        self.assertIn("is 'much', want a number of GB", self.order(1)[1]["refused"])

    def test_there_is_no_notice(self):
        self.assertEqual(self.call("tell", {"launch": 0, "id": "x"})[0], 64)

    def setting(self, name):
        return f"MAYFLY_{self.program.removesuffix('.py').replace('skypilot', 'sky').upper()}_{name}"

    # Of machines that power off by themselves.

    def script(self, machine):
        script = machine["script"]
        self.assertTrue(script.startswith("#!/bin/sh\n") and script.endswith("\npoweroff\n"))  # which is not for this computer
        return script.removesuffix("poweroff\n")

    def code(self, done):
        return code_in(done.stdout)

    def given_back(self, name):
        return name not in self.machines() or self.machines()[name].get("provisioningState") == "Deleting"


class SkyPilot(Recipe, unittest.TestCase):
    program, tool, type, needed = "skypilot.py", "sky", "g5.xlarge", ()
    refusal = "botocore.exceptions.ClientError: (InsufficientInstanceCapacity)\nretrying\n\x1b[31msky.exceptions." \
              "ResourcesUnavailableError: Failed to provision all possible launchable resources.\x1b[0m\n" \
              "Relax the task's resource requirements: 1x AWS(gold)"
    reason = "sky launch: sky.exceptions.ResourcesUnavailableError: Failed to provision all possible launchable resources. Relax the task's"

    def is_spot(self, machine):
        return machine["task"]["resources"]["use_spot"]

    def script(self, machine):
        return machine["task"]["run"]

    def code(self, done):
        return done.returncode

    def preempt(self, name):
        with self.world() as there:
            there["machines"][name]["status"] = "STOPPED"

    def finish(self, name, words, code):
        with self.world() as there:
            there["machines"][name] |= {"job": "FAILED" if code else "SUCCEEDED", "says": words}

    def given_back(self, name):
        return any("--down" in call and name in call for call in self.calls())  # it was launched so

    def test_one_without_a_job_starts(self):
        self.order(0, 1)
        with self.world() as there:
            there["machines"][self.name(0)]["status"] = "INIT"
            there["machines"][self.name(1)]["job"] = None
        self.assertEqual([line["stage"] for line in self.listed().values()], ["starting", "starting"])

    def test_one_that_was_stopped_is_given_back(self):
        self.order(0)
        self.preempt(self.name(0))
        self.assertEqual(self.listed()[0]["ending"], "preempted")
        self.assertEqual(self.machines(), {})

    def test_where_it_is_is_said(self):
        self.assertIn("want the cloud of zone us-east-1a", self.order(0, zone="us-east-1a")[0]["refused"])
        self.environment |= {"MAYFLY_SKY_INFRA": "aws/us-east-1", "MAYFLY_SKY_IMAGE": "ami-1", "MAYFLY_SKY_DISK": "100"}
        self.order(1, zone="us-east-1a")
        self.order(2, market="on-demand")
        resources = {"instance_type": "g5.xlarge", "image_id": "ami-1", "disk_size": 100}
        self.assertEqual(self.machines()[self.name(1)]["task"]["resources"], resources | {"infra": "aws/*/us-east-1a", "use_spot": True})
        self.assertEqual(self.machines()[self.name(2)]["task"]["resources"], resources | {"infra": "aws/us-east-1", "use_spot": False})


class Gcloud(Recipe, unittest.TestCase):
    program, tool, type, needed = "gcloud.py", "gcloud", "a2-highgpu-1g", ("MAYFLY_GCLOUD_IMAGE",)
    settings = {"MAYFLY_GCLOUD_IMAGE": "debian-cloud/debian-12", "MAYFLY_GCLOUD_ZONE": "us-central1-a"}
    refusal = "ERROR: (gcloud.compute.instances.create) Could not fetch resource:\n - Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 0.0"
    reason = "gcloud compute instances: Could not fetch resource: - Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 0.0"

    def is_spot(self, machine):
        return (machine["options"].get("provisioning_model"), machine["options"].get("instance_termination_action")) == ("SPOT", "DELETE")

    def preempt(self, name):
        with self.world() as there:
            there["machines"][name]["status"] = "TERMINATED"
            there["preempted"].append(name)

    def finish(self, name, words, _):
        with self.world() as there:
            there["machines"][name] |= {"status": "TERMINATED", "says": words}

    def test_one_that_stopped_and_says_nothing_has_failed_and_is_given_back(self):
        self.order(0)
        with self.world() as there:
            there["machines"][self.name(0)]["status"] = "TERMINATED"
        self.assertEqual(self.listed()[0]["ending"], "failed")
        self.assertEqual(self.machines(), {})

    def test_one_on_its_way_is_not_gone(self):
        self.order(0, 1, 2)
        for launch, status in enumerate(("PROVISIONING", "STAGING", "STOPPING")):
            with self.world() as there:
                there["machines"][self.name(launch)]["status"] = status
        self.assertEqual([self.listed()[launch]["stage"] for launch in (0, 1, 2)], ["starting", "starting", "running"])

    def test_what_has_the_label_and_another_name_is_not_a_machine_of_the_run(self):
        self.order(0)
        with self.world() as there:
            there["machines"]["shelf"] = there["machines"][self.name(0)] | {"name": "shelf"}
        self.assertEqual(set(self.listed()), {0})

    def test_zones_project_and_further_words(self):
        self.environment |= {"MAYFLY_GCLOUD_PROJECT": "mine", "MAYFLY_GCLOUD_ARGUMENTS": "--subnet='a b'"}
        self.assertEqual(self.order(0, zone="europe-west4-b")[0]["id"], f"europe-west4-b/{self.name(0)}")
        self.order(1)
        self.answers("end", {"launch": 0, "id": ""}, {"launch": 1, "id": ""})
        self.assertEqual(self.machines(), {})
        self.assertTrue(all("--project=mine" in call and "--quiet" in call for call in self.calls()))
        self.assertIn("--subnet=a b", self.calls()[1])
        del self.environment["MAYFLY_GCLOUD_ZONE"]
        self.assertIn("MAYFLY_GCLOUD_ZONE is not set", self.order(2)[2]["refused"])


class Az(Recipe, unittest.TestCase):
    program, tool, type = "az.py", "az", "Standard_NC24ads_A100_v4"
    settings = {"MAYFLY_AZ_GROUP": "g", "MAYFLY_AZ_IMAGE": "Ubuntu2204", "MAYFLY_AZ_SUBNET": "/subscriptions/s/subnets/n"}
    needed = tuple(settings)
    refusal = "ERROR: (SkuNotAvailable) The requested VM size is currently not available.\nCode: SkuNotAvailable"
    reason = "az vm create: (SkuNotAvailable) The requested VM size is currently not available. Code: SkuNotAvailable"

    def is_spot(self, machine):
        return (machine["options"].get("priority"), machine["options"].get("eviction_policy")) == ("Spot", "Delete")

    def preempt(self, name):
        with self.world() as there:
            there["machines"][name]["powerState"] = "VM deallocated"

    def finish(self, name, words, _):
        with self.world() as there:
            there["machines"][name] |= {"powerState": "VM stopped", "says": words}

    def test_what_stopped_is_given_back_once(self):
        self.order(0, 1)
        self.preempt(self.name(0))
        with self.world() as there:
            there["machines"][self.name(1)]["powerState"] = "VM stopped"
        self.assertEqual([line["ending"] for line in self.listed().values()], ["preempted", "failed"])
        self.assertEqual([line["stage"] for line in self.listed().values()], ["gone", "gone"])
        self.assertEqual(self.listed(), {})
        self.assertEqual(sum(call[:3] == ["az", "vm", "delete"] for call in self.calls()), 2)

    def test_one_that_came_in_part_is_refused_and_given_back(self):
        self.order(0, 1)
        with self.world() as there:
            there["machines"][self.name(0)] |= {"provisioningState": "Failed", "powerState": ""}
            there["machines"][self.name(1)] |= {"provisioningState": "Creating", "powerState": None}
        stages = [(line["stage"], line.get("ending")) for line in self.listed().values()]
        self.assertEqual(stages, [("gone", "refused"), ("starting", None)])
        self.assertTrue(self.given_back(self.name(0)))

    def test_a_refusal_leaves_no_network_interface(self):
        with self.world() as there:
            there["refuse"][self.type] = self.refusal
        self.order(0)
        self.assertIn(["az", "network", "nic", "delete", "--resource-group", "g", "--name", f"{self.name(0)}VMNic"], self.calls())

    def test_zone_further_words_and_age(self):
        self.environment["MAYFLY_AZ_ARGUMENTS"] = "--location 'west europe'"
        self.order(0, zone="2")
        options = self.machines()[self.name(0)]["options"]
        self.assertEqual((options["zone"], options["location"], options["public_ip_address"]), ("2", "west europe", ""))
        with self.world() as there:
            there["machines"][self.name(0)]["tags"]["mayfly-ordered"] = str(int(time.time()) - 600)
        self.assertAlmostEqual(self.listed()[0]["age_s"], 600, delta=60)


class Names(unittest.TestCase):
    def test_a_launch_is_found_in_its_name_and_in_no_other(self):
        for run in ("count-1a2b3c4d", "A run's Name", "z" * 300):
            for launch in (0, 7, 1 << 20):
                name = cloud_name(run, launch)
                self.assertLessEqual(len(name), 63)
                self.assertEqual(launch_of(name, run), launch)
                self.assertIsNone(launch_of(name, run + "x"))
        for name in ("m-count", "m-count-", "m-count-x", "m-count-²", "count-1", "-1", ""):
            self.assertIsNone(launch_of(name, "count"))

    def test_the_last_error_is_the_reason_with_all_that_follows_it_in_one_short_line(self):
        self.assertEqual(reason("one\ntwo\n\n"), "two")
        self.assertEqual(reason("ERROR: (gcloud.a.b-c) first\n - second\n"), "first - second")
        self.assertEqual(reason(""), "")
        self.assertEqual(len(reason("ERROR: " + "x" * 900)), 300)

    def test_a_script_is_a_script_whatever_the_command(self):
        script = boot_script("echo 'a' \"$b\" `c`\n# d\\", "")
        self.assertEqual(subprocess.run(["/bin/sh", "-n"], input=script, text=True, check=False).returncode, 0)
        self.assertIsNone(code_in("nothing of that kind"))
        self.assertEqual(code_in("mayfly: its command ended with code 0\nmayfly: its command ended with code 143\n"), 143)

    def test_the_stand_ins_know_no_other_options(self):
        with self.assertRaises(stand_ins.Refusal):
            stand_ins.split(["--spot"], quiet=False)
        self.assertEqual(stand_ins.split(["a", "--b=1", "--c", "2", "--d", "--e", "x=1", "y=2"], b=True, c=True, d=False, e="many"),
                         (["a"], {"b": "1", "c": "2", "d": True, "e": "x=1 y=2"}))


if __name__ == "__main__":
    unittest.main()
