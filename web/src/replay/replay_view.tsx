import { useMemo, useState } from 'preact/hooks';
import { Chart } from '../charts/chart';
import type { Rule, Series } from '../charts/spec';
import { dashes, wheelColour } from '../colours';
import { count, duration, plural, usd } from '../format';
import { Card } from '../parts/card';
import { ShareBars } from '../parts/share_bar';
import { beyond } from '../scale';
import { largest } from '../series';
import type { Replay } from '../types';
import { PolicyTable } from './policy_table';
import { Weather } from './weather';

export function replayEnd(replay: Replay): number {
  const longest = largest(replay.policies.map((one) => one.time_s)) ?? replay.trace.duration_s;
  const deadline = replay.deadline_s ?? 0;
  return deadline > longest && deadline <= 2 * longest ? beyond(deadline) : longest;
}

function policySeries(replay: Replay, kind: 'progress' | 'money'): Series[] {
  return replay.policies.flatMap((one, i): Series[] => {
    const table =
      kind === 'progress'
        ? one.progress && { t: one.progress.t_s, y: one.progress.samples }
        : one.money && { t: one.money.t_s, y: one.money.usd };
    return table ? [{ name: one.policy, colour: wheelColour(i), ...table, between: 'line', dash: dashes(i) }] : [];
  });
}

/** Policies on the same weather. `until`: the part of the time that is shown; null: all of it. */
export function ReplayView({ replay, until }: { replay: Replay; until: number | null }) {
  const [chosen, setChosen] = useState<string | null>(null);
  const end = replayEnd(replay);
  const progress = useMemo(() => {
    const list = policySeries(replay, 'progress');
    if (replay.ideal_samples != null)
      list.push({
        name: 'ideal',
        colour: 'var(--quiet)',
        t: [0, replay.trace.duration_s],
        y: [0, replay.ideal_samples],
        between: 'line',
        dash: [3, 4],
        width: 1.5,
      });
    return list;
  }, [replay]);
  const money = useMemo(() => policySeries(replay, 'money'), [replay]);
  const rules = useMemo((): Record<'progress' | 'money', Rule[]> => {
    const deadline: Rule = {
      axis: 'x',
      at: replay.deadline_s,
      text: `deadline ${duration(replay.deadline_s)}`,
      colour: 'var(--lost-ink)',
    };
    return {
      progress: [
        { axis: 'y', at: replay.samples_target, text: `target ${count(replay.samples_target)}`, colour: 'var(--ink)' },
        deadline,
      ],
      money: [
        { axis: 'y', at: replay.budget_usd, text: `budget ${usd(replay.budget_usd)}`, colour: 'var(--lost-ink)' },
        deadline,
      ],
    };
  }, [replay]);
  const { trace } = replay;
  const policy = replay.policies.find((one) => one.policy === chosen) ?? replay.policies[replay.policies.length - 1];
  const told = replay.policies.map((one) => `${one.policy} ${count(one.samples)}`).join(', ');
  return (
    <div class="replay">
      <p class="wish">
        {replay.profile} in the weather of {trace.name}: {duration(trace.duration_s)}, {count(trace.mean_available)}{' '}
        machines on average
        {trace.max_available != null && `, ${count(trace.max_available)} at most`}
        {trace.preemption_events != null && `, ${plural(trace.preemption_events, 'preemption')}`}.
      </p>
      <PolicyTable replay={replay} until={until} />
      <div class="grid">
        <Card title="Progress" aside="samples trained and kept">
          <Chart
            label={`Samples over time by policy. At the end: ${told}`}
            height={260}
            series={progress}
            end={end}
            format={count}
            rules={rules.progress}
            sync="replay"
            until={until}
            rest={until}
          />
        </Card>
        <Card title="Money" aside="spent so far">
          {money.length === 0 ? (
            <p class="empty">No prices are known.</p>
          ) : (
            <Chart
              label={`Money over time by policy. At the end: ${replay.policies.map((one) => `${one.policy} ${usd(one.cost_usd)}`).join(', ')}`}
              height={260}
              series={money}
              end={end}
              format={usd}
              rules={rules.money}
              sync="replay"
              until={until}
              rest={until}
            />
          )}
        </Card>
        {policy && (
          <Weather
            policy={policy}
            names={replay.policies.map((one) => one.policy)}
            onChoose={setChosen}
            end={end}
            until={until}
          />
        )}
        <Card title="Where machine time went" wide>
          <ShareBars rows={replay.policies.map((one) => ({ name: one.policy, share: one.share }))} />
        </Card>
      </div>
    </div>
  );
}
