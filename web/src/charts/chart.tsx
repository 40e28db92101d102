import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { dash as unknown, duration } from '../format';
import { aligned, valueAt } from '../series';
import { useTheme } from '../theme';
import { drawRegions, drawRules } from './draw';
import { chartOptions } from './options';
import { LegendKey } from '../parts/legend';
import type { Region, Rule, Series, Window } from './spec';

export interface ChartProps {
  /** What a reader who cannot see the chart should know. */
  label: string;
  height: number;
  series: Series[];
  /** Where the time axis ends when nobody has zoomed in. */
  end: number;
  format: (value: number) => string;
  formatRight?: (value: number) => string;
  rules?: Rule[];
  regions?: Region[];
  /** Where words of lines across time stand. */
  wordsAt?: 'top' | 'bottom';
  /** Time that the legend tells of while nobody points; absent: the end of each line. */
  rest?: number | null;
  /** Charts with the same word share cursor and zoom. */
  sync?: string;
  fromZero?: boolean;
  legend?: boolean;
  /** Draws on top of the series, in the canvas's own pixels. */
  paint?: (u: uPlot) => void;
  /** Lines of a tip for the cursor's place; null: none. */
  tip?: (u: uPlot, left: number, top: number) => string[] | null;
  onWindow?: (window: Window) => void;
  /** Time up to which is shown, the rest lies behind a curtain; null or absent: all. */
  until?: number | null;
}

function told(one: Series, t: number): number | null {
  return valueAt({ t: one.t, y: one.told ?? one.y, between: one.between }, t);
}

function lastTold(one: Series): number | null {
  const y = one.told ?? one.y;
  return y[y.length - 1] ?? null;
}

// The types of uPlot leave out the third parameter, which moves the cursor of charts with the same sync word too.
type SetCursor = (place: { left: number; top: number }, tell: boolean, share: boolean) => void;

function point(u: uPlot, left: number, top: number): void {
  (u.setCursor as SetCursor)({ left, top }, true, true);
}

/** A chart over time. It is made once and then only given new data: live runs send some every second. */
export function Chart(props: ChartProps) {
  const theme = useTheme();
  const box = useRef<HTMLDivElement>(null);
  const keys = useRef<HTMLSpanElement>(null);
  const tip = useRef<HTMLDivElement>(null);
  const curtain = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const shown = useRef(0);
  const { series, height, sync } = props;
  const looks = series
    .map((one) => [one.name, one.colour, one.between, one.fill, one.dash, one.right].join('|'))
    .join('\n');

  function tellValues(u: uPlot): void {
    const { left, top } = u.cursor;
    const at = left != null && left >= 0 ? u.posToVal(left, 'x') : null;
    const now = latest.current;
    const spans = keys.current?.querySelectorAll<HTMLElement>('[data-told]');
    spans?.forEach((span, i) => {
      const one = now.series[i]!;
      const value = at === null ? ((now.rest == null ? null : told(one, now.rest)) ?? lastTold(one)) : told(one, at);
      const format = one.right ? (now.formatRight ?? now.format) : now.format;
      span.textContent = value === null ? unknown : format(value);
    });
    const time = keys.current?.querySelector<HTMLElement>('[data-time]');
    if (time) time.textContent = at === null ? '' : `at ${duration(at)}`;
    if (!tip.current || !now.tip) return;
    // Charts that follow another one's cursor have no height to tell about.
    const lines =
      at === null || (document.activeElement !== box.current && !box.current?.matches(':hover'))
        ? null
        : now.tip(u, left!, top!);
    tip.current.hidden = lines === null;
    if (lines === null) return;
    tip.current.replaceChildren(
      ...lines.map((line) => Object.assign(document.createElement('div'), { textContent: line })),
    );
    const room = box.current!.clientWidth - tip.current.offsetWidth - 4;
    tip.current.style.left = `${Math.max(4, Math.min(room, u.over.offsetLeft + left! + 14))}px`;
    tip.current.style.top = `${u.over.offsetTop + top! + 16}px`;
  }

  function moveCurtain(u: uPlot): void {
    const { until } = latest.current;
    if (!curtain.current) return;
    const left = until == null ? u.over.offsetWidth : Math.max(0, Math.min(u.over.offsetWidth, u.valToPos(until, 'x')));
    curtain.current.hidden = left >= u.over.offsetWidth;
    curtain.current.style.cssText = `left:${u.over.offsetLeft + left}px;width:${u.over.offsetWidth - left + 2}px;top:${u.over.offsetTop}px;height:${u.over.offsetHeight}px`;
  }

  function tellWindow(u: uPlot): void {
    moveCurtain(u);
    const { min, max } = u.scales.x!;
    if (min == null || max == null) return;
    latest.current.onWindow?.({ from: min, to: max, left: u.over.offsetLeft, width: u.over.offsetWidth });
  }

  function tables(list: Series[]): uPlot.AlignedData {
    const { x, ys } = aligned(list);
    return [x, ...ys] as uPlot.AlignedData;
  }

  useLayoutEffect(() => {
    const parent = box.current!;
    const width = parent.clientWidth;
    const options = chartOptions(
      { width, height },
      series,
      {
        end: () => latest.current.end,
        series: () => latest.current.series,
        rules: () => latest.current.rules ?? [],
        fromZero: latest.current.fromZero ?? true,
      },
      (value) => latest.current.format(value),
      props.formatRight && ((value) => latest.current.formatRight!(value)),
      sync,
      props.paint === undefined,
    );
    options.hooks = {
      drawClear: [(u) => drawRegions(u, latest.current.regions ?? [])],
      draw: [
        (u) => latest.current.paint?.(u),
        (u) => drawRules(u, latest.current.rules ?? [], latest.current.wordsAt ?? 'bottom'),
      ],
      setCursor: [tellValues],
      setScale: [(u, key) => key === 'x' && tellWindow(u)],
      setSize: [tellWindow],
    };
    const u = new uPlot(options, tables(series), parent);
    u.setScale('x', { min: 0, max: latest.current.end });
    shown.current = latest.current.end;
    plot.current = u;
    tellValues(u);
    tellWindow(u);
    // Zooming out goes back to the whole axis; uPlot would take what the data of each chart spans.
    const zoomOut = (event: Event) => {
      event.stopPropagation();
      for (const one of sync ? uPlot.sync(sync).plots : [u]) one.setScale('x', { min: 0, max: latest.current.end });
    };
    parent.addEventListener('dblclick', zoomOut, true);
    const sizes = new ResizeObserver(() => {
      if (parent.clientWidth > 0 && parent.clientWidth !== u.width) u.setSize({ width: parent.clientWidth, height });
    });
    sizes.observe(parent);
    return () => {
      sizes.disconnect();
      parent.removeEventListener('dblclick', zoomOut, true);
      u.destroy();
      plot.current = null;
    };
  }, [looks, theme, height, sync]);

  useEffect(() => {
    const u = plot.current;
    if (!u) return;
    const zoomed = u.scales.x!.min !== 0 || Math.abs(u.scales.x!.max! - shown.current) > 1e-9;
    u.batch(() => {
      u.setData(tables(series), false);
      const { min, max } = u.scales.x!;
      u.setScale('x', zoomed ? { min: min!, max: max! } : { min: 0, max: props.end });
      shown.current = zoomed ? shown.current : props.end;
    });
    tellValues(u);
  }, [series, props.end, props.rules, props.regions, props.paint]);

  // Playing a replay moves the curtain at every frame; the canvas stays as it is.
  useLayoutEffect(() => {
    if (!plot.current) return;
    moveCurtain(plot.current);
    tellValues(plot.current);
  }, [props.until]);

  function onKey(event: KeyboardEvent): void {
    const u = plot.current;
    const moves: Record<string, [number, number]> = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, -1],
      ArrowDown: [0, 1],
    };
    if (!u) return;
    if (event.key === 'Escape') point(u, -10, -10);
    const move = moves[event.key];
    if (!move || (move[1] !== 0 && !props.tip)) return;
    event.preventDefault();
    const { offsetWidth: wide, offsetHeight: high } = u.over;
    const from =
      u.cursor.left != null && u.cursor.left >= 0
        ? { x: u.cursor.left, y: u.cursor.top ?? 0 }
        : { x: move[0] < 0 ? wide : 0, y: 4 };
    const step = event.shiftKey ? 10 : 1;
    point(
      u,
      Math.min(wide, Math.max(0, from.x + (move[0] * step * wide) / 100)),
      Math.min(high - 1, Math.max(0, from.y + move[1] * 8)),
    );
  }

  return (
    <div class="chart">
      {props.legend !== false && (
        <span class="legend" ref={keys}>
          {series.map((one, i) => (
            <LegendKey
              key={i}
              name={one.name}
              colour={one.colour}
              look={one.fill === 'solid' ? 'box' : one.between === 'points' ? 'ring' : 'line'}
              dash={one.dash}
            >
              <span class="told" data-told />
            </LegendKey>
          ))}
          <span class="told at" data-time />
        </span>
      )}
      <div
        class="plot"
        ref={box}
        role="img"
        aria-label={props.label}
        tabIndex={0}
        onKeyDown={onKey}
        style={{ height: `${height}px` }}
      >
        {props.until !== undefined && <div class="curtain" ref={curtain} hidden />}
      </div>
      {props.tip && <div class="tip" ref={tip} hidden />}
    </div>
  );
}
