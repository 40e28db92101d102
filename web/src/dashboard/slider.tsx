import type { ComponentChildren } from 'preact';

interface SliderProps {
  id: string;
  title: string;
  value: number;
  text: string;
  /** The slider's own whole steps; what they mean is the caller's. */
  step: number;
  steps: number;
  onStep: (step: number) => void;
  off?: boolean;
  children?: ComponentChildren;
}

export function Slider({ id, title, value, text, step, steps, onStep, off, children }: SliderProps) {
  return (
    <div class={off ? 'slider off' : 'slider'}>
      <span class="slider-head">
        <label for={id}>{title}</label>
        {children}
        <output for={id}>{off ? 'any' : text}</output>
      </span>
      <input
        id={id}
        type="range"
        data-testid={id}
        data-value={value}
        min={0}
        max={steps}
        step={1}
        value={step}
        aria-valuetext={text}
        disabled={off}
        onInput={(event) => onStep(Number(event.currentTarget.value))}
      />
    </div>
  );
}
