// A made-up replay of two weeks of weather under four policies, the same for the same seed.

export function makeReplay() {
  let state = 12345;
  const next = () => (state = (Math.imul(state, 1103515245) + 12345) >>> 0) / 4294967296;
  const duration = 14 * 86400;
  const intervals = [];
  let available = 13;
  for (let t = 0; t < duration; t += duration / 110) {
    intervals.push({ t_s: Math.round(t), available });
    available = Math.max(3, Math.min(16, available + Math.round((next() - 0.47) * 6)));
  }
  const figures = [
    ['on-demand', 423515919, 16450.56, [1, 0, 0, 0, 0], 1, 0],
    ['checkpoint', 376956820, 2058.85, [0.889, 0, 0.033, 0.075, 0.003], 611, 434],
    ['reactive', 416496435, 2058.85, [0.984, 0, 0.016, 0, 0], 757, 434],
    ['liveput', 421141071, 2058.85, [0.989, 0, 0.005, 0, 0.006], 681, 434],
  ];
  const ideal = 423388903;
  const policies = figures.map(([policy, samples, cost_usd, share, changes, preemptions]) => {
    const fixed = policy === 'on-demand';
    const own = intervals.map((one) => {
      const stages = one.available >= 12 ? 4 : 3;
      return fixed
        ? { t_s: one.t_s, available: 16, data_parallel: 4, stages: 4 }
        : { ...one, data_parallel: Math.floor(one.available / stages), stages };
    });
    const weight = own.map((one) => one.data_parallel * one.stages);
    const sum = weight.reduce((a, b) => a + b, 0);
    const t_s = [...own.map((one) => one.t_s), duration];
    let done = 0;
    const progress = [0, ...weight.map((w) => Math.round((done += (samples * w) / sum)))];
    return {
      policy,
      samples,
      samples_per_s: samples / duration,
      cost_usd,
      time_s: duration,
      share: { useful: share[0], redundant: share[1], reconfigure: share[2], lost: share[3], idle: share[4] },
      machine_hours: 4000,
      changes,
      preemptions,
      share_of_ideal: samples / ideal,
      intervals: fixed ? own.slice(0, 1) : own,
      progress: { t_s, samples: progress },
      money: { t_s, usd: t_s.map((t, i) => Number(((cost_usd * progress[i]) / samples).toFixed(2))) },
    };
  });
  return {
    trace: {
      name: 'gcp-v100',
      type: 'n1-standard-8-v100',
      zones: 1,
      observation: 'counts',
      duration_s: duration,
      mean_available: 12.6,
      max_available: 16,
      preemption_events: 434,
    },
    profile: 'parcae-bert',
    sight: 'informed',
    policies,
    ideal_samples: ideal,
    offline_optimum_samples: 422100000,
    time_s: 0.041,
    samples_target: 400000000,
    deadline_s: null,
    budget_usd: null,
  };
}
