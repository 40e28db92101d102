import { Component, type ComponentChildren } from 'preact';
import { Problem } from './card';

/** What cannot be drawn says so in its own place and leaves the rest of the page alone. */
export class Boundary extends Component<{ what: string; children: ComponentChildren }, { why: string | null }> {
  override state = { why: null };

  static override getDerivedStateFromError(error: unknown): { why: string } {
    return { why: error instanceof Error ? error.message : String(error) };
  }

  override render() {
    if (this.state.why === null) return this.props.children;
    return <Problem title={`This ${this.props.what} cannot be drawn`}>{this.state.why}</Problem>;
  }
}
