import { useCallback, useMemo } from 'preact/hooks';
import type uPlot from 'uplot';
import { Chart } from '../charts/chart';
import { font, hatch } from '../charts/draw';
import { ink, textOn } from '../colours';
import { duration, usd, whole } from '../format';
import type { Machine, Shape, View } from '../types';
import { lanes } from './lanes';
import { nowRule } from './charts';
import { offerName } from './offers';

const strip = 22;
const axis = 26;
const padding = 10;

/** Rows get thinner the more there are; beyond that the chart grows. */
function rowHeight(count: number): number {
  return count <= 8 ? 22 : count <= 16 ? 16 : count <= 40 ? 10 : 6;
}

export function shapeText(shape: Shape): string {
  if (shape.data_parallel * shape.stages === 0) return 'nobody trains';
  return `${shape.data_parallel} × ${shape.stages}${shape.extra ? ` + ${shape.extra}` : ''}`;
}

export function machineLines(machine: Machine): string[] {
  const price = machine.usd_per_hour === null ? '' : `, ${usd(machine.usd_per_hour)}/h`;
  const until = machine.to_s === null ? 'still there' : `${machine.end ?? 'gone'} at ${duration(machine.to_s)}`;
  return [
    `${machine.name}: ${offerName(machine.type, machine.market)}${price}`,
    `came at ${duration(machine.from_s)}, ${until}`,
    ...(machine.notice_s === null ? [] : [`notice at ${duration(machine.notice_s)}`]),
  ];
}

function shapeAt(shapes: Shape[], t: number): Shape | undefined {
  let found: Shape | undefined;
  for (const shape of shapes) if (shape.t_s <= t) found = shape;
  return found;
}

function paintShapes(u: uPlot, view: View, ratio: number): void {
  const { ctx, bbox } = u;
  const end = view.time_s ?? 0;
  ctx.font = `600 ${10.5 * ratio}px ${font}`;
  ctx.textAlign = 'left';
  ctx.textBaseline = 'middle';
  view.shapes.forEach((shape, i) => {
    const from = u.valToPos(shape.t_s, 'x', true);
    const to = u.valToPos(view.shapes[i + 1]?.t_s ?? Math.max(end, shape.t_s), 'x', true);
    const idle = shape.data_parallel * shape.stages === 0;
    ctx.fillStyle = ink(idle ? 'var(--idle)' : i % 2 ? 'var(--strip)' : 'var(--strip-2)');
    ctx.fillRect(from, bbox.top, Math.max(1, to - from), (strip - 6) * ratio);
    const room = Math.min(to, bbox.left + bbox.width) - Math.max(from, bbox.left) - 6 * ratio;
    const text = idle ? '0' : shapeText(shape);
    if (room < 6 * ratio || ctx.measureText(text).width > room) return;
    ctx.fillStyle = ink('var(--ink)');
    ctx.fillText(text, Math.max(from, bbox.left) + 4 * ratio, bbox.top + ((strip - 6) / 2) * ratio + ratio);
  });
}

interface Painted {
  view: View;
  lane: number[];
  row: number;
  colours: Map<string, string>;
}

function paintMachine(u: uPlot, machine: Machine, lane: number, { view, row, colours }: Painted, ratio: number): void {
  const { ctx, bbox } = u;
  const from = u.valToPos(machine.from_s, 'x', true);
  const to = u.valToPos(machine.to_s ?? view.time_s ?? machine.from_s, 'x', true);
  const top = bbox.top + (strip + lane * row) * ratio;
  const high = Math.max(2, row - (row > 8 ? 4 : 2)) * ratio;
  const wide = Math.max(ratio, to - from);
  const name = offerName(machine.type, machine.market);
  ctx.fillStyle = ink(colours.get(name) ?? 'var(--idle)');
  ctx.fillRect(from, top, wide, high);
  if (machine.notice_s !== null) {
    const notice = u.valToPos(machine.notice_s, 'x', true);
    hatch(ctx, notice, top, Math.max(0, to - notice), high, ink('var(--card)'), ratio);
  }
  if (machine.end === 'lost') {
    const size = Math.min(5 * ratio, high / 2);
    const middle = top + high / 2;
    ctx.strokeStyle = ink('var(--lost-ink)');
    ctx.lineWidth = 2.2 * ratio;
    ctx.beginPath();
    ctx.moveTo(to - size, middle - size);
    ctx.lineTo(to + size, middle + size);
    ctx.moveTo(to + size, middle - size);
    ctx.lineTo(to - size, middle + size);
    ctx.stroke();
  }
  if (row < 16) return;
  const left = Math.max(from, bbox.left) + 5 * ratio;
  const room = Math.min(to, bbox.left + bbox.width) - left - 8 * ratio;
  const text = [`${machine.name}  ${name}`, machine.name].find((one) => ctx.measureText(one).width < room);
  if (text === undefined) return;
  ctx.fillStyle = ink(textOn(colours.get(name) ?? 'var(--idle)'));
  ctx.fillText(text, left, top + high / 2 + ratio);
}

/** One bar per machine, and above them the shape that they trained in. */
export function Gantt({ view, end, colours }: { view: View; end: number; colours: Map<string, string> }) {
  const { lane, count } = useMemo(() => lanes(view.machines), [view]);
  const row = rowHeight(count);
  const paint = useCallback(
    (u: uPlot) => {
      const ratio = window.devicePixelRatio || 1;
      const { ctx, bbox } = u;
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width + 6 * ratio, bbox.height);
      ctx.clip();
      paintShapes(u, view, ratio);
      view.machines.forEach((machine, i) => paintMachine(u, machine, lane[i]!, { view, lane, row, colours }, ratio));
      ctx.restore();
    },
    [view, lane, row, colours],
  );
  const tip = useCallback(
    (u: uPlot, left: number, top: number) => {
      const t = u.posToVal(left, 'x');
      const shape = shapeAt(view.shapes, t);
      if (top < strip)
        return shape && t <= (view.time_s ?? 0)
          ? [
              `${shapeText(shape)}${shape.data_parallel ? ' (data parallel × stages)' : ''}`,
              `since ${duration(shape.t_s)}`,
            ]
          : null;
      const at = Math.floor((top - strip) / row);
      const machine = view.machines.find((one, i) => lane[i] === at && one.from_s <= t && t <= (one.to_s ?? Infinity));
      return machine ? machineLines(machine) : null;
    },
    [view, lane, row],
  );
  // An empty series: everything is painted, only the time axis is the chart's.
  const series = useMemo(
    () => [{ name: 'machines', colour: 'var(--ink)', t: [0, end], y: [null, null], between: 'line' as const }],
    [end],
  );
  const rules = useMemo(() => [{ ...nowRule(view), text: '' }], [view]);
  return (
    <div class="gantt">
      <span class="gantt-label" aria-hidden="true" style={{ top: `${padding}px` }}>
        shape
      </span>
      <span class="gantt-label" aria-hidden="true" style={{ top: `${padding + strip}px` }}>
        machines
      </span>
      <Chart
        label={`One bar per machine: ${whole(view.machines_total)} came, ${view.machines.filter((one) => one.end === 'lost').length} of those shown were lost`}
        height={padding + strip + Math.max(1, count) * row + axis + 4}
        series={series}
        end={end}
        format={() => ''}
        rules={rules}
        sync="run"
        legend={false}
        paint={paint}
        tip={tip}
      />
    </div>
  );
}
