import { useMemo } from 'preact/hooks';
import { Chart } from '../charts/chart';
import type { Series } from '../charts/spec';
import { whole } from '../format';
import { Card } from '../parts/card';
import { heldUntil } from '../series';
import type { Policy } from '../types';

interface Props {
  policy: Policy;
  names: string[];
  onChoose: (name: string) => void;
  end: number;
  until: number | null;
}

export function weatherSeries(policy: Policy): Series[] {
  const intervals = policy.intervals ?? [];
  const rows = [
    intervals.map((one) => one.available),
    intervals.map((one) => one.data_parallel * one.stages + (one.extra ?? 0)),
    intervals.map((one) => one.stages),
  ];
  const held = heldUntil(
    intervals.map((one) => one.t_s),
    rows,
    policy.time_s,
  );
  return [
    { name: 'available', colour: 'var(--sky)', t: held.t, y: held.rows[0]!, between: 'step', fill: 'solid' },
    { name: 'in the shape', colour: 'var(--accent)', t: held.t, y: held.rows[1]!, between: 'step', width: 1.5 },
    { name: 'stages', colour: 'var(--c3)', t: held.t, y: held.rows[2]!, between: 'step', width: 1.5, dash: [4, 3] },
  ];
}

/** What was there, and the shape that one policy made of it. */
export function Weather({ policy, names, onChoose, end, until }: Props) {
  const series = useMemo(() => weatherSeries(policy), [policy]);
  return (
    <Card
      title="Weather and shape"
      wide
      aside={
        <label class="inline">
          policy{' '}
          <select value={policy.policy} onChange={(event) => onChoose(event.currentTarget.value)}>
            {names.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      }
    >
      {(policy.intervals ?? []).length === 0 ? (
        <p class="empty">This policy has no intervals.</p>
      ) : (
        <Chart
          label={`Machines available and used by ${policy.policy} over time: ${whole(policy.changes)} changes of shape, ${whole(policy.preemptions)} preemptions`}
          height={200}
          series={series}
          end={end}
          format={(n) => (Number.isInteger(n) ? whole(n) : '')}
          sync="replay"
          until={until}
          rest={until}
        />
      )}
    </Card>
  );
}
