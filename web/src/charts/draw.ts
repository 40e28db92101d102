import type uPlot from 'uplot';
import { ink } from '../colours';
import type { Region, Rule } from './spec';

export const font = 'system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif';

function clipped(u: uPlot, paint: (ctx: CanvasRenderingContext2D, ratio: number) => void): void {
  const { left, top, width, height } = u.bbox;
  u.ctx.save();
  u.ctx.beginPath();
  u.ctx.rect(left, top, width, height);
  u.ctx.clip();
  paint(u.ctx, window.devicePixelRatio || 1);
  u.ctx.restore();
}

export function drawRegions(u: uPlot, regions: Region[]): void {
  clipped(u, (ctx) => {
    for (const region of regions) {
      ctx.beginPath();
      for (const [x, y] of region.points) ctx.lineTo(u.valToPos(x, 'x', true), u.valToPos(y, 'y', true));
      ctx.closePath();
      ctx.fillStyle = ink(region.colour);
      ctx.fill();
    }
  });
}

function seen(u: uPlot, rule: Rule): rule is Rule & { at: number } {
  const scale = u.scales[rule.axis];
  if (rule.at == null || scale?.min == null || scale.max == null) return false;
  return rule.at >= scale.min && rule.at <= scale.max;
}

/** Words of lines across time stand at the `side` where the curves are not. */
export function drawRules(u: uPlot, rules: Rule[], side: 'top' | 'bottom'): void {
  clipped(u, (ctx, ratio) => {
    const { left, top, width, height } = u.bbox;
    ctx.font = `600 ${11 * ratio}px ${font}`;
    ctx.textAlign = 'left';
    ctx.textBaseline = 'alphabetic';
    ctx.lineWidth = 1.5 * ratio;
    let row = 0;
    for (const rule of rules) {
      if (!seen(u, rule)) continue;
      const at = Math.round(u.valToPos(rule.at, rule.axis, true)) + 0.5;
      ctx.strokeStyle = ink(rule.colour);
      ctx.setLineDash((rule.dash ?? [6, 4]).map((n) => n * ratio));
      ctx.beginPath();
      if (rule.axis === 'x') {
        ctx.moveTo(at, top);
        ctx.lineTo(at, top + height);
      } else {
        ctx.moveTo(left, at);
        ctx.lineTo(left + width, at);
      }
      ctx.stroke();
      if (rule.text === '') continue;
      // Labels get a ground of the card's colour: they often lie on lines.
      const wide = ctx.measureText(rule.text).width;
      const gap = 5 * ratio;
      let x = left + 6 * ratio;
      let y = at - 9 * ratio < top ? at + 13 * ratio : at - 5 * ratio;
      if (rule.axis === 'x') {
        x = at + gap + wide > left + width ? at - gap - wide : at + gap;
        const shift = (8 + 15 * row++) * ratio;
        y = side === 'bottom' ? top + height - shift : top + shift + 6 * ratio;
      }
      ctx.globalAlpha = 0.85;
      ctx.fillStyle = ink('var(--card)');
      ctx.fillRect(x - 2 * ratio, y - 10 * ratio, wide + 4 * ratio, 13 * ratio);
      ctx.globalAlpha = 1;
      ctx.fillStyle = ink(rule.colour);
      ctx.fillText(rule.text, x, y);
    }
  });
}

/** Diagonal lines over a box: the time a machine has left after its notice. */
export function hatch(
  ctx: CanvasRenderingContext2D,
  x: number,
  y: number,
  width: number,
  height: number,
  colour: string,
  ratio: number,
): void {
  ctx.save();
  ctx.beginPath();
  ctx.rect(x, y, width, height);
  ctx.clip();
  ctx.strokeStyle = colour;
  ctx.lineWidth = 1.5 * ratio;
  ctx.beginPath();
  for (let at = x - height; at < x + width; at += 5 * ratio) {
    ctx.moveTo(at, y + height);
    ctx.lineTo(at + height, y);
  }
  ctx.stroke();
  ctx.restore();
}
