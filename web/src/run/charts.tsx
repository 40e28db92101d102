import { useMemo } from 'preact/hooks';
import { Chart } from '../charts/chart';
import type { Region, Rule, Series } from '../charts/spec';
import { dashes, wheelColour } from '../colours';
import { count, duration, lossText, percent, usd } from '../format';
import { Card } from '../parts/card';
import { heldUntil } from '../series';
import type { View } from '../types';

interface Props {
  view: View;
  others: View[];
  end: number;
}

const sync = 'run';

export function nowRule(view: View): Rule {
  return { axis: 'x', at: view.end === null ? view.time_s : null, text: 'now', colour: 'var(--quiet)', dash: [2, 2] };
}

export function deadlineRule(view: View): Rule {
  return { axis: 'x', at: view.deadline_s, text: `deadline ${duration(view.deadline_s)}`, colour: 'var(--lost-ink)' };
}

function otherSeries(others: View[], t: (view: View) => number[], y: (view: View) => Series['y']): Series[] {
  return others.map((other, i) => ({
    name: other.name,
    colour: wheelColour(i + 1),
    t: t(other),
    y: y(other),
    between: 'line',
    dash: dashes(i + 1),
  }));
}

export function ProgressChart({ view, others, end }: Props) {
  const series = useMemo(() => {
    const list: Series[] = [
      {
        name: view.name,
        colour: 'var(--accent)',
        t: view.progress.t_s,
        y: view.progress.samples,
        between: 'line',
        width: 2.5,
        fill: 'faint',
      },
    ];
    list.push(
      ...otherSeries(
        others,
        (one) => one.progress.t_s,
        (one) => one.progress.samples,
      ),
    );
    const { time_s, target_samples } = view.predicted ?? { time_s: null, target_samples: null };
    if (time_s !== null && target_samples !== null)
      list.push({
        name: 'predicted',
        colour: 'var(--predicted)',
        t: [0, time_s],
        y: [0, target_samples],
        between: 'line',
        dash: [6, 4],
      });
    return list;
  }, [view, others]);
  const regions = useMemo((): Region[] => {
    const {
      time_s_p10: early,
      time_s_p90: late,
      target_samples: top,
    } = view.predicted ?? { time_s_p10: null, time_s_p90: null, target_samples: null };
    if (early === null || late === null || top === null) return [];
    return [
      {
        points: [
          [0, 0],
          [early, top],
          [late, top],
        ],
        colour: 'var(--band)',
      },
    ];
  }, [view]);
  const rules = useMemo(
    (): Rule[] => [
      { axis: 'y', at: view.target_samples, text: `target ${count(view.target_samples)}`, colour: 'var(--ink)' },
      deadlineRule(view),
      nowRule(view),
    ],
    [view],
  );
  const far =
    view.deadline_s !== null && view.deadline_s > end
      ? `deadline at ${duration(view.deadline_s)}, beyond this axis`
      : undefined;
  const label =
    `Samples over time: ${count(view.samples)} of ${count(view.target_samples)} after ${duration(view.time_s)}` +
    (view.predicted ? `; predicted to take ${duration(view.predicted.time_s)}` : '');
  return (
    <Card title="Progress" aside={far ?? (regions.length > 0 ? 'band: 8 of 10 runs' : undefined)}>
      {series.every((one) => one.t.length === 0) ? (
        <p class="empty">Nothing was trained yet.</p>
      ) : (
        <Chart
          label={label}
          height={240}
          series={series}
          end={end}
          format={count}
          rules={rules}
          regions={regions}
          sync={sync}
          rest={view.time_s}
        />
      )}
    </Card>
  );
}

export function LossChart({ view, others, end }: Props) {
  const series = useMemo(() => {
    const list: Series[] = [
      {
        name: 'training',
        colour: 'var(--accent)',
        t: view.losses.t_s,
        y: view.losses.loss,
        between: 'line',
        width: 2.5,
      },
    ];
    list.push(
      ...otherSeries(
        others,
        (one) => one.losses.t_s,
        (one) => one.losses.loss,
      ).filter((one) => one.t.length > 0),
    );
    if (view.validation.t_s.length > 0)
      list.push({
        name: 'validation',
        colour: 'var(--c2)',
        t: view.validation.t_s,
        y: view.validation.loss,
        between: 'points',
      });
    const curve = view.predicted?.loss;
    if (curve && curve.t_s.length > 0)
      list.push({
        name: 'predicted',
        colour: 'var(--predicted)',
        t: curve.t_s,
        y: curve.loss,
        between: 'line',
        dash: [6, 4],
      });
    return list;
  }, [view, others]);
  const rules = useMemo(
    (): Rule[] => [
      { axis: 'y', at: view.target_loss, text: `target ${lossText(view.target_loss)}`, colour: 'var(--ink)' },
      deadlineRule(view),
      nowRule(view),
    ],
    [view],
  );
  const empty = series.every((one) => one.t.length === 0);
  return (
    <Card title="Loss" aside={view.accuracy === null ? undefined : `accuracy ${percent(view.accuracy)}`}>
      {empty ? (
        <p class="empty">No loss was reported.</p>
      ) : (
        <Chart
          label={`Loss over time: ${lossText(view.loss)} now, target ${lossText(view.target_loss)}`}
          height={240}
          series={series}
          end={end}
          format={lossText}
          rules={rules}
          wordsAt="top"
          sync={sync}
          rest={view.time_s}
        />
      )}
    </Card>
  );
}

export function MoneyChart({ view, others, end }: Props) {
  const series = useMemo(() => {
    const { t_s, usd: spent, usd_per_hour } = view.money;
    const rate = heldUntil(t_s, [usd_per_hour], view.time_s);
    const list: Series[] = [
      {
        name: 'rate per hour',
        colour: 'var(--c3)',
        t: rate.t,
        y: rate.rows[0]!,
        between: 'step',
        right: true,
        width: 1.5,
      },
      {
        name: others.length > 0 ? view.name : 'spent',
        colour: 'var(--accent)',
        t: t_s,
        y: spent,
        between: 'line',
        width: 2.5,
        fill: 'faint',
      },
    ];
    list.push(
      ...otherSeries(
        others,
        (one) => one.money.t_s,
        (one) => one.money.usd,
      ),
    );
    const { time_s, cost_usd } = view.predicted ?? { time_s: null, cost_usd: null };
    if (time_s !== null && cost_usd !== null)
      list.push({
        name: 'predicted',
        colour: 'var(--predicted)',
        t: [0, time_s],
        y: [0, cost_usd],
        between: 'line',
        dash: [6, 4],
      });
    return list;
  }, [view, others]);
  const rules = useMemo(
    (): Rule[] => [
      { axis: 'y', at: view.budget_usd, text: `budget ${usd(view.budget_usd)}`, colour: 'var(--lost-ink)' },
      deadlineRule(view),
      nowRule(view),
    ],
    [view],
  );
  const unpriced = view.money.usd.every((one) => one === null);
  return (
    <Card
      title="Money"
      aside={view.on_demand_cost_usd === null ? undefined : `on demand it would be ${usd(view.on_demand_cost_usd)}`}
    >
      {unpriced ? (
        <p class="empty">The prices of these machines are not known.</p>
      ) : (
        <Chart
          label={`Money over time: ${usd(view.cost_usd)} spent, ${usd(view.usd_per_hour)} an hour now`}
          height={240}
          series={series}
          end={end}
          format={usd}
          formatRight={usd}
          rules={rules}
          sync={sync}
          rest={view.time_s}
        />
      )}
    </Card>
  );
}
