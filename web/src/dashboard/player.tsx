import { useEffect, useRef, useState } from 'preact/hooks';
import { duration } from '../format';

const wholeMs = 14000;
const steps = 1000;
const still = window.matchMedia('(prefers-reduced-motion: reduce)');

/** Plays along a time axis. null: all is shown. */
export function Player({
  end,
  until,
  onUntil,
}: {
  end: number;
  until: number | null;
  onUntil: (until: number | null) => void;
}) {
  const [playing, setPlaying] = useState(false);
  const at = useRef(until ?? end);
  at.current = until ?? end;
  useEffect(() => {
    if (!playing) return;
    let frame = 0;
    let before = performance.now();
    let owed = 0;
    function go(now: number): void {
      owed += now - before;
      before = now;
      // Who wants less motion gets a picture a second instead of a film.
      if (!still.matches || owed >= 1000) {
        const next = at.current + (end * owed) / wholeMs;
        owed = 0;
        onUntil(next >= end ? null : next);
        if (next >= end) return setPlaying(false);
      }
      frame = requestAnimationFrame(go);
    }
    frame = requestAnimationFrame(go);
    return () => cancelAnimationFrame(frame);
  }, [playing, end]);

  function toggle(): void {
    if (!playing && until === null) onUntil(0);
    setPlaying(!playing);
  }

  return (
    <div class="player">
      <button
        type="button"
        class="play"
        onClick={toggle}
        data-testid="play"
        aria-label={playing ? 'Pause' : 'Play along time'}
      >
        <span aria-hidden="true">{playing ? '‖' : '▶'}</span>
      </button>
      <input
        type="range"
        aria-label="Time"
        min={0}
        max={steps}
        step={1}
        value={Math.round((steps * (until ?? end)) / end)}
        aria-valuetext={duration(until ?? end)}
        onInput={(event) => (
          setPlaying(false),
          onUntil(Number(event.currentTarget.value) >= steps ? null : (end * Number(event.currentTarget.value)) / steps)
        )}
      />
      <output>{duration(until ?? end)}</output>
    </div>
  );
}
