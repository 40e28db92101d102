import { moment } from './format';
import { Boundary } from './parts/boundary';
import { Frame } from './parts/frame';
import { StateChip } from './parts/state_chip';
import { PlanView } from './plan/plan_view';
import { Stalls } from './profile/stalls';
import { ReplayView } from './replay/replay_view';
import { RunView } from './run/run_view';
import type { Doc } from './types';

/** A document of its own: a section for each thing that it has. */
export function Report({ doc }: { doc: Doc }) {
  const [view, ...others] = doc.views;
  const several = [view, doc.plan, doc.replay, doc.profile].filter(Boolean).length > 1;
  // One section needs no heading to be told apart, but its cards need one above theirs.
  const heading = several ? undefined : 'unseen';
  return (
    <Frame
      foot={
        <>
          {doc.version}, made {moment(doc.made)}
        </>
      }
    >
      <div class="title">
        <h1>{doc.title}</h1>
        {view && <StateChip state={view.state} phase={view.phase} />}
        {view?.simulated && <span class="state plain">replayed</span>}
        {others.length > 0 && <span class="quiet">beside {others.map((one) => one.name).join(', ')}</span>}
      </div>
      {view?.failure && (
        <p class="problem" role="alert">
          {view.failure}
        </p>
      )}
      {view && (
        <section aria-label="Run">
          <h2 class={heading}>Run</h2>
          <Boundary what="run">
            <RunView view={view} others={others} />
          </Boundary>
        </section>
      )}
      {doc.plan && (
        <section aria-label="Plan">
          <h2 class={heading}>Plan</h2>
          <Boundary what="plan">
            <PlanView plan={doc.plan} />
          </Boundary>
        </section>
      )}
      {doc.replay && (
        <section aria-label="Replay">
          <h2 class={heading}>Replay</h2>
          <Boundary what="replay">
            <ReplayView replay={doc.replay} until={null} />
          </Boundary>
        </section>
      )}
      {doc.profile && (
        <section aria-label="Profile">
          <h2 class={heading}>Profile</h2>
          <Boundary what="profile">
            <Stalls profile={doc.profile} />
          </Boundary>
        </section>
      )}
    </Frame>
  );
}
