import { useMemo, useRef, useState } from 'preact/hooks';
import type { Window } from '../charts/spec';
import { duration, plural, usd } from '../format';
import type { Happening } from '../types';
import { kindOf, marks, rowOf, type Mark, type Row } from './kinds';

const size = 22;
const shownInTip = 5;

const titles: Record<Row, string> = {
  weather: 'Machines coming, noticed and lost',
  decisions: 'Decisions of the controller',
};
const short: Record<Row, string> = { weather: 'weather', decisions: 'decisions' };

/** What a loss cost, in words; empty where nothing is known. */
export function priceOf(happening: Happening): string {
  const parts: string[] = [];
  if (happening.stall_s !== null) parts.push(`training stood still ${duration(happening.stall_s)}`);
  if (happening.cost_usd !== null) parts.push(`cost ${usd(happening.cost_usd)}`);
  return parts.join(', ');
}

function MarkTip({ mark, id, left }: { mark: Mark; id: string; left: number }) {
  const list = mark.happenings.slice(-shownInTip);
  const more = mark.happenings.length - list.length;
  return (
    <div class="tip mark-tip" id={id} role="tooltip" style={{ '--at': `${left}px` }}>
      {more > 0 && <div class="quiet">{more} earlier</div>}
      {list.map((one) => (
        <div key={one.id}>
          <strong>{duration(one.t_s)}</strong> {one.text}
          {one.why && <div class="quiet">{one.why}</div>}
          {priceOf(one) && <div class="quiet">{priceOf(one)}</div>}
        </div>
      ))}
    </div>
  );
}

function MarkRow({ row, happenings, window }: { row: Row; happenings: Happening[]; window: Window }) {
  const [open, setOpen] = useState<number | null>(null);
  const [reach, setReach] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const list = useMemo(() => {
    const scale = window.width / (window.to - window.from);
    return marks(happenings, (t) => (t - window.from) * scale, window.width, size);
  }, [happenings, window]);
  const at = Math.min(reach, list.length - 1);

  function onKey(event: KeyboardEvent): void {
    if (event.key === 'Escape') return setOpen(null);
    const next = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: list.length - 1 }[event.key];
    if (next === undefined || next < 0 || next >= list.length) return;
    event.preventDefault();
    setReach(next);
    box.current?.querySelectorAll('button')[next]?.focus();
  }

  const opened = open === null ? undefined : list[open];
  const tip = `tip-${row}`;
  return (
    <div
      class="marks"
      role="toolbar"
      aria-label={titles[row]}
      ref={box}
      onKeyDown={onKey}
      onMouseLeave={() => setOpen(null)}
    >
      <span class="marks-label" aria-hidden="true">
        {short[row]}
      </span>
      {list.map((mark, i) => {
        const kind = kindOf(mark.kind);
        const n = mark.happenings.length;
        const first = mark.happenings[0]!;
        return (
          // By place, not by happening: on a growing time axis marks regroup all the time, and changing them is cheaper than making them.
          <button
            key={i}
            type="button"
            class="mark"
            tabIndex={i === at ? 0 : -1}
            data-kind={mark.kind}
            data-id={first.id}
            aria-label={
              n === 1
                ? `${duration(first.t_s)}: ${first.text}`
                : `${duration(first.t_s)}: ${plural(n, 'happening')}, ${first.text}`
            }
            aria-describedby={open === i ? tip : undefined}
            style={{ left: `${window.left + mark.x - size / 2}px`, color: kind.colour }}
            onFocus={() => (setReach(i), setOpen(i))}
            onBlur={() => setOpen(null)}
            onMouseEnter={() => setOpen(i)}
            onClick={() => setOpen(i)}
          >
            <span aria-hidden="true">{kind.glyph}</span>
            {n > 1 && <sub aria-hidden="true">{n > 99 ? '99+' : n}</sub>}
          </button>
        );
      })}
      {opened && <MarkTip mark={opened} id={tip} left={window.left + opened.x} />}
    </div>
  );
}

/** What happened and what the controller did about it, on the time axis of the chart above. */
export function MarkRows({ happenings, window }: { happenings: Happening[]; window: Window }) {
  const byRow = useMemo(() => {
    const split: Record<Row, Happening[]> = { weather: [], decisions: [] };
    for (const one of happenings) {
      const row = rowOf(one);
      if (row) split[row].push(one);
    }
    return split;
  }, [happenings]);
  return (
    <div class="mark-rows">
      <MarkRow row="weather" happenings={byRow.weather} window={window} />
      <MarkRow row="decisions" happenings={byRow.decisions} window={window} />
    </div>
  );
}
