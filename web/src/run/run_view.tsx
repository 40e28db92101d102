import { useMemo } from 'preact/hooks';
import { Card } from '../parts/card';
import { ShareBars } from '../parts/share_bar';
import { largest } from '../series';
import { runEnd } from '../scale';
import type { View } from '../types';
import { Happenings } from './happenings';
import { LossChart, MoneyChart, ProgressChart } from './charts';
import { RunTiles } from './run_tiles';
import { Scorecard } from './scorecard';
import { Timeline } from './timeline';

/** One run, with others to compare it with. */
export function RunView({ view, others }: { view: View; others: View[] }) {
  const end = useMemo(() => largest([runEnd(view), ...others.map((other) => other.time_s)]) ?? 1, [view, others]);
  return (
    <div class="run">
      <RunTiles view={view} />
      <div class="grid">
        <Timeline view={view} end={end} />
        <ProgressChart view={view} others={others} end={end} />
        <LossChart view={view} others={others} end={end} />
        <MoneyChart view={view} others={others} end={end} />
        <div class="column">
          <Card title="Where machine time went">
            <ShareBars rows={[view, ...others].map((one) => ({ name: one.name, share: one.share }))} />
          </Card>
          <Scorecard view={view} />
        </div>
        <Happenings happenings={view.happenings} total={view.happenings_total} />
      </div>
    </div>
  );
}
