import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { clusterText, duration, plural, tick, usd } from '../format';
import { Card } from '../parts/card';
import { LegendKey } from '../parts/legend';
import { ticks, timeTicks } from '../scale';
import type { Plan } from '../types';
import { points, type Point, type Role } from './options';

const height = 330;
const edge = { left: 58, right: 16, top: 14, bottom: 40 };

const roles: Record<Role, { word: string; colour: string; look: 'ring' | 'box' | 'line' }> = {
  chosen: { word: 'chosen', colour: 'var(--accent)', look: 'box' },
  tie: { word: 'as good within the error', colour: 'var(--c5)', look: 'ring' },
  'runner-up': { word: 'runner-up', colour: 'var(--c2)', look: 'ring' },
  considered: { word: 'best of one kind', colour: 'var(--c3)', look: 'ring' },
  frontier: { word: 'frontier', colour: 'var(--quiet)', look: 'line' },
};

/** What the axes show: all points, and deadline and budget unless they are far out. Time starts near the fastest. */
export function extent(
  list: Point[],
  deadline: number | null,
  budget: number | null,
): { from: number; time: number; cost: number } {
  const time = Math.max(...list.map((point) => point.time));
  const cost = Math.max(...list.map((point) => point.cost));
  const first = Math.min(...list.map((point) => point.time));
  const last = deadline !== null && deadline > time && deadline < 2 * time ? deadline : time;
  const dearest = budget !== null && budget > cost && budget < 1.6 * cost ? budget : cost;
  const room = 0.1 * (last - first || last);
  return { from: Math.max(0, first - 2 * room), time: last + room, cost: 1.12 * dearest };
}

function keyOf(point: Point): string {
  return `${clusterText(point.option)} ${point.cost}`;
}

function Dot({ point, x, y, onShow }: { point: Point; x: number; y: number; onShow: (name: string | null) => void }) {
  const { colour } = roles[point.role];
  const chosen = point.role === 'chosen';
  const name = `${clusterText(point.option)}: ${duration(point.time)}, ${usd(point.cost)}, ${roles[point.role].word}`;
  return (
    <g
      class="dot"
      role="img"
      tabIndex={0}
      aria-label={name}
      onFocus={() => onShow(keyOf(point))}
      onBlur={() => onShow(null)}
      onMouseEnter={() => onShow(keyOf(point))}
      onMouseLeave={() => onShow(null)}
      onKeyDown={(event) => event.key === 'Escape' && onShow(null)}
    >
      <circle cx={x} cy={y} r="11" fill="transparent" />
      <circle
        class="seen"
        cx={x}
        cy={y}
        r={chosen ? 7.5 : 5}
        fill={chosen ? colour : 'var(--card)'}
        stroke={colour}
        stroke-width={chosen ? 3 : 2.2}
      />
    </g>
  );
}

/** Time against cost: what more money would buy, and where the choice lies. */
export function Frontier({ plan }: { plan: Plan }) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(600);
  const [shown, setShown] = useState<string | null>(null);
  useLayoutEffect(() => {
    const sizes = new ResizeObserver(() => setWidth(box.current?.clientWidth || 600));
    sizes.observe(box.current!);
    return () => sizes.disconnect();
  }, []);
  const list = useMemo(() => points(plan), [plan]);
  const told = list.find((point) => keyOf(point) === shown);
  const line = useMemo(
    () => (plan.frontier ?? []).filter((one) => one.time_s !== null && one.cost_usd !== null),
    [plan],
  );
  const most = extent(list, plan.deadline_s, plan.budget_usd);
  const x = (time: number) =>
    edge.left + ((time - most.from) / (most.time - most.from)) * (width - edge.left - edge.right);
  const y = (cost: number) => height - edge.bottom - (cost / most.cost) * (height - edge.top - edge.bottom);
  const used = new Set(list.map((point) => point.role));
  const deadline =
    plan.deadline_s !== null && plan.deadline_s <= most.time && plan.deadline_s >= most.from ? plan.deadline_s : null;
  const budget = plan.budget_usd !== null && plan.budget_usd <= most.cost ? plan.budget_usd : null;
  const beyond = [
    ...(plan.deadline_s !== null && deadline === null ? [`deadline ${duration(plan.deadline_s)} beyond the axis`] : []),
    ...(plan.budget_usd !== null && budget === null ? [`budget ${usd(plan.budget_usd)} beyond the axis`] : []),
  ];
  const path = line
    .map((one, i) => `${i ? 'L' : 'M'}${x(one.time_s!).toFixed(1)} ${y(one.cost_usd!).toFixed(1)}`)
    .join('');
  return (
    <Card title="Time against cost" aside={[plural(list.length, 'cluster'), ...beyond].join('; ')}>
      <span class="legend">
        {(Object.keys(roles) as Role[])
          .filter((role) => used.has(role) || role === 'frontier')
          .map((role) => (
            <LegendKey key={role} name={roles[role].word} colour={roles[role].colour} look={roles[role].look} />
          ))}
      </span>
      <div class="frontier" ref={box}>
        <svg
          width={width}
          height={height}
          role="group"
          aria-label={`Time against cost of ${plural(list.length, 'cluster')}`}
        >
          {ticks(0, most.cost, 5).map((cost) => (
            <g key={cost}>
              <line class="gridline" x1={edge.left} x2={width - edge.right} y1={y(cost)} y2={y(cost)} />
              <text class="axis-text" x={edge.left - 8} y={y(cost) + 4} text-anchor="end">
                {usd(cost)}
              </text>
            </g>
          ))}
          {timeTicks(most.from, most.time, Math.max(2, Math.floor(width / 70))).map((time) => (
            <g key={time}>
              <line class="gridline" x1={x(time)} x2={x(time)} y1={edge.top} y2={height - edge.bottom} />
              <text class="axis-text" x={x(time)} y={height - edge.bottom + 16} text-anchor="middle">
                {tick(time)}
              </text>
            </g>
          ))}
          <text class="axis-text" x={width - edge.right} y={height - 6} text-anchor="end">
            time to target
          </text>
          {deadline !== null && (
            <g class="limit">
              <rect
                x={x(deadline)}
                y={edge.top}
                width={Math.max(0, width - edge.right - x(deadline))}
                height={height - edge.top - edge.bottom}
              />
              <line x1={x(deadline)} x2={x(deadline)} y1={edge.top} y2={height - edge.bottom} />
              <text x={x(deadline) - 6} y={edge.top + 12} text-anchor="end">
                deadline {duration(deadline)}
              </text>
            </g>
          )}
          {budget !== null && (
            <g class="limit">
              <rect
                x={edge.left}
                y={edge.top}
                width={width - edge.left - edge.right}
                height={Math.max(0, y(budget) - edge.top)}
              />
              <line x1={edge.left} x2={width - edge.right} y1={y(budget)} y2={y(budget)} />
              <text x={width - edge.right - 4} y={y(budget) + 14} text-anchor="end">
                budget {usd(budget)}
              </text>
            </g>
          )}
          {path && <path d={path} fill="none" stroke="var(--quiet)" stroke-width="1.5" />}
          {list.map((point) => (
            <Dot key={keyOf(point)} point={point} x={x(point.time)} y={y(point.cost)} onShow={setShown} />
          ))}
        </svg>
        {told && (
          <div class="tip mark-tip" style={{ '--at': `${x(told.time)}px`, top: `${y(told.cost) + 16}px` }}>
            <strong>{clusterText(told.option)}</strong>
            <div>
              {duration(told.time)}, {usd(told.cost)}
            </div>
            <div class="quiet">{roles[told.role].word}</div>
          </div>
        )}
      </div>
    </Card>
  );
}
