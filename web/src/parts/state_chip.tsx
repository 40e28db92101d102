const tones: Record<string, string> = {
  running: 'live',
  starting: 'live',
  finished: 'good',
  stopped: 'plain',
  failed: 'bad',
  lost: 'bad',
};

export function StateChip({ state, phase }: { state: string | null; phase: string | null }) {
  if (state === null) return null;
  const doing = state === 'running' && phase && phase !== 'training' ? `, ${phase}` : '';
  return (
    <span class={`state ${tones[state] ?? 'plain'}`} data-testid="state" data-value={state}>
      {state}
      {doing}
    </span>
  );
}
