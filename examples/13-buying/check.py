#!/usr/bin/env python3
"""check.py path/to/mayfly [--rewrite]: asks the questions of README.md and checks each answer for sense.

The commands are those of README.md. What the answers have to be is worked by hand below, from published speeds and the
catalogue's prices. --rewrite renews the answers in README.md (lines that begin with '> ') after the checks.
"""

import json
import os
import re
import shlex
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
README = os.path.join(HERE, "README.md")
IMAGES = 90 * 1281167  # of 90 epochs of ImageNet
# What the best published runs reach of the dense peak, in percent: docs/models.md#fabric.
BEST_MFU = 75

failures = []


def want(question, holds, text):
    if not holds:
        failures.append(f"question {question}: {text}")


class Answer:
    """What one command said."""

    def __init__(self, mayfly, command):
        done = subprocess.run([mayfly] + command + ["--json"], cwd=HERE, capture_output=True, text=True, timeout=60)
        self.command, self.code, self.error = " ".join(command), done.returncode, done.stderr.strip()
        # Not a number and infinity are no JSON, whatever Python thinks.
        self.json = json.loads(done.stdout, parse_constant=refused) if done.stdout else {}

    def __getitem__(self, key):
        return self.json.get(key)

    def machines(self):
        lines = self["cluster"] or []
        return " + ".join(f"{m['n']} x {m['type']}" + (f" {m['market']}" if m.get("market") else "") for m in lines)

    def gpus(self, *types):
        return all(m["type"] in types for m in self["cluster"])

    def text(self):
        if self.code == 2:
            # Notes come before the message.
            return "exit 2: " + self.error.splitlines()[-1].removeprefix("mayfly: ")
        if self.code == 3:
            return f"exit 3, binds: {self['binding']}. {self['reason']}"
        parts = [self.machines(), span(self["time_s"]), f"{self['cost_usd']:.2f} USD"]
        if self["deadline_probability"] is not None:
            parts.append(f"kept with {100 * self['deadline_probability']:.1f} %")
        if self["exchange"]:
            parts.append(f"exchange: {self['exchange']}")
        if self["peak_share"] is not None:
            parts.append(f"MFU {100 * self['peak_share']:.1f} %")
        memory = self["memory_mb"]
        if memory:
            parts.append("memory: " + {"yes": "fits", "no": "does not fit"}.get(memory["fits"], "unsure"))
        if self["addition"] is not None:
            parts.append("add: " + (", ".join(f"{m['n']} x {m['type']}" for m in self["addition"]) or "nothing"))
        egress = re.search(r"data: [0-9.]+ USD", " ".join((self["cost_notes"] or {}).get("egress", [])))
        if egress:
            parts.append("egress of " + egress[0])
        return ", ".join(parts)


def refused(constant):
    raise ValueError(f"{constant} in an answer")


def span(seconds):
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


def near(question, what, seen, hand, share=0.3):
    want(question, seen is not None and abs(seen / hand - 1) <= share,
         f"{what}: {seen}, by hand {hand:.4g}, want within {100 * share:.0f} %")


def sound(number, answer):
    """What holds of every plan and prediction, whatever was asked."""
    if answer.code != 0:
        want(number, answer.code in (2, 3), f"exit code {answer.code}, want 0, 2 or 3: {answer.error}")
        want(number, answer.code != 3 or answer["binding"], "a no without what binds")
        return
    time, cost = answer["time_s"], answer["cost_usd"]
    want(number, time > 0 and cost > 0, f"{time} s for {cost} USD")
    if answer["peak_share"] is not None:
        want(number, 0 < 100 * answer["peak_share"] <= BEST_MFU, f"MFU {answer['peak_share']}, the best reach {BEST_MFU} %")
    if "feasible" not in answer.json:
        # A prediction is hours times price, to the cent.
        near(number, "cost of the hours", cost, time / 3600 * answer["usd_per_hour"], 0.001)
        return
    # With losses machines are paid for less than all of the time, and never for more. What leaves a place and what is stored
    # comes on top, and all parts together are the cost.
    hours = time / 3600 * answer["usd_per_hour"]
    parts = answer["cost_parts_usd"] or {}
    machines = cost - sum(parts.get(part) or 0 for part in ("egress", "storage"))
    want(number, 0.7 * hours <= machines <= 1.3 * hours or answer["addition"] is not None,
         f"{machines} USD, but {hours:.4f} for the hours")
    if parts:
        near(number, "sum of the parts", sum(value or 0 for value in parts.values()), cost, 0.001)
    chance, wanted = answer["deadline_probability"], answer["risk"]["confidence"]
    if answer["deadline_s"]:
        want(number, chance >= wanted, f"kept with {chance}, wanted with {wanted}")
        want(number, time <= answer["deadline_s"], f"{time} s, and {answer['deadline_s']} s promised")
    several = sum(m["n"] for m in answer["cluster"]) > 1
    want(number, (answer["exchange"] == "none") != several, f"exchange {answer['exchange']} of {answer.machines()}")
    memory = answer["memory_mb"]
    want(number, memory is None or memory["fits"] != "no", f"planned where it does not fit: {memory}")


def no(number, answer, binding):
    want(number, answer.code == 3 and answer["binding"] == binding,
         f"exit {answer.code}, binds {answer['binding']}, want exit 3 and {binding}")


def bad(number, answer, words):
    want(number, answer.code == 2 and words in answer.error, f"exit {answer.code}: {answer.error}; want 2 and '{words}'")


def one_a100(n, a):
    # 2,470 images/s: 115,305,030 / 2,470 = 46,682 s = 12.97 h, at 5.0296 USD/h (a2-ultragpu-1g on demand) 65.22 USD.
    near(n, "time", a["time_s"], IMAGES / 2470)
    near(n, "cost", a["cost_usd"], 65.22)


def eight_a100(n, a):
    # The published 8 GPUs, which the planner was not told: 16,621 images/s, 6,937 s, at 27.447 USD/h 52.89 USD.
    near(n, "time", a["time_s"], IMAGES / 16621)
    near(n, "cost", a["cost_usd"], 52.89)


def by_tomorrow(n, a):
    # The A100 of Azure at 0.4444 USD/h of spot for 12.97 h: 5.76 USD. The answer must not be dearer by more than 30 %.
    want(n, a["cost_usd"] <= 1.3 * 5.76, f"{a['cost_usd']} USD, one spot A100 costs 5.76")
    want(n, a["memory_mb"]["fits"] == "yes", "1,440 images were measured to fit into an A100 of 80 GB")


def within_an_hour(n, ring, alone):
    # 115,305,030 images in an hour are 32,029/s: two times what 8 A100 do (16,621), so several machines.
    want(n, sum(m["n"] for m in ring["cluster"]) >= 2 and ring["exchange"] == "ring", ring.machines())
    want(n, ring["samples_per_s"] >= 32029, f"{ring['samples_per_s']} images/s, an hour wants 32,029")
    no(n, alone, "deadline")


def five_minutes(n, a):
    no(n, a, "deadline")
    want(n, a["nearest"]["time_s"] > 300, "the nearest is no nearest")


def one_dollar(n, a):
    no(n, a, "budget")
    want(n, a["nearest"]["cost_usd"] > 1, "the nearest is within the budget")


def without_spot(n, a, spot):
    # An L40S for 1.861 USD/h would cost 24.13 to 33.52 USD (0.72 to 1.0 of 2,470 images/s), but 1,024 images at a time take
    # 78.36 x 1,024 / 1,440 = 55.7 GB, more than its 51.5. One A100: 115,305,030 / 2,470 / 3600 x 3.673 USD/h = 47.63 USD.
    want(n, all(m["market"] == "on-demand" for m in a["cluster"]), a.machines())
    near(n, "cost", a["cost_usd"], 47.63)
    want(n, a["cost_usd"] < 47.63, "one A100 is cheaper")
    want(n, a["cost_usd"] > spot["cost_usd"], "on demand is cheaper than the best of all markets")


def how_sure(n, half, usual, sure):
    # More certainty never costs less.
    want(n, half["cost_usd"] <= usual["cost_usd"] * 1.001 <= sure["cost_usd"] * 1.002,
         f"{half['cost_usd']}, {usual['cost_usd']}, {sure['cost_usd']} USD")
    for answer, chance in ((half, 0.5), (usual, 0.9), (sure, 0.99)):
        want(n, answer["deadline_probability"] >= chance, f"{answer['deadline_probability']}, want {chance}")


def bert(n, a, eight):
    # 2 x 87,599 questions / 110.5 = 1,586 s, at 5.0296 USD/h 2.215 USD; on eight 846.7/s with 32 on each of them.
    near(n, "time", a["time_s"], 2 * 87599 / 110.5)
    near(n, "cost", a["cost_usd"], 2.215)
    want(n, a["memory_mb"]["fits"] == "yes", "BERT-large with 32 of 384 tokens ran on this GPU")
    # With 4 questions on each GPU it cannot be faster than with 32.
    want(n, 110.5 < eight["samples_per_s"] <= 846.7, f"{eight['samples_per_s']}/s on eight, 846.7 were published")


def does_not_fit(n, a):
    # Adam in mixed precision: 6.659e9 x 16 bytes = 106.5 GB of states on a GPU of 51.
    no(n, a, "memory")
    want(n, "ZeRO 3" in a["reason"], "not a word of what would make it fit")


def sharded(n, a):
    # 106.5 GB over 8 GPUs: 13.3. 3 x 52,002 sequences / 18.13 = 8,605 s on 8 x A100, at 3.6047 USD/h of spot 8.62 USD.
    near(n, "time", a["time_s"], 8605)
    near(n, "cost", a["cost_usd"], 8.62)
    want(n, 13300 < a["memory_mb"]["need"] < a["memory_mb"]["have"], f"memory {a['memory_mb']}")
    want(n, 40 <= 100 * a["peak_share"], f"MFU {a['peak_share']}, llm-foundry reached 64 %")


def h100(n, a100, fast):
    # 45 minutes were published for 8 x H100, 90 for 8 x A100: 0.75 h x 55.04 = 41.28 USD and 1.5 h x 27.447 = 41.17 USD.
    near(n, "time", a100["time_s"], 5400, 0.01)
    near(n, "time", fast["time_s"], 2700)
    near(n, "cost", fast["cost_usd"], 41.28)
    near(n, "ratio", a100["time_s"] / fast["time_s"], 2, 0.25)


def l40s(n, slow, a100):
    # 0.72 of an A100 in 32 bits, as src/predict/gpu_ratio_test.cpp has it. The peaks of FP32 would say 91.6 / 19.5 = 4.7.
    near(n, "ratio of speeds", slow["samples_per_s"] / a100["samples_per_s"], 0.72)
    want(n, slow["samples_per_s"] < a100["samples_per_s"], "faster than an A100")
    near(n, "cost", slow["cost_usd"], IMAGES / (938 * 0.72) / 3600 * 1.861)


def two_machines(n, alone, efa, ethernet):
    # Half the samples for each GPU: at most twice as fast over EFA, faster than one at all. Over 100 Gbit/s a step moves
    # 3 x 13.3 GB of 16-bit gradients and weights (ZeRO 3 gathers them twice) at 12.5 GB/s or less: 3 s and more, a step of one
    # machine takes 2.65 s. So two are slower than one.
    speed = alone["samples_per_s"]
    want(n, speed < efa["samples_per_s"] <= 2 * speed, f"EFA: {efa['samples_per_s']}, one machine {speed}")
    want(n, ethernet["samples_per_s"] < speed, f"Ethernet: {ethernet['samples_per_s']}, one machine {speed}")
    want(n, ethernet["bottleneck"] == "worker-network", f"bottleneck {ethernet['bottleneck']}")


def quota(n, a):
    # One A100 takes 12.97 h of the 6.
    no(n, a, "quota")
    want(n, re.search(r"without quotas [1-4] machines? could", a["reason"]), a["reason"])


def more_clouds(n, a, usual):
    want(n, a["cost_usd"] <= usual["cost_usd"] * 1.001, "more to choose from, and dearer")


def far_data(n, a):
    # 150e9 bytes are 139.7 GiB, at 0.02 USD/GiB between regions 2.79 USD: more than the machines.
    notes = " ".join(a["cost_notes"]["egress"])
    seen = re.search(r"data: ([0-9.]+) USD", notes)
    egress = a["cost_parts_usd"]["egress"] or (float(seen[1]) if seen else None)
    near(n, "egress", egress, 2.79, 0.02)
    want(n, egress and egress > a["cost_parts_usd"]["compute"], "the machines cost more than the data")


def half_way(n, a, late):
    # 60 epochs are left, 76,870,020 images in 6 h: 3,559/s, and one A100 does 2,470. So machines are added to it.
    want(n, a["addition"], "nothing is added, and one A100 is too slow")
    want(n, any(m["type"] == "a2-ultragpu-1g" for m in a["cluster"]), "the running machine is gone")
    want(n, a["samples_per_s"] > 3559, f"{a['samples_per_s']} images/s")
    no(n, late, "deadline")


def nothing_to_do(n, reached, above, below):
    bad(n, reached, "target is reached")
    bad(n, above, "needs no training")
    no(n, below, "loss")


def unknown(n, gpu, region):
    bad(n, gpu, "did you mean 'H100'?")
    bad(n, region, "moon-1")


CHECKS = [one_a100, eight_a100, by_tomorrow, within_an_hour, five_minutes, one_dollar, without_spot, how_sure, bert,
          does_not_fit, sharded, h100, l40s, two_machines, quota, more_clouds, far_data, half_way, nothing_to_do, unknown]


def main():
    mayfly = os.path.realpath(sys.argv[1])
    with open(README) as file:
        head, *parts = re.split(r"(?m)^(?=## \d+\. )", file.read())
    want(0, len(parts) == len(CHECKS) == 20, f"{len(parts)} questions and {len(CHECKS)} checks, want 20")
    asked = {}
    written = [head]
    for number, (part, check) in enumerate(zip(parts, CHECKS), 1):
        block = re.search(r"```sh\n(.*?)```", part, re.S)
        commands = [shlex.split(line)[1:] for line in block[1].splitlines()]
        answers = []
        for command in commands:
            key = " ".join(command)
            asked[key] = asked.get(key) or Answer(mayfly, command)
            answers.append(asked[key])
            sound(number, asked[key])
        try:
            check(number, *answers)
        except (KeyError, TypeError) as missing:
            want(number, False, f"an answer of another kind: {missing!r}; {answers[0].text()}")
        quoted = "\n".join(("> * " if len(answers) > 1 else "> ") + answer.text() for answer in answers)
        written.append(re.sub(r"(?m)(^> .*\n)+", lambda _: quoted + "\n", part, count=1))
    if "--rewrite" in sys.argv:
        with open(README, "w") as file:
            file.write("".join(written))
    elif "".join(written) != head + "".join(parts):
        for old, new in zip("".join([head] + parts).splitlines(), "".join(written).splitlines()):
            want("of README.md", old == new, f"the answer is another (check.py --rewrite renews it)\n  was {old}\n  is  {new}")
    print("\n".join(failures))
    print(f"{len(parts)} questions, {len(asked)} commands, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
