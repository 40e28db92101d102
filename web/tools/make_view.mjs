// A made-up run with preemptions, the same for the same seed: for fixtures, pictures and the speed test.

function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const round = (x, places) => Number(x.toFixed(places));

const offers = [
  { type: 'g4dn.xlarge', market: 'spot', usd_per_hour: 0.21, speed: 1 },
  { type: 'g5.xlarge', market: 'spot', usd_per_hour: 0.41, speed: 1.9 },
  { type: 'g4dn.xlarge', market: 'on-demand', usd_per_hour: 0.526, speed: 1 },
];
const onDemandUsd = { 'g4dn.xlarge': 0.526, 'g5.xlarge': 1.006 };

/** Machines that come and go over `places` places until `end_s`; the last place is on demand and stays. */
function machinesOf({ places, end_s, life_s, next }) {
  const machines = [];
  for (let place = 0; place < places; ++place) {
    const offer = place === places - 1 && places > 2 ? offers[2] : offers[place % 2];
    let t = 0.01 * end_s * (1 + next() * place * 0.5);
    while (t < end_s) {
      const stays = offer.market === 'on-demand';
      const life = stays ? Infinity : life_s * (0.15 - Math.log(1 - next()));
      const to = t + life;
      const noticed = next() < 0.6;
      machines.push({ offer, from: t, to, notice: noticed ? Math.max(t, to - 0.03 * end_s) : null });
      t = to + end_s * (0.015 + 0.04 * next());
    }
  }
  machines.sort((a, b) => a.from - b.from);
  return machines.map((one, i) => ({ ...one, name: `w${i + 1}` }));
}

function happeningsOf(machines, now, next) {
  const list = [];
  const add = (t_s, kind, text, more = {}) =>
    t_s <= now &&
    list.push({ t_s: round(t_s, 3), kind, text, why: null, worker: null, stall_s: null, cost_usd: null, ...more });
  for (const one of machines) {
    add(one.from, 'joined', `${one.name} joined: ${one.offer.type} ${one.offer.market}`, { worker: one.name });
    add(one.from + 0.2, 'assign', `${one.name} trains from the next step on`, {
      why: 'one more machine pays for its pause within 4 steps',
      worker: one.name,
    });
    if (one.notice !== null) add(one.notice, 'notice', `${one.name} will be taken`, { worker: one.name });
    if (one.notice !== null)
      add(one.notice + 0.05, 'drain', `${one.name} hands over its state`, {
        why: 'the notice leaves time for the step in hand',
        worker: one.name,
      });
    const stall = one.notice === null ? 0.4 + next() : 0.02 + 0.05 * next();
    add(one.to, 'lost', `${one.name} lost: ${one.notice === null ? 'killed by signal 9' : 'taken back'}`, {
      worker: one.name,
      stall_s: round(stall, 3),
      cost_usd: round(stall * 0.0002, 7),
    });
    add(one.to + 0.1, 'assign', 'the others take its samples', { why: 'the whole batch fits on those that are left' });
    add(one.to + 0.2, 'acquire', `one ${one.offer.type} asked for in its place`, {
      why: 'without it the deadline is missed by 3 s',
    });
  }
  for (let t = now / 12; t < now; t += now / 9)
    add(t, 'checkpointed', `checkpoint-${Math.round(t * 10)}: 44.7 MB, training stood still 0.01 s`);
  list.sort((a, b) => a.t_s - b.t_s);
  return list.map((one, i) => ({ id: i + 1, ...one }));
}

export function makeView({
  name = 'survive',
  seed = 7,
  places = 5,
  end_s = 62,
  life_s = 25,
  now_s = 40,
  points = 120,
  over = false,
  plan = true,
  deadline_s = 75,
  listed = 500,
} = {}) {
  const next = random(seed);
  const all = machinesOf({ places, end_s, life_s, next });
  const now = now_s;
  const machines = all.filter((one) => one.from < now);
  const alive = (t) => machines.filter((one) => one.from <= t && t < one.to);
  const perSpeed = 210;
  const times = [],
    samples = [],
    spent = [],
    rates = [];
  let sum = 0,
    money = 0,
    before = 0,
    onDemand = 0,
    sinceLoss = Infinity,
    held = 0,
    stalled = 0;
  for (let i = 0; i <= points; ++i) {
    const t = (now * i) / points;
    const here = alive(t);
    const lost = machines.some((one) => one.to > before && one.to <= t);
    sinceLoss = lost ? 0 : sinceLoss + (t - before);
    const works = sinceLoss > now / 120 ? 1 : 0.35;
    const speed = here.reduce((total, one) => total + one.offer.speed, 0) * perSpeed * works * (0.97 + 0.06 * next());
    sum += speed * (t - before);
    const rate = here.reduce((total, one) => total + one.offer.usd_per_hour, 0);
    money += (rate * (t - before)) / 3600;
    onDemand += (here.reduce((total, one) => total + onDemandUsd[one.offer.type], 0) * (t - before)) / 3600;
    held += here.length * (t - before);
    stalled += here.length * (1 - works) * (t - before);
    (times.push(round(t, 3)),
      samples.push(Math.round(sum / 32) * 32),
      spent.push(round(money, 7)),
      rates.push(round(rate, 3)));
    before = t;
  }
  const target = over ? samples[points] : Math.round((sum * end_s * 1.02) / now / 1000) * 1000;
  const lossAt = (n) => 0.08 + 2.1 / (1 + n / (target * 0.035));
  const changes = [...new Set([0, ...machines.flatMap((one) => [one.from, one.to]).filter((t) => t <= now)])].sort(
    (a, b) => a - b,
  );
  const series = offers.map((offer) => ({
    type: offer.type,
    market: offer.market,
    n: changes.map((t) => alive(t).filter((one) => one.offer === offer).length),
  }));
  const used = changes.map((t) =>
    Math.max(0, alive(t).length - (alive(t).some((one) => one.notice !== null && one.notice <= t) ? 1 : 0)),
  );
  const happenings = happeningsOf(machines, now, next);
  const lost = machines.filter((one) => one.to <= now).length;
  const speed = Math.round(sum / now);
  const predictedTime = end_s * 0.97;
  const lossNow = round(lossAt(sum), 4);
  const curve = Array.from({ length: 40 }, (_, i) => (predictedTime * (i + 1)) / 40);
  const cost = spent[points];
  return {
    format: 'mayfly-view/1',
    name,
    simulated: false,
    state: over ? 'finished' : 'running',
    phase: over ? 'ended' : 'training',
    end: over ? 'trained' : null,
    failure: null,
    time_s: now,
    step: samples[points] / 32,
    samples: samples[points],
    target_samples: target,
    epochs: round(samples[points] / (target / 2), 3),
    loss: lossNow,
    target_loss: 0.16,
    validation_loss: over ? 0.171 : null,
    accuracy: over ? 0.946 : null,
    samples_per_s: speed,
    left_s: over ? null : round((target - sum) / speed, 2),
    deadline_s,
    deadline_met: true,
    budget_usd: 0.05,
    cost_usd: cost,
    usd_per_hour: over ? 0 : rates[points],
    on_demand_cost_usd: round(onDemand, 7),
    preemptions: lost,
    samples_redone: 0,
    samples_repeated: over ? 0 : null,
    samples_skipped: over ? 0 : null,
    machines: machines.slice(-400).map((one) => ({
      name: one.name,
      type: one.offer.type,
      market: one.offer.market,
      usd_per_hour: one.offer.usd_per_hour,
      from_s: round(one.from, 3),
      to_s: one.to <= now ? round(one.to, 3) : over ? now : null,
      end: one.to <= now ? 'lost' : over ? 'released' : null,
      notice_s: one.notice !== null && one.notice <= now ? round(one.notice, 3) : null,
    })),
    machines_total: machines.length,
    counts: { t_s: changes.map((t) => round(t, 3)), series, used },
    shapes: changes.map((t, i) => ({ t_s: round(t, 3), data_parallel: used[i], stages: used[i] ? 1 : 0, extra: 0 })),
    progress: { t_s: times, samples },
    losses: { t_s: times.slice(2), loss: samples.slice(2).map((n) => round(lossAt(n) * (0.96 + 0.08 * next()), 4)) },
    validation: over
      ? { t_s: [now / 2, now], loss: [round(lossAt(sum / 2) * 1.06, 4), 0.171], accuracy: [0.89, 0.946] }
      : { t_s: [now / 2], loss: [round(lossAt(sum / 2) * 1.06, 4)], accuracy: [0.89] },
    money: { t_s: times, usd: spent, usd_per_hour: rates },
    share: {
      useful: round(1 - stalled / held - 0.05, 4),
      redundant: 0.012,
      reconfigure: round(stalled / held, 4),
      lost: 0.013,
      idle: 0.025,
    },
    happenings: happenings.slice(-listed),
    happenings_total: happenings.length,
    predicted: plan
      ? {
          time_s: predictedTime,
          time_s_p10: predictedTime * 0.9,
          time_s_p90: predictedTime * 1.13,
          cost_usd: round((cost / now) * end_s * 0.96, 7),
          cost_usd_p10: null,
          cost_usd_p90: null,
          target_samples: target,
          loss: {
            t_s: curve.map((t) => round(t, 3)),
            loss: curve.map((t) => round(lossAt((target * t) / predictedTime), 4)),
          },
        }
      : null,
    scorecard: [
      {
        what: 'time',
        promised: deadline_s,
        predicted: predictedTime,
        delivered: now,
        unit: 's',
        kept: over ? true : null,
      },
      {
        what: 'loss',
        promised: 0.16,
        predicted: 0.155,
        delivered: lossNow,
        unit: '',
        kept: over ? lossNow <= 0.16 : null,
      },
      {
        what: 'cost',
        promised: 0.05,
        predicted: round((cost / now) * end_s * 0.96, 7),
        delivered: cost,
        unit: 'usd',
        kept: over ? true : null,
      },
    ],
  };
}
