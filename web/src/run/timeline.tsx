import { useCallback, useMemo, useState } from 'preact/hooks';
import { Chart } from '../charts/chart';
import type { Series, Window } from '../charts/spec';
import { plural, whole } from '../format';
import { Card } from '../parts/card';
import { LegendKey } from '../parts/legend';
import { heldUntil, stacked } from '../series';
import type { Num, View } from '../types';
import { deadlineRule, nowRule } from './charts';
import { Gantt } from './gantt';
import { MarkRows } from './mark_rows';
import { offerColours, offerName } from './offers';

/** The areas from the top of the stack down, since each covers what is below it, then the line of those used. */
export function countSeries(view: View, colours: Map<string, string>): Series[] {
  const rows: Num[][] = [...view.counts.series.map((one) => one.n), view.counts.used];
  const held = heldUntil(view.counts.t_s, rows, view.time_s);
  const own = held.rows.slice(0, -1) as number[][];
  const areas = stacked(own).map((sum, i): Series => {
    const { type, market } = view.counts.series[i]!;
    const name = offerName(type, market);
    return { name, colour: colours.get(name)!, t: held.t, y: sum, told: own[i], between: 'step', fill: 'solid' };
  });
  const used: Series = {
    name: 'used',
    colour: 'var(--ink)',
    t: held.t,
    y: held.rows[held.rows.length - 1]!,
    between: 'step',
    width: 2,
  };
  return [...areas.reverse(), used];
}

export function Timeline({ view, end }: { view: View; end: number }) {
  const [seen, setSeen] = useState<Window | null>(null);
  const colours = useMemo(() => offerColours(view), [view]);
  const series = useMemo(() => countSeries(view, colours), [view, colours]);
  const rules = useMemo(() => [deadlineRule(view), nowRule(view)], [view]);
  const onWindow = useCallback((next: Window) => {
    setSeen((old) =>
      old && old.from === next.from && old.to === next.to && old.left === next.left && old.width === next.width
        ? old
        : next,
    );
  }, []);
  const latest =
    view.machines.length < view.machines_total
      ? `the ${view.machines.length} latest of ${plural(view.machines_total, 'machine')}`
      : plural(view.machines_total, 'machine');
  return (
    <Card title="Timeline" wide aside="drag to zoom, double click for the whole">
      {view.counts.t_s.length === 0 ? (
        <p class="empty">No machine has come yet.</p>
      ) : (
        <>
          <Chart
            label={`Machines over time by type, ${whole(view.machines_total)} in all; ${whole(view.preemptions)} were lost`}
            height={150}
            series={series}
            end={end}
            format={(n) => (Number.isInteger(n) ? whole(n) : '')}
            rules={rules}
            wordsAt="top"
            sync="run"
            onWindow={onWindow}
          />
          {seen && <MarkRows happenings={view.happenings} window={seen} />}
          <Gantt view={view} end={end} colours={colours} />
          <span class="legend below">
            <span class="key quiet">{latest}; colours as above</span>
            {view.happenings.length < view.happenings_total && (
              <span class="key quiet">marks: the {view.happenings.length} latest of {whole(view.happenings_total)}</span>
            )}
            <LegendKey name="notice given" colour="var(--ink)" look="hatch" />
            <LegendKey name="lost" colour="var(--lost-ink)" look="cross" />
          </span>
        </>
      )}
    </Card>
  );
}
